package alerts_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Every move from every state.
func TestNext(t *testing.T) {
	moves := []alerts.Move{alerts.Acknowledge, alerts.Resolve, alerts.Annotate, alerts.Escalate}
	const refused = alerts.Status("")
	for from, want := range map[alerts.Status][]alerts.Status{
		alerts.StatusActive:       {alerts.StatusAcknowledged, alerts.StatusResolved, alerts.StatusActive, alerts.StatusActive},
		alerts.StatusAcknowledged: {alerts.StatusAcknowledged, alerts.StatusResolved, alerts.StatusAcknowledged, alerts.StatusAcknowledged},
		alerts.StatusResolved:     {refused, refused, refused, refused},
		alerts.StatusAutoResolved: {refused, refused, refused, refused},
	} {
		for i, move := range moves {
			to, err := alerts.NextStatus(from, move)
			if want[i] == refused {
				var f *fault.Error
				if !errors.As(err, &f) || f.Code != "invalid_state" {
					t.Errorf("%s from %s: %v, want invalid_state", move, from, err)
				}
				continue
			}
			if err != nil || to != want[i] {
				t.Errorf("%s from %s leads to %s (%v), want %s", move, from, to, err, want[i])
			}
		}
	}
}

func TestReadAcknowledgement(t *testing.T) {
	day := now.Add(24 * time.Hour)
	plain := func(notes string) alerts.Action {
		return alerts.Action{Move: alerts.Acknowledge, Notes: phi.Text(notes)}
	}
	for body, want := range map[string]alerts.Action{
		`{}`: plain(""), `{"notes":" called "}`: plain("called"), `{"outcome":null}`: plain(""), `{"other":1}`: plain(""),
		`{"follow_up_at":"2026-02-01T00:00:00Z"}`:      plain(""),
		`{"outcome":"resolved"}`:                       {Move: alerts.Resolve, Outcome: "resolved", Detailed: true},
		`{"outcome":"monitoring"}`:                     {Move: alerts.Acknowledge, Outcome: "monitoring", Detailed: true},
		`{"clinical_note":"a","notes":"b"}`:            {Move: alerts.Acknowledge, Outcome: "acknowledged", ClinicalNote: "a\nb", Detailed: true},
		`{"follow_up_required":false}`:                 {Move: alerts.Acknowledge, Outcome: "acknowledged", Detailed: true},
		`{"follow_up_required":true,"outcome":"seen"}`: {Move: alerts.Acknowledge, Outcome: "seen", Detailed: true, FollowUpAt: day},
		`{"follow_up_required":true,"follow_up_at":"2026-01-15T20:00:00Z"}`: {
			Move: alerts.Acknowledge, Outcome: "acknowledged", Detailed: true, FollowUpAt: time.Date(2026, 1, 15, 20, 0, 0, 0, time.UTC),
		},
	} {
		got, fields := readAcknowledgement(t, body)
		if len(fields) > 0 {
			t.Errorf("%s: %v", body, fields)
		}
		if got != want {
			t.Errorf("%s is read as another action", body)
		}
	}
	for body, field := range map[string]string{
		`{"outcome":"two words"}`: "outcome", `{"outcome":" "}`: "outcome", `{"outcome":"` + strings.Repeat("x", 51) + `"}`: "outcome", `{"outcome":1}`: "outcome",
		`{"notes":"` + strings.Repeat("x", 4001) + `"}`: "notes", `{"clinical_note":"` + strings.Repeat("x", 4001) + `"}`: "clinical_note",
		`{"follow_up_required":"yes"}`: "follow_up_required", `{"outcome":"a","follow_up_at":"soon"}`: "follow_up_at",
	} {
		if _, fields := readAcknowledgement(t, body); len(fields) != 1 || fields[field] == nil {
			t.Errorf("%.60s: %v, want a complaint about %s", body, fields, field)
		}
	}
}

func readAcknowledgement(t *testing.T, text string) (alerts.Action, fault.Fields) {
	t.Helper()
	var body alerts.AcknowledgeBody
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	checks := validate.NewChecks()
	return body.Read(checks, now), checks.Fields
}

func TestReadSnooze(t *testing.T) {
	read := func(text string) (alerts.SnoozeDraft, fault.Fields) {
		var body alerts.SnoozeBody
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		checks := validate.NewChecks()
		return body.Read(checks, now), checks.Fields
	}
	in := func(d time.Duration, more string) string {
		return `{"type":"pulse","reason":"exercise","ends_at":"` + validate.FormatInstant(now.Add(d)) + `"` + more + `}`
	}
	const critical = `,"include_critical":true`
	for _, body := range []string{in(time.Minute, ""), in(30*24*time.Hour, ""), in(4*time.Hour, critical), in(5*time.Hour, `,"include_critical":false`)} {
		if draft, fields := read(body); len(fields) > 0 || draft.Type != "pulse" || draft.Reason != "exercise" {
			t.Errorf("%s: %v", body, fields)
		}
	}
	for body, field := range map[string]string{
		in(0, ""): "ends_at", in(-time.Hour, ""): "ends_at", in(30*24*time.Hour+time.Second, ""): "ends_at", in(4*time.Hour+time.Second, critical): "ends_at",
		`{"type":"device_battery","reason":"x","ends_at":"2026-01-16T00:00:00Z"}`: "type",
		`{"type":"pulse","ends_at":"2026-01-16T00:00:00Z"}`:                       "reason",
		`{"type":"pulse","reason":"x"}`:                                           "ends_at",
	} {
		if _, fields := read(body); len(fields) != 1 || fields[field] == nil {
			t.Errorf("%s: %v, want a complaint about %s", body, fields, field)
		}
	}
}

func TestSnoozeCovers(t *testing.T) {
	end := now.Add(time.Hour)
	warnings := alerts.Snooze{Type: "pulse", EndsAt: end}
	everything := alerts.Snooze{Type: "pulse", EndsAt: end, IncludeCritical: true}
	for _, test := range []struct {
		snooze    alerts.Snooze
		alertType string
		level     alerts.Level
		at        time.Time
		want      bool
	}{
		{warnings, "pulse", alerts.Warning, now, true},
		{warnings, "pulse", alerts.Warning, end.Add(-time.Microsecond), true},
		{warnings, "pulse", alerts.Warning, end, false},
		{warnings, "pulse", alerts.Critical, now, false},
		{warnings, "weight", alerts.Warning, now, false},
		{everything, "pulse", alerts.Critical, now, true},
		{everything, "pulse", alerts.Critical, end, false},
		{everything, "weight", alerts.Critical, now, false},
	} {
		if got := test.snooze.Covers(test.alertType, test.level, test.at); got != test.want {
			t.Errorf("%+v covers %s %s at %s: %t", test.snooze, test.level, test.alertType, test.at, got)
		}
	}
}
