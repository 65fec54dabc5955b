package ingest_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var parser = gateway.ContractAdapter{MaxFuture: 5 * time.Minute}

func cuff(device, patient string, systolic, ago int) []byte {
	return fmt.Appendf(nil, `{"event_type":"measurement.created","device_id":%q,"patient_id":%q,"measurement_type":"bp","values":{"systolic":%d,"diastolic":80},"timestamp":%q}`,
		device, patient, systolic, pipelineNow.Add(-time.Duration(ago)*time.Minute).Format(time.RFC3339))
}

// quarantined stores a body as an open event and returns its id.
func quarantined(t *testing.T, app core.App, body []byte, reason string) string {
	t.Helper()
	event, err := parser.Parse(body, pipelineNow)
	kept := ingest.EventEntry{ID: event.ID(), Status: collections.EventOpen, Reason: reason, Event: event, Payload: body}
	if err != nil {
		kept.ID, kept.Status, kept.Reason = gateway.BodyID(gateway.Contract, body), collections.EventRejected, vigiltest.Code(err)
		kept.FieldErrors = fault.Fields{"unit": {"This field is required."}}
	}
	id, _, err := ingest.StoreEvent(app, kept, gatewayActor, pipelineNow)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestQuarantineNotifiesHourly(t *testing.T) {
	app, _ := newPipelineApp(t)
	for i := range 3 {
		quarantined(t, app, cuff("BP-1", "nobody", 120, i), ingest.ReasonUnknownPatient)
	}
	if notified := alertTexts(t, app, `SELECT kind || ' ' || key FROM announcements`); len(notified) != 1 || !strings.HasPrefix(notified[0], "event_quarantined ") {
		t.Errorf("notified %v", notified)
	}
	if on := alertTexts(t, app, `SELECT * FROM (SELECT json_group_array(name) FROM pragma_table_info('gateway_events') WHERE name LIKE '%patient%' AND name != 'patient')`); on[0] != "[]" {
		t.Errorf("the patient lies open on disk: %s", on)
	}
	if match := alertTexts(t, app, `SELECT patient FROM gateway_events WHERE patient != ''`); len(match) != 0 {
		t.Errorf("the unmatched event is %v", match)
	}
	page, total, _, err := collections.PageOfGatewayEvents(app, collections.GatewayEventFilter{Status: collections.EventOpen}, 0, 2)
	if err != nil || total != 3 || len(page) != 2 || gateway.PatientIdentifier([]byte(page[0].Payload().Reveal())) != "nobody" {
		t.Errorf("%d of %d (%v)", len(page), total, err)
	}
}

func TestRelease(t *testing.T) {
	app, engine := newPipelineApp(t)
	ada, bob := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	archived := vigiltest.Patient(t, app, nil)
	if _, err := app.DB().Update(collections.Patients, dbx.Params{"active": false}, dbx.HashExp{"id": archived}).Execute(); err != nil {
		t.Fatal(err)
	}
	vigiltest.Assign(t, app, "BP-9", bob, pipelineNow.AddDate(-1, 0, 0))
	id := quarantined(t, app, cuff("BP-1", "nobody", 120, 1), ingest.ReasonUnknownPatient)
	other := quarantined(t, app, cuff("BP-1", "nobody", 130, 1), ingest.ReasonUnknownPatient) // contradicts the first
	held := quarantined(t, app, cuff("BP-9", "nobody", 120, 1), ingest.ReasonPatientMismatch)
	ancient := quarantined(t, app, []byte(strings.Replace(string(cuff("BP-1", "x", 120, 0)), pipelineNow.Format("2006-"), "1930-", 1)), ingest.ReasonUnknownPatient)
	foreign := quarantined(t, app, []byte(`{"event_type":"measurement.created","device_id":"T","patient_id":"x","measurement_type":"ecg","timestamp":"2026-01-15T00:00:00Z"}`), ingest.ReasonUnsupportedType)
	for _, refused := range []struct{ id, patient, want string }{
		{collections.NewUUID(), ada, "not_found"},
		{id, collections.NewUUID(), "not_found"},
		{id, archived, "validation_error"},
		{held, ada, "device_patient_mismatch"},
		{foreign, ada, "invalid_state"},
	} {
		if _, err := engine.Release(app, refused.id, refused.patient, nurseActor, pipelineNow); vigiltest.Code(err) != refused.want {
			t.Errorf("%v, want %s", err, refused.want)
		}
	}
	if old, err := engine.Release(app, ancient, ada, nurseActor, pipelineNow); err != nil || old.Observation.SuspectReason != ingest.ReasonDeviceClock {
		t.Errorf("measured before birth: %+v, %v", old.Observation.Review, err)
	}
	before := vigiltest.RowCounts(t, app)
	outcome, err := engine.Release(app, id, ada, nurseActor, pipelineNow)
	if err != nil || outcome.Observation.PatientID != ada || outcome.Duplicate {
		t.Fatalf("released: %v", err)
	}
	if added := vigiltest.RowsAdded(t, app, before); added["observations"] != 1 || added["transmissions"] != 1 || added["audit_log"] != 2 || added["gateway_events"] != 0 {
		t.Errorf("a release adds %v", added)
	}
	checkEvent(t, storedInstant(t, app, id), map[string]any{
		"status": "released", "observation": outcome.Observation.ID, "closed_by": "nurse@vigil.test", "closed_at": collections.FormatInstant(pipelineNow),
	})
	if _, err := engine.Release(app, id, ada, nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("twice: %v", err)
	}
	second, err := engine.Release(app, other, ada, nurseActor, pipelineNow)
	if err != nil || second.Duplicate || second.Observation.ID == outcome.Observation.ID || *second.Observation.Reading.Value(vitals.Systolic) != 130 {
		t.Errorf("a person's word against the first: %+v, %v", second.Duplicate, err)
	}
	if page, total, _, err := collections.PageOfGatewayEvents(app, collections.GatewayEventFilter{Status: collections.EventReleased}, 0, 10); err != nil || total != 3 || len(page) != 3 {
		t.Errorf("%d released (%v)", total, err)
	}
}

func TestDiscard(t *testing.T) {
	app, engine := newPipelineApp(t)
	id := quarantined(t, app, cuff("BP-1", "nobody", 120, 1), ingest.ReasonUnknownPatient)
	item, err := engine.Discard(app, id, "a test device", nurseActor, pipelineNow)
	if err != nil || item.Status() != collections.EventDiscarded || item.ClosedBy() != "nurse@vigil.test" || !item.ClosedAt().Equal(pipelineNow) {
		t.Errorf("discarded: %s, %v", item.Status(), err)
	}
	checkEvent(t, storedInstant(t, app, id), map[string]any{"close_reason": "a test device"})
	if _, err := engine.Discard(app, id, "again", nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("twice: %v", err)
	}
	if _, err := engine.Release(app, id, vigiltest.Patient(t, app, nil), nurseActor, pipelineNow); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("released after all: %v", err)
	}
	if _, err := engine.Discard(app, collections.NewUUID(), "x", nurseActor, pipelineNow); vigiltest.Code(err) != "not_found" {
		t.Errorf("unknown: %v", err)
	}
}

// lenientParser parses what the gateway's own parser rejects.
type lenientParser struct{ gateway.ContractAdapter }

func (p lenientParser) Parse(body []byte, at time.Time) (gateway.Event, error) {
	return p.ContractAdapter.Parse([]byte(strings.Replace(string(body), `"tension"`, `"bp"`, 1)), at)
}

// After its cause is fixed a replay stores a pending event; events that still cannot be matched get the current reason.
func TestReplay(t *testing.T) {
	app, engine := newPipelineApp(t)
	born := quarantined(t, app, cuff("BP-1", "gw-1", 120, 1), ingest.ReasonUnknownPatient)
	unread := quarantined(t, app, []byte(strings.Replace(string(cuff("BP-2", "gw-1", 121, 2)), `"bp"`, `"tension"`, 1)), ingest.ReasonUnsupportedType)
	rejected := quarantined(t, app, []byte(strings.Replace(string(cuff("BP-3", "gw-1", 121, 3)), `"systolic"`, `"high"`, 1)), "")
	stranger := quarantined(t, app, cuff("BP-4", "nobody", 120, 1), ingest.ReasonPatientInactive)
	future := quarantined(t, app, cuff("BP-5", "gw-1", 120, -60), "") // an hour ahead on receipt
	duplicate := quarantined(t, app, cuff("BP-6", "gw-1", 120, 1), ingest.ReasonUnknownPatient)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	event, _ := parser.Parse(cuff("BP-6", "gw-1", 120, 1), pipelineNow)
	ingestEvent(t, app, engine, ingest.NewSubmission(event, patient, gatewayActor, pipelineNow))

	run := func(p gateway.Adapter, at time.Time) ingest.ReplayResult {
		t.Helper()
		engine.Adapters[gateway.Contract] = p
		last := 0
		done, err := engine.Replay(t.Context(), app, func() time.Time { return at }, func(done, total int) { last = total - done })
		if err != nil || last != 0 {
			t.Fatalf("%d left (%v)", last, err)
		}
		return done
	}
	if done := run(parser, pipelineNow.Add(2*time.Hour)); done != (ingest.ReplayResult{Stored: 1, Duplicates: 1, Pending: 4}) {
		t.Errorf("first: %+v", done)
	}
	for id, want := range map[string]string{
		born: "released unknown_patient", duplicate: "released unknown_patient", unread: "open unsupported_type", rejected: "rejected validation_error",
		future: "rejected validation_error", stranger: "open unknown_patient",
	} {
		record := storedInstant(t, app, id)
		if got := record.GetString("status") + " " + record.GetString("reason"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	before := vigiltest.RowCounts(t, app)
	if done := run(parser, pipelineNow); done != (ingest.ReplayResult{Pending: 4}) || len(vigiltest.RowsAdded(t, app, before)) != 0 {
		t.Errorf("repeated: %+v", done)
	}
	if done := run(lenientParser{parser}, pipelineNow); done != (ingest.ReplayResult{Stored: 1, Pending: 3}) {
		t.Errorf("mended: %+v", done)
	}
}

const table = `patient_id,device_id,measurement_type,timestamp,systolic,diastolic,weight,unit
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,120,80,,
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,120,80,,
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,125,80,,
gw-1,WT-1,weight,2026-01-10T08:01:00-05:00,,,165,
gw-1,WT-1,weight,2026-01-10T08:02:00-05:00,,,165,lb
gw-2,BP-2,bp,2026-01-10T08:00:00-05:00,120,80,,
gw-1,BP-1,bp,2026-01-10T08:05:00-05:00,HI,80,,
gw-1,BP-1
gw-1,BP-1,bp,1930-01-10T08:00:00Z,120,80,,
`

// An import returns the result of every line, and importing again changes nothing.
func TestImport(t *testing.T) {
	app, engine := newPipelineApp(t)
	vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	load := func(dryRun bool) (ingest.ImportResult, []string) {
		t.Helper()
		lines, err := gateway.OpenCSV(strings.NewReader(table), gateway.CSVOptions{MaxFuture: 5 * time.Minute, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		done, err := engine.Import(t.Context(), app, lines, ingest.ImportOptions{
			DryRun: dryRun, Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(int) {},
			OnRejected: func(line int, reason string) { refused = append(refused, fmt.Sprintf("%d %s", line, reason)) },
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(refused)
		return done, refused
	}
	before := vigiltest.RowCounts(t, app)
	done, refused := load(true)
	if done != (ingest.ImportResult{Stored: 2, Duplicates: 1, Rejected: 6}) || len(vigiltest.RowsAdded(t, app, before)) != 0 {
		t.Errorf("dry run: %+v", done)
	}
	want := []string{
		"10 before_birth", "4 conflicting_duplicate", "5 unit: This field is required.", "7 unknown_patient",
		"8 systolic: A valid number is required.", "9 measurement_type: This field is required.; timestamp: This field is required.",
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Error(diff)
	}
	if again, same := load(false); again != done || !slices.Equal(same, refused) {
		t.Errorf("the dry run reports %+v, the import %+v", done, again)
	}
	if got := alertTexts(t, app, `SELECT observation_type || ' ' || source || ' ' || measured_at FROM observations ORDER BY measured_at`); !slices.Equal(got, []string{
		"blood_pressure gateway 2026-01-10T13:00:00.000000Z", "weight gateway 2026-01-10T13:02:00.000000Z",
	}) {
		t.Errorf("stored %v", got)
	}
	before = vigiltest.RowCounts(t, app)
	if again, _ := load(false); again != (ingest.ImportResult{Duplicates: 3, Rejected: 6}) || len(vigiltest.RowsAdded(t, app, before)) != 0 {
		t.Errorf("again: %+v", again)
	}
}

var _ ingest.Table = (*gateway.CSV)(nil)

// broken is a table with a truncated file.
type broken struct{ gateway.ContractAdapter }

func (broken) Next() (int, []byte, error) { return 0, nil, io.ErrUnexpectedEOF }

func TestImportStops(t *testing.T) {
	app, engine := newPipelineApp(t)
	options := ingest.ImportOptions{Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(int) {}, OnRejected: func(int, string) {}}
	if _, err := engine.Import(t.Context(), app, broken{}, options); err == nil {
		t.Error("half a file is imported without a word")
	}
}
