// Package live tells open streams what changes on the triage list, as it changes. It follows the audit trail: every change of
// a patient's place on the list, of an alert and of an escalation leaves an entry in its own transaction, so that following the
// entries misses nothing and tells only of what is committed. One goroutine reads, renders and hands out; whoever
// writes a reading at most wakes it, and no reader can hold it up.
//
// It knows who may hear what, the order of the messages and how often to send them. What a patient, an alert or an
// escalation looks like it refuses to know, and nothing is replayed: a reader who was away fetches the list.
package realtime

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Topic is the one topic there is for users.
const Topic = "triage"

const (
	// gathering is how long changes of a patient are gathered before they are told, readerShare how much longer for each reader: a
	// thousand readers hear within a second of what one hears at once.
	gathering   = 50 * time.Millisecond
	readerShare = time.Millisecond
	// sweep is how often the trail is looked at, and readers are checked, without anybody asking; idle, while nobody reads.
	sweep = 250 * time.Millisecond
	idle  = time.Second
	// statsEvery bounds how often totals are told.
	statsEvery = time.Second
	// A round tells of so many patients, alerts and escalations each, the fewer the more readers there are.
	roundShare, smallestRound, largestRound = 20_000, 50, 500
	// tailPage is how many entries of the trail are read at once.
	tailPage = 2000
)

// Views shows things as their endpoints do. Each is by record id; what a reader may not see or what is not there is left out.
type Views interface {
	// Patients are the triage summaries of those that are on the list.
	Patients(app core.App, ids []string) (map[string]View, error)
	Alerts(app core.App, ids []string) (map[string]View, error)
	Escalations(app core.App, ids []string) (map[string]View, error)
}

// View is one thing to show, and the patient it is about.
type View struct {
	PatientID string
	Data      any
}

// Options is what a publisher needs.
type Options struct {
	Views Views
	// Check tells who holds an access token, see [auth.Engine.Check].
	Check func(app core.App, token string, now time.Time) (auth.Caller, error)
	// RestrictToCareTeam confines clinicians to the patients of their care teams.
	RestrictToCareTeam bool
	// Zone is the practice's: its midnight begins a day of reviews.
	Zone  *time.Location
	Clock func() time.Time
	Log   *slog.Logger
}

// Publisher tells readers of the topic what changes. It runs once.
type Publisher struct {
	Options
	async.Signal
	aged inbox

	lock    sync.Mutex
	streams map[*Stream]struct{} // that somebody was let in to hear by; PocketBase's broker knows those of strangers too

	// Of the goroutine that runs.
	last    string // id of the last entry of the trail that was read
	seq     int64
	changes changes
	told    map[string]triage.Stats // by the user whose care teams they are confined to
	toldAt  time.Time
}

// NewPublisher returns a publisher that does not run yet.
func NewPublisher(o Options) *Publisher {
	return &Publisher{Options: o, Signal: async.NewSignal(), told: map[string]triage.Stats{}, streams: map[*Stream]struct{}{}}
}

// Rescored is told whose place on the list changed without an entry in the trail: the clock's hourly work.
func (p *Publisher) Rescored(patientIDs []string) {
	p.aged.put(patientIDs)
	p.Wake()
}

// Subscribe checks that the holder of an access token may hear the topic, and notes the token as the stream's. It refuses like the
// endpoint of the list.
func (p *Publisher) Subscribe(app core.App, stream *Stream, token string, now time.Time) (auth.Caller, error) {
	caller, err := p.admit(app, token, now)
	if err == nil {
		stream.readBy(token)
		p.lock.Lock()
		p.streams[stream] = struct{}{}
		p.lock.Unlock()
		p.Wake()
	}
	return caller, err
}

// open are the streams that somebody was let in to hear by; those that have ended are forgotten.
func (p *Publisher) open() []*Stream {
	p.lock.Lock()
	defer p.lock.Unlock()
	maps.DeleteFunc(p.streams, func(s *Stream, _ struct{}) bool { return s.IsDiscarded() })
	return slices.Collect(maps.Keys(p.streams))
}

// admit is the one rule of who may hear, at the door and before each message.
func (p *Publisher) admit(app core.App, token string, now time.Time) (auth.Caller, error) {
	caller, err := p.Check(app, token, now)
	switch {
	case err != nil:
		return caller, err
	case authz.Reach(caller.Role, authz.ReadTriage) == authz.None:
		return caller, fault.Denied()
	case caller.NeedsTwoFactor:
		return caller, fault.New(fault.Forbidden, "two_factor_setup_required", "Set up two-factor authentication first.")
	}
	return caller, nil
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context, app core.App) {
	if err := p.start(app); err != nil {
		p.Log.Error("live list not started", slog.Any("error", err))
		return
	}
	wait := time.NewTimer(idle)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-p.Signal:
			if !async.Pause(ctx, gathering+readerShare*time.Duration(len(p.open()))) {
				return
			}
		}
		readers, err := p.round(app)
		if err != nil {
			p.Log.Error("live list not published", slog.Any("error", err)) // what was not told is tried again
		}
		switch {
		case readers == 0:
			wait.Reset(idle)
		case p.changes.any() && err == nil:
			wait.Reset(gathering + readerShare*time.Duration(readers))
		default:
			wait.Reset(sweep)
		}
	}
}

// start begins where the trail ends, with numbers above all that were used before: each run has four thousand million of its own.
func (p *Publisher) start(app core.App) (err error) {
	run, err := collections.Next(app, "live")
	if err != nil {
		return err
	}
	p.seq = run << 32
	p.last, err = collections.LastAuditID(app)
	return err
}

// round tells everyone who reads what has changed since the last one, and says how many that are.
func (p *Publisher) round(app core.App) (readers int, err error) {
	now := p.Clock()
	audience := p.audience(app, now)
	if len(audience) == 0 {
		p.changes = changes{}
		p.aged.take()
		clear(p.told)
		p.last, err = collections.LastAuditID(app)
		return 0, err
	}
	if err := p.gather(app); err != nil {
		return len(audience), err
	}
	round := &round{app: app, publisher: p, audience: audience, now: now}
	return len(audience), round.tell()
}

// gather reads what the trail has to say since the last entry read.
func (p *Publisher) gather(app core.App) error {
	for _, id := range p.aged.take() {
		p.changes.aged.add(id)
		p.changes.totals = true
	}
	for {
		marks, err := collections.AuditMarksAfter(app, p.last, tailPage)
		if err != nil {
			return fmt.Errorf("follow the audit trail: %w", err)
		}
		for _, mark := range marks {
			p.changes.note(mark)
			p.last = mark.ID
		}
		if len(marks) < tailPage {
			return nil
		}
	}
}

// reader is an open stream and who listens; team is the user whose care teams it is confined to, or "".
type reader struct {
	stream *Stream
	team   string
}

// audience is everyone who reads the topic and still may. The others are cut off: they come back with another token, or not.
func (p *Publisher) audience(app core.App, now time.Time) (audience []reader) {
	for _, stream := range p.open() {
		if !stream.HasSubscription(Topic) {
			continue
		}
		caller, err := p.admit(app, stream.reader(), now)
		if err != nil {
			stream.cut()
			continue
		}
		r := reader{stream: stream}
		if p.RestrictToCareTeam && authz.OnTeams(caller.Role) {
			r.team = caller.RecordID
		}
		audience = append(audience, r)
	}
	return audience
}
