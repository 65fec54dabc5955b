package escalations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// The tiers of the ladder: who is notified of an escalation that no one takes.
const (
	tierTeam     = iota // notified when it is opened
	tierOnCall          // the user on call
	tierManagers        // the clinical managers
	tierAll             // clinical managers and administrators, repeatedly
)

// Deadlines are how long after opening each tier is notified of an escalation that no one takes.
type Deadlines [tierAll]time.Duration

// Ladder configures the notifications about an escalation that no one takes. Source: docs/decisions/escalations.md, "Escalation ladder".
type Ladder struct {
	Tiers map[Priority]Deadlines
	// Overdue is the interval at which assignee and clinical managers are reminded of an open escalation.
	Overdue map[Priority]time.Duration
	// Zone is the practice's time zone.
	Zone *time.Location
}

// IdleAfter is how long work may continue without a note. Source: docs/decisions/escalations.md, "Escalation ladder".
const IdleAfter = 4 * time.Hour

// SweepSlack is how early a step may be made: sweeps are a minute apart, give or take milliseconds, and a step due just after one must not
// wait for the next. Source: docs/decisions/escalations.md, "Escalation ladder".
const SweepSlack = 500 * time.Millisecond

// sweepBatch limits the escalations of each priority in one sweep; the next one, a minute later, continues.
const sweepBatch = 500

// Swept counts the notifications of a sweep.
type Swept struct{ Waiting, Idle int }

// Sweep advances every escalation that no one took in time by one step, and reminds of work without notes. A failure of one escalation does
// not affect the others.
func (l Ladder) Sweep(ctx context.Context, app core.App, now time.Time) (done Swept, err error) {
	duty, failed := OnCallNow(app, l.Zone, now)
	failures := []error{failed} // without a rota the sweep continues with no one on call
	s := sweep{ladder: l, onCall: duty.User, now: now, due: now.Add(SweepSlack)}
	for _, priority := range []Priority{Stat, Urgent, Routine} {
		ids, err := collections.WaitingEscalations(app, string(priority), l.cutoffs(priority, duty.User, s.due), sweepBatch)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		notified, err := forEachEscalation(ctx, app, ids, s.advance)
		done.Waiting += notified
		failures = append(failures, err)
	}
	ids, err := collections.IdleEscalations(app, s.due.Add(-IdleAfter), sweepBatch)
	if err == nil {
		done.Idle, err = forEachEscalation(ctx, app, ids, s.remind)
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

// forEachEscalation runs do for each id in its own transaction; notified counts those for which do returned true.
func forEachEscalation(ctx context.Context, app core.App, ids []string, do func(tx core.App, id string) (bool, error)) (notified int, err error) {
	return async.ForEach(ctx, ids, func(id string) (did bool, err error) {
		err = app.RunInTransaction(func(tx core.App) (err error) {
			did, err = do(tx, id)
			return err
		})
		if err != nil {
			err = fmt.Errorf("escalation %d: %w", collections.Number(id), err)
		}
		return did, err
	})
}

// sweep is one run of the ladder.
type sweep struct {
	ladder Ladder
	onCall string // record id, "" for no one
	now    time.Time
	due    time.Time // steps due until then are made now
}

// stepInput is what decides the next step of an escalation.
type stepInput struct {
	open, taken                    bool
	tier                           int
	created, since, last, notified time.Time
	onCall                         string // the user last notified as on call
}

// step is the next action for an escalation.
type step struct {
	// tier is to be notified, 0 for none; skipped tiers below it are empty.
	tier     int
	skipped  []int
	overdue  bool
	handOver bool // another user is on call than was notified
}

func (s step) isEmpty() bool { return s.tier == tierTeam && !s.overdue && !s.handOver }

// next decides the next step from plain values. managed reports whether there is a clinical manager; an empty tier is skipped.
func (l Ladder) next(p Priority, w stepInput, onCall string, managed bool, due time.Time) (s step) {
	if w.taken {
		return s
	}
	passed := func(since time.Time, wait time.Duration) bool { return !due.Before(since.Add(wait)) }
	deadlines, interval := l.Tiers[p], l.Overdue[p]
	s.overdue = w.open && passed(w.created, interval) && passed(w.notified, interval)
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

// advance makes the next step of one escalation. It reads again inside the transaction, since a user may have taken it.
func (s sweep) advance(tx core.App, id string) (bool, error) {
	e, err := collections.FindEscalation(tx, id)
	if err != nil || Status(e.Status()).IsClosed() {
		return false, err
	}
	taken, err := collections.IsEscalationTaken(tx, id)
	if err != nil {
		return false, err
	}
	managers, err := collections.ActiveUsers(tx, []string{string(authz.ClinicalManager)}, "", "")
	if err != nil {
		return false, err
	}
	next := s.ladder.next(Priority(e.Priority()), stepInput{
		open: Status(e.Status()) == StatusOpen, taken: taken, tier: e.Tier(), created: e.CreatedAt(), since: e.WaitingSince(), last: e.TierAt(),
		notified: e.NotifiedAt(), onCall: e.OnCall(),
	}, s.onCall, len(managers) > 0, s.due)
	if next.isEmpty() {
		return false, nil
	}
	return true, s.makeStep(tx, e, next)
}

// makeStep notifies the recipients of a step, once for all its reasons, and records it in the history and the audit trail.
func (s sweep) makeStep(tx core.App, e *collections.Escalation, next step) error {
	notified := next.recipients(s.onCall)
	key := " overdue " + collections.FormatInstant(s.now)
	if err := announce(tx, e, notified.kind, notified.user, key, s.now); err != nil {
		return err
	}
	if notified.kind != notifications.EscalationOnCall {
		e.SetNotifiedAt(s.now) // these tiers include the overdue recipients
	}
	e.SetOnCall(notified.user)
	if err := s.recordStep(tx, e, next); err != nil {
		return err
	}
	if next.tier == tierTeam && next.overdue || next.tier == tierAll && e.Tier() == tierAll {
		e.SetRemindedAt(s.now) // a repeated notification
	}
	changes := audit.Changes{collections.EscalationNotifiedAt: {New: collections.FormatInstant(s.now)}}
	if next.tier != tierTeam {
		changes[collections.EscalationTier] = audit.Change{Old: e.Tier(), New: next.tier}
		e.SetTier(next.tier, s.now)
	}
	if err := e.Store(tx); err != nil {
		return err
	}
	return auditEscalation(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), changes, s.now)
}

// recipients are those of an announcement's kind, and one more user by record id.
type recipients struct {
	kind notifications.Kind
	user string
}

// recipients returns who is notified of a step, each user once.
func (s step) recipients(onCall string) (h recipients) {
	if s.tier == tierOnCall || s.handOver {
		h.user = onCall
	}
	switch {
	case s.tier == tierAll:
		h.kind = notifications.EscalationUnanswered
	case s.tier == tierManagers || s.overdue:
		h.kind = notifications.EscalationOverdue
	default:
		h.kind = notifications.EscalationOnCall
	}
	return h
}

// recordStep writes the step into the history.
func (s sweep) recordStep(tx core.App, e *collections.Escalation, next step) error {
	who := ""
	if next.tier == tierOnCall || next.handOver {
		user, err := collections.FindUser(tx, s.onCall)
		if err != nil {
			return err
		}
		who = "On call: " + user.Email() + "."
	}
	for _, skipped := range next.skipped {
		detail := map[int]string{tierOnCall: "No one is on call.", tierManagers: "There is no clinical manager."}[skipped]
		if err := recordSystemEvent(tx, e.Id, eventTiers[skipped], detail, s.now); err != nil {
			return err
		}
	}
	if next.overdue && next.tier == tierTeam {
		if err := recordSystemEvent(tx, e.Id, eventOverdue, "Assignee, primary provider and clinical managers were notified again.", s.now); err != nil {
			return err
		}
	}
	if next.handOver {
		if err := recordSystemEvent(tx, e.Id, eventHandedOver, who, s.now); err != nil {
			return err
		}
	}
	if next.tier == tierTeam {
		return nil
	}
	detail := map[int]string{tierOnCall: who, tierManagers: "Clinical managers.", tierAll: "Clinical managers and administrators."}[next.tier]
	return recordSystemEvent(tx, e.Id, eventTiers[next.tier], detail, s.now)
}

// remind reminds of work without a note: the assignee, and from the second time the clinical managers. An abandoned stat escalation is an
// emergency that no one sees: its managers and the user on call are reminded at once.
func (s sweep) remind(tx core.App, id string) (bool, error) {
	e, err := collections.FindEscalation(tx, id)
	if err != nil || Status(e.Status()) != StatusInProgress {
		return false, err
	}
	since := e.LastActivity()
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
	if err := announce(tx, e, kind, user, " idle "+collections.FormatInstant(s.now), s.now); err != nil {
		return false, err
	}
	e.SetRemindedAt(s.now)
	if err := e.Store(tx); err != nil {
		return false, err
	}
	if err := recordSystemEvent(tx, e.Id, eventReminded, "No note for four hours.", s.now); err != nil {
		return false, err
	}
	return true, auditEscalation(tx, audit.EscalationUpdate, e.Id, e.PatientID(), audit.System(), audit.Changes{
		collections.EscalationRemindedAt: {New: collections.FormatInstant(s.now)},
	}, s.now)
}
