package templates_test

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

var manager = audit.Actor{Type: audit.ByUser, ID: "1", Email: "manager@vigil.test", Role: "clinical_manager"}

func read(t *testing.T, body string) (templates.Draft, error) {
	t.Helper()
	var b templates.Body
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	c := validate.NewChecks()
	draft := b.Read(c, now)
	return draft, c.Err()
}

func create(t *testing.T, app core.App, body string) (*collections.ThresholdTemplate, error) {
	t.Helper()
	draft, err := read(t, body)
	if err != nil {
		return nil, err
	}
	return templates.Create(app, draft, manager, now)
}

// fields returns the names in a validation fault.
func fields(t *testing.T, err error) (names []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	refused, is := errors.AsType[*fault.Error](err)
	if !is {
		t.Fatal(err)
	}
	for name := range refused.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestBodies(t *testing.T) {
	app := vigiltest.NewApp(t)
	const bounds = `"thresholds":{"pulse":{"high":120}}`
	codes := func(n int) string { return `["` + strings.Repeat(`I50","`, n-1) + `I50"]` }
	tests := []struct{ body, wrong string }{
		{`{"name":"A",` + bounds + `}`, ""},
		{`{"name":"A",` + bounds + `,"diagnoses":["i50","O13.3","Z3A"],"min_age":0,"max_age":0,"sources":["ESC, 2021"]}`, ""},
		{`{"name":"A",` + bounds + `,"diagnoses":null,"min_age":null,"max_age":130,"sources":null,"key":null}`, ""},
		{`{"name":"A",` + bounds + `,"diagnoses":` + codes(50) + `}`, ""},
		{`{}`, "name thresholds"},
		{`{"name":"",` + bounds + `}`, "name"},
		{`{"name":"` + strings.Repeat("x", 101) + `",` + bounds + `}`, "name"},
		{`{"name":"A","thresholds":null}`, "thresholds"},
		{`{"name":"A","thresholds":[]}`, "thresholds"},
		{`{"name":"A","thresholds":{}}`, "thresholds"},
		{`{"name":"A","thresholds":{"pulse":{}}}`, "thresholds"},
		{`{"name":"A","thresholds":{"pulse":null}}`, ""},
		{`{"name":"A","thresholds":{"pulse":{"hgih":120}}}`, "thresholds.pulse.hgih"},
		{`{"name":"A","thresholds":{"pulse":{"high":400}}}`, "thresholds.pulse.high"},
		{`{"name":"A","thresholds":{"pulse":{"low":120,"high":100}}}`, "thresholds.pulse.high"},
		{`{"name":"A",` + bounds + `,"key":"Not a key"}`, "key"},
		{`{"name":"A",` + bounds + `,"key":"_x"}`, "key"},
		{`{"name":"A",` + bounds + `,"key":"heart_failure"}`, "key"},
		{`{"name":"A",` + bounds + `,"diagnoses":"I50"}`, "diagnoses"},
		{`{"name":"A",` + bounds + `,"diagnoses":["heart"]}`, "diagnoses.0"},
		{`{"name":"A",` + bounds + `,"diagnoses":["I50","I5"]}`, "diagnoses.1"},
		{`{"name":"A",` + bounds + `,"diagnoses":["I50."]}`, "diagnoses.0"},
		{`{"name":"A",` + bounds + `,"diagnoses":["I50.12345"]}`, "diagnoses.0"},
		{`{"name":"A",` + bounds + `,"diagnoses":` + codes(51) + `}`, "diagnoses"},
		{`{"name":"A",` + bounds + `,"min_age":-1}`, "min_age"},
		{`{"name":"A",` + bounds + `,"max_age":131}`, "max_age"},
		{`{"name":"A",` + bounds + `,"min_age":18,"max_age":17}`, "max_age"},
		{`{"name":"A",` + bounds + `,"sources":["` + strings.Repeat("x", 501) + `"]}`, "sources.0"},
		{`{"name":"A",` + bounds + `,"signed_off_at":"2026-01-01T00:00:00Z"}`, "signed_off_by"},
		{`{"name":"A",` + bounds + `,"signed_off_by":"Dr. A","signed_off_at":"2026-01-15T13:45:01Z"}`, "signed_off_at"},
		{`{"name":"A",` + bounds + `,"signed_off_by":"Dr. A","signed_off_at":"2026-01-15T13:45:00Z"}`, ""},
	}
	for _, test := range tests {
		if _, err := create(t, app, test.body); strings.Join(fields(t, err), " ") != test.wrong {
			t.Errorf("%s: %q, want %q (%v)", test.body, fields(t, err), test.wrong, err)
		}
	}
}

func TestKeyFromName(t *testing.T) {
	app := vigiltest.NewApp(t)
	for _, test := range []struct{ name, want string }{
		{"Heart failure", "heart_failure_2"},
		{"Heart failure", "heart_failure_3"},
		{" Größe, 2. Stufe! ", "gr_e_2_stufe"},
		{"心", "template"},
		{"…", "template_2"},
		{strings.Repeat("ab ", 30), strings.TrimRight(strings.Repeat("ab_", 16)[:46], "_")},
	} {
		made, err := create(t, app, fmt.Sprintf(`{"name":%q,"thresholds":{"pulse":{"high":120}}}`, test.name))
		if err != nil || made.Key() != test.want {
			t.Errorf("%q: %v (%v)", test.name, made, err)
		}
	}
}

// A change of what is applied makes a new version without a sign-off; a sign-off alone does not.
func TestVersionsAndSignOff(t *testing.T) {
	app := vigiltest.NewApp(t)
	const whole = `"name":"Own","diagnoses":["I50","J44"],"sources":["ESC, 2021"],"thresholds":{"pulse":{"high":120}}`
	made, err := create(t, app, `{`+whole+`}`)
	if err != nil || made.Version() != 1 || made.SignedOffBy() != "" || !made.SignedOffAt().IsZero() {
		t.Fatalf("made: %v (%v)", made, err)
	}
	day := now.AddDate(0, 0, -1)
	for _, step := range []struct {
		name, body string
		version    int
		by         string
		at         time.Time
		noted      bool
	}{
		{"signed", `{` + whole + `,"signed_off_by":"Dr. A"}`, 1, "Dr. A", now, true},
		{"nothing new", `{` + whole + `}`, 1, "Dr. A", now, false},
		{"the same in other words", `{"name":"Own","thresholds":{"pulse":{"high":120.0}},"diagnoses":["i50","J44","I50"]}`, 1, "Dr. A", now, false},
		{"another name", `{"name":"Ours","thresholds":{"pulse":{"high":120}}}`, 2, "", time.Time{}, true},
		{"signed as of yesterday", `{"name":"Ours","thresholds":{"pulse":{"high":120}},"signed_off_by":"Dr. B","signed_off_at":"` + day.Format(time.RFC3339) + `"}`, 2, "Dr. B", day, true},
		{"a bound, with the old sign-off", `{"name":"Ours","thresholds":{"pulse":{"high":118}},"signed_off_by":"Dr. B","signed_off_at":"` + day.Format(time.RFC3339) + `"}`, 3, "", time.Time{}, true},
		{"a bound, signed at once", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"signed_off_by":"Dr. C"}`, 4, "Dr. C", now, true},
		{"sign-off taken away", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"signed_off_by":"","signed_off_at":null}`, 4, "", time.Time{}, true},
		{"diagnoses", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"diagnoses":["J44"]}`, 5, "", time.Time{}, true},
		{"an age", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"min_age":0}`, 6, "", time.Time{}, true},
		{"sources", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"sources":[]}`, 7, "", time.Time{}, true},
		{"the key", `{"name":"Ours","thresholds":{"pulse":{"high":116}},"key":"ours"}`, 8, "", time.Time{}, true},
	} {
		draft, err := read(t, step.body)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		before := auditEntries(t, app)
		got, err := templates.Replace(app, made.Number(), draft, manager, now)
		if err != nil || got.Version() != step.version || got.SignedOffBy() != step.by || !got.SignedOffAt().Equal(step.at) {
			t.Errorf("%s: version %d, signed by %q at %s (%v)", step.name, got.Version(), got.SignedOffBy(), got.SignedOffAt(), err)
		}
		if after := auditEntries(t, app); (after > before) != step.noted || after > before+1 {
			t.Errorf("%s: %d entries in the audit trail, before %d", step.name, after, before)
		}
	}
	if _, err := templates.Replace(app, 999, templates.Draft{}, manager, now); !isMissing(err) {
		t.Errorf("one that is not there: %v", err)
	}
}

func auditEntries(t *testing.T, app core.App) int {
	t.Helper()
	var n int
	if err := app.DB().Select("COUNT(*)").From(collections.AuditLog).Row(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func isMissing(err error) bool {
	refused, is := errors.AsType[*fault.Error](err)
	return is && refused.Kind == fault.NotFound
}

// Records written in the dashboard or by a script obey the same rules.
func TestGuard(t *testing.T) {
	app := vigiltest.NewApp(t)
	for name, test := range map[string]struct {
		column string
		value  any
		wrong  string
	}{
		"as it is":              {collections.TemplateName, "Heart failure", ""},
		"no bounds":             {collections.TemplateBounds, "", collections.TemplateBounds},
		"bounds that are none":  {collections.TemplateBounds, `"high"`, collections.TemplateBounds},
		"bounds out of order":   {collections.TemplateBounds, `{"pulse":{"low":120,"high":100}}`, collections.TemplateBounds},
		"bounds that are off":   {collections.TemplateBounds, `{"pulse":null}`, ""},
		"a diagnosis in words":  {collections.TemplateDiagnoses, []string{"heart"}, collections.TemplateDiagnoses},
		"an age range reversed": {collections.TemplateMaxAge, 17, collections.TemplateMaxAge},
		"a key that is taken":   {collections.TemplateKey, "COPD", collections.TemplateKey},
		"without a signer":      {collections.TemplateSignedOffAt, collections.FormatInstant(now), collections.TemplateSignedOffBy},
		"signed without a time": {collections.TemplateSignedOffBy, "Dr. A", ""},
	} {
		stored, err := collections.FindThresholdTemplate(app, heartFailure)
		if err != nil {
			t.Fatal(err)
		}
		record := stored.ProxyRecord()
		record.Set(test.column, test.value)
		err = templates.Guard(app, record, now)
		var complaints validation.Errors
		if errors.As(err, &complaints) != (test.wrong != "") || test.wrong != "" && complaints[test.wrong] == nil {
			t.Errorf("%s: %v", name, err)
		}
		if test.column == collections.TemplateSignedOffBy && !stored.SignedOffAt().Equal(now) {
			t.Errorf("%s: at %s", name, stored.SignedOffAt())
		}
	}
}

// A template replaces whole groups, each template is listed once, and other bounds stay.
func TestApply(t *testing.T) {
	app := vigiltest.NewApp(t)
	patient := vigiltest.Patient(t, app, dbx.Params{"mrn": "MRN-1"})
	if err := triage.AddRow(app, patient, now); err != nil {
		t.Fatal(err)
	}
	critical := func(c alerts.Configuration, p *vitals.Parameter) float64 {
		limits := c.InForce.Limits(p)
		if limits.CriticalLow != nil && p == vitals.SpO2 {
			return *limits.CriticalLow
		}
		return *limits.Critical
	}
	for _, step := range []struct {
		name           string
		number         int64
		listed         []int64
		spo2, systolic float64
		noted          int
	}{
		{"COPD", copd, []int64{copd}, 85, 180, 1},
		{"pregnancy on top: oxygen, too", pregnancy, []int64{copd, pregnancy}, 90, 160, 1},
		{"COPD again", copd, []int64{pregnancy, copd}, 85, 160, 1},
		{"COPD once more, which changes nothing and is noted", copd, []int64{pregnancy, copd}, 85, 160, 1},
	} {
		before := auditEntries(t, app)
		got, err := templates.Apply(app, patient, templates.ApplyRequest{Number: step.number}, manager, now)
		if err != nil {
			t.Fatal(err)
		}
		var listed []int64
		for _, a := range got.Templates {
			listed = append(listed, a.ID)
			if a.Version != 1 || a.By != manager.Email || a.At != validate.FormatInstant(now) {
				t.Errorf("%s: %+v", step.name, a)
			}
		}
		if !slices.Equal(listed, step.listed) || critical(got, vitals.SpO2) != step.spo2 || critical(got, vitals.Systolic) != step.systolic {
			t.Errorf("%s: given %v, critical from %v and %v", step.name, listed, critical(got, vitals.SpO2), critical(got, vitals.Systolic))
		}
		if n := auditEntries(t, app) - before; n < step.noted {
			t.Errorf("%s: %d entries in the audit trail", step.name, n)
		}
	}
	// The bounds are the patient's own: they stay when the template goes.
	if err := templates.Delete(app, copd, manager, now); err != nil {
		t.Fatal(err)
	}
	if c, err := alerts.Configured(app, patient); err != nil || critical(c, vitals.SpO2) != 85 {
		t.Errorf("after its template was deleted: %+v (%v)", c, err)
	}
	for name, err := range map[string]error{
		"a template that is gone": func() error {
			_, err := templates.Apply(app, patient, templates.ApplyRequest{Number: copd}, manager, now)
			return err
		}(),
		"nobody": func() error {
			_, err := templates.Apply(app, collections.NewUUID(), templates.ApplyRequest{Number: diabetes}, manager, now)
			return err
		}(),
		"deleted twice": templates.Delete(app, copd, manager, now),
	} {
		if !isMissing(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestApplyBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"template_id":3}`:                     "3 ",
		`{"template_id":3,"reason":"GOLD III"}`: "3 GOLD III",
		`{}`:                                    "[template_id]",
		`{"template_id":"3"}`:                   "[template_id]",
		`{"template_id":1,"reason":"` + strings.Repeat("x", 501) + `"}`: "[reason]",
	} {
		var b templates.ApplyBody
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatal(err)
		}
		c := validate.NewChecks()
		choice := b.Read(c)
		got := fmt.Sprint(choice.Number, " ", choice.Reason.Reveal())
		if err := c.Err(); err != nil {
			got = fmt.Sprint(fields(t, err))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
