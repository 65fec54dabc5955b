package intake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/intake"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// A dry run says what an import would make of a reading that was sent by API before, and leaves it without the gateway's key.
func TestDryRunOfReadingsByAPI(t *testing.T) {
	app, engine := newApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"gateway_patient_id": "gw-1"})
	reading := bloodPressure(120, 80, time.Date(2026, 1, 10, 13, 0, 0, 0, time.UTC))
	reading.DeviceID = "BP-1"
	ingest(t, app, engine, observations.Submission{PatientID: patient, Reading: reading, Source: vitals.SourceAPI, By: sender, ReceivedAt: now})
	for _, run := range []struct {
		dry  bool
		keys string
	}{{true, ""}, {true, ""}, {false, "taken"}} {
		lines, err := gateway.OpenCSV(strings.NewReader(`patient_id,device_id,measurement_type,timestamp,systolic,diastolic
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,120,80
gw-1,BP-1,bp,2026-01-10T08:00:00-05:00,125,80
`), 5*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		done, err := engine.Import(t.Context(), app, lines, intake.ImportOptions{
			DryRun: run.dry, Clock: clock, Progress: func(int) {}, Refused: func(int, string) {},
		})
		if want := (intake.Imported{Known: 1, Refused: 1}); err != nil || done != want {
			t.Errorf("dry run %t: %+v, want %+v (%v)", run.dry, done, want, err)
		}
		if keys := texts(t, app, `SELECT IIF(gateway_key = '', '', 'taken') FROM observations`); keys[0] != run.keys {
			t.Errorf("dry run %t: the key is %q", run.dry, keys)
		}
	}
}
