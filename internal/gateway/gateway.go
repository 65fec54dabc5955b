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
