// Package realtime publishes changes of the triage list to open streams. It follows the audit trail: every change of a patient's row, an
// alert or an escalation writes an entry in its own transaction, so following the entries misses nothing and sends only committed changes.
// One goroutine reads, renders and sends; writers only wake it, and no reader can block it.
//
// It decides who may receive what, in which order and how often. [Views] render the objects, and nothing is replayed: a reader who was
// disconnected fetches the list.
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

// Topics of users. [PortalTopic] reports to a portal account which of its patients has news, without their content.
const (
	Topic       = "triage"
	PortalTopic = "portal"
)

const (
	// gatherDelay is how long changes are gathered before they are sent, plus delayPerReader per reader: a thousand readers get them in
	// about a second.
	gatherDelay    = 50 * time.Millisecond
	delayPerReader = time.Millisecond
	// sweepEvery is the interval of checking the audit trail and the readers; idleEvery without readers.
	sweepEvery = 250 * time.Millisecond
	idleEvery  = time.Second
	// statsEvery is the minimum interval of totals.
	statsEvery = time.Second
	// Limits of patients, alerts and escalations each per round; roundShare is divided among the readers.
	roundShare, smallestRound, largestRound = 20_000, 50, 500
	// tailPage is how many audit entries are read at a time.
	tailPage = 2000
)

// Views renders objects as their endpoints do, by record id; missing or hidden ones are omitted.
type Views interface {
	// Patients returns the triage summaries of listed patients.
	Patients(app core.App, ids []string) (map[string]View, error)
	Alerts(app core.App, ids []string) (map[string]View, error)
	Escalations(app core.App, ids []string) (map[string]View, error)
}

// View is one rendered object and its patient.
type View struct {
	PatientID string
	Data      any
}

// Options configures a publisher.
type Options struct {
	Views Views
	// Authenticate authenticates an access token, see [auth.Engine.Authenticate].
	Authenticate func(app core.App, token string, now time.Time) (auth.Caller, error)
	// RestrictToCareTeam limits clinicians to the patients of their care teams.
	RestrictToCareTeam bool
	// Zone is the practice's time zone, for the day of reviews.
	Zone  *time.Location
	Clock func() time.Time
	Log   *slog.Logger
}

// Publisher sends changes to the readers of the topic. It runs once.
type Publisher struct {
	Options
	async.Signal
	rescored rescoredInbox

	lock    sync.Mutex
	streams map[*Stream]struct{} // authenticated streams; PocketBase's broker also has others

	// Used by Run's goroutine only.
	last      string // id of the last audit entry read
	seq       int64
	pending   pendingChanges
	lastStats map[string]triage.Stats // by the user that limits the care teams
	statsAt   time.Time
}

// NewPublisher returns a publisher; call [Publisher.Run].
func NewPublisher(o Options) *Publisher {
	return &Publisher{Options: o, Signal: async.NewSignal(), lastStats: map[string]triage.Stats{}, streams: map[*Stream]struct{}{}}
}

// Rescored reports patients with a new row but no audit entry: those of the hourly rescoring.
func (p *Publisher) Rescored(patientIDs []string) {
	p.rescored.put(patientIDs)
	p.Wake()
}

// Subscribe authenticates the holder of an access token for a topic and registers the stream. It rejects like the endpoint of the list.
func (p *Publisher) Subscribe(app core.App, stream *Stream, topic, token string, now time.Time) (auth.Caller, error) {
	caller, err := p.admit(app, topic, token, now)
	if err == nil {
		stream.setToken(token)
		p.lock.Lock()
		p.streams[stream] = struct{}{}
		p.lock.Unlock()
		p.Wake()
	}
	return caller, err
}

// openStreams returns the authenticated streams and removes closed ones.
func (p *Publisher) openStreams() []*Stream {
	p.lock.Lock()
	defer p.lock.Unlock()
	maps.DeleteFunc(p.streams, func(s *Stream, _ struct{}) bool { return s.IsDiscarded() })
	return slices.Collect(maps.Keys(p.streams))
}

// admit checks who may read, at subscription and before each message.
func (p *Publisher) admit(app core.App, topic, token string, now time.Time) (auth.Caller, error) {
	caller, err := p.Authenticate(app, token, now)
	switch {
	case err != nil:
		return caller, err
	case topic == PortalTopic && (caller.Role != authz.Patient || len(caller.Patients) == 0), topic == Topic && authz.ReachOf(caller.Role, authz.ReadTriage) == authz.None:
		return caller, fault.Denied()
	case caller.NeedsTwoFactor:
		return caller, fault.New(fault.Forbidden, "two_factor_setup_required", "Set up two-factor authentication first.")
	}
	return caller, nil
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context, app core.App) {
	if err := p.start(app); err != nil {
		p.Log.Error("realtime publisher could not start; streams receive nothing until a restart", slog.Any("error", err))
		return
	}
	wait := time.NewTimer(idleEvery)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		case <-p.Signal:
			if !async.Sleep(ctx, gatherDelay+delayPerReader*time.Duration(len(p.openStreams()))) {
				return
			}
		}
		readers, err := p.round(app)
		if err != nil {
			p.Log.Error("realtime publisher could not send a round; the next round retries", slog.Any("error", err))
		}
		switch {
		case readers == 0:
			wait.Reset(idleEvery)
		case p.pending.hasAny() && err == nil:
			wait.Reset(gatherDelay + delayPerReader*time.Duration(readers))
		default:
			wait.Reset(sweepEvery)
		}
	}
}

// start begins at the end of the audit trail, with sequence numbers above all used before: each run has 2³² of its own.
func (p *Publisher) start(app core.App) (err error) {
	run, err := collections.NextValue(app, "live")
	if err != nil {
		return err
	}
	p.seq = run << 32
	p.last, err = collections.LastAuditID(app)
	return err
}

// round sends the changes since the last round and returns the number of readers.
func (p *Publisher) round(app core.App) (readers int, err error) {
	now := p.Clock()
	staff, portal := p.audience(app, now)
	readers = len(staff) + len(portal)
	if readers == 0 {
		p.pending = pendingChanges{}
		p.rescored.take()
		clear(p.lastStats)
		p.last, err = collections.LastAuditID(app)
		return 0, err
	}
	if err := p.gather(app); err != nil {
		return readers, err
	}
	if err := p.publishToPortal(portal, now); err != nil {
		return readers, err
	}
	if len(staff) == 0 {
		p.pending = pendingChanges{portal: p.pending.portal}
		clear(p.lastStats)
		return readers, nil
	}
	round := &round{app: app, publisher: p, audience: staff, now: now}
	return readers, round.publish()
}

// gather reads the audit entries since the last one read.
func (p *Publisher) gather(app core.App) error {
	for _, id := range p.rescored.take() {
		p.pending.rescored.add(id)
		p.pending.totals = true
	}
	for {
		marks, err := collections.AuditSummariesAfter(app, p.last, tailPage)
		if err != nil {
			return fmt.Errorf("follow the audit trail: %w", err)
		}
		for _, mark := range marks {
			p.pending.addEntry(mark)
			p.last = mark.ID
		}
		if len(marks) < tailPage {
			return nil
		}
	}
}

// reader is an open stream; team is the user that limits the care teams, or "".
type reader struct {
	stream *Stream
	team   string
}

// portalReader is an open stream of a portal account with the patients that it may access now.
type portalReader struct {
	stream   *Stream
	patients []auth.PortalAccess
}

// audience returns the readers of both topics that may still read. It disconnects the others.
func (p *Publisher) audience(app core.App, now time.Time) (staff []reader, portal []portalReader) {
	for _, stream := range p.openStreams() {
		topic := Topic
		switch {
		case stream.HasSubscription(Topic):
		case stream.HasSubscription(PortalTopic):
			topic = PortalTopic
		default:
			continue
		}
		caller, err := p.admit(app, topic, stream.accessToken(), now)
		switch {
		case err != nil:
			stream.cutOff()
		case topic == PortalTopic:
			portal = append(portal, portalReader{stream: stream, patients: caller.Patients})
		case p.RestrictToCareTeam && authz.IsCareTeamRole(caller.Role):
			staff = append(staff, reader{stream: stream, team: caller.RecordID})
		default:
			staff = append(staff, reader{stream: stream})
		}
	}
	return staff, portal
}
