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

// What stands in the record of a reading that an EMR like HAPI does not take because of its patient. It is sent once the EMR knows them.
func TestRefusedPatientInTheRecord(t *testing.T) {
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
			p := newPractice(t, &sandboxSigningKey().PublicKey, func() {}, nil, func(o *sandbox.EMROptions) {
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

// An EMR that does not let its copy be corrected says so in the record, and a person is asked to correct it at once.
func TestRefusedUpdateInTheRecord(t *testing.T) {
	for status, message := range map[int]string{
		403: "Update refused by EMR (403: insufficient scope)", 405: "Update refused by EMR: exception", 422: "Update refused by EMR: invariant", 501: "Update refused by EMR: exception",
	} {
		c := newChanging(t)
		p := newPractice(t, &sandboxSigningKey().PublicKey, func() {}, nil)
		client, err := sandboxClient(p.url, sandboxSigningKey(), true)
		if err != nil {
			t.Fatal(err)
		}
		load := c.worker.Load
		c.worker = newWorker(c.emr, c.clock, func(o *emr.WorkerOptions) { o.EMR, o.Load = client, load })
		c.send(time.Minute)
		p.emr.Fail(sandbox.Fault{Match: "PUT ", Status: status})
		c.withdraw()
		c.send(time.Minute)
		c.stands("refused", "failed", "update_refused")
		check(t, c.app, collections.Transmissions, c.id, map[string]any{"error_message": message, "ambiguous": false, "attempt_count": 1.0})
		if told := c.told(); len(told) != 1 || told[0] != "emr_copy_wrong" {
			t.Errorf("%d: told %v", status, told)
		}
		p.emr.ClearFaults()
		c.send(24 * time.Hour)
		c.stands("allowed", "transmitted", "")
		if got := p.emr.Observations()[0]; got.Versions != 2 || got.Status != "entered-in-error" {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

// Who asks for a delivery of what was given up gets it once the EMR's search can be believed, and not before.
func TestTransmitWaitsForTheSearch(t *testing.T) {
	c := newChanging(t)
	c.givenUp()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.transmit()
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"ambiguous": true, "next_retry_at": ""})
	sent := c.emr.sends[c.reading]
	c.emr.looking = &emr.Error{Code: emr.CodeSearchOutdated, Message: "EMR search may be out of date", Ambiguous: true, LookAgain: time.Minute}
	c.transmit()
	check(t, c.app, collections.Transmissions, c.id, map[string]any{
		"status": "failed", "error_code": "search_outdated", "attempt_count": 5.0, "next_retry_at": collections.Instant(c.clock.now().Add(time.Minute)),
	})
	if c.emr.sends[c.reading] != sent {
		t.Error("it was sent")
	}
	c.emr.looking, c.emr.refuse = nil, nil
	c.send(time.Minute)
	c.stands("in the end", "transmitted", "")
}
