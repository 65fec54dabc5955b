// Package webhooks notifies receivers over HTTP of committed changes, signed as Standard Webhooks specifies. It manages the endpoints, selects the
// events of each, and sends them in order per patient with retries.
// The engine reads committed changes from the change feed and sends them from its own workers, one per endpoint, so it never delays the writer of a
// change. It does not define how a resource is rendered.
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

// Events lists the events to which a webhook can subscribe.
var Events = []string{
	"observation.created", "observation.withdrawn", "alert.raised", "alert.resolved", "escalation.opened", "escalation.updated", "escalation.resolved",
	"patient.created", "patient.updated", "patient.archived", "device.status", "transmission.failed", "claim.updated",
}

// testEvent is the event type of a test.
const testEvent = "webhook.test"

// Views renders resources as the API shows them.
type Views interface {
	// Object returns the record as its endpoint renders it, without anything specific to a caller; nil if the record is missing or not visible.
	Object(app core.App, kind, record string) (any, error)
}

// maxRenderers bounds concurrent rendering, because each reader beyond the pooled connections opens a database connection.
const maxRenderers = 4

// Options configure an engine.
type Options struct {
	Views Views
	// Client sends requests to allowed addresses only.
	Client *egress.Client
	// Timeout bounds one request.
	Timeout      time.Duration
	Schedule     Schedule
	DisableAfter time.Duration
	// UserAgent is the value of the User-Agent header.
	UserAgent string
	// ReadingsPending reports whether readings wait to be stored; deliveries yield to them. Nil means never.
	ReadingsPending func() bool
	Clock           func() time.Time
	Log             *slog.Logger
	// Jitter returns a number in [0, 1); nil means a random one.
	Jitter func() float64
	// OnAttempt receives the outcome of each attempt: delivered, retried or failed. It may be nil and must not block.
	OnAttempt func(outcome string)
}

// Engine manages webhooks and delivers their events. It is safe for concurrent use.
type Engine struct {
	Options
	async.Signal               // wakes fan-out
	renderSlots  chan struct{} // held while a payload is rendered from the database
	results      *async.GroupCommit[finishedAttempt, string]

	lock      sync.Mutex
	workers   map[string]*endpointWorker
	readAhead map[string]readPosition
}

// readPosition is how far fan-out has examined changes for a webhook beyond its stored position, and when it last stored that position.
type readPosition struct {
	seq      int64
	storedAt time.Time
}

// New returns an engine; Run starts its worker.
func New(o Options) *Engine {
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	e := &Engine{Options: o, Signal: async.NewSignal(), renderSlots: make(chan struct{}, maxRenderers), workers: map[string]*endpointWorker{}, readAhead: map[string]readPosition{}}
	e.results = async.NewGroupCommit(async.GroupOptions[finishedAttempt, string]{Store: e.storeResults, OnDone: e.countOutcomes, Log: o.Log})
	return e
}

// CreatedWebhook is a webhook with its secret, which the API returns only once.
type CreatedWebhook struct {
	Webhook *collections.Webhook
	Secret  string
}
