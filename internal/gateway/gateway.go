// Package gateway knows the languages of the device vendors: how their webhooks prove who sent them, what their events are
// called, what belongs to each and how a measurement in their words becomes a vitals.Reading. Everything particular to
// a vendor stays behind Adapter, in one file each; [Vendors] names them. CSV, read from tables that nobody signs, is a
// Parser alone. The package refuses to know which patient an event belongs to, whether it was seen before and what happens
// because of it.
package gateway

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
)

// Vendor says in whose words an event is. It stands in stored keys and rows, so a name is for ever.
type Vendor string

// Contract is the device gateway of the contract, whose keys were stored before there were other vendors.
const Contract Vendor = ""

// Parser reads one event in a sender's words and maps its measurement to a reading.
type Parser interface {
	// Parse reads a body. With a validation fault it still returns what could be read, without a reading.
	Parse(body []byte, now time.Time) (Event, error)
}

// Adapter speaks one vendor's language.
type Adapter interface {
	// Verify proves that body, exactly as received, comes from the vendor and says which secret showed it.
	Verify(header http.Header, body []byte, now time.Time) (SecretName, error)
	// Split returns the bodies of the events that a verified delivery holds; each is parsed, and kept where need be, by itself.
	// A delivery that holds none that could be told apart is one event.
	Split(body []byte) [][]byte
	// Parser is for verified bodies only.
	Parser
}

// Adapters are the vendors whose words are understood.
type Adapters map[Vendor]Adapter

// adapters are those of the vendors beside the contract's gateway. Each has a webhook of its name.
var adapters = map[Vendor]func(settings config.Gateway, maxFuture time.Duration) Adapter{
	Telli:  newTelli,
	Tenovi: newTenovi,
}

// Vendors returns the names of the vendors that have a webhook of their own.
func Vendors() []Vendor { return slices.Sorted(maps.Keys(adapters)) }

// NewAdapters returns an adapter for every vendor; one without a secret lets nothing in. maxFuture is how far an event's own
// timestamp may lie ahead of now.
func NewAdapters(settings config.Gateway, maxFuture time.Duration) Adapters {
	all := Adapters{Contract: Gateway{
		Secrets:   Secrets{Current: settings.WebhookSecret.Reveal(), Previous: settings.WebhookSecretPrevious.Reveal()},
		Tolerance: settings.TimestampTolerance, MaxFuture: maxFuture,
	}}
	for vendor, adapter := range adapters {
		all[vendor] = adapter(settings, maxFuture)
	}
	return all
}

// Gateway is the adapter for the device gateway of the contract.
type Gateway struct {
	Secrets Secrets
	// Tolerance is how far X-Gateway-Timestamp may lie from now on either side; zero switches the age check off.
	Tolerance time.Duration
	// MaxFuture is how far an event's own timestamp may lie ahead of now.
	MaxFuture time.Duration

	vendor Vendor // whose events were put into these words
}

var _ Adapter = Gateway{}

// Split returns the body: the contract's gateway sends one event at a time.
func (Gateway) Split(body []byte) [][]byte { return [][]byte{body} }

// How refusals are remembered. Source: docs/decisions/gateway.md, "Webhook signature failure".
const (
	refusalWindow  = time.Hour
	mostRemembered = 1024
)

// Refusal is a delivery that nobody vouches for, to be recorded, or how many like it came since one was.
type Refusal struct {
	Address string // "" stands for all addresses beyond those that are remembered
	Reason  string
	Since   int  // refused since the last one recorded
	Over    bool // the window is over and no further one came: there is only the number to record
}

// Refusals says which refused deliveries are worth a record: anybody can send any number of them, and records are kept for years.
// Of each address and reason it is the first in an hour; the others are counted. It is safe for concurrent use, and its zero
// value is ready. What it remembers is bounded and ends with the process.
type Refusals struct {
	mu   sync.Mutex
	seen map[sender]*tally
}

type sender struct{ address, reason string }

type tally struct {
	recorded time.Time
	since    int
}

// Note takes one refused delivery and returns what to record now: mostly nothing.
func (r *Refusals) Note(address, reason string, now time.Time) (due []Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[sender]*tally{}
	}
	here, since := sender{address, reason}, 0
	for who, known := range r.seen {
		if age := now.Sub(known.recorded); age >= 0 && age < refusalWindow {
			continue
		}
		delete(r.seen, who)
		switch {
		case who == here:
			since = known.since
		case known.since > 0:
			due = append(due, Refusal{Address: who.address, Reason: who.reason, Since: known.since, Over: true})
		}
	}
	if _, known := r.seen[here]; !known && len(r.seen) >= mostRemembered {
		here.address = ""
	}
	if known := r.seen[here]; known != nil {
		known.since++
		return due
	}
	r.seen[here] = &tally{recorded: now}
	return append(due, Refusal{Address: here.address, Reason: reason, Since: since})
}

// Forget takes back that a refusal was recorded, when it could not be: the next one is tried again.
func (r *Refusals) Forget(refusal Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.seen, sender{refusal.Address, refusal.Reason})
}
