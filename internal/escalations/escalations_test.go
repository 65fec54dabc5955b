package escalations_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var now = vigiltest.Clock

// practice is an app with a patient, a primary provider and a nurse who can be assigned escalations.
type practice struct {
	t               *testing.T
	app             *tests.TestApp
	patient         string
	provider, nurse *collections.User
}

func newPractice(t *testing.T) *practice {
	t.Helper()
	p := &practice{t: t, app: vigiltest.NewApp(t)}
	hooks.Bind(p.app, hooks.Engines{
		Directory: patients.NewDirectory(), Zone: time.UTC, Clock: func() time.Time { return now },
		EvictUser: func(string) {}, Wake: func() {}, WakeMailer: func() {},
	})
	p.provider = vigiltest.User(t, p.app, authz.Provider, vigiltest.Email("provider@vigil.test"))
	p.nurse = vigiltest.User(t, p.app, authz.Nurse, vigiltest.Email("nurse@vigil.test"))
	p.patient = p.enrol(p.provider.Id)
	return p
}

func (p *practice) enrol(provider string) string {
	p.t.Helper()
	record, err := collections.NewRecord(p.app, collections.Patients)
	if err != nil {
		p.t.Fatal(err)
	}
	record.Load(map[string]any{
		"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true, "primary_provider": provider,
	})
	if err := p.app.Save(record); err != nil {
		p.t.Fatal(err)
	}
	return record.Id
}

func by(user *collections.User) audit.Actor {
	return audit.User(user.Number(), user.Email(), user.Role(), audit.Origin{})
}

func (p *practice) create(draft escalations.Draft) *collections.Escalation {
	p.t.Helper()
	if draft.PatientID == "" {
		draft.PatientID = p.patient
	}
	if draft.Priority == "" {
		draft.Priority = escalations.Urgent
	}
	draft.Reason = "Three high readings."
	e, err := p.open(draft)
	if err != nil {
		p.t.Fatal(err)
	}
	return e
}

func (p *practice) open(draft escalations.Draft) (e *collections.Escalation, err error) {
	err = p.app.RunInTransaction(func(tx core.App) error {
		e, err = escalations.Open(tx, draft, by(p.nurse), now)
		return err
	})
	return e, err
}

func (p *practice) update(e *collections.Escalation, change escalations.Change, at time.Time) (*collections.Escalation, error) {
	return p.updateBy(p.nurse, e, change, at)
}

func (p *practice) updateBy(user *collections.User, e *collections.Escalation, change escalations.Change, at time.Time) (changed *collections.Escalation, err error) {
	p.t.Helper()
	err = p.app.RunInTransaction(func(tx core.App) error {
		changed, _, err = escalations.Update(tx, e.Number(), change, by(user), at)
		return err
	})
	return changed, err
}

// want checks stored columns.
func (p *practice) want(record interface {
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

// announced returns the announcements, by kind and user, in order.
func (p *practice) announced() (list []string) {
	p.t.Helper()
	if err := p.app.DB().NewQuery(`SELECT kind || ' ' || severity || ' ' || user FROM announcements ORDER BY rowid`).Column(&list); err != nil {
		p.t.Fatal(err)
	}
	return list
}

// Every target from every state.
func TestCanChangeStatus(t *testing.T) {
	all := []escalations.Status{escalations.StatusOpen, escalations.StatusInProgress, escalations.StatusResolved, escalations.StatusCancelled}
	const invalid, closed = "validation_error", "invalid_transition"
	for from, want := range map[escalations.Status][]string{
		escalations.StatusOpen:       {invalid, "changes", "changes", "changes"},
		escalations.StatusInProgress: {invalid, "", "changes", "changes"},
		escalations.StatusResolved:   {invalid, closed, closed, closed},
		escalations.StatusCancelled:  {invalid, closed, closed, closed},
	} {
		for i, to := range all {
			changes, err := escalations.CanChangeStatus(from, to)
			got := vigiltest.Code(err)
			if changes {
				got += "changes"
			}
			if got != want[i] {
				t.Errorf("from %s to %s: %q, want %q", from, to, got, want[i])
			}
		}
	}
}

// The same pairs, stored.
func TestUpdateStatus(t *testing.T) {
	p := newPractice(t)
	for _, test := range []struct{ from, to, want string }{
		{"open", "in_progress", "in_progress"},
		{"open", "resolved", "resolved"},
		{"open", "cancelled", "cancelled"},
		{"in_progress", "in_progress", "in_progress"},
		{"in_progress", "resolved", "resolved"},
		{"in_progress", "cancelled", "cancelled"},
		{"resolved", "in_progress", "invalid_transition"},
		{"resolved", "resolved", "invalid_transition"},
		{"resolved", "cancelled", "invalid_transition"},
		{"cancelled", "in_progress", "invalid_transition"},
		{"cancelled", "resolved", "invalid_transition"},
		{"cancelled", "cancelled", "invalid_transition"},
	} {
		record := p.create(escalations.Draft{})
		if test.from != "open" {
			if _, err := p.update(record, escalations.Change{Status: new(escalations.Status(test.from))}, now); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := p.update(record, escalations.Change{Status: new(escalations.Status(test.to))}, now)
		got := vigiltest.Code(err)
		if err == nil {
			got = changed.Status()
		}
		if got != test.want {
			t.Errorf("from %s to %s: %q, want %q", test.from, test.to, got, test.want)
		}
	}
}

func TestOpen(t *testing.T) {
	p := newPractice(t)
	before := vigiltest.RowCounts(t, p.app)
	record := p.create(escalations.Draft{})
	at := collections.FormatInstant(now)
	p.want(record, map[string]any{
		"status": "open", "priority": "urgent", "created_by": "nurse@vigil.test", "assigned_to": "provider@vigil.test", "assigned_at": at,
		"created_at": at, "updated_at": at, "notified_at": at, "reason": "Three high readings.", "resolved_by": "",
	})
	added := vigiltest.RowsAdded(t, p.app, before)
	if added["escalations"] != 1 || added["announcements"] != 1 || added["audit_log"] != 1 {
		t.Errorf("opening one adds %v", added)
	}
	var reason string
	if err := p.app.DB().NewQuery(`SELECT reason FROM escalations`).Row(&reason); err != nil || strings.Contains(reason, "high") {
		t.Errorf("the reason lies on disk as %q (%v)", reason, err)
	}
	if got := p.announced(); !slices.Equal(got, []string{"escalation_opened warning "}) {
		t.Errorf("announcements: %v", got)
	}

	p.want(p.create(escalations.Draft{AssignedTo: "NURSE@vigil.test"}), map[string]any{"assigned_to": "nurse@vigil.test"})
	alone := p.enrol("")
	p.want(p.create(escalations.Draft{PatientID: alone}), map[string]any{"assigned_to": "", "assigned_at": ""})
	p.want(p.create(escalations.Draft{RelatedID: record.Id}), map[string]any{"related_escalation": record.Id})

	vigiltest.User(t, p.app, authz.MA, vigiltest.Email("ma@vigil.test"))
	vigiltest.User(t, p.app, authz.Nurse, vigiltest.Email("gone@vigil.test"), vigiltest.Inactive())
	for _, draft := range []escalations.Draft{
		{PatientID: p.patient, AssignedTo: "ma@vigil.test"},
		{PatientID: p.patient, AssignedTo: "gone@vigil.test"},
		{PatientID: p.patient, AssignedTo: "nobody@vigil.test"},
		{PatientID: alone, RelatedID: record.Id},
	} {
		draft.Priority = escalations.Routine
		if _, err := p.open(draft); vigiltest.Code(err) != "validation_error" {
			t.Errorf("%+v: %v", draft.RelatedID, err)
		}
	}
	if _, err := p.open(escalations.Draft{PatientID: p.patient, Priority: escalations.Routine, RelatedID: collections.NumberID(999)}); vigiltest.Code(err) != "not_found" {
		t.Errorf("unknown related escalation: %v", err)
	}
	if _, err := p.open(escalations.Draft{PatientID: collections.NewUUID()}); vigiltest.Code(err) != "not_found" {
		t.Errorf("without a patient: %v", err)
	}
	if _, err := patients.Archive(p.app, alone, patients.ArchiveDraft{Reason: "moved"}, by(p.nurse), now); err != nil {
		t.Fatal(err)
	}
	if _, err := p.open(escalations.Draft{PatientID: alone, Priority: escalations.Urgent}); vigiltest.Code(err) != "validation_error" {
		t.Errorf("for an archived patient: %v", err)
	}
}

func TestAssign(t *testing.T) {
	p := newPractice(t)
	record := p.create(escalations.Draft{})
	later := now.Add(time.Hour)
	if _, err := p.updateBy(p.provider, record, escalations.Change{AssignedTo: new("nurse@vigil.test")}, later); err != nil {
		t.Fatal(err)
	}
	p.want(record, map[string]any{"assigned_to": "nurse@vigil.test", "assigned_at": collections.FormatInstant(later), "status": "open"})
	if got := p.announced(); !slices.Equal(got, []string{"escalation_opened warning ", "escalation_assigned warning " + p.nurse.Id}) {
		t.Errorf("announcements: %v", got)
	}
	if _, err := p.update(record, escalations.Change{AssignedTo: new("nobody@vigil.test")}, later); vigiltest.Code(err) != "validation_error" {
		t.Errorf("to an unknown user: %v", err)
	}
	before := vigiltest.RowCounts(t, p.app)
	if _, err := p.update(record, escalations.Change{AssignedTo: new("nurse@vigil.test")}, later); err != nil || len(vigiltest.RowsAdded(t, p.app, before)) > 0 {
		t.Errorf("to the same again: %v", err)
	}
	if _, err := p.update(record, escalations.Change{AssignedTo: new("")}, later); err != nil {
		t.Fatal(err)
	}
	p.want(record, map[string]any{"assigned_to": "", "assigned_at": ""})
	if _, err := p.update(record, escalations.Change{Status: new(escalations.StatusInProgress)}, later); err != nil {
		t.Fatal(err)
	}
	p.want(record, map[string]any{"assigned_to": "nurse@vigil.test", "status": "in_progress"}) // starting work assigns it
	if got := p.announced(); len(got) != 2 {
		t.Errorf("users are notified of their own change: %v", got)
	}
}
