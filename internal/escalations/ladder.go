package escalations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// The tiers of the ladder: who is told of an escalation that nobody takes.
const (
	tierTeam     = iota // whoever is told when it is opened
	tierOnCall          // who is on call
	tierManagers        // the clinical managers
	tierAll             // they and the administrators, again and again
)

// Deadlines say how long an escalation may wait to be taken before each of the tiers is told, since it was opened.
type Deadlines [tierAll]time.Duration

// Ladder is what follows of an escalation that nobody takes. Source: docs/decisions/escalations.md, "Escalation ladder".
type Ladder struct {
	Tiers map[Priority]Deadlines
	// Overdue is how long an escalation may stay open before assignee and clinical managers are told again, then once per so long.
	Overdue map[Priority]time.Duration
	// Zone is the practice's.
	Zone *time.Location
}

// IdleAfter is how long work may go on without a note. Source: docs/decisions/escalations.md, "Escalation ladder".
const IdleAfter = 4 * time.Hour

// Slack is how far before its time a step may be made: sweeps are a minute apart, give or take some milliseconds, and what is due a moment
// after one must not wait for the next. Source: docs/decisions/escalations.md, "Escalation ladder".
const Slack = 500 * time.Millisecond

// sweepRound bounds what one round tells of each priority; the next minute goes on.
const sweepRound = 500

// Swept is what a sweep told of.
type Swept struct{ Waiting, Idle int }

// Sweep takes every escalation that nobody took in time one step on, and reminds of those that somebody works on without a note. What it cannot
// do for one escalation keeps it from none of the others.
func (l Ladder) Sweep(ctx context.Context, app core.App, now time.Time) (done Swept, err error) {
	duty, failed := Now(app, l.Zone, now)
	failures := []error{failed} // nobody is on call then, and the ladder goes on
	s := sweep{ladder: l, onCall: duty.User, now: now, due: now.Add(Slack)}
	for _, priority := range []Priority{Stat, Urgent, Routine} {
		ids, err := collections.WaitingEscalations(app, string(priority), l.cutoffs(priority, duty.User, s.due), sweepRound)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		told, err := each(ctx, app, ids, s.climb)
		done.Waiting += told
		failures = append(failures, err)
	}
	ids, err := collections.IdleEscalations(app, s.due.Add(-IdleAfter), sweepRound)
	if err == nil {
		done.Idle, err = each(ctx, app, ids, s.remind)
	}
	return done, errors.Join(append(failures, err)...)
}

func (l Ladder) cutoffs(p Priority, onCall string, due time.Time) (c collections.EscalationCutoffs) {
	for i, deadline := range l.Tiers[p] {
		c.Tiers[i] = due.Add(-deadline)
	}
	c.Overdue, c.OnCall = due.Add(-l.Overdue[p]), onCall
	return c
}

// each does something for each id in a transaction of its own; told is for how many something was to do.
func each(ctx context.Context, app core.App, ids []string, do func(tx core.App, id string) (bool, error)) (told int, err error) {
	var failures []error
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return told, errors.Join(append(failures, err)...)
		}
		did := false
		err := app.RunInTransaction(func(tx core.App) (err error) {
			did, err = do(tx, id)
			return err
		})
		if err != nil {
			failures = append(failures, fmt.Errorf("escalation %d: %w", collections.Number(id), err))
		} else if did {
			told++
		}
	}
	return told, errors.Join(failures...)
}

// sweep is one round of the ladder.
type sweep struct {
	ladder Ladder
	onCall string // record id, "" for nobody
	now    time.Time
	due    time.Time // whose time has come by then is told now
}

// waiting is what decides the next step of an escalation.
type waiting struct {
	open, taken                bool
	tier                       int
	created, since, last, told time.Time
	onCall                     string // who was told as the one on call
}

// step is what is to be done for an escalation.
type step struct {
	// tier is the one to tell, 0 for none; skipped are those below it that nobody is in.
	tier     int
	skipped  []int
	overdue  bool
	handOver bool // to another one on call than was told
}

func (s step) nothing() bool { return s.tier == tierTeam && !s.overdue && !s.handOver }

// next is the next step of an escalation whose time has come, of plain values. managed reports whether there is any clinical manager; a tier without anybody is left at once.
func (l Ladder) next(p Priority, w waiting, onCall string, managed bool, due time.Time) (s step) {
	if w.taken {
		return s
	}
	passed := func(since time.Time, wait time.Duration) bool { return !due.Before(since.Add(wait)) }
	deadlines, interval := l.Tiers[p], l.Overdue[p]
	s.overdue = w.open && passed(w.created, interval) && passed(w.told, interval)
	switch {
	case w.tier < tierAll && passed(w.since, deadlines[w.tier]):
		s.tier = w.tier + 1
	case w.tier == tierAll && passed(w.last, deadlines[tierAll-1]):
		s.tier = tierAll
	}
	if s.tier == tierOnCall && onCall == "" {
		s.skipped, s.tier = append(s.skipped, tierOnCall), tierManagers
	}
	if s.tier == tierManagers && !managed {
		s.skipped, s.tier = append(s.skipped, tierManagers), tierAll
	}
	s.handOver = onCall != "" && onCall != w.onCall && w.tier > tierTeam
	return s
}

// climb takes one escalation a step on. It looks again inside the transaction: somebody may have taken it meanwhile.
func (s sweep) climb(tx core.App, id string) (bool, error) {
	e, err := collections.FindEscalation(tx, id)
	if err != nil || Status(e.Status()).Closed() {
		return false, err
	}
	taken, err := collections.EscalationTaken(tx, id)
	if err != nil {
		return false, err
	}
	managers, err := collections.ActiveUsers(tx, []string{string(authz.ClinicalManager)}, "", "")
	if err != nil {
		return false, err
	}
	next := s.ladder.next(Priority(e.Priority()), waiting{
		open: Status(e.Status()) == StatusOpen, taken: taken, tier: e.Tier(), created: e.CreatedAt(), since: e.WaitsSince(), last: e.TierAt(),
		told: e.NotifiedAt(), onCall: e.OnCall(),
	}, s.onCall, len(managers) > 0, s.due)
	if next.nothing() {
		return false, nil
	}
	return true, s.take(tx, e, next)
}

// take makes one step: those it is for are told, once whatever it is they are told for, and it stands in the history and the audit trail.
func (s sweep) take(tx core.App, e *collections.Escalation, next step) error {
	told := next.told(s.onCall)
	key := " overdue " + collections.Instant(s.now)
	if err := announce(tx, e, told.kind, told.user, key, s.now); err != nil {
		return err
	}
	if told.kind != notifications.EscalationOnCall {
		e.SetNotifiedAt(s.now) // who hears of what is overdue has heard
	}
	e.SetOnCall(told.user)
	if err := s.note(tx, e, next); err != nil {
		return err
	}
	if next.tier == tierTeam && next.overdue || next.tier == tierAll && e.Tier() == tierAll {
		e.SetRemindedAt(s.now) // people who know hear again
	}
	changes := audit.Changes{collections.EscalationNotifiedAt: {New: collections.Instant(s.now)}}
	if next.tier != tierTeam {
		changes[collections.EscalationTier] = audit.Change{Old: e.Tier(), New: next.tier}
		e.SetTier(next.tier, s.now)
	}
	if err := e.Store(tx); err != nil {
		return err
	}
	return note(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), changes, s.now)
}

// hearing is who is told: the people of a kind of announcement, and one more, by record id.
type hearing struct {
	kind notifications.Kind
	user string
}

// told is whom a step is for. Everybody hears once, whatever reasons there are.
func (s step) told(onCall string) (h hearing) {
	if s.tier == tierOnCall || s.handOver {
		h.user = onCall
	}
	switch {
	case s.tier == tierAll:
		h.kind = notifications.EscalationUntaken
	case s.tier == tierManagers || s.overdue:
		h.kind = notifications.EscalationOverdue
	default:
		h.kind = notifications.EscalationOnCall
	}
	return h
}

// note writes the step into the history.
func (s sweep) note(tx core.App, e *collections.Escalation, next step) error {
	who := ""
	if next.tier == tierOnCall || next.handOver {
		user, err := collections.FindUser(tx, s.onCall)
		if err != nil {
			return err
		}
		who = "On call: " + user.Email() + "."
	}
	for _, skipped := range next.skipped {
		detail := map[int]string{tierOnCall: "Nobody is on call.", tierManagers: "There is no clinical manager."}[skipped]
		if err := remember(tx, e.Id, eventTiers[skipped], detail, s.now); err != nil {
			return err
		}
	}
	if next.overdue && next.tier == tierTeam {
		if err := remember(tx, e.Id, eventOverdue, "Assignee, primary provider and clinical managers were told again.", s.now); err != nil {
			return err
		}
	}
	if next.handOver {
		if err := remember(tx, e.Id, eventHandedOver, who, s.now); err != nil {
			return err
		}
	}
	if next.tier == tierTeam {
		return nil
	}
	detail := map[int]string{tierOnCall: who, tierManagers: "Clinical managers.", tierAll: "Clinical managers and administrators."}[next.tier]
	return remember(tx, e.Id, eventTiers[next.tier], detail, s.now)
}

// remind tells of work without a note: who does it, and from the second time on the clinical managers too. A stat escalation that was forgotten is
// an emergency that nobody sees: of it they hear at once, with who is on call.
func (s sweep) remind(tx core.App, id string) (bool, error) {
	e, err := collections.FindEscalation(tx, id)
	if err != nil || Status(e.Status()) != StatusInProgress {
		return false, err
	}
	since := e.WorksSince()
	again := e.RemindedAt().After(since)
	if again {
		since = e.RemindedAt()
	}
	if s.due.Before(since.Add(IdleAfter)) {
		return false, nil
	}
	kind, user := notifications.EscalationIdle, ""
	if Priority(e.Priority()) == Stat {
		kind, user = notifications.EscalationUnnoted, s.onCall
	} else if again {
		kind = notifications.EscalationUnnoted
	}
	if err := announce(tx, e, kind, user, " idle "+collections.Instant(s.now), s.now); err != nil {
		return false, err
	}
	e.SetRemindedAt(s.now)
	if err := e.Store(tx); err != nil {
		return false, err
	}
	if err := remember(tx, e.Id, eventReminded, "No note for four hours.", s.now); err != nil {
		return false, err
	}
	return true, note(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), audit.Changes{
		collections.EscalationRemindedAt: {New: collections.Instant(s.now)},
	}, s.now)
}
