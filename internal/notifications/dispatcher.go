package notifications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// DispatcherOptions configure a dispatcher.
type DispatcherOptions struct {
	Push *Push
	// Zone is the practice's time zone, used for users who chose none.
	Zone  *time.Location
	Clock func() time.Time
	Log   *slog.Logger
	// NeverPushWarnings leaves every alert of level warning to the list, the app and the digest.
	NeverPushWarnings bool
	// OnAttempt receives the state of each push after an attempt; it may be nil and must not block.
	OnAttempt func(status string)
}

// Dispatcher notifies users of announcements. It runs after a wake-up and in a periodic sweep. It works in small transactions, so that readings
// never wait for it, and every step can be repeated after a crash.
type Dispatcher struct {
	DispatcherOptions
	async.Signal
	roundMu sync.Mutex // one round notifies, plans and claims at a time
	// statements caches the prepared statements of a round's transactions.
	statements  collections.StatementCache
	slots       chan struct{} // held during an exchange with a push service
	backoffs    hostBackoffs
	unaddressed atomic.Int64 // announcements without a recipient, as last logged
	results     *async.GroupCommit[pushResult, struct{}]
}

const (
	// concurrency bounds the concurrent exchanges with push services.
	concurrency = 32
	// roundInterval separates rounds, so that announcements close together share commits, each of which delays waiting readings. The first round
	// after a pause starts at once.
	roundInterval = 200 * time.Millisecond
	// sweepInterval is how often the dispatcher runs without a wake-up; it also picks up due retries.
	sweepInterval = 15 * time.Second
	// batchSize bounds the rows that one transaction writes.
	batchSize = 100
	// groupSize bounds the announcements processed, and the push results recorded, in one transaction.
	groupSize = 50
	// claimSize is how many pushes are claimed at once; they must get a slot within pushLease.
	claimSize = 64
	pushLease = 2 * time.Minute
)

// NewDispatcher returns a dispatcher; Run starts it.
func NewDispatcher(o DispatcherOptions) *Dispatcher {
	d := &Dispatcher{DispatcherOptions: o, Signal: async.NewSignal(), slots: make(chan struct{}, concurrency)}
	d.results = async.NewGroupCommit(async.GroupOptions[pushResult, struct{}]{Store: d.storeResults, MaxBatch: groupSize, Log: o.Log})
	return d
}

// Attach lets announcements and notices stored in the app wake the dispatcher.
func (d *Dispatcher) Attach(app core.App) { app.Store().Set(wakeKey, d.Wake) }

// Run processes announcements after each wake-up and sweep until ctx ends, and then waits for the pushes in flight.
func (d *Dispatcher) Run(ctx context.Context, app core.App) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	var inFlight sync.WaitGroup
	defer inFlight.Wait()
	rested := time.After(0)
	for d.Wake(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-d.Signal:
		}
		select {
		case <-ctx.Done():
			return
		case <-rested:
		}
		rested = time.After(roundInterval)
		if err := d.startRound(ctx, app, newDispatchRound(&inFlight)); err != nil && ctx.Err() == nil {
			d.Log.Error("notification dispatcher could not process announcements; the next sweep retries", slog.Any("error", err))
		}
	}
}

// PushCounts counts the results of one round.
type PushCounts struct{ Announced, Sent, Failed, ExpiredTokens, Retried int }

// SendDue processes everything that is due and waits for it.
func (d *Dispatcher) SendDue(ctx context.Context, app core.App) (PushCounts, error) {
	var inFlight sync.WaitGroup
	p := newDispatchRound(&inFlight)
	err := d.startRound(ctx, app, p)
	inFlight.Wait()
	return PushCounts{int(p.announced.Load()), int(p.sent.Load()), int(p.failed.Load()), int(p.expiredTokens.Load()), int(p.retried.Load())}, errors.Join(err, ctx.Err())
}

// dispatchRound is one run over everything that is due.
type dispatchRound struct {
	inFlight                                        *sync.WaitGroup // exchanges that the round started
	announced, sent, failed, expiredTokens, retried atomic.Int64
	unaddressed                                     int // announcements without a recipient
	texts                                           textSanitizer
}

func newDispatchRound(inFlight *sync.WaitGroup) *dispatchRound {
	return &dispatchRound{inFlight: inFlight}
}

// startRound does everything but wait for the push services, so that a slow one does not delay the next round. A failure of one step does not stop
// the others.
func (d *Dispatcher) startRound(ctx context.Context, app core.App, p *dispatchRound) error {
	d.roundMu.Lock()
	defer d.roundMu.Unlock()
	return errors.Join(d.notifyAll(ctx, app, p), d.planPushes(ctx, app, p), d.sendDuePushes(ctx, app, p))
}

// notifyAll stores the list entries of all pending announcements.
func (d *Dispatcher) notifyAll(ctx context.Context, app core.App, p *dispatchRound) error {
	var failures []error
	defer func() { d.logUnaddressed(p.unaddressed) }()
	for last := (*collections.Announcement)(nil); ctx.Err() == nil; {
		open, err := collections.PendingAnnouncements(app, last, batchSize)
		if err != nil {
			return errors.Join(append(failures, err)...)
		}
		for group := range slices.Chunk(open, groupSize) {
			failures = append(failures, d.notifyGroup(app, group, p)...)
		}
		if len(open) < batchSize {
			break
		}
		last = open[len(open)-1]
	}
	return errors.Join(failures...)
}

// notifyGroup stores the entries of several announcements in one commit, because each commit delays waiting readings. If that fails, or there are
// many recipients, each announcement is stored on its own, so that only a faulty one waits for the next round.
func (d *Dispatcher) notifyGroup(app core.App, group []*collections.Announcement, p *dispatchRound) (failures []error) {
	var drafted []draftedNotices
	rows, people := 0, recipients{app, map[string][]string{}}
	for _, a := range group {
		drafts, err := draftNotifications(people, a, d.Zone)
		if errors.Is(err, errNoAudience) {
			p.unaddressed++
			continue
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("announcement %s: %w", a.ID, err))
			continue
		}
		drafted = append(drafted, draftedNotices{a, drafts, len(drafts)})
		rows += len(drafts)
	}
	if len(drafted) > 1 && rows <= batchSize && d.store(app, drafted...) == nil {
		p.announced.Add(int64(len(drafted)))
		return failures
	}
	for _, t := range drafted {
		if err := d.notifyOne(app, t); err != nil {
			failures = append(failures, fmt.Errorf("announcement %s: %w", t.announcement.ID, err))
			continue
		}
		p.announced.Add(1)
	}
	return failures
}

// draftedNotices is an announcement with the entries for its recipients.
type draftedNotices struct {
	announcement *collections.Announcement
	drafts       []collections.NotificationDraft
	people       int // number of recipients
}

// notifyOne stores the entries of an announcement, in several commits for many recipients; the last one closes the announcement.
func (d *Dispatcher) notifyOne(app core.App, t draftedNotices) error {
	for ; len(t.drafts) > batchSize; t.drafts = t.drafts[batchSize:] {
		err := async.JoinTx(app, func(tx core.App) error { return insertDrafts(tx, t.drafts[:batchSize], d.Clock()) })
		if err != nil {
			return err
		}
	}
	return d.store(app, t)
}

// store stores the drafted entries and closes their announcements. An entry that exists already is left unchanged.
func (d *Dispatcher) store(app core.App, drafted ...draftedNotices) error {
	now := d.Clock()
	return async.JoinTx(app, func(tx core.App) error {
		tx = d.statements.In(tx)
		trail, err := audit.NewChain(tx)
		if err != nil {
			return err
		}
		for _, t := range drafted {
			if err := insertDrafts(tx, t.drafts, now); err != nil {
				return err
			}
			if err := collections.CloseAnnouncement(tx, t.announcement.ID, now); err != nil {
				return err
			}
			err := trail.Add(audit.Entry{
				Event: audit.NotificationSent, Actor: audit.System(), ResourceType: audit.ResourceAnnouncement, ResourceID: t.announcement.ID, PatientID: t.announcement.Patient,
				Changes: audit.Changes{"kind": {New: t.announcement.Kind}, "people": {New: t.people}},
			}, now)
			if err != nil {
				return err
			}
		}
		return trail.Store()
	})
}

func insertDrafts(tx core.App, drafts []collections.NotificationDraft, now time.Time) error {
	for _, draft := range drafts {
		if err := collections.InsertNotification(tx, draft, now); err != nil {
			return err
		}
	}
	return nil
}

// draftNotifications drafts the entries of an announcement for all its recipients.
func draftNotifications(people recipients, a *collections.Announcement, zone *time.Location) (drafts []collections.NotificationDraft, err error) {
	m := ruleFor(a)
	recipientIDs, err := people.forAnnouncement(a, m)
	if err != nil {
		return nil, err
	}
	body, err := a.Body()
	if err != nil {
		return nil, err
	}
	if body == "" {
		body = phi.Text(pushText(m.channel, m.kind))
	} else if about, err := readingContext(people.app, a.Alert, zone); err == nil {
		body += phi.Text(about)
	} else {
		return nil, err
	}
	draft := collections.NotificationDraft{
		Channel: m.channel, Type: m.kind, Severity: cmp.Or(a.Severity, "info"), Title: m.title, Body: body, Patient: a.Patient, Alert: a.Alert,
		Escalation: a.Escalation, Entry: a.Entry, DedupeKey: a.Key, InApp: true, AtOnce: a.AtOnce,
	}
	for _, id := range recipientIDs {
		draft.User = id
		drafts = append(drafts, draft)
	}
	if m.kind != missedReading {
		return drafts, nil
	}
	portal, err := people.portal(a.Patient)
	if err != nil {
		return nil, err
	}
	title, text := types[measure].title, types[measure].text
	for _, id := range portal { // patients are only prompted to measure
		drafts = append(drafts, collections.NotificationDraft{
			User: id, Channel: Reminders, Type: measure, Severity: "info", Title: title, Body: phi.Text(text), Patient: a.Patient,
			DedupeKey: a.Key, InApp: true,
		})
	}
	return drafts, nil
}
