package routes_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/visitreport"
	"github.com/vigilhealth/vigil/routes"
)

// atTheEMR is a clinic that delivers readings to an EMR sandbox.
type atTheEMR struct {
	*clinic
	emr      *sandbox.EMR
	patient  string
	worker   *emr.Worker
	finished chan emr.Result
}

// testDocuments makes documents from the visit report.
var testDocuments = emr.DocumentOptions{
	Type: fhir.DefaultDocumentType, Author: "Hudson Valley Heart Clinic", Zone: newYork,
	Make: func(app core.App, d emr.Document, now time.Time) (pdf []byte, isEmpty bool, err error) {
		practice := visitreport.Practice{Name: "Hudson Valley Heart Clinic", Zone: newYork}
		return practice.Document(app, d.PatientID, d.EscalationID, d.From, d.To, now)
	},
}

func newAtTheEMR(t *testing.T, changes ...func(*ingest.Rules)) *atTheEMR {
	t.Helper()
	return newAtEMROf(t, "everything", changes...)
}

// newAtEMROf is newAtTheEMR with an EMR of a profile.
func newAtEMROf(t *testing.T, profile string, changes ...func(*ingest.Rules)) *atTheEMR {
	t.Helper()
	rules := ingest.Rules{PracticeZone: newYork, SendDevice: true}
	for _, change := range changes {
		change(&rules)
	}
	a := &atTheEMR{finished: make(chan emr.Result, 100)}
	now := func() time.Time {
		if a.clinic == nil {
			return clock
		}
		return a.now
	}
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(emr.JWKS(emrKey())) }))
	t.Cleanup(keys.Close)
	var err error
	a.emr, err = sandbox.NewEMR(sandbox.EMROptions{
		ClientID: "vigil", JWKSURL: keys.URL, Now: now, Profile: profile,
		Patients: []sandbox.EMRPatient{{ID: "erx-1", MRN: "M-1", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(a.emr)
	t.Cleanup(server.Close)
	client, err := emr.New(emr.Options{
		BaseURL: server.URL + "/fhir/demo", TokenURL: server.URL + "/oauth/token", ClientID: "vigil", PrivateKey: emrKey(), Now: now,
		QuickRetryDelays: []time.Duration{}, Timeout: 2 * time.Second, ConditionalCreate: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	a.clinic = newIngestingClinic(t, func(e *routes.Engines) {
		e.ProcessPendingLimit, e.EMR.Client = 100, client
		e.DeliveryWorker = emr.NewWorker(emr.WorkerOptions{
			Finished: func(r emr.Result) { a.finished <- r },
			EMR:      client, Schedule: emr.Schedule{time.Minute, time.Minute, time.Minute, time.Minute, time.Minute}, Clock: now,
			Load: ingest.NewReadingStore(rules).LoadFHIR, Documents: testDocuments,
			Log: slog.New(slog.DiscardHandler), Jitter: func() float64 { return 0 }, StopTimeout: time.Hour, // rounds run after it stopped
		})
		a.worker, e.Monitor = e.DeliveryWorker, dashboard.NewMonitor(dashboard.Probes{}, now, slog.New(slog.DiscardHandler))
	})
	a.patient = a.enroll(object{"external_id": "erx-1", "gateway_patient_id": "gw-1"})
	return a
}

// deliver advances the clock and runs a round.
func (a *atTheEMR) deliver(after time.Duration) {
	a.t.Helper()
	a.now = a.now.Add(after)
	a.request(authz.Admin, "POST", "/fhir/process-pending/", nil).want(200)
}

// sendRequested runs the worker until it has sent the delivery that a user requested.
func (a *atTheEMR) sendRequested(transmissionID string) {
	a.t.Helper()
	ctx, stop := context.WithCancel(a.t.Context())
	var run sync.WaitGroup
	run.Go(func() { a.worker.Run(ctx, a.app) })
	for sent := ""; sent != transmissionID; {
		sent = (<-a.finished).TransmissionID
	}
	stop()
	run.Wait()
}

// copies returns the EMR's observations, oldest first.
func (a *atTheEMR) copies(want int) []sandbox.StoredObservation {
	a.t.Helper()
	all := a.emr.Observations()
	if len(all) != want {
		a.t.Fatalf("the EMR has %d observations, want %d", len(all), want)
	}
	for _, o := range all {
		if o.Creates != 1 {
			a.t.Errorf("%s was created %d times", o.Identifier, o.Creates)
		}
	}
	return all
}

func (a *atTheEMR) retract(id string) {
	a.t.Helper()
	a.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "the neighbour's"}).want(200)
}

// A retracted reading is marked as entered in error at the EMR exactly once despite delivery failures; a reading that
// was never sent is not sent.
func TestStoryRetractedAtTheEMR(t *testing.T) {
	for name, fault := range map[string]sandbox.Fault{
		"nothing":       {Match: "PUT /nowhere"},
		"not reached":   {Match: "PUT ", Times: 2, Drop: sandbox.DropBefore},
		"answer lost":   {Match: "PUT ", Times: 1, Drop: sandbox.DropAfter},
		"unavailable":   {Match: "PUT ", Times: 2, Status: 503},
		"half answered": {Match: "PUT ", Times: 1, Answer: sandbox.AnswerHalf},
		"proxy's page":  {Match: "PUT ", Times: 1, Answer: sandbox.AnswerHTML},
		"token expired": {Match: "PUT ", Times: 1, Token: sandbox.TokenExpired},
		"slow down":     {Match: "PUT ", Times: 1, Status: 429},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAtTheEMR(t)
			id := a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200).at("observation_id").(string)
			a.deliver(time.Minute)
			if got := a.copies(1)[0]; got.Status != "final" || got.Versions != 1 {
				t.Errorf("delivered %s, version %d", got.Status, got.Versions)
			}
			a.emr.Fail(fault)
			a.retract(id)
			a.retract(id)
			for range 5 {
				a.deliver(10 * time.Minute)
			}
			if got := a.copies(1)[0]; got.Status != "entered-in-error" || got.Versions != 2 {
				t.Errorf("retracted: %s, version %d", got.Status, got.Versions)
			}
			a.request(authz.Nurse, "GET", "/ingestion/observations/"+id+"/", nil).want(200).
				wantAt(object{"fhir_status": "transmitted", "status": "entered_in_error"})

			never := a.postEvent(t, cuffEvent("BP-1", "gw-1", 151, a.now)).want(200).at("observation_id").(string)
			a.retract(never)
			a.deliver(10 * time.Minute)
			a.copies(1)
			a.request(authz.Nurse, "GET", "/ingestion/observations/"+never+"/", nil).want(200).wantAt(object{"fhir_status": "failed"})
		})
	}
}

// If the EMR does not support updates, the correction becomes a task for a person, reported once.
func TestStoryEMRWithoutUpdates(t *testing.T) {
	a := newAtTheEMR(t)
	id := a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200).at("observation_id").(string)
	a.deliver(time.Minute)
	a.emr.Fail(sandbox.Fault{Match: "PUT ", Status: 405})
	a.retract(id)
	for range 8 {
		a.deliver(time.Hour)
	}
	var notified int
	if err := a.app.DB().NewQuery("SELECT COUNT(*) FROM announcements WHERE kind = 'emr_copy_wrong'").Row(&notified); err != nil || notified != 1 {
		t.Errorf("notified %d times (%v)", notified, err)
	}
	a.emr.ClearFaults()
	a.request(authz.Nurse, "POST", "/fhir/observations/"+id+"/transform/", nil).want(200)
	a.deliver(time.Minute)
	if got := a.copies(1)[0]; got.Status != "entered-in-error" {
		t.Errorf("sent by hand: %s", got.Status)
	}
}

// Device readings and typed readings differ at the EMR, and their times have the patient's UTC offset.
func TestStoryTypedAndMeasuredAtTheEMR(t *testing.T) {
	a := newAtTheEMR(t)
	a.request(authz.MA, "POST", "/devices/assign/", object{
		"device_id": "BP-1", "patient_id": a.patient, "device_type": "blood_pressure", "manufacturer": "Example Medical", "model": "BP-7",
		"serial_number": "4711", "udi": "(01)00844588003288(21)4711",
	}).want(200).wantAt(object{"manufacturer": "Example Medical", "model": "BP-7", "serial_number": "4711", "udi": "(01)00844588003288(21)4711"})
	a.request(authz.MA, "GET", "/devices/BP-1/", nil).want(200).wantAt(object{"manufacturer": "Example Medical", "serial_number": "4711"})
	owner := vigiltest.User(t, a.app, authz.Patient, vigiltest.PortalOf(a.patient))
	a.postEvent(t, cuffEvent("BP-1", "gw-1", 150, a.now)).want(200)
	body := object{"patient_id": a.patient, "systolic": 128, "diastolic": 79, "device_id": "BP-1", "measured_at": "2026-01-15T13:40:00Z"}
	a.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201)
	body["systolic"], body["measured_at"] = 127, "2026-01-15T13:41:00Z"
	a.requestAs(owner, "POST", "/ingestion/blood-pressure/", body).want(201)
	a.deliver(time.Minute)
	want := map[string]struct{ tag, effective string }{
		"DEVRPT": {"DEVRPT", "2026-01-15T08:45:00-05:00"}, "HCPRPT": {"HCPRPT", "2026-01-15T08:40:00-05:00"}, "PATRPT": {"PATRPT", "2026-01-15T08:41:00-05:00"},
	}
	for _, o := range a.copies(3) {
		var sent struct {
			Meta struct {
				Tag []struct{ Code string }
			}
			Effective string `json:"effectiveDateTime"`
			Contained []struct{ SerialNumber, Manufacturer, ModelNumber string }
			Device    struct{ Reference, Display string }
			Performer []struct{ Reference string }
		}
		if err := json.Unmarshal(o.Resource, &sent); err != nil || len(sent.Meta.Tag) != 1 {
			t.Fatalf("%v: %s", err, o.Resource)
		}
		tag := sent.Meta.Tag[0].Code
		if sent.Effective != want[tag].effective || sent.Device.Display != "BP-1" {
			t.Errorf("%s: %+v", tag, sent)
		}
		measured := len(sent.Contained) == 1 && sent.Contained[0].SerialNumber == "4711" && sent.Device.Reference == "#device"
		if measured != (tag == "DEVRPT") || (len(sent.Performer) == 1 && sent.Performer[0].Reference == "Patient/erx-1") != (tag != "HCPRPT") {
			t.Errorf("%s: %+v", tag, sent)
		}
		delete(want, tag)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}
