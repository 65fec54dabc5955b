package ingest_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// sums returns the rows of both tables that Recount corrects, as text.
func sums(t *testing.T, app core.App) []string {
	t.Helper()
	var rows []string
	err := app.DB().NewQuery(`SELECT concat_ws(' ', day, observation_type, status, readings) AS row FROM daily_counts
		UNION ALL SELECT concat_ws(' ', patient, day, observation_type, readings, device_readings) FROM reading_days ORDER BY row`).Column(&rows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func recount(t *testing.T, app core.App, engine *ingest.ReadingStore) (days, wrong int) {
	t.Helper()
	days, wrong, err := engine.Recount(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	return days, wrong
}

// Recount restores every damaged total and leaves right ones unchanged.
func TestRecount(t *testing.T) {
	app, engine := newApp(t, rules)
	if days, wrong := recount(t, app, engine); days != 0 || wrong != 0 {
		t.Errorf("of nothing, %d days were counted and %d were wrong", days, wrong)
	}
	honolulu := vigiltest.Patient(t, app, dbx.Params{"time_zone": "Pacific/Honolulu"})
	patients := []string{vigiltest.Patient(t, app, nil), honolulu, vigiltest.Patient(t, app, nil)}
	vigiltest.Assign(t, app, "BP-1", patients[0], now.AddDate(-1, 0, 0))
	var last ingest.Outcome
	for i := range 60 {
		r := at(bloodPressure(120, 80), now.Add(-time.Duration(i)*7*time.Hour))
		if i%3 == 0 {
			r.DeviceID = "BP-1"
		}
		last = storeReading(t, app, engine, gatewaySubmission(patients[i%3], r))
	}
	if _, err := engine.Retract(app, last.Observation.ID, "of another patient", audit.System(), now); err != nil {
		t.Fatal(err)
	}
	kept := sums(t, app)
	if _, wrong := recount(t, app, engine); wrong != 0 || !cmp.Equal(kept, sums(t, app)) {
		t.Errorf("%d days reported as wrong\n%s", wrong, cmp.Diff(kept, sums(t, app)))
	}

	for _, test := range []struct {
		damage string
		wrong  int
	}{
		{`UPDATE daily_counts SET readings = readings + 1 WHERE day = (SELECT MIN(day) FROM daily_counts)`, 1},
		{`DELETE FROM daily_counts WHERE day IN (SELECT day FROM daily_counts ORDER BY day LIMIT 1 OFFSET 3)`, 1},
		{`DELETE FROM daily_counts`, 18},
		{`INSERT INTO daily_counts (day, observation_type, status, readings) VALUES ('2020-02-29', 'weight', 'final', 7)`, 1},
		{`UPDATE reading_days SET readings = 0 WHERE patient = '` + honolulu + `'`, 17},
		{`DELETE FROM reading_days WHERE patient = '` + honolulu + `'`, 17},
		{`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings)
			VALUES ('` + honolulu + `', '2020-02-29', 'weight', '', 2, 1)`, 1},
		{`UPDATE reading_days SET device_readings = 0 WHERE patient = '` + patients[0] + `'`, 18},
		{`UPDATE reading_days SET device_readings = readings WHERE patient = '` + honolulu + `'`, 17},
		{`UPDATE reading_days SET day = '2020-02-29' WHERE (patient, day) = (SELECT patient, MAX(day) FROM reading_days GROUP BY patient LIMIT 1)`, 2},
		{`UPDATE reading_days SET observation_type = 'weight' WHERE (patient, day) = (SELECT patient, MIN(day) FROM reading_days GROUP BY patient LIMIT 1)`, 2},
	} {
		if _, err := app.NonconcurrentDB().NewQuery(test.damage).Execute(); err != nil {
			t.Fatal(err)
		}
		_, wrong := recount(t, app, engine)
		if !cmp.Equal(kept, sums(t, app)) {
			t.Errorf("%s\n%s", test.damage, cmp.Diff(kept, sums(t, app)))
		}
		if wrong != test.wrong {
			t.Errorf("%s: %d days were wrong, want %d", test.damage, wrong, test.wrong)
		}
		if _, wrong := recount(t, app, engine); wrong != 0 {
			t.Errorf("%s: %d days are wrong the second time", test.damage, wrong)
		}
	}
}

// After a change of the practice's time zone a recount corrects its days, and those of patients without a zone of their own.
func TestRecountAfterZoneChange(t *testing.T) {
	app, engine := newApp(t, rules)
	patient, elsewhere := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, dbx.Params{"time_zone": "Pacific/Honolulu"})
	for i := range 20 {
		storeReading(t, app, engine, gatewaySubmission(patient, at(bloodPressure(120, 80), now.Add(-time.Duration(i)*5*time.Hour))))
	}
	storeReading(t, app, engine, gatewaySubmission(elsewhere, at(bloodPressure(120, 80), now)))
	kept := sums(t, app)
	moved := rules
	moved.PracticeZone = time.FixedZone("moved", 9*3600)
	if _, wrong := recount(t, app, ingest.NewReadingStore(moved)); wrong == 0 {
		t.Error("nothing differs in another time zone")
	}
	days := map[string]int{}
	for i := range 20 {
		days[now.Add(-time.Duration(i)*5*time.Hour).In(moved.PracticeZone).Format(time.DateOnly)]++
	}
	var want []string
	for day, n := range days {
		want = append(want, day+" "+strconv.Itoa(n))
	}
	slices.Sort(want)
	of := `SELECT day || ' ' || readings FROM reading_days WHERE patient = '`
	if diff := cmp.Diff(want, texts(t, app, of+patient+`' ORDER BY day`)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{now.In(collections.Zone("Pacific/Honolulu", nil)).Format(time.DateOnly) + " 1"}, texts(t, app, of+elsewhere+`'`)); diff != "" {
		t.Error(diff)
	}
	var total int
	if err := app.DB().NewQuery("SELECT SUM(readings) FROM daily_counts").Row(&total); err != nil || total != 21 {
		t.Errorf("%d readings in all (%v)", total, err)
	}
	if _, wrong := recount(t, app, engine); wrong == 0 || !cmp.Equal(kept, sums(t, app)) {
		t.Errorf("on the way back %d days differ\n%s", wrong, cmp.Diff(kept, sums(t, app)))
	}
}

// One reading with a wrong clock, years before all others, must not cost a query for each day since.
func TestRecountSkipsDaysWithoutReadings(t *testing.T) {
	app, engine := newApp(t, rules)
	patient := vigiltest.Patient(t, app, nil)
	for _, measured := range []time.Time{now.AddDate(-50, 0, 0), now.AddDate(-50, 0, 1), now} {
		storeReading(t, app, engine, gatewaySubmission(patient, at(weight(80), measured)))
	}
	if days, wrong := recount(t, app, engine); days != 3 || wrong != 0 {
		t.Errorf("%d days were compared, %d were wrong", days, wrong)
	}
}

// A patient's days depend on who had the device: assignments that are added, changed or ended later count at once.
func TestDaysFollowAssignments(t *testing.T) {
	app, engine := newApp(t, rules)
	patient, other := vigiltest.Patient(t, app, nil), vigiltest.Patient(t, app, nil)
	for day := range 3 {
		storeReading(t, app, engine, gatewaySubmission(patient, at(from("BP-1", bloodPressure(120, 80)), now.AddDate(0, 0, -day))))
	}
	fromDevice := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, texts(t, app, `SELECT readings || ' ' || device_readings FROM reading_days ORDER BY day`)); diff != "" {
			t.Error(diff)
		}
		if _, wrong := recount(t, app, engine); wrong != 0 {
			t.Errorf("the recount reports %d wrong days", wrong)
		}
	}
	fromDevice("1 0", "1 0", "1 0")
	assignment, err := collections.NewDeviceAssignment(app, "BP-1", patient, now.AddDate(0, 0, -1), "nurse@vigil.test")
	if err != nil {
		t.Fatal(err)
	}
	change := func(columns map[string]any) {
		t.Helper()
		assignment.Load(columns)
		if err := app.Save(assignment); err != nil {
			t.Fatal(err)
		}
	}
	change(nil)
	fromDevice("1 0", "1 1", "1 1")
	change(map[string]any{"assigned_at": collections.FormatInstant(now.AddDate(0, 0, -9))})
	fromDevice("1 1", "1 1", "1 1")
	change(map[string]any{"unassigned_at": collections.FormatInstant(now.Add(-time.Hour))})
	fromDevice("1 1", "1 1", "1 0")
	change(map[string]any{"patient": other})
	fromDevice("1 0", "1 0", "1 0")
}
