// Package webhooks tells others over HTTP what happens, signed as Standard Webhooks has it: what an administrator says of a receiver, which
// changes it is told of, in which order, and what follows when it does not take them. It refuses to know what an object looks like, and it never
// keeps up who makes a change: what is to be told is read from the changes that are committed already, and told by workers of its own, each
// receiver by itself.
// Source: docs/decisions/webhooks.md, "Webhooks out".
package webhooks

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/egress"
)

// Events are what a receiver may be told of.
var Events = []string{
	"observation.created", "observation.withdrawn", "alert.raised", "alert.resolved", "escalation.opened", "escalation.updated", "escalation.resolved",
	"patient.created", "patient.updated", "patient.archived", "device.status", "transmission.failed", "claim.updated",
}

// testEvent is what a test is called.
const testEvent = "webhook.test"

// Views shows what an event is about as the API does.
type Views interface {
	// Object is the record as its endpoint shows it to somebody nobody knows; nil when it is not there, or not to be shown.
	Object(app core.App, kind, record string) (any, error)
}

// renderers bounds how many read the database at once: every reader beyond the few connections that are kept opens one of its own.
const renderers = 4

// Options of an engine.
type Options struct {
	Views Views
	// Outbound sends requests where they may go.
	Outbound *egress.Client
	// Timeout bounds a request.
	Timeout      time.Duration
	Schedule     Schedule
	DisableAfter time.Duration
	// Agent is what the service calls itself.
	Agent string
	// ReadingsPending tells that somebody waits for a reading to be stored, which goes first; nil is never.
	ReadingsWait func() bool
	Clock        func() time.Time
	Log          *slog.Logger
	// Spread draws from [0, 1); nil means at random.
	Spread func() float64
	// Ended is told of each attempt, by what came of it: delivered, retried, failed; it may be nil and must not block.
	Ended func(outcome string)
}

// Engine makes webhooks and serves them. It is safe for concurrent use.
type Engine struct {
	Options
	async.Signal               // there may be something to tell
	rendering    chan struct{} // held by those who read the database for what is sent
	endings      *async.Group[ending, string]

	lock  sync.Mutex
	lanes map[string]*lane
	ahead map[string]place
}

// place is how far a webhook was looked at, where nothing was found for it since its stored position, and when that was stored.
type place struct {
	seq     int64
	notedAt time.Time
}

// New returns an engine; Run starts its worker.
func New(o Options) *Engine {
	if o.Spread == nil {
		o.Spread = rand.Float64
	}
	e := &Engine{Options: o, Signal: async.NewSignal(), rendering: make(chan struct{}, renderers), lanes: map[string]*lane{}, ahead: map[string]place{}}
	e.endings = async.NewGroup(async.GroupOptions[ending, string]{Store: e.store, After: e.tell, Log: o.Log})
	return e
}

// Secret is a webhook with its secret, which is shown once.
type Secret struct {
	Webhook *collections.Webhook
	Secret  string
}
