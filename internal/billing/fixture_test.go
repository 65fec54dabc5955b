package billing_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// fixture is a practice in New York with a nurse; tests add patients one by one.
type fixture struct {
	t       *testing.T
	app     core.App
	e       *billing.Engine
	nurse   *collections.User
	by      audit.Actor
	planted int
}

func newFixture(t *testing.T, change ...func(*billing.Settings)) *fixture {
	t.Helper()
	e := newEngine()
	for _, apply := range change {
		apply(&e.Settings)
	}
	app := vigiltest.NewApp(t)
	return &fixture{t: t, app: app, e: e, nurse: vigiltest.User(t, app, authz.Nurse), by: audit.User(9, "biller@vigil.test", "data_monitor", audit.Origin{})}
}

// at returns a time in the practice's time zone, from "2026-01-31 23:59".
func at(text string) time.Time {
	moment, err := time.ParseInLocation("2006-01-02 15:04", text, newYork)
	if err != nil {
		panic(err)
	}
	return moment.UTC()
}

// patient stores a patient with consent since November, a diagnosis, and the given changes.
func (d *fixture) patient(change ...func(*oracleCase)) string {
	d.t.Helper()
	c := oracleCase{zone: newYork, practice: newYork, consent: at("2025-11-01 12:00"), diagnosis: true, provided: true}
	for _, apply := range change {
		apply(&c)
	}
	d.planted++
	return plant(d.t, d.app, d.planted, c, d.nurse.Id)
}

// wears assigns a device between two days ("" while held), with a reading at noon on a number of days from one on.
func wears(since, until, first string, days int) func(*oracleCase) {
	return func(c *oracleCase) {
		held := [2]time.Time{at(since + " 09:00")}
		if until != "" {
			held[1] = at(until + " 21:00")
		}
		c.held = append(c.held, held)
		for i := range days {
			c.readings = append(c.readings, oracleReading{at: at(billing.AddDays(first, i) + " 12:00"), device: true})
		}
	}
}

// talked adds documented interactive time.
func talked(start string, minutes int) func(*oracleCase) {
	return func(c *oracleCase) {
		c.times = append(c.times, oracleTime{at(start), minutes * 60, "interactive", "manual", true})
	}
}

func taught(day string) func(*oracleCase) {
	return func(c *oracleCase) { c.educated = at(day + " 10:00") }
}

func withoutConsent(c *oracleCase)   { c.consent = time.Time{} }
func withoutDiagnosis(c *oracleCase) { c.diagnosis = false }

func (d *fixture) exec(sql string, params dbx.Params) {
	d.t.Helper()
	if _, err := d.app.NonconcurrentDB().NewQuery(sql).Bind(params).Execute(); err != nil {
		d.t.Fatal(err)
	}
}

// consents stores a consent to monitoring.
func (d *fixture) consents(patient, granted, revoked string) {
	d.t.Helper()
	d.planted++
	until := ""
	if revoked != "" {
		until = collections.FormatInstant(at(revoked))
	}
	d.exec(`INSERT INTO consents (id, patient, type, method, granted_at, revoked_at) VALUES ({:id}, {:patient}, 'rpm', 'written', {:granted}, {:revoked})`,
		dbx.Params{"id": fmt.Sprintf("%015d", 1000+d.planted), "patient": patient, "granted": collections.FormatInstant(at(granted)), "revoked": until})
}

func (d *fixture) run(job billing.Job, when string) billing.Result {
	d.t.Helper()
	result, err := d.e.Run(d.t.Context(), d.app, job, audit.System(), func() time.Time { return at(when) })
	if err != nil {
		d.t.Fatal(err)
	}
	return result
}

// skips returns what a run skipped for a patient, as "code reason".
func skips(result billing.Result, patient string) string {
	var list []string
	for _, s := range result.Skipped {
		if s.PatientID == patient {
			list = append(list, s.CPTCode+" "+s.Reason)
		}
	}
	return strings.Join(list, ", ")
}

func (d *fixture) list(patient string) []*collections.BillingEntry {
	d.t.Helper()
	list, _, err := collections.PageOfBillingEntries(d.app, collections.EntryFilter{PatientID: patient}, nil, 0, 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b *collections.BillingEntry) int {
		return strings.Compare(a.CPTCode()+a.ServiceDate()+a.Id, b.CPTCode()+b.ServiceDate()+b.Id)
	})
	return list
}

// entries returns a patient's entries, as "code service units", by code.
func (d *fixture) entries(patient string) string {
	d.t.Helper()
	var lines []string
	for _, x := range d.list(patient) {
		lines = append(lines, fmt.Sprint(x.CPTCode(), " ", x.ServiceDate(), " ", x.Units()))
	}
	return strings.Join(lines, ", ")
}

// entry returns a patient's only entry of a code.
func (d *fixture) entry(patient, code string) *collections.BillingEntry {
	d.t.Helper()
	var found []*collections.BillingEntry
	for _, x := range d.list(patient) {
		if x.CPTCode() == code {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		d.t.Fatalf("%d entries of %s", len(found), code)
	}
	return found[0]
}

func (d *fixture) want(what, got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// refused returns the code of a fault; "" for success, and the text of any other error.
func refused(err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.Code
	}
	return err.Error()
}

// wrongFields returns the fields that a fault or a check lists, in order.
func wrongFields(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return refused(err)
	}
	return strings.Join(slices.Sorted(maps.Keys(f.Fields)), " ")
}

// manual creates a manual entry.
func (d *fixture) manual(patient, code, service string, minutes int, when string) (*collections.BillingEntry, error) {
	return d.e.CreateManual(d.app, billing.ManualDraft{PatientID: patient, CPTCode: code, ServiceDate: service, Minutes: minutes}, d.by, at(when))
}

func (d *fixture) made(patient, code, service string, minutes int, when string) *collections.BillingEntry {
	d.t.Helper()
	entry, err := d.manual(patient, code, service, minutes, when)
	if err != nil {
		d.t.Fatal(err)
	}
	return entry
}

func (d *fixture) do(entry *collections.BillingEntry, m billing.Transition) (*collections.BillingEntry, string) {
	moved, err := d.e.ApplyTransition(d.app, entry.Id, m, d.by, at("2026-04-01 09:30"))
	return moved, refused(err)
}

func texts(list ...string) validate.Strings { return validate.Of(list) }

func (d *fixture) provider() *collections.User {
	d.t.Helper()
	return vigiltest.User(d.t, d.app, authz.Provider)
}
