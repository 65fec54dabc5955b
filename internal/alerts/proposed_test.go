package alerts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/internal/alerts"
)

func bounds(t *testing.T, text string) alerts.Bounds {
	t.Helper()
	b, err := alerts.ParseBounds(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Which bounds of proposed templates are in force, against those of the practice and of the patient.
func TestWithProposed(t *testing.T) {
	const practice = `{"blood_pressure":{"systolic_high":140,"systolic_critical":180,"systolic_low":90,"systolic_critical_low":80},
		"weight":{"change_threshold_kg":2.3,"change_window_days":7},"pulse_oximetry":{"low":92,"critical_low":88},"body_temperature":{"high":38,"critical":39.1}}`
	for name, test := range map[string]struct {
		own      string
		proposed []string
		want     []string
	}{
		"stricter":                        {``, []string{`{"blood_pressure":{"systolic_critical":160,"systolic_high":130}}`}, []string{"blood_pressure.systolic_critical 160 of 1"}},
		"equal":                           {``, []string{`{"blood_pressure":{"systolic_critical":180}}`}, nil},
		"looser":                          {``, []string{`{"pulse_oximetry":{"critical_low":85}}`}, nil},
		"stricter low":                    {``, []string{`{"pulse_oximetry":{"critical_low":90}}`}, []string{"pulse_oximetry.critical_low 90 of 1"}},
		"the strictest of two":            {``, []string{`{"pulse_oximetry":{"critical_low":89}}`, `{"pulse_oximetry":{"critical_low":90}}`}, []string{"pulse_oximetry.critical_low 90 of 2"}},
		"the first of equals":             {``, []string{`{"pulse_oximetry":{"critical_low":90}}`, `{"pulse_oximetry":{"critical_low":90}}`}, []string{"pulse_oximetry.critical_low 90 of 1"}},
		"where none is in force":          {``, []string{`{"blood_glucose":{"critical":300}}`}, []string{"blood_glucose.critical 300 of 1"}},
		"a removed bound":                 {`{"pulse_oximetry":{"critical_low":null}}`, []string{`{"pulse_oximetry":{"critical_low":85}}`}, []string{"pulse_oximetry.critical_low 85 of 1"}},
		"a disabled group":                {`{"pulse_oximetry":null}`, []string{`{"pulse_oximetry":{"critical_low":90}}`}, nil},
		"stricter than the patient's own": {`{"blood_pressure":{"systolic_critical":170}}`, []string{`{"blood_pressure":{"systolic_critical":160}}`}, []string{"blood_pressure.systolic_critical 160 of 1"}},
		"the patient's own is stricter":   {`{"blood_pressure":{"systolic_critical":150}}`, []string{`{"blood_pressure":{"systolic_critical":160}}`}, nil},
		"passes a warning":                {`{"blood_pressure":{"systolic_high":170}}`, []string{`{"blood_pressure":{"systolic_critical":160}}`}, []string{"blood_pressure.systolic_critical 160 of 1"}},
		"contradicts the other side":      {`{"blood_pressure":{"systolic_critical_low":100,"systolic_low":110}}`, []string{`{"blood_pressure":{"systolic_critical":95}}`}, nil},
		"a weight change":                 {``, []string{`{"weight":{"change_threshold_kg":2,"change_window_days":7,"critical_change_kg":4}}`}, []string{"weight.critical_change_kg 4 of 1"}},
		"within other days":               {``, []string{`{"weight":{"change_threshold_kg":1,"change_window_days":3,"critical_change_kg":2}}`}, nil},
		"twice the change":                {``, []string{`{"weight":{"change_threshold_kg":2}}`}, []string{"weight.critical_change_kg 4 of 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			var proposed []alerts.ProposedTemplate
			for i, text := range test.proposed {
				proposed = append(proposed, alerts.ProposedTemplate{ID: int64(i + 1), Name: "T", Bounds: bounds(t, text)})
			}
			own := bounds(t, test.own)
			before := fmt.Sprint(own)
			with, _ := alerts.WithProposed(bounds(t, practice), own, proposed)
			cache, text := alerts.NewInForceCache(), encode(t, proposed)
			practiceText, ownText := practice, test.own
			inForce, err := cache.Thresholds(&practiceText, &ownText, &text)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range inForce.Provisional() {
				got = append(got, fmt.Sprintf("%s %v of %d", b.Field, b.Value, b.TemplateID))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("in force are %q, want %q", got, test.want)
			}
			if problems := with.Problems(func(string) bool { return false }); len(problems) > 0 {
				t.Errorf("the bounds contradict each other: %v", problems)
			}
			if fmt.Sprint(own) != before {
				t.Error("the patient's own bounds were changed in place")
			}
		})
	}
}

func encode(t *testing.T, proposed []alerts.ProposedTemplate) string {
	t.Helper()
	text := "["
	for i, p := range proposed {
		b, err := p.Bounds.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(`{"id":%d,"name":%q,"bounds":%s}`, p.ID, p.Name, b)
	}
	return text + "]"
}
