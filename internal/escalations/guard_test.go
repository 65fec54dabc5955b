package escalations_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A change in the dashboard obeys the rules, by column or by fault; nothing rejected is saved.
func TestGuard(t *testing.T) {
	p := newPractice(t)
	later := now.Add(time.Hour)
	for _, test := range []struct {
		name    string
		from    escalations.Status
		change  map[string]any
		effect  escalations.Effect
		refused string // a column, or the code of a fault
		want    map[string]any
	}{
		{"nothing", escalations.StatusOpen, nil, escalations.Unchanged, "", map[string]any{"updated_at": collections.FormatInstant(now)}},
		{"taken up", escalations.StatusOpen, map[string]any{"status": "in_progress", "priority": "stat"}, escalations.Changed, "", map[string]any{
			"status": "in_progress", "priority": "stat", "updated_at": collections.FormatInstant(later),
		}},
		{
			"resolved", escalations.StatusInProgress,
			map[string]any{"status": "resolved", "resolution_notes": "Called.", "interaction_minutes": 25},
			escalations.Resolved, "",
			map[string]any{"resolved_by": "nurse@vigil.test", "resolution_notes": "Called.", "interaction_minutes": 25.0},
		},
		{"cancelled", escalations.StatusOpen, map[string]any{"status": "cancelled"}, escalations.Changed, "", map[string]any{"cancelled_by": "nurse@vigil.test", "resolved_by": ""}},
		{"assigned", escalations.StatusOpen, map[string]any{"assigned_to": "nurse@vigil.test"}, escalations.Changed, "", map[string]any{
			"assigned_to": "nurse@vigil.test", "assigned_at": collections.FormatInstant(later), "notified_at": collections.FormatInstant(later),
		}},
		{"to an unknown user", escalations.StatusOpen, map[string]any{"assigned_to": "nobody@vigil.test"}, escalations.Unchanged, "validation_error", nil},
		{"what happened", escalations.StatusOpen, map[string]any{"reason": "Another."}, escalations.Unchanged, "reason", nil},
		{"minutes of open work", escalations.StatusOpen, map[string]any{"interaction_minutes": 10}, escalations.Unchanged, "interaction_minutes", nil},
		{"too many minutes", escalations.StatusOpen, map[string]any{"status": "resolved", "interaction_minutes": 241}, escalations.Unchanged, "interaction_minutes", nil},
		{"opened again", escalations.StatusResolved, map[string]any{"status": "in_progress"}, escalations.Unchanged, "invalid_transition", nil},
		{"notes when it is over", escalations.StatusCancelled, map[string]any{"resolution_notes": "Late."}, escalations.Unchanged, "invalid_state", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := p.create(escalations.Draft{})
			if test.from != escalations.StatusOpen {
				if _, err := p.update(e, escalations.Change{Status: new(test.from)}, now); err != nil {
					t.Fatal(err)
				}
			}
			e, err := collections.FindEscalation(p.app, e.Id)
			if err != nil {
				t.Fatal(err)
			}
			e.Load(test.change)
			saved := 0
			effect, err := escalations.Guard(p.app, e, by(p.nurse), later, func() error {
				saved++
				return e.Store(p.app)
			})
			var columns validation.Errors
			refused := vigiltest.Code(err)
			if errors.As(err, &columns) {
				refused = strings.Join(slices.Collect(maps.Keys(columns)), " ")
			}
			if refused != test.refused || (refused == "") != (err == nil) || effect != test.effect || (saved == 1) != (err == nil) {
				t.Errorf("effect %d, saved %d times: %q (%v)", effect, saved, refused, err)
			}
			if err == nil {
				p.want(e, test.want)
			}
		})
	}

	record, err := collections.NewRecord(p.app, collections.Escalations)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(map[string]any{"patient": p.patient, "priority": "routine", "status": "resolved", "resolved_by": "me", "interaction_minutes": 9})
	guard := func() (escalations.Effect, error) {
		return escalations.Guard(p.app, collections.AsEscalation(record), by(p.nurse), later, func() error { return collections.Insert(p.app, record) })
	}
	var missing validation.Errors
	if _, err := guard(); !errors.As(err, &missing) || missing["reason"] == nil {
		t.Errorf("without a reason: %v", err)
	}
	record.Id = collections.NumberID(900)
	record.Set("reason", "By hand.")
	if effect, saved := guard(); saved != nil || effect != escalations.Changed {
		t.Fatalf("opened by hand: %d (%v)", effect, saved)
	}
	p.want(record, map[string]any{
		"status": "open", "resolved_by": "", "interaction_minutes": nil, "created_by": "nurse@vigil.test", "assigned_to": "provider@vigil.test", "reason": "By hand.",
	})
}

func TestReadBodies(t *testing.T) {
	const ada = "0194c5a8-0000-7000-8000-000000000001"
	for text, want := range map[string]string{
		`{"patient_id":"` + ada + `","priority":"urgent","reason":"High."}`: "",
		`{}`: "patient_id priority reason",
		`{"patient_id":"x","priority":"now","reason":" ","assigned_to":7}`: "assigned_to patient_id priority reason",
	} {
		checks := validate.NewChecks()
		draft := decode[escalations.Body](t, text).Read(checks)
		if got := strings.Join(slices.Sorted(maps.Keys(checks.Fields)), " "); got != want {
			t.Errorf("%s: %q is wrong, want %q", text, got, want)
		}
		if want == "" && (draft.PatientID != ada || draft.Priority != escalations.Urgent || draft.Reason != "High.") {
			t.Errorf("%s is read as %s of %s", text, draft.Priority, draft.PatientID)
		}
	}
	checks := validate.NewChecks()
	draft := decode[escalations.Body](t, `{"related_escalation_id":12,"assigned_to":"nurse@vigil.test"}`).ReadForAlert(checks)
	if checks.Err() != nil || draft.Priority != escalations.Urgent || draft.Reason != "" || draft.RelatedID != collections.NumberID(12) || draft.AssignedTo != "nurse@vigil.test" {
		t.Errorf("about an alert: %s, related %s, to %s (%v)", draft.Priority, draft.RelatedID, draft.AssignedTo, checks.Err())
	}
	for text, want := range map[string]string{
		`{"status":"resolved","interaction_minutes":240,"resolution_notes":null}`: "",
		`{"assigned_to":"","priority":"stat"}`:                                    "",
		`{"status":"open"}`:                                                       "status",
		`{"interaction_minutes":5}`:                                               "interaction_minutes",
		`{"status":"in_progress","interaction_minutes":5}`:                        "interaction_minutes",
		`{"status":"resolved","interaction_minutes":241}`:                         "interaction_minutes",
		`{"priority":"now"}`:                                                      "priority",
		`{"notes":null,"status":"in_progress"}`:                                   "",
		`{"notes":7}`:                                                             "notes",
		`{"notes":"` + strings.Repeat("x", 4001) + `"}`:                           "notes",
	} {
		checks := validate.NewChecks()
		decode[escalations.ChangeBody](t, text).Read(checks)
		if got := strings.Join(slices.Sorted(maps.Keys(checks.Fields)), " "); got != want {
			t.Errorf("%s: %q is wrong, want %q", text, got, want)
		}
	}
}

func decode[B any](t *testing.T, text string) (body B) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	return body
}
