package escalations_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const never = 10_000 * time.Hour

// ladder has the default settings.
func ladder() escalations.Ladder {
	return escalations.Ladder{
		Zone: time.UTC,
		Overdue: map[escalations.Priority]time.Duration{
			escalations.Stat: 15 * time.Minute, escalations.Urgent: time.Hour, escalations.Routine: 24 * time.Hour,
		},
		Tiers: map[escalations.Priority]escalations.Deadlines{
			escalations.Stat:    {15 * time.Minute, 30 * time.Minute, time.Hour},
			escalations.Urgent:  {time.Hour, 4 * time.Hour, 8 * time.Hour},
			escalations.Routine: {24 * time.Hour, 48 * time.Hour, 72 * time.Hour},
		},
	}
}

func (p *practice) sweep(l escalations.Ladder, at time.Time) escalations.Swept {
	p.t.Helper()
	done, err := l.Sweep(p.t.Context(), p.app, at)
	if err != nil {
		p.t.Fatal(err)
	}
	return done
}

// announcedSince returns the announcements after the first so many, by kind and user.
func (p *practice) announcedSince(since int) (list []string) {
	p.t.Helper()
	for _, line := range p.announced()[since:] {
		kind, rest, _ := strings.Cut(line, " ")
		_, user, _ := strings.Cut(rest, " ")
		list = append(list, strings.TrimSpace(strings.TrimPrefix(kind, "escalation_")+" "+p.nameOf(user)))
	}
	return list
}

func (p *practice) nameOf(userID string) string {
	p.t.Helper()
	if userID == "" {
		return ""
	}
	user, err := collections.FindUser(p.app, userID)
	if err != nil {
		p.t.Fatal(err)
	}
	name, _, _ := strings.Cut(user.Email(), "@")
	return name
}

// rota sets who is on call; without turns no one is.
func (p *practice) rota(turns ...escalations.Override) {
	p.t.Helper()
	overrides, err := json.Marshal(turns)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := collections.StoreOnCall(p.app, collections.OnCallRow{TimeZone: "UTC", Shifts: "[]", Overrides: string(overrides)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *practice) turn(user *collections.User, from, to time.Duration) escalations.Override {
	return escalations.Override{StartsAt: now.Add(from), EndsAt: now.Add(to), User: user.Id}
}

// history returns an escalation's history: minutes since now, event and user.
func (p *practice) history(e *collections.Escalation) (list []string) {
	p.t.Helper()
	fresh, err := collections.FindEscalation(p.app, e.Id)
	if err != nil {
		p.t.Fatal(err)
	}
	histories, err := escalations.Histories(p.app, fresh)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, step := range histories[e.Id] {
		who, _, _ := strings.Cut(step.User, "@")
		list = append(list, strings.TrimSpace(fmt.Sprintf("%d %s %s %s", int(step.At.Sub(now).Minutes()), step.Name, who, step.Detail.Reveal())))
	}
	return list
}

// staffed is a practice with a user on call, a clinical manager and an administrator.
func staffed(t *testing.T) (p *practice, onCall, manager *collections.User) {
	t.Helper()
	p = newPractice(t)
	vigiltest.User(t, p.app, authz.Admin, vigiltest.Email("admin@vigil.test"))
	manager = vigiltest.User(t, p.app, authz.ClinicalManager, vigiltest.Email("manager@vigil.test"))
	onCall = vigiltest.User(t, p.app, authz.Nurse, vigiltest.Email("night@vigil.test"))
	p.rota(p.turn(onCall, -time.Hour, never))
	return p, onCall, manager
}

// An escalation that no one takes in time is announced again, once per interval, independent of the ladder.
func TestOverdue(t *testing.T) {
	p, _, _ := staffed(t)
	l := ladder()
	for priority := range l.Tiers {
		l.Tiers[priority] = escalations.Deadlines{never, never, never}
	}
	urgent := p.create(escalations.Draft{})
	p.create(escalations.Draft{Priority: escalations.Routine})
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
		if done := p.sweep(l, now.Add(step.after)); done.Waiting != step.want {
			t.Errorf("after %s %d are notified, want %d", step.after, done.Waiting, step.want)
		}
	}
	overdue := slices.DeleteFunc(p.announced(), func(s string) bool { return !strings.HasPrefix(s, "escalation_overdue") })
	if len(overdue) != 4 {
		t.Errorf("announcements are %v", overdue)
	}
	p.want(urgent, map[string]any{"notified_at": collections.FormatInstant(now.Add(24 * time.Hour)), "status": "open", "tier": 0.0})
}

// A stat escalation that no one touches: the announcements of each minute of the first three hours, and its history.
func TestUntouchedStatEscalation(t *testing.T) {
	p, _, _ := staffed(t)
	e := p.create(escalations.Draft{Priority: escalations.Stat})
	heard := map[int][]string{}
	for minute := range 181 {
		since := len(p.announced())
		p.sweep(ladder(), now.Add(time.Duration(minute)*time.Minute))
		if list := p.announcedSince(since); len(list) > 0 {
			heard[minute] = list
		}
	}
	for minute := range 181 {
		var want []string
		switch {
		case minute == 15:
			want = []string{"overdue night"} // the user on call, with the overdue recipients
		case minute == 60, minute == 120, minute == 180:
			want = []string{"untaken"}
		case minute > 0 && minute%15 == 0:
			want = []string{"overdue"}
		}
		if !slices.Equal(heard[minute], want) {
			t.Errorf("in minute %d announcements are %v, want %v", minute, heard[minute], want)
		}
	}
	const again = "overdue system Assignee, primary provider and clinical managers were notified again."
	const all = "tier_3 system Clinical managers and administrators."
	want := []string{
		"0 opened nurse", "15 tier_1 system On call: night@vigil.test.", "30 tier_2 system Clinical managers.", "45 " + again, "60 " + all,
		"75 " + again, "90 " + again, "105 " + again, "120 " + all, "135 " + again, "150 " + again, "165 " + again, "180 " + all,
	}
	if got := p.history(e); !slices.Equal(got, want) {
		t.Errorf("its history is %q, want %q", got, want)
	}
	p.want(e, map[string]any{"tier": 3.0, "status": "open", "reminded_at": collections.FormatInstant(now.Add(3 * time.Hour))})

	// A user takes it: earlier announcements are not reminders of work.
	if _, err := p.update(e, escalations.Change{Status: new(escalations.StatusInProgress)}, now.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	since := len(p.announced())
	for minute := 181; minute < 7*60; minute++ {
		p.sweep(ladder(), now.Add(time.Duration(minute)*time.Minute))
	}
	p.sweep(ladder(), now.Add(7*time.Hour))
	if got := p.announcedSince(since); !slices.Equal(got, []string{"unnoted night"}) {
		t.Errorf("after it was taken: %q", got)
	}
}

// If deadlines and intervals differ, each user is notified when due, and never twice for one thing.
func TestLadderAndOverdueReminders(t *testing.T) {
	p, _, _ := staffed(t)
	l := ladder()
	l.Overdue[escalations.Stat] = 20 * time.Minute
	p.create(escalations.Draft{Priority: escalations.Stat})
	var got []string
	for minute := range 71 {
		since := len(p.announced())
		p.sweep(l, now.Add(time.Duration(minute)*time.Minute))
		for _, one := range p.announcedSince(since) {
			got = append(got, fmt.Sprint(minute, " ", one))
		}
	}
	// At 15 only the user on call; at 20 the overdue reminder; tier 2 at 30 covers the reminder due at 40.
	if want := []string{"15 on_call night", "20 overdue", "30 overdue", "50 overdue", "60 untaken"}; !slices.Equal(got, want) {
		t.Errorf("announcements are %q, want %q", got, want)
	}
}

// An empty tier is skipped at once.
func TestEmptyTiers(t *testing.T) {
	p := newPractice(t)
	manager := vigiltest.User(t, p.app, authz.ClinicalManager, vigiltest.Email("manager@vigil.test"))
	first := p.create(escalations.Draft{Priority: escalations.Stat})
	p.sweep(ladder(), now.Add(15*time.Minute))
	p.want(first, map[string]any{"tier": 2.0})
	p.sweep(ladder(), now.Add(16*time.Minute))
	p.want(first, map[string]any{"tier": 2.0}) // the third deadline is another 44 minutes away
	if want, got := []string{"0 opened nurse", "15 tier_1 system No one is on call.", "15 tier_2 system Clinical managers."}, p.history(first); !slices.Equal(got, want) {
		t.Errorf("its history is %q, want %q", got, want)
	}

	manager.SetActive(false)
	if err := p.app.Save(manager); err != nil {
		t.Fatal(err)
	}
	second := p.create(escalations.Draft{Priority: escalations.Stat})
	p.rota(p.turn(manager, 0, never)) // a deactivated user is not on call
	p.sweep(ladder(), now.Add(15*time.Minute))
	p.want(second, map[string]any{"tier": 3.0})
	if got := p.announced(); !strings.HasPrefix(got[len(got)-1], "escalation_untaken critical") {
		t.Errorf("announcements are %q", got)
	}
}

// Deadlines that passed while the service was down are caught up, one step per sweep.
func TestAfterDowntime(t *testing.T) {
	p, _, _ := staffed(t)
	e := p.create(escalations.Draft{Priority: escalations.Stat})
	down := 5 * time.Hour
	for i, tier := range []float64{1, 2, 3, 3} {
		done := p.sweep(ladder(), now.Add(down+time.Duration(i)*time.Minute))
		p.want(e, map[string]any{"tier": tier})
		if want := min(1, 3-i); done.Waiting != want {
			t.Errorf("sweep %d takes %d steps, want %d", i, done.Waiting, want)
		}
	}
	p.sweep(ladder(), now.Add(down+61*time.Minute))
	p.want(e, map[string]any{"tier": 3.0, "tier_at": collections.FormatInstant(now.Add(down + 2*time.Minute))})
	p.sweep(ladder(), now.Add(down+62*time.Minute))
	p.want(e, map[string]any{"tier": 3.0, "tier_at": collections.FormatInstant(now.Add(down + 62*time.Minute))})
}

// Taken means in progress, and an assignee who can work on it.
func TestTaken(t *testing.T) {
	p, onCall, _ := staffed(t)
	inProgress := escalations.Change{Status: new(escalations.StatusInProgress)}
	for _, test := range []struct {
		name string
		do   func(e *collections.Escalation) error
		want float64 // the tier after 16 minutes
	}{
		{"assigned only", func(e *collections.Escalation) error {
			_, err := p.update(e, escalations.Change{AssignedTo: new(onCall.Email())}, now)
			return err
		}, 1},
		{"taken", func(e *collections.Escalation) error { _, err := p.update(e, inProgress, now); return err }, 0},
		{"resolved", func(e *collections.Escalation) error {
			_, err := p.update(e, escalations.Change{Status: new(escalations.StatusResolved)}, now)
			return err
		}, 0},
		{"cancelled with the patient", func(*collections.Escalation) error {
			_, err := escalations.CancelOpen(p.app, p.patient, now)
			return err
		}, 0},
		{"given back", func(e *collections.Escalation) error {
			if _, err := p.update(e, inProgress, now); err != nil {
				return err
			}
			_, err := p.update(e, escalations.Change{AssignedTo: new("")}, now)
			return err
		}, 1},
		{"with a deactivated user", func(e *collections.Escalation) error {
			retracted := vigiltest.User(t, p.app, authz.Nurse, vigiltest.Email("gone@vigil.test"))
			if _, err := p.updateBy(retracted, e, escalations.Change{Status: new(escalations.StatusInProgress), AssignedTo: new(retracted.Email())}, now); err != nil {
				return err
			}
			retracted.SetActive(false)
			return p.app.Save(retracted)
		}, 1},
	} {
		e := p.create(escalations.Draft{Priority: escalations.Stat})
		if err := test.do(e); err != nil {
			t.Fatal(err)
		}
		p.sweep(ladder(), now.Add(16*time.Minute))
		if got := p.stored(e).GetFloat("tier"); got != test.want {
			t.Errorf("%s: tier %v, want %v", test.name, got, test.want)
		}
		if _, err := escalations.CancelOpen(p.app, p.patient, now); err != nil {
			t.Fatal(err)
		}
	}
}

func (p *practice) stored(e *collections.Escalation) *core.Record {
	p.t.Helper()
	record, err := p.app.FindRecordById(collections.Escalations, e.Id)
	if err != nil {
		p.t.Fatal(err)
	}
	return record
}

// A higher priority restarts the deadlines, set by a user or by a critical alert that joins; a lower one does not.
func TestRaisedPriorityRestartsDeadlines(t *testing.T) {
	p, _, _ := staffed(t)
	e := p.create(escalations.Draft{Priority: escalations.Routine})
	p.sweep(ladder(), now.Add(24*time.Hour))
	p.want(e, map[string]any{"tier": 1.0})
	raised := now.Add(30 * time.Hour)
	if _, err := p.update(e, escalations.Change{Priority: new(escalations.Stat)}, raised); err != nil {
		t.Fatal(err)
	}
	p.want(e, map[string]any{"tier": 0.0})
	for after, tier := range map[time.Duration]float64{14 * time.Minute: 0} {
		p.sweep(ladder(), raised.Add(after))
		p.want(e, map[string]any{"tier": tier})
	}
	p.sweep(ladder(), raised.Add(15*time.Minute))
	p.want(e, map[string]any{"tier": 1.0})
	if _, err := p.update(e, escalations.Change{Priority: new(escalations.Urgent)}, raised.Add(20*time.Minute)); err != nil {
		t.Fatal(err)
	}
	p.want(e, map[string]any{"tier": 1.0})

	joined := p.create(escalations.Draft{Priority: escalations.Urgent})
	p.sweep(ladder(), now.Add(4*time.Hour))
	p.sweep(ladder(), now.Add(4*time.Hour+time.Minute))
	p.want(joined, map[string]any{"tier": 2.0})
	at := now.Add(5 * time.Hour)
	for range 2 { // the second finds it stat
		if err := (escalations.Decision{Join: joined.Id}).Write(p.app, joined.Id, "", at); err != nil {
			t.Fatal(err)
		}
	}
	p.want(joined, map[string]any{"tier": 0.0, "priority": "stat", "waits_since": collections.FormatInstant(at)})
	p.sweep(ladder(), at.Add(15*time.Minute))
	p.want(joined, map[string]any{"tier": 1.0})
	got := p.history(joined)
	if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "alert_joined") })); n != 1 {
		t.Errorf("its history is %q", got)
	}
}

// If the user on call changes while an escalation waits, the new one is notified, once.
func TestHandOver(t *testing.T) {
	p, onCall, _ := staffed(t)
	next := vigiltest.User(t, p.app, authz.Provider, vigiltest.Email("morning@vigil.test"))
	p.rota(p.turn(onCall, 0, 20*time.Minute), p.turn(next, 25*time.Minute, never))
	e := p.create(escalations.Draft{Priority: escalations.Stat})
	since := len(p.announced())
	for minute := range 30 {
		p.sweep(ladder(), now.Add(time.Duration(minute)*time.Minute))
	}
	if got, want := p.announcedSince(since), []string{"overdue night", "on_call morning"}; !slices.Equal(got, want) {
		t.Errorf("announcements are %q, want %q", got, want)
	}
	want := []string{"0 opened nurse", "15 tier_1 system On call: night@vigil.test.", "25 handed_over system On call: morning@vigil.test."}
	if got := p.history(e); !slices.Equal(got, want) {
		t.Errorf("its history is %q, want %q", got, want)
	}
}

// Work without a note is reminded of every four hours: first the assignee, then also the clinical managers; of a stat one all at once.
func TestWorkWithoutNotes(t *testing.T) {
	p, _, _ := staffed(t)
	for _, test := range []struct {
		priority escalations.Priority
		want     []string // at 4, 8 and 12 hours
	}{
		{escalations.Stat, []string{"unnoted night", "unnoted night", "unnoted night"}},
		{escalations.Urgent, []string{"idle", "unnoted", "unnoted"}},
		{escalations.Routine, []string{"idle", "unnoted", "unnoted"}},
	} {
		e := p.create(escalations.Draft{Priority: test.priority})
		start := now.Add(10 * time.Minute)
		if _, err := p.update(e, escalations.Change{Status: new(escalations.StatusInProgress)}, start); err != nil {
			t.Fatal(err)
		}
		since := len(p.announced())
		for minute := range 12*60 + 11 {
			if minute%10 == 0 || minute%60 == 9 {
				p.sweep(ladder(), now.Add(time.Duration(minute)*time.Minute))
			}
		}
		if got := p.announcedSince(since); !slices.Equal(got, test.want) {
			t.Errorf("of a %s one announcements are %q, want %q", test.priority, got, test.want)
		}
		p.want(e, map[string]any{"reminded_at": collections.FormatInstant(start.Add(12 * time.Hour)), "tier": 0.0})

		noted := start.Add(12*time.Hour + 30*time.Minute)
		if _, err := p.update(e, escalations.Change{Note: "Called twice, no answer."}, noted); err != nil {
			t.Fatal(err)
		}
		if done := p.sweep(ladder(), noted.Add(4*time.Hour-time.Minute)); done.Idle != 0 {
			t.Errorf("a note keeps no reminder from coming: %+v", done)
		}
		if _, err := p.updateBy(p.provider, e, escalations.Change{AssignedTo: new(p.nurse.Email())}, noted.Add(4*time.Hour-time.Minute)); err != nil {
			t.Fatal(err)
		}
		since = len(p.announced())
		if done := p.sweep(ladder(), noted.Add(8*time.Hour-2*time.Minute)); done.Idle != 0 {
			t.Errorf("the new assignee is reminded too early: %+v", done)
		}
		if done := p.sweep(ladder(), noted.Add(8*time.Hour-time.Minute)); done.Idle != 1 || !slices.Equal(p.announcedSince(since), test.want[:1]) {
			t.Errorf("after the note: %q", p.announcedSince(since))
		}
		if _, err := escalations.CancelOpen(p.app, p.patient, noted.Add(9*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// The history of users' changes: each step, and each note, sealed.
func TestHistory(t *testing.T) {
	p, _, _ := staffed(t)
	e := p.create(escalations.Draft{})
	step := func(minute int, change escalations.Change) {
		t.Helper()
		if _, err := p.update(e, change, now.Add(time.Duration(minute)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	step(1, escalations.Change{Note: "Left a message."})
	step(2, escalations.Change{Status: new(escalations.StatusInProgress), AssignedTo: new(p.nurse.Email()), Priority: new(escalations.Stat), Note: "On it."})
	step(3, escalations.Change{Status: new(escalations.StatusInProgress)}) // changes nothing
	step(4, escalations.Change{Status: new(escalations.StatusResolved), Note: "Feels better."})
	want := []string{
		"0 opened nurse", "1 note nurse Left a message.",
		"2 assigned nurse From provider@vigil.test to nurse@vigil.test.", "2 priority nurse From urgent to stat.", "2 in_progress nurse", "2 note nurse On it.",
		"4 note nurse Feels better.", "4 resolved nurse",
	}
	if got := p.history(e); !slices.Equal(got, want) {
		t.Errorf("its history is %q, want %q", got, want)
	}
	if _, err := p.update(e, escalations.Change{Note: "Late."}, now.Add(time.Hour)); vigiltest.Code(err) != "invalid_state" {
		t.Errorf("a note on what is over: %v", err)
	}
	var plain int
	if err := p.app.DB().NewQuery(`SELECT COUNT(*) FROM escalation_events WHERE detail LIKE '%message%' OR detail LIKE '%vigil%' OR detail LIKE '%urgent%'`).Row(&plain); err != nil || plain > 0 {
		t.Errorf("%d details lie open on disk (%v)", plain, err)
	}
	if _, err := p.app.DB().NewQuery(`UPDATE escalation_events SET detail = 'v2:gone:x' WHERE event = 'note'`).Execute(); err != nil {
		t.Fatal(err)
	}
	if got := p.history(e); got[1] != "1 note nurse [unreadable]" || got[2] != want[2] {
		t.Errorf("a note that cannot be opened shows as %q", got)
	}
}

// A failure to announce one escalation does not stop the others.
func TestOneFailureDoesNotStopTheSweep(t *testing.T) {
	p, _, _ := staffed(t)
	if _, err := p.app.DB().Insert(collections.Escalations, dbx.Params{
		"id": collections.NumberID(500), "patient": p.patient, "priority": "stat", "status": "open", "created_by": "a@b", "tier": 9,
		"created_at": collections.FormatInstant(now.Add(-time.Hour)), "notified_at": collections.FormatInstant(now.Add(-time.Hour)),
	}).Execute(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.app.DB().NewQuery(`CREATE TRIGGER broken BEFORE UPDATE ON escalations WHEN OLD.id = '000000000000500' BEGIN SELECT RAISE(ABORT, 'broken'); END`).Execute(); err != nil {
		t.Fatal(err)
	}
	e := p.create(escalations.Draft{Priority: escalations.Stat})
	before := len(p.announced())
	done, err := ladder().Sweep(t.Context(), p.app, now.Add(15*time.Minute))
	if err == nil || done.Waiting != 1 {
		t.Errorf("notified of %d (%v)", done.Waiting, err)
	}
	p.want(e, map[string]any{"tier": 1.0})
	if n := len(p.announced()); n != before+1 {
		t.Errorf("%d announcements, want 1: one that failed leaves none", n-before)
	}
	// With a damaged rota no one is on call: the sweep continues and reports the failure.
	if err := collections.StoreOnCall(p.app, collections.OnCallRow{TimeZone: "UTC", Shifts: "{", Overrides: "[]"}); err != nil {
		t.Fatal(err)
	}
	second := p.create(escalations.Draft{Priority: escalations.Stat})
	if _, err := ladder().Sweep(t.Context(), p.app, now.Add(15*time.Minute)); err == nil {
		t.Error("a broken rota goes unnoticed")
	}
	p.want(second, map[string]any{"tier": 2.0})
}
