package triage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var rankingNow = vigiltest.Clock

// rankingPractice is an app with a patient, a primary provider and a nurse.
type rankingPractice struct {
	t               *testing.T
	app             *tests.TestApp
	bills           *billing.Engine
	patient         string
	provider, nurse *collections.User
}

func newPractice(t *testing.T) *rankingPractice {
	t.Helper()
	p := &rankingPractice{t: t, app: vigiltest.NewApp(t), bills: billing.New(billing.Settings{Zone: time.UTC, EscalationTimeCap: time.Hour})}
	p.provider = vigiltest.User(t, p.app, authz.Provider, vigiltest.Email("provider@vigil.test"))
	p.nurse = vigiltest.User(t, p.app, authz.Nurse, vigiltest.Email("nurse@vigil.test"))
	p.patient = p.enrol(p.provider.Id)
	return p
}

func (p *rankingPractice) enrol(provider string) string {
	p.t.Helper()
	patient, err := collections.NewPatient(p.app)
	if err != nil {
		p.t.Fatal(err)
	}
	patient.Load(map[string]any{
		"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true, "primary_provider": provider,
		"mrn": patient.Id,
	})
	if err := p.app.SaveNoValidate(patient); err != nil {
		p.t.Fatal(err)
	}
	if err := triage.AddRow(p.app, patient.Id, rankingNow.Add(-time.Hour)); err != nil {
		p.t.Fatal(err)
	}
	return patient.Id
}

func by(user *collections.User) audit.Actor {
	return audit.User(user.Number(), user.Email(), user.Role(), audit.Origin{})
}

func (p *rankingPractice) create(draft escalations.Draft) *collections.Escalation {
	p.t.Helper()
	if draft.PatientID == "" {
		draft.PatientID = p.patient
	}
	draft.Priority, draft.Reason = escalations.Urgent, "Three high readings."
	e, err := triage.OpenEscalation(p.app, draft, by(p.nurse), rankingNow)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

func (p *rankingPractice) update(e *collections.Escalation, change escalations.Change, at time.Time) (*collections.Escalation, error) {
	p.t.Helper()
	return triage.UpdateEscalation(p.app, p.bills, e.Number(), change, by(p.nurse), at)
}

// want checks stored columns.
func (p *rankingPractice) want(record interface {
	Collection() *core.Collection
	PK() any
}, columns map[string]any,
) {
	p.t.Helper()
	stored, err := p.app.FindRecordById(record.Collection().Name, record.PK().(string))
	if err != nil {
		p.t.Fatal(err)
	}
	for column, want := range columns {
		if got := stored.Get(column); got != want {
			p.t.Errorf("%s is %v, want %v", column, got, want)
		}
	}
}

func (p *rankingPractice) place() *core.Record {
	p.t.Helper()
	place, err := p.app.FindFirstRecordByData(collections.TriageScores, "patient", p.patient)
	if err != nil {
		p.t.Fatal(err)
	}
	return place
}

// Actions on alerts and escalations rescore the patient at once; a failed action changes nothing.
func TestUpdatesRescore(t *testing.T) {
	p := newPractice(t)
	var number int64
	if err := triage.UpdateAndRescore(p.app, rankingNow, func(tx core.App) (string, error) {
		id, err := alerts.Raise(tx, alerts.Draft{
			PatientID: p.patient, MeasuredAt: rankingNow, Finding: alerts.Finding{Type: "pulse", Level: alerts.Critical, Message: "Pulse 140 bpm."},
		}, rankingNow)
		number = collections.Number(id)
		return p.patient, err
	}); err != nil {
		t.Fatal(err)
	}
	p.want(p.place(), map[string]any{"unacknowledged_critical": 1.0, "risk_score": 86.0, "risk_level": "critical", "last_reviewed_by": ""})

	if err := triage.UpdateAndRescore(p.app, rankingNow, func(tx core.App) (string, error) {
		if _, err := alerts.ResolveOpen(tx, p.patient, rankingNow); err != nil {
			return "", err
		}
		return p.patient, errors.New("the disk is full")
	}); err == nil {
		t.Error("a change that failed was made")
	}
	p.want(p.place(), map[string]any{"unacknowledged_critical": 1.0})

	e, err := triage.EscalateAlert(p.app, number, escalations.Draft{Priority: escalations.Urgent}, by(p.nurse), rankingNow)
	if err != nil {
		t.Fatal(err)
	}
	p.want(p.place(), map[string]any{"active_escalations": 1.0, "last_reviewed_by": ""}) // escalating is not a review
	later := rankingNow.Add(time.Minute)
	for _, step := range []struct {
		action  alerts.Action
		at      time.Time
		reviews bool
	}{
		{alerts.Action{Move: alerts.Annotate, Notes: "Called."}, later, false},
		{alerts.Action{Move: alerts.Acknowledge}, later.Add(time.Minute), true},
		{alerts.Action{Move: alerts.Resolve}, later.Add(2 * time.Minute), true},
	} {
		if _, err := triage.ActOnAlert(p.app, number, step.action, by(p.nurse), step.at); err != nil {
			t.Fatal(err)
		}
		if got := p.place().GetString("last_reviewed_at") == collections.FormatInstant(step.at); got != step.reviews {
			t.Errorf("%s is a review: %t", step.action.Move, got)
		}
	}
	if _, err := triage.ActOnAlert(p.app, number, alerts.Action{Move: alerts.Resolve}, by(p.nurse), later); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("resolved twice: %v", err)
	}
	if _, err := triage.ActOnAlert(p.app, 999, alerts.Action{Move: alerts.Resolve}, by(p.nurse), later); vigiltest.Code(err) != "not_found" {
		t.Errorf("of no alert: %v", err)
	}
	p.want(p.place(), map[string]any{"unacknowledged_alerts": 0.0, "risk_level": "warning", "risk_score": 54.0, "needs_review": true}) // the urgent escalation, and a third of 8.3 for the alert
	if _, err := p.update(e, escalations.Change{Status: new(escalations.StatusCancelled)}, later); err != nil {
		t.Fatal(err)
	}
	p.want(p.place(), map[string]any{"active_escalations": 0.0, "needs_review": false, "risk_level": "no_data"})
	if err := triage.Review(p.app, p.patient, "Seen.", by(p.provider), later.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.want(p.place(), map[string]any{"last_reviewed_by": "provider@vigil.test", "last_reviewed_at": collections.FormatInstant(later.Add(time.Hour))})
}

// A resolution logs the time, counts as a review and is final.
func TestResolve(t *testing.T) {
	p := newPractice(t)
	record := p.create(escalations.Draft{})
	later := rankingNow.Add(25 * time.Minute)
	done := escalations.Change{Status: new(escalations.StatusResolved), ResolutionNotes: new(phi.Text("Called."))}
	if _, err := p.update(record, done, later); err != nil {
		t.Fatal(err)
	}
	p.want(record, map[string]any{
		"status": "resolved", "resolved_by": "nurse@vigil.test", "resolved_at": collections.FormatInstant(later), "resolution_notes": "Called.",
		"cancelled_by": "", "updated_at": collections.FormatInstant(later),
	})
	entry, err := p.app.FindFirstRecordByData(collections.TimeEntries, "escalation", record.Id)
	if err != nil {
		t.Fatal(err)
	}
	p.want(entry, map[string]any{"duration_seconds": 1500.0, "user": p.provider.Id, "category": "interactive", "started_at": collections.FormatInstant(rankingNow)})
	place, err := p.app.FindFirstRecordByData(collections.TriageScores, "patient", p.patient)
	if err != nil {
		t.Fatal(err)
	}
	p.want(place, map[string]any{"last_reviewed_by": "nurse@vigil.test", "last_reviewed_at": collections.FormatInstant(later), "active_escalations": 0.0})

	for _, change := range []escalations.Change{
		{Priority: new(escalations.Routine)}, {AssignedTo: new("")}, {ResolutionNotes: new(phi.Text("More."))},
	} {
		if _, err := p.update(record, change, later); vigiltest.Code(err) != "invalid_state" {
			t.Errorf("a closed one: %v", err)
		}
	}
	before := vigiltest.RowCounts(t, p.app)
	if _, err := p.update(record, escalations.Change{}, later); err != nil || len(vigiltest.RowsAdded(t, p.app, before)) > 0 {
		t.Errorf("a change of nothing: %v", err)
	}

	for minutes, seconds := range map[int]float64{12: 720, 0: 0} {
		record := p.create(escalations.Draft{PatientID: p.enrol(p.provider.Id)})
		change := escalations.Change{Status: new(escalations.StatusResolved), InteractionMinutes: new(minutes)}
		if _, err := p.update(record, change, later.Add(time.Hour)); err != nil { // past the time that was logged above
			t.Fatal(err)
		}
		entry, err := p.app.FindFirstRecordByData(collections.TimeEntries, "escalation", record.Id)
		if logged := err == nil; logged != (seconds > 0) || logged && entry.GetFloat("duration_seconds") != seconds {
			t.Errorf("%d minutes of contact are logged: %t (%v)", minutes, logged, err)
		}
	}
	cancelled := p.create(escalations.Draft{})
	if _, err := p.update(cancelled, escalations.Change{Status: new(escalations.StatusCancelled)}, later); err != nil {
		t.Fatal(err)
	}
	p.want(cancelled, map[string]any{"cancelled_by": "nurse@vigil.test", "cancelled_at": collections.FormatInstant(later), "resolved_by": ""})
	if _, err := p.app.FindFirstRecordByData(collections.TimeEntries, "escalation", cancelled.Id); !collections.IsNotFound(err) {
		t.Errorf("a cancelled one has time: %v", err)
	}
}
