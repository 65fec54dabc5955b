package ingest_test

import (
	"fmt"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const requestEvent = `{"metric":%q,"hwi_device_id":"T-1","patient_id":"gw-1","value_1":%d,"value_2":82,"timestamp":"2026-01-15T13:40:00Z"}`

// A replay repairs the state after a crash between two commits, in the vendor's format: a reading without its pending pulse, and a pulse
// that is merged but still pending.
func TestReplayAfterKill(t *testing.T) {
	for _, pulseIsIn := range []bool{false, true} {
		app, engine := newPipelineApp(t)
		engine.Adapters = gateway.NewAdapters(config.Gateway{}, pipelineRules.MaxFuture)
		patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
		read := func(body string) gateway.Event {
			event, err := engine.Adapters[gateway.Tenovi].Parse([]byte(body), pipelineNow)
			if err != nil {
				t.Fatal(err)
			}
			return event
		}
		pressure, body := read(fmt.Sprintf(requestEvent, "blood_pressure", 128)), fmt.Sprintf(requestEvent, "pulse", 190)
		pulse := read(body)
		if pulseIsIn {
			whole, _ := pressure.Reading.Merge(*pulse.Reading)
			pressure.Reading = &whole
		}
		ingestEvent(t, app, engine, ingest.NewSubmission(pressure, patient, gatewayActor, pipelineNow))
		id, _, err := ingest.StoreEvent(app, ingest.EventEntry{
			ID: pulse.ID(), Status: collections.EventOpen, Reason: ingest.ReasonReadingMissing, Event: pulse, Payload: []byte(body),
		}, gatewayActor, pipelineNow)
		if err != nil {
			t.Fatal(err)
		}
		done, err := engine.Replay(t.Context(), app, pipelineClock, func(int, int) {})
		want := ingest.ReplayResult{Stored: 1}
		if pulseIsIn {
			want = ingest.ReplayResult{Duplicates: 1}
		}
		if err != nil || done != want {
			t.Errorf("%+v, want %+v (%v)", done, want, err)
		}
		checkEvent(t, storedInstant(t, app, id), map[string]any{"status": "released", "vendor": "tenovi", "closed_by": "system"})
		if got := alertTexts(t, app, `SELECT CAST(pulse AS INTEGER) || ' ' || (SELECT COUNT(*) FROM alerts WHERE type = 'pulse') FROM observations`); len(got) != 1 || got[0] != "190 1" {
			t.Errorf("pulse and alerts: %v", got)
		}
	}
}

// Values left out of a reading stay pending for a person, independent of the reading.
func TestReplayOfLeftOutValues(t *testing.T) {
	app, engine := newPipelineApp(t)
	engine.Adapters = gateway.NewAdapters(config.Gateway{}, pipelineRules.MaxFuture)
	vigiltest.Assign(t, app, "d", vigiltest.Patient(t, app, nil), pipelineNow.AddDate(-1, 0, 0))
	body := fmt.Appendf(nil, `{"data":{"systolic":120,"diastolic":80,"pulse":24},"deviceId":"d","readingType":"BloodPressure","time":"%d"}`, pipelineNow.UnixMilli())
	event, err := engine.Adapters[gateway.Telli].Parse(body, pipelineNow)
	if err != nil || event.RejectedValues["data.pulse"] == nil {
		t.Fatalf("left out is %v (%v)", event.RejectedValues, err)
	}
	id, _, err := ingest.StoreEvent(app, ingest.EventEntry{
		ID: gateway.BodyID(gateway.Telli, body), Status: collections.EventRejected, Reason: "validation_error", Event: event, Payload: body, FieldErrors: event.RejectedValues,
	}, gatewayActor, pipelineNow)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := engine.Replay(t.Context(), app, pipelineClock, func(int, int) {}); err != nil || done != (ingest.ReplayResult{Pending: 1}) {
		t.Errorf("%+v (%v)", done, err)
	}
	checkEvent(t, storedInstant(t, app, id), map[string]any{"status": "rejected", "reason": "validation_error"})
}

// An event of an unsupported vendor stays pending with that reason.
func TestUnknownVendor(t *testing.T) {
	app, engine := newPipelineApp(t)
	event, err := parser.Parse(cuff("BP-1", "gw-1", 120, 1), pipelineNow)
	if err != nil {
		t.Fatal(err)
	}
	event.Vendor = "nobody"
	id, _, err := ingest.StoreEvent(app, ingest.EventEntry{ID: event.ID(), Status: collections.EventOpen, Event: event, Payload: cuff("BP-1", "gw-1", 120, 1)}, gatewayActor, pipelineNow)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := engine.Replay(t.Context(), app, pipelineClock, func(int, int) {}); err != nil || done != (ingest.ReplayResult{Pending: 1}) {
		t.Errorf("%+v (%v)", done, err)
	}
	checkEvent(t, storedInstant(t, app, id), map[string]any{"status": "rejected", "reason": "unknown_vendor"})
	if _, err := engine.Release(app, id, vigiltest.Patient(t, app, nil), nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("released: %v", err)
	}
}
