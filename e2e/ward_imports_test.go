package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A CSV file of readings in any order, three of them implausible: one alert, however often the file is imported.
func nightImport(t *testing.T, w ward) {
	patient := w.enrol(t, "Table", nil)
	var lines []string
	for i, spo2 := range []int{96, 44, 95, 93, 43, 97, 96, 46, 94, 95, 96, 97} {
		lines = append(lines, fmt.Sprintf("OX-Table,GW-Table,pulse_oximetry,%s,%d", ago(300-i*20).Format(time.RFC3339), spo2))
	}
	rand.New(rand.NewPCG(3, 3)).Shuffle(len(lines), func(i, k int) { lines[i], lines[k] = lines[k], lines[i] })
	file := filepath.Join(t.TempDir(), "readings.csv")
	if err := os.WriteFile(file, []byte("device_id,patient_id,measurement_type,timestamp,spo2\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"9 stored, 0 known, 3 refused\n", "0 stored, 9 known, 3 refused\n"} {
		wantVigil(t, w.practice, 1, want, "spo2", "ingestion", "import", file)
		list := w.alerts(t, patient, "")
		if len(list) != 1 || list[0]["reported_count"] != 3.0 || list[0]["value"] != 43.0 {
			t.Errorf("the alerts are %v", list)
		}
	}
	w.wantStat(t, "table", patient, 1)
}

// The alert about quarantined readings of an unassigned cuff is raised once the device is assigned, as one alert and only
// once.
func nightReplay(t *testing.T, w ward) {
	patient := w.enrol(t, "Replay", nil)
	for i := range 5 {
		w.signed(t, event("Nobody", "BP-Replay", "blood_pressure", "mmHg", object{"systolic": 58 - float64(i), "diastolic": 45}, ago(50-i))).expect(t, 400)
	}
	w.wantAlerts(t, "of nobody", patient)
	w.post(t, "/api/v1/devices/assign/", w.Admin(t), object{
		"device_id": "BP-Replay", "patient_id": patient, "device_type": "blood_pressure", "assigned_at": ago(120).Format(time.RFC3339),
	}).expect(t, 200)
	for range 2 {
		if status, out, errOut := vigil(t, w.Env, "", "ingestion", "replay", "--dir", w.Dir); status != 0 {
			t.Errorf("replay ended with %d\n%s%s", status, out, errOut)
		}
		list := w.alerts(t, patient, "")
		if len(list) != 1 || list[0]["reported_count"] != 5.0 {
			t.Fatalf("the alerts are %v", list)
		}
	}
	w.wantStat(t, "replay", patient, 1)
}
