package ingest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A dry run reports a reading that was sent by API before as a duplicate, and does not add the gateway's key to it.
func TestDryRunOfReadingsByAPI(t *testing.T) {
	app, engine := newPipelineApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	reading := pressureEvent(120, 80, time.Date(2026, 1, 10, 13, 0, 0, 0, time.UTC))
	reading.DeviceID = "BP-1"
	ingestEvent(t, app, engine, ingest.Submission{PatientID: patient, Reading: reading, Source: vitals.SourceAPI, By: gatewayActor, ReceivedAt: pipelineNow})
	for _, run := range []struct {
		dry  bool
		keys string
	}{{true, ""}, {true, ""}, {false, "taken"}} {
		lines, err := gateway.OpenCSV(strings.NewReader(`patient_id,device_id,measurement_type,timestamp,systolic,diastolic
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,120,80
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,125,80
`), gateway.CSVOptions{MaxFuture: 5 * time.Minute, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		done, err := engine.Import(t.Context(), app, lines, ingest.ImportOptions{
			DryRun: run.dry, Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(int) {}, OnRejected: func(int, string) {},
		})
		if want := (ingest.ImportResult{Duplicates: 1, Rejected: 1}); err != nil || done != want {
			t.Errorf("dry run %t: %+v, want %+v (%v)", run.dry, done, want, err)
		}
		if keys := alertTexts(t, app, `SELECT IIF(gateway_key = '', '', 'taken') FROM observations`); keys[0] != run.keys {
			t.Errorf("dry run %t: the key is %q", run.dry, keys)
		}
	}
}

// A file is evaluated in order of measurement, in any order of lines; late readings are compared with all of it.
func TestImportInOrder(t *testing.T) {
	lines := []string{
		"gw-1,BP-1,bp,2026-01-05T08:00:00-05:00,188,110", "gw-1,BP-1,bp,2026-01-06T08:00:00-05:00,122,80",
		"gw-1,BP-1,bp,2026-01-15T08:00:00-05:00,204,124", "gw-1,BP-1,bp,2026-01-15T08:02:00-05:00,120,80", "gw-1,BP-1,bp,2026-01-15T08:04:00-05:00,121,80",
	}
	for range 80 { // more than one transaction, of another patient
		lines = append(lines, fmt.Sprintf("gw-2,BP-2,bp,2026-01-10T08:%02d:%02d-05:00,120,80", len(lines)%60, len(lines)/60))
	}
	lines = append(lines, "gw-2,BP-2,bp,2026-01-12T08:00:00-05:00,190,80")
	for _, backwards := range []bool{false, true} {
		app, engine := newPipelineApp(t)
		vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
		vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-2", "first_name": "Bo"})
		if backwards {
			slices.Reverse(lines)
		}
		table, err := gateway.OpenCSV(strings.NewReader("patient_id,device_id,measurement_type,timestamp,systolic,diastolic\n"+strings.Join(lines, "\n")+"\n"), gateway.CSVOptions{MaxFuture: 5 * time.Minute, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		steps := []int{}
		done, err := engine.Import(t.Context(), app, table, ingest.ImportOptions{
			Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(done int) { steps = append(steps, done) }, OnRejected: func(_ int, reason string) { t.Error(reason) },
		})
		if want := (ingest.ImportResult{Stored: len(lines)}); err != nil || done != want {
			t.Fatalf("%+v, want %+v (%v)", done, want, err)
		}
		if want := []int{0, 50, len(lines)}; !slices.Equal(steps, want) {
			t.Errorf("progress %v, want %v", steps, want)
		}
		got := alertTexts(t, app, `SELECT CAST(value AS INTEGER) || ' ' || status || ' ' || origin || ' ' || resolution_reason FROM alerts ORDER BY value`)
		if want := []string{"188 auto_resolved import superseded", "190 active import ", "204 auto_resolved import "}; !slices.Equal(got, want) {
			t.Errorf("backwards %t: %q, want %q", backwards, got, want)
		}
		notified := alertTexts(t, app, `SELECT kind FROM announcements ORDER BY kind`)
		if want := []string{"alert_raised", "alert_raised", "escalation_opened", "reading_superseded"}; !slices.Equal(notified, want) {
			t.Errorf("backwards %t: announced %q, want %q", backwards, notified, want)
		}
		if got := alertTexts(t, app, `SELECT DISTINCT origin FROM observations`); !slices.Equal(got, []string{"import"}) {
			t.Errorf("origin %q", got)
		}
	}
}

// The model in a file is that of its newest reading, also for a device that is registered already.
func TestImportedModel(t *testing.T) {
	app, engine := newPipelineApp(t)
	vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	for _, run := range []struct{ day, model, want string }{{"10", "", ""}, {"11", "BP-7", "BP-7"}, {"09", "BP-6", "BP-7"}, {"12", "BP-8", "BP-8"}} {
		table, err := gateway.OpenCSV(strings.NewReader("patient_id,device_id,measurement_type,timestamp,systolic,diastolic,device_model\n"+
			"gw-1,BP-1,bp,2026-01-"+run.day+"T08:00:00Z,120,80,"+run.model+"\n"), gateway.CSVOptions{MaxFuture: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Import(t.Context(), app, table, ingest.ImportOptions{
			Clock: pipelineClock, OnLeftOut: func(string) {}, OnProgress: func(int) {}, OnRejected: func(_ int, reason string) { t.Error(reason) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := alertTexts(t, app, `SELECT reported_model FROM devices`); !slices.Equal(got, []string{run.want}) {
			t.Errorf("after the reading of day %s: %q, want %q", run.day, got, run.want)
		}
	}
}
