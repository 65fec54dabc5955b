package billing_test

import (
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A precheck is valid as long as nothing changed since; otherwise the entry is recounted, and refused if it is no longer supported.
func TestPrecheckAfterChanges(t *testing.T) {
	for name, story := range map[string]struct {
		between func(d *fixture, entry *collections.BillingEntry, patient string)
		want    string
		status  string
	}{
		"nothing": {func(*fixture, *collections.BillingEntry, string) {}, "", billing.Submitted},
		"another patient": {func(d *fixture, _ *collections.BillingEntry, _ string) {
			d.trace(d.patient(), audit.ConsentRevoke)
		}, "", billing.Submitted},
		"an audit entry": {func(d *fixture, _ *collections.BillingEntry, patient string) { d.trace(patient, audit.PatientUpdate) }, "", billing.Submitted},
		"consent is revoked": {func(d *fixture, _ *collections.BillingEntry, patient string) {
			d.exec("UPDATE consents SET revoked_at = '2025-12-01T00:00:00.000000Z' WHERE patient = {:p}", dbx.Params{"p": patient})
			d.trace(patient, audit.ConsentRevoke)
		}, "invalid_state", billing.Reviewed},
		"entry is returned": {func(d *fixture, entry *collections.BillingEntry, _ string) { d.do(entry, d.e.ReturnToReview("Wait")) }, "invalid_transition", billing.PendingReview},
	} {
		d := newFixture(t)
		patient := d.patient(talked("2026-01-10 10:00", 25))
		d.run(billing.TimeJob, "2026-01-20 09:00")
		var id string
		if err := d.app.DB().NewQuery("SELECT id FROM billing_entries WHERE cpt_code = '99457'").Row(&id); err != nil {
			t.Fatal(err)
		}
		if _, got := d.do(d.found(id), d.e.Review(d.by, "", "", false, changesTime)); got != "" {
			t.Fatal(name, got)
		}
		head, _, err := collections.AuditHead(d.app)
		if err != nil {
			t.Fatal(err)
		}
		decided, err := d.e.PrecheckSubmission(d.app, d.found(id), "1", "000000007", changesTime)
		if err != nil {
			t.Fatal(name, err)
		}
		story.between(d, d.found(id), patient)
		err = d.app.RunInTransaction(func(tx core.App) error {
			refused, err := d.e.SubmitPrechecked(tx, []billing.PrecheckedSubmission{decided}, head, d.by, changesTime)
			if err == nil {
				err = refused[id]
			}
			return err
		})
		if got := vigiltest.Code(err); got != story.want || d.found(id).Status() != story.status {
			t.Errorf("%s: %q (%v), the entry is %s", name, got, err, d.found(id).Status())
		}
		if story.want == "" && d.found(id).SubmissionReference() != "000000007" {
			t.Errorf("%s: sent as %q", name, d.found(id).SubmissionReference())
		}
	}
}

// trace appends an audit entry about a patient.
func (d *fixture) trace(patient string, event audit.Event) {
	d.t.Helper()
	err := d.app.RunInTransaction(func(tx core.App) error {
		return audit.Append(tx, audit.Entry{Event: event, Actor: d.by, ResourceType: audit.ResourcePatient, ResourceID: patient, PatientID: patient}, changesTime)
	})
	if err != nil {
		d.t.Fatal(err)
	}
}
