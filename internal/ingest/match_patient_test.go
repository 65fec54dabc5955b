package ingest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Source: docs/decisions/gateway.md, "Which patient does an event belong to".
func TestMatchPatient(t *testing.T) {
	app, _ := newPipelineApp(t)
	ada := vigiltest.Patient(t, app, dbx.Params{"mrn": "ADA-1", "gateway_patient_id": "gw-ada"})
	bob := vigiltest.Patient(t, app, dbx.Params{"mrn": "gw-carl"})
	carl := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-carl"})
	retracted := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-gone"})
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"active": false}, dbx.HashExp{"id": retracted}).Execute(); err != nil {
		t.Fatal(err)
	}
	vigiltest.Assign(t, app, "BP-ada", ada, pipelineNow.AddDate(-1, 0, 0))
	vigiltest.Assign(t, app, "BP-gone", retracted, pipelineNow.AddDate(-1, 0, 0))
	handed := func(device, from string, patient string, until time.Time) {
		row := dbx.Params{"device_id": device, "patient": patient, "assigned_at": from, "unassigned_at": collections.FormatInstant(until)}
		if _, err := app.DB().Insert(collections.DeviceAssignments, row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	handed("BP-shared", collections.FormatInstant(pipelineNow.Add(-48*time.Hour)), ada, pipelineNow.Add(-24*time.Hour))
	handed("BP-shared", collections.FormatInstant(pipelineNow.Add(-24*time.Hour)), bob, pipelineNow)
	event := func(device, patient string, ago time.Duration) gateway.Event {
		return gateway.Event{DeviceID: device, PatientID: patient, At: pipelineNow.Add(-ago)}
	}
	tests := []struct {
		name            string
		event           gateway.Event
		patient, reason string
	}{
		{"who holds the device", event("BP-ada", "", 0), ada, ""},
		{"who holds it, named the same", event("BP-ada", "gw-ada", 0), ada, ""},
		{"who holds it, named by something unknown", event("BP-ada", "whoever", 0), ada, ""},
		{"who held it then", event("BP-shared", "", 25*time.Hour), ada, ""},
		{"who held it from that moment on", event("BP-shared", "", 24*time.Hour), bob, ""},
		{"unassigned since", event("BP-shared", "", 0), "", "unknown_patient"},
		{"the gateway's id", event("BP-new", "gw-ada", 0), ada, ""},
		{"the gateway's id goes before an equal MRN", event("BP-new", "gw-carl", 0), carl, ""},
		{"our id, in any case", event("BP-new", strings.ToUpper(bob), 0), bob, ""},
		{"the MRN, in any case", event("BP-new", "ada-1", 0), ada, ""},
		{"two answers are none", event("BP-ada", "gw-carl", 0), "", "patient_mismatch"},
		{"nobody", event("BP-new", "whoever", 0), "", "unknown_patient"},
		{"no name at all", event("BP-new", "", 0), "", "unknown_patient"},
		{"an archived holder", event("BP-gone", "", 0), "", "patient_inactive"},
		{"an archived patient by name", event("BP-new", "gw-gone", 0), "", "patient_inactive"},
	}
	for _, test := range tests {
		patient, reason, err := ingest.MatchPatient(app, test.event)
		if patient != test.patient || reason != test.reason || err != nil {
			t.Errorf("%s: %q %q (%v), want %q %q", test.name, patient, reason, err, test.patient, test.reason)
		}
	}
}

// No authenticated event is lost or stored twice, and quarantined events are audited.
func TestStoreEvent(t *testing.T) {
	app, _ := newPipelineApp(t)
	kept := ingest.EventEntry{
		ID: "0194c5a8-0000-7000-8000-0000000000aa", Status: collections.EventOpen, Reason: ingest.ReasonUnknownPatient,
		Event:   gateway.Event{Type: gateway.MeasurementCreated, DeviceID: "BP-1", PatientID: "gw-1", MeasurementType: "bp", At: pipelineNow},
		Payload: []byte(`{"systolic":185}`), FieldErrors: fault.Fields{"unit": {"Unknown."}},
	}
	before := vigiltest.RowCounts(t, app)
	for _, want := range []bool{false, true} {
		if id, duplicate, err := ingest.StoreEvent(app, kept, gatewayActor, pipelineNow); id != kept.ID || duplicate != want || err != nil {
			t.Errorf("%s known %t (%v)", id, duplicate, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"gateway_events": 1, "audit_log": 1, "announcements": 1}, vigiltest.RowsAdded(t, app, before)); diff != "" {
		t.Error(diff)
	}
	checkEvent(t, storedInstant(t, app, kept.ID), map[string]any{
		"status": "open", "reason": "unknown_patient", "device_id": "BP-1",
		"payload": `{"systolic":185}`, "received_at": collections.FormatInstant(pipelineNow),
	})
	for _, sealed := range alertTexts(t, app, "SELECT payload FROM gateway_events") {
		if sealed == string(kept.Payload) {
			t.Error("the payload lies open on disk")
		}
	}
	other := kept
	other.Payload = []byte(`{"systolic":190}`)
	for _, want := range []bool{false, true} {
		if id, duplicate, err := ingest.StoreEvent(app, other, gatewayActor, pipelineNow); id != gateway.BodyID(gateway.Contract, other.Payload) || duplicate != want || err != nil {
			t.Errorf("another body under the same id: %s known %t (%v)", id, duplicate, err)
		}
	}
	kept.ID, kept.Status = "0194c5a8-0000-7000-8000-0000000000ab", collections.EventHandled
	before = vigiltest.RowCounts(t, app)
	if _, _, err := ingest.StoreEvent(app, kept, gatewayActor, pipelineNow); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"gateway_events": 1}, vigiltest.RowsAdded(t, app, before)); diff != "" {
		t.Error(diff)
	}
}
