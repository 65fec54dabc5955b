package alerts_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// readChange reads the body of a request to change thresholds.
func readChange(t *testing.T, text string) (alerts.ThresholdChange, fault.Fields) {
	t.Helper()
	var body alerts.ThresholdChangeBody
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	checks := validate.NewChecks()
	return body.Read(checks), checks.Fields
}

func setThresholds(t *testing.T, app *tests.TestApp, patientID, text string, at time.Time) (c alerts.Configuration, changed bool, err error) {
	t.Helper()
	change, wrong := readChange(t, text)
	if len(wrong) > 0 {
		t.Fatalf("%s: %v", text, wrong)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		c, changed, err = alerts.SetThresholds(tx, patientID, change, nurse, at)
		return err
	})
	return c, changed, err
}

// changeLog returns the change log, oldest first.
func changeLog(t *testing.T, app core.App, f collections.ThresholdChangeFilter) (list []string) {
	t.Helper()
	page, total, err := collections.PageOfThresholdChanges(app, f, 0, 100)
	if err != nil || total != len(page) {
		t.Fatalf("%d of %d changes: %v", len(page), total, err)
	}
	shown := func(value *float64) string {
		if value == nil {
			return "none"
		}
		return fmt.Sprint(*value)
	}
	for _, c := range slices.Backward(page) {
		list = append(list, fmt.Sprintf("%s %s > %s, %s", c.Field(), shown(c.OldValue()), shown(c.NewValue()), c.Reason().Reveal()))
	}
	slices.Sort(list)
	return list
}

func TestReadChange(t *testing.T) {
	for text, want := range map[string]string{
		`{"reason":"Protocol.","pulse":{"high":120},"updated_at":null}`: "",
		`{"reason":"Protocol.","pulse":null}`:                           "",
		`{"pulse":{"high":120}}`:                                        "reason",
		`{"reason":"Protocol.","pulse":7}`:                              "pulse",
		`{"reason":"Protocol.","pulse":{"high":"fast"}}`:                "pulse.high",
		`{"reason":"Protocol.","pulse":{"high":9000}}`:                  "pulse.high",
		`{"reason":"Protocol.","weight":{"change_window_days":1.5}}`:    "weight.change_window_days",
	} {
		_, wrong := readChange(t, text)
		if got := strings.Join(slices.Sorted(maps.Keys(wrong)), " "); got != want {
			t.Errorf("%s: %q is wrong, want %q", text, got, want)
		}
	}
}

// A patient's own bounds are set, inherited again, switched off and on; each change of a bound in force is logged.
func TestSetThresholds(t *testing.T) {
	app := vigiltest.NewApp(t)
	initially, err := alerts.Configured(app, patient)
	if err != nil || !initially.Default || !initially.UpdatedAt.IsZero() || len(initially.Off) > 0 {
		t.Fatalf("before any change: %+v (%v)", initially, err)
	}
	for i, step := range []struct {
		body    string
		changed bool
		log     []string
	}{
		{`{"reason":"Athlete.","pulse":{"low":40,"critical_low":30}}`, true, []string{"pulse_critical_low 40 > 30, Athlete.", "pulse_low 50 > 40, Athlete."}},
		{`{"reason":"Again.","pulse":{"low":40}}`, false, nil},
		{`{"reason":"No pulse.","pulse":null}`, true, []string{
			"pulse_critical 130 > none, No pulse.", "pulse_critical_low 30 > none, No pulse.", "pulse_high 110 > none, No pulse.", "pulse_low 40 > none, No pulse.",
		}},
		{`{"reason":"On.","pulse":{}}`, true, []string{
			"pulse_critical none > 130, On.", "pulse_critical_low none > 40, On.", "pulse_high none > 110, On.", "pulse_low none > 50, On.",
		}},
		{`{"reason":"Sweet.","blood_glucose":{"high":null}}`, true, []string{"glucose_high 250 > none, Sweet."}},
	} {
		at := now.Add(time.Duration(i) * time.Minute)
		c, changed, err := setThresholds(t, app, patient, step.body, at)
		if err != nil || changed != step.changed {
			t.Errorf("%s: changed %t (%v)", step.body, changed, err)
		}
		if changed && (!c.UpdatedAt.Equal(at) || c.UpdatedBy != "nurse@vigil.test" || c.Default) {
			t.Errorf("%s: by %s at %s", step.body, c.UpdatedBy, c.UpdatedAt)
		}
		if diff := cmp.Diff(step.log, changeLog(t, app, collections.ThresholdChangeFilter{PatientID: patient, From: at, To: at})); diff != "" {
			t.Errorf("%s: %s", step.body, diff)
		}
	}
	if log := changeLog(t, app, collections.ThresholdChangeFilter{Field: "pulse_low", ChangedBy: "nurse@vigil.test"}); len(log) != 3 {
		t.Errorf("of one bound: %v", log)
	}
	if log := changeLog(t, app, collections.ThresholdChangeFilter{ChangedBy: "somebody@vigil.test"}); len(log) != 0 {
		t.Errorf("by another user: %v", log)
	}
	if !slices.Contains(alerts.ChangeLogFields(), "pulse_low") {
		t.Error("the log's own names are not known")
	}

	// Of two contradicting bounds the one that the change names is reported.
	for body, want := range map[string]string{
		`{"reason":"x","pulse_oximetry":{"low":85}}`:          "pulse_oximetry.low",
		`{"reason":"x","pulse_oximetry":{"critical_low":95}}`: "pulse_oximetry.critical_low",
	} {
		if _, _, err := setThresholds(t, app, "p2", `{"reason":"x","pulse_oximetry":{"critical_low":88,"low":92}}`, now); err != nil {
			t.Fatal(err)
		}
		_, _, err := setThresholds(t, app, "p2", body, now)
		var f *fault.Error
		if !errors.As(err, &f) || len(f.Fields) != 1 || f.Fields[want] == nil {
			t.Errorf("%s: %v", body, err)
		}
	}

	// All other patients inherit the practice's bounds.
	c, changed, err := setThresholds(t, app, "", `{"reason":"Board.","pulse":{"high":115}}`, now)
	if err != nil || !changed || !slices.Contains(changeLog(t, app, collections.ThresholdChangeFilter{Field: "pulse_high"}), "pulse_high 110 > 115, Board.") {
		t.Errorf("the practice's: %t (%v)", changed, err)
	}
	inherited, err := alerts.Configured(app, "newborn")
	if diff := cmp.Diff(c.InForce, inherited.InForce, cmp.AllowUnexported(alerts.Thresholds{})); err != nil || diff != "" || !inherited.Default {
		t.Errorf("inherited: %s (%v)", diff, err)
	}
}

// Bounds written as a record obey the same rules, by column, and are logged; the practice's cannot be deleted.
func TestThresholdsFromDashboard(t *testing.T) {
	app := vigiltest.NewApp(t)
	if _, _, err := setThresholds(t, app, patient, `{"reason":"Athlete.","pulse":{"low":40,"critical_low":30}}`, now); err != nil {
		t.Fatal(err)
	}
	load := func(patientID string) *core.Record {
		t.Helper()
		record, err := app.FindFirstRecordByData(collections.Thresholds, "patient", patientID)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	for _, test := range []struct {
		change  map[string]any
		refused string
	}{
		{map[string]any{"patient": "p2"}, "patient"},
		{map[string]any{"bounds": `{"pulse":{"low":"slow"}}`}, "bounds"},
		{map[string]any{"bounds": `{"pulse":{"low":9000}}`}, "bounds"},
		{map[string]any{"bounds": `{"heart":{"low":40}}`}, "bounds"},
		{map[string]any{"bounds": `{"pulse":{"lowest":40}}`}, "bounds"},
		{map[string]any{"bounds": `{"pulse":{"low":120,"high":110}}`}, "bounds"},
		{map[string]any{"bounds": `{"pulse":{"low":38}}`}, "bounds"},             // would lose the inherited critical_low of 40
		{map[string]any{"bounds": `{"pulse":{"low":40,"critical_low":30}}`}, ""}, // nothing changes, nothing is logged
		{map[string]any{"bounds": `{"pulse":{"low":45,"critical_low":30}}`}, ""},
	} {
		record := load(patient)
		record.Load(test.change)
		err := alerts.GuardThresholds(app, record, nurse, now.Add(time.Minute), func() error { return app.SaveNoValidate(record) })
		var wrong validation.Errors
		if errors.As(err, &wrong) != (test.refused != "") || (test.refused != "" && wrong[test.refused] == nil) || (test.refused == "" && err != nil) {
			t.Errorf("%v: %v", test.change, err)
		}
	}
	later := collections.ThresholdChangeFilter{From: now.Add(time.Minute)}
	if diff := cmp.Diff([]string{"pulse_low 40 > 45, Changed in the dashboard."}, changeLog(t, app, later)); diff != "" {
		t.Error(diff)
	}
	if got := load(patient); got.GetString("updated_by") != "nurse@vigil.test" || got.GetString("updated_at") != collections.FormatInstant(now.Add(time.Minute)) {
		t.Errorf("changed by %s at %s", got.GetString("updated_by"), got.GetString("updated_at"))
	}

	practice := load("")
	var kept validation.Errors
	if err := alerts.DeleteThresholds(app, practice, nurse, now, func() error { return app.Delete(practice) }); !errors.As(err, &kept) {
		t.Errorf("the practice's: %v", err)
	}
	own := load(patient)
	if err := alerts.DeleteThresholds(app, own, nurse, now.Add(time.Hour), func() error { return app.Delete(own) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pulse_critical_low 30 > 40, Changed in the dashboard.", "pulse_low 45 > 50, Changed in the dashboard."}, changeLog(t, app, collections.ThresholdChangeFilter{From: now.Add(time.Hour)})); diff != "" {
		t.Error(diff)
	}
	practices, err := alerts.Configured(app, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := alerts.Configured(app, patient)
	if diff := cmp.Diff(practices.InForce, c.InForce, cmp.AllowUnexported(alerts.Thresholds{})); err != nil || diff != "" || !c.Default {
		t.Errorf("after that: %s (%v)", diff, err)
	}
}
