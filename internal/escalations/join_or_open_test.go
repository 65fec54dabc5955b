package escalations_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func (p *practice) escalate(alert *core.Record) (e *collections.Escalation, err error) {
	p.t.Helper()
	err = p.app.RunInTransaction(func(tx core.App) error {
		e, err = escalations.OpenForAlert(tx, collections.Number(alert.Id), escalations.Draft{Priority: escalations.Urgent}, by(p.nurse), now)
		return err
	})
	return e, err
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
func TestOpenForAlert(t *testing.T) {
	p := newPractice(t)
	alert := p.alert(alerts.Warning)
	escalate := func() *collections.Escalation {
		record, err := p.escalate(alert)
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
	of, err := escalations.AlertIDsByEscalation(p.app, first, second, third)
	if err != nil || !slices.Equal(of[second.Id], []string{alert.Id}) || !slices.Equal(of[third.Id], []string{alert.Id}) {
		t.Errorf("alerts of escalations: %v (%v)", of, err)
	}
	if _, err := alerts.ResolveOpen(p.app, p.patient, now); err != nil {
		t.Fatal(err)
	}
	if _, err := p.escalate(alert); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("of an alert that is over: %v", err)
	}
}

// The system has one open escalation per patient: later alerts join it, and each alert names it.
func TestJoinOrOpen(t *testing.T) {
	p := newPractice(t)
	var first string
	for i := range 3 {
		alert := p.alert(alerts.NoData)
		var id string
		var opened bool
		err := p.app.RunInTransaction(func(tx core.App) (err error) {
			id, opened, err = escalations.JoinOrOpen(tx, escalations.Trigger{Draft: escalations.Draft{
				PatientID: p.patient, Priority: escalations.Urgent, Reason: "No measurement for 3 days.", AlertID: alert.Id, AssignedTo: p.provider.Email(),
			}}, now)
			return err
		})
		if err != nil || opened != (i != 1) || (i == 1) != (id == first) {
			t.Errorf("alert %d: escalation %s, opened %t (%v)", i, id, opened, err)
		}
		p.want(alert, map[string]any{"escalation": id, "status": "active"})
		if first = id; i == 1 {
			if ids, err := escalations.CancelOpen(p.app, p.patient, now); err != nil || !slices.Equal(ids, []string{id}) {
				t.Errorf("cancelled %v (%v)", ids, err)
			}
		}
	}
	record, err := p.app.FindRecordById(collections.Escalations, first)
	if err != nil {
		t.Fatal(err)
	}
	p.want(record, map[string]any{
		"created_by": "system", "priority": "urgent", "status": "open", "reason": "No measurement for 3 days.", "assigned_to": "provider@vigil.test",
		"assigned_at": collections.FormatInstant(now),
	})
	var events []string
	if err := p.app.DB().NewQuery(`SELECT event || ' ' || actor_email FROM audit_log WHERE resource_type = 'Escalation' ORDER BY id`).Column(&events); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(events, []string{"escalation.create ", "escalation.update ", "escalation.create "}) {
		t.Errorf("recorded: %q", events)
	}
}

func TestStoreAndJoin(t *testing.T) {
	app := vigiltest.NewApp(t)
	id := collections.NumberID(7)
	e := escalations.Draft{PatientID: "p1", Priority: escalations.Stat, AlertID: collections.NumberID(3), Reason: "Pulse 135 bpm.", AssignedTo: "provider@vigil.test"}
	if err := (escalations.Decision{Open: e}).Write(app, id, "", now); err != nil {
		t.Fatal(err)
	}
	check := func(want map[string]any) {
		t.Helper()
		record, err := app.FindRecordById(collections.Escalations, id)
		if err != nil {
			t.Fatal(err)
		}
		for column, value := range want {
			if got := record.Get(column); got != value {
				t.Errorf("%s is %v, want %v", column, got, value)
			}
		}
	}
	check(map[string]any{
		"patient": "p1", "priority": "stat", "status": "open", "created_by": "system", "assigned_to": "provider@vigil.test",
		"assigned_at": collections.FormatInstant(now), "alert": collections.NumberID(3), "reason": "Pulse 135 bpm.", "updated_at": collections.FormatInstant(now),
	})
	if err := (escalations.Decision{Open: e}).Write(app, collections.NumberID(8), "", now); err == nil {
		t.Error("a patient has two open escalations of the system")
	}
	if _, err := app.DB().Insert(collections.Escalations, dbx.Params{"id": collections.NumberID(9), "patient": "p2"}).Execute(); err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().Update(collections.Escalations, dbx.Params{"priority": "urgent"}, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := (escalations.Decision{Join: id, Open: e}).Write(app, id, "", now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check(map[string]any{"priority": "stat", "updated_at": collections.FormatInstant(now.Add(time.Hour)), "alert": collections.NumberID(3)})
	if other, err := app.FindRecordById(collections.Escalations, collections.NumberID(9)); err != nil || other.GetString("priority") != "" {
		t.Errorf("another escalation changed too (%v)", err)
	}
}
