package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Both commands work while the service runs, and nothing is stored twice.
func TestIngestCommandsWhileServing(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	db := p.database(t)
	at := time.Now().UTC().Add(-48 * time.Hour).Truncate(time.Second)
	wantAt(t, p.signed(t, measurement("GW-late", "BP-late", 150, 85, at)).expect(t, 200), object{"status": "quarantined", "reason": "unknown_patient"})
	wantVigil(t, p, 0, "0 stored, 0 known, 0 handled, 1 still waiting\n", "", "ingestion", "replay")
	patient := p.patient(t, object{"gateway_patient_id": "GW-late"})
	wantVigil(t, p, 0, "1 stored, 0 known, 0 handled, 0 still waiting\n", "", "ingestion", "replay")
	wantAt(t, p.signed(t, measurement("GW-late", "BP-late", 150, 85, at)).expect(t, 200), object{"status": "duplicate"})
	wantAt(t, p.get(t, "/api/v1/ingestion/quarantine/?status=released", p.Admin(t)).expect(t, 200), object{"count": 1.0, "results.0.closed_by": "system"})

	file := filepath.Join(t.TempDir(), "readings.csv")
	lines := "device_id,patient_id,measurement_type,timestamp,systolic,diastolic\n" +
		"BP-late,GW-late,bp," + at.Format(time.RFC3339) + ",150,85\n" +
		"BP-late,GW-late,bp," + at.Add(time.Hour).Format(time.RFC3339) + ",120,85\n" +
		"BP-late,GW-late,bp," + at.Add(2*time.Hour).Format(time.RFC3339) + ",HI,85\n"
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	const refused = "line 4: systolic: A valid number is required."
	awaitAnnouncements(t, db)
	before := rowsBefore(t, db)
	wantVigil(t, p, 1, "1 would be stored, 1 known, 1 refused\n", refused, "ingestion", "import", file, "--dry-run")
	if grown := added(before, rowsOf(t, db)); len(grown) != 0 {
		t.Errorf("a dry run adds %v", grown)
	}
	wantVigil(t, p, 1, "1 stored, 1 known, 1 refused\n", refused, "ingestion", "import", file)
	wantVigil(t, p, 1, "0 stored, 2 known, 1 refused\n", refused, "ingestion", "import", file)
	wantAt(t, p.get(t, "/api/v1/ingestion/observations/?patient_id="+patient, p.Admin(t)).expect(t, 200), object{"count": 2.0})
	wantVigil(t, p, 1, "", "no such file", "ingestion", "import", file+".csv")

	lines = "device_id,patient_id,measurement_type,timestamp,systolic,diastolic,irregular_heartbeat,spo2\n"
	for n, side := range []string{"perhaps,", "no,97", "perhaps,98", ","} {
		lines += `="BP-late",GW-late,Blood Pressure,` + at.Add(time.Duration(3+n)*time.Hour).Format(time.RFC3339) + ",121,85," + side + "\n"
	}
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	const leftOut = "irregular_heartbeat left out of 2 of them\nspo2 left out of 2 of them\n"
	wantVigil(t, p, 0, "4 would be stored, 0 known, 0 refused\n"+leftOut, "", "ingestion", "import", file, "--dry-run")
	wantVigil(t, p, 0, "4 stored, 0 known, 0 refused\n"+leftOut, "", "ingestion", "import", file)
	wantVigil(t, p, 0, "0 stored, 4 known, 0 refused\n", "", "ingestion", "import", file)
	if err := os.WriteFile(file, []byte("PK\x03\x04 a workbook"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantVigil(t, p, 1, "", "save it as CSV UTF-8", "ingestion", "import", file)
}

// wantVigil runs a command while the service runs.
func wantVigil(t *testing.T, p *practice, wantStatus int, wantOut, wantErr string, args ...string) {
	t.Helper()
	status, out, errOut := vigil(t, p.Env, "", append(args, "--dir", p.Dir)...)
	if status != wantStatus || out != wantOut || !strings.Contains(errOut, wantErr) {
		t.Errorf("vigil %v ended with %d\nout: %q\nerr: %q", args, status, out, errOut)
	}
}
