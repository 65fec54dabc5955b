package emr_test

import (
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// The stored result of a reading that an EMR like HAPI refuses because of its patient. After the patient is corrected it is sent.
func TestPatientRefusalIsStored(t *testing.T) {
	for name, test := range map[string]struct {
		patient       sandbox.EMRPatient
		code, message string
	}{
		"unknown": {sandbox.EMRPatient{ID: "erx-9"}, "patient_not_found", "Patient not found in EMR"},
		"deleted": {sandbox.EMRPatient{ID: "erx-1", Deleted: true}, "patient_not_found", "Patient deleted in EMR"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp(t)
			queueMany(t, app, 3)
			p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, nil, func(o *sandbox.EMROptions) {
				o.LikeHAPI, o.Patients = true, []sandbox.EMRPatient{test.patient}
			})
			client, err := sandboxClient(p.url, sandboxSigningKey(), true)
			if err != nil {
				t.Fatal(err)
			}
			w := sandboxWorker(client, nil)
			if round := sendDue(t, w, app, 0); round.Failed != 3 || round.Failures[0].ErrorCode != test.code || round.Failures[0].ErrorMessage != test.message {
				t.Errorf("%+v", round)
			}
			var sealed string
			id := onlyID(t, app, "failed")
			record, err := app.FindRecordById(collections.Transmissions, id)
			if err != nil {
				t.Fatal(err)
			}
			words := record.GetString("diagnostics")
			if err := app.DB().NewQuery("SELECT diagnostics FROM transmissions WHERE id = {:id}").Bind(dbx.Params{"id": id}).Row(&sealed); err != nil {
				t.Fatal(err)
			}
			if words == "" || sealed == words {
				t.Errorf("the EMR's words are %q, stored as %q", words, sealed)
			}
			p.emr.AddPatient(sandbox.EMRPatient{ID: "erx-1", Family: "Lovelace"})
			deliverAll(t, w, app)
			if stats := p.emr.Stats(); stats.Observations != 3 || stats.MostPerIdentifier != 1 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func onlyID(t *testing.T, app core.App, status string) (id string) {
	t.Helper()
	if err := app.DB().NewQuery("SELECT MIN(id) FROM transmissions WHERE status = {:status}").Bind(dbx.Params{"status": status}).Row(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// A refused update is stored with its reason, and a person is notified at once.
func TestUpdateRefusalIsStored(t *testing.T) {
	for status, message := range map[int]string{
		403: "Update refused by EMR (403: insufficient scope)", 405: "Update refused by EMR: exception", 422: "Update refused by EMR: invariant", 501: "Update refused by EMR: exception",
	} {
		c := newChangingReading(t)
		p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, nil)
		client, err := sandboxClient(p.url, sandboxSigningKey(), true)
		if err != nil {
			t.Fatal(err)
		}
		load := c.worker.Load
		c.worker = newWorker(c.emr, c.clock, func(o *emr.WorkerOptions) { o.EMR, o.Load = client, load })
		c.send(time.Minute)
		p.emr.Fail(sandbox.Fault{Match: "PUT ", Status: status})
		c.retract()
		c.send(time.Minute)
		c.checkStatus("refused", "failed", "update_refused")
		check(t, c.app, collections.Transmissions, c.id, map[string]any{"error_message": message, "ambiguous": false, "attempt_count": 1.0})
		if kinds := c.announcedKinds(); len(kinds) != 1 || kinds[0] != "emr_copy_wrong" {
			t.Errorf("%d: announced %v", status, kinds)
		}
		p.emr.ClearFaults()
		c.send(24 * time.Hour)
		c.checkStatus("allowed", "transmitted", "")
		if got := p.emr.Observations()[0]; got.Versions != 2 || got.Status != "entered-in-error" {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

// A manual transmit of a dead letter waits until the EMR's search can be trusted.
func TestTransmitWaitsForSearchCache(t *testing.T) {
	c := newChangingReading(t)
	c.deadLetter()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.transmit()
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"ambiguous": true, "next_retry_at": ""})
	sent := c.emr.sends[c.reading]
	c.emr.searchErr = &emr.Error{Code: emr.CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, TrustSearchAfter: time.Minute}
	c.transmit()
	check(t, c.app, collections.Transmissions, c.id, map[string]any{
		"status": "failed", "error_code": "search_outdated", "attempt_count": 5.0, "next_retry_at": collections.FormatInstant(c.clock.now().Add(time.Minute)),
	})
	if c.emr.sends[c.reading] != sent {
		t.Error("it was sent")
	}
	c.emr.searchErr, c.emr.refuse = nil, nil
	c.send(time.Minute)
	c.checkStatus("in the end", "transmitted", "")
}
