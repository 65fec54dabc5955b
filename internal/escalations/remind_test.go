package escalations_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
)

// What nobody takes up in time is told again, once per interval.
func TestRemindOverdue(t *testing.T) {
	p := newPractice(t)
	intervals := escalations.Intervals{triage.Stat: 15 * time.Minute, triage.Urgent: time.Hour, triage.Routine: 24 * time.Hour}
	urgent := p.create(escalations.Draft{})
	p.create(escalations.Draft{Priority: triage.Routine})
	taken := p.create(escalations.Draft{})
	if _, err := p.update(taken, escalations.Change{Status: new(escalations.StatusInProgress)}, now); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{
		{59 * time.Minute, 0}, {time.Hour, 1}, {61 * time.Minute, 0}, {2 * time.Hour, 1}, {24 * time.Hour, 2}, {24*time.Hour + time.Minute, 0},
	} {
		told, err := escalations.RemindOverdue(t.Context(), p.app, intervals, now.Add(step.after))
		if err != nil || told != step.want {
			t.Errorf("after %s %d are told (%v), want %d", step.after, told, err, step.want)
		}
	}
	overdue := slices.DeleteFunc(p.told(), func(s string) bool { return !strings.HasPrefix(s, "escalation_overdue") })
	if len(overdue) != 4 {
		t.Errorf("people hear %v", overdue)
	}
	p.want(urgent, map[string]any{"notified_at": collections.Instant(now.Add(24 * time.Hour)), "status": "open"})
}

func (p *practice) alert(level alerts.Level) *core.Record {
	p.t.Helper()
	id, err := alerts.Store(p.app, alerts.Draft{
		PatientID: p.patient, MeasuredAt: now, Finding: alerts.Finding{Type: "pulse", Level: level, Message: "Pulse 120 bpm."},
	}, now)
	if err != nil {
		p.t.Fatal(err)
	}
	record, err := p.app.FindRecordById(collections.Alerts, id)
	if err != nil {
		p.t.Fatal(err)
	}
	return record
}

// An alert belongs to the escalation it raised, until that is closed and another is opened about it.
func TestOfAlert(t *testing.T) {
	p := newPractice(t)
	alert := p.alert(alerts.Warning)
	escalate := func() *core.Record {
		record, err := escalations.OfAlert(p.app, collections.Number(alert.Id), escalations.Draft{Priority: triage.Urgent}, by(p.nurse), now)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	first, second := escalate(), escalate()
	p.want(first, map[string]any{"reason": "Pulse 120 bpm.", "alert": alert.Id, "priority": "urgent"})
	p.want(alert, map[string]any{"escalation": first.Id, "status": "active"})
	if _, err := p.update(first, escalations.Change{Status: new(escalations.StatusCancelled)}, now); err != nil {
		t.Fatal(err)
	}
	third := escalate()
	p.want(alert, map[string]any{"escalation": third.Id})
	of, err := escalations.AlertsOf(p.app, first, second, third)
	if err != nil || !slices.Equal(of[second.Id], []string{alert.Id}) || !slices.Equal(of[third.Id], []string{alert.Id}) {
		t.Errorf("alerts of escalations: %v (%v)", of, err)
	}
	if _, err := triage.ActOnAlert(p.app, collections.Number(alert.Id), alerts.Action{Move: alerts.Resolve}, by(p.nurse), now); err != nil {
		t.Fatal(err)
	}
	if _, err := escalations.OfAlert(p.app, collections.Number(alert.Id), escalations.Draft{Priority: triage.Urgent}, by(p.nurse), now); code(err) != "invalid_state" {
		t.Errorf("of an alert that is over: %v", err)
	}
}

// The system has one escalation open per patient.
func TestOpenBySystem(t *testing.T) {
	p := newPractice(t)
	open := func(priority triage.Priority) (record *core.Record, opened bool) {
		t.Helper()
		err := p.app.RunInTransaction(func(tx core.App) (err error) {
			record, opened, err = escalations.OpenBySystem(tx, escalations.Draft{PatientID: p.patient, Priority: priority, Reason: "No measurement for 3 days."}, now)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return record, opened
	}
	first, opened := open(triage.Urgent)
	if !opened {
		t.Error("none is opened")
	}
	p.want(first, map[string]any{"created_by": "system", "priority": "urgent"})
	for _, step := range []struct{ priority, want triage.Priority }{{triage.Routine, triage.Urgent}, {triage.Stat, triage.Stat}} {
		again, opened := open(step.priority)
		if opened || again.Id != first.Id {
			t.Errorf("a second one: %s", again.Id)
		}
		p.want(first, map[string]any{"priority": string(step.want)})
	}
}

// A follow-up reminds whoever asked for it, once.
func TestRemindFollowUps(t *testing.T) {
	p := newPractice(t)
	alert := p.alert(alerts.Warning)
	action := alerts.Action{Move: alerts.Acknowledge, FollowUpAt: now.Add(time.Hour)}
	if _, err := triage.ActOnAlert(p.app, collections.Number(alert.Id), action, by(p.nurse), now); err != nil {
		t.Fatal(err)
	}
	for after, want := range []int{0, 1, 0} {
		told, err := escalations.RemindFollowUps(t.Context(), p.app, now.Add(time.Duration(after)*time.Hour))
		if err != nil || told != want {
			t.Errorf("after %d hours %d are told (%v), want %d", after, told, err, want)
		}
	}
	if got := p.told(); !slices.Equal(got, []string{"follow_up_due info " + p.nurse.Id}) {
		t.Errorf("people hear %v", got)
	}
	if _, err := p.app.DB().Update(collections.Alerts, dbx.Params{"follow_up_told": false, "follow_up_by": "gone@vigil.test"}, nil).Execute(); err != nil {
		t.Fatal(err)
	}
	if told, err := escalations.RemindFollowUps(t.Context(), p.app, now.Add(9*time.Hour)); err != nil || told != 1 || len(p.told()) != 1 {
		t.Errorf("of nobody: %d (%v)", told, err)
	}
}
