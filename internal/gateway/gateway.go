// Package gateway parses the formats of device vendors: how their webhooks are authenticated, what their events are called and contain, and
// how a measurement becomes a vitals.Reading. Each vendor is an Adapter in a file of its own; [Vendors] lists them. CSV tables are not
// signed and have only a Parser. The package does not match patients, deduplicate or store. Rules: docs/decisions/gateway.md.
package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/config"
)

// Vendor is the vendor of an event's format. It is part of stored keys and rows, so a name never changes.
type Vendor string

// Contract is the device gateway of the contract; its keys were stored before there were other vendors.
const Contract Vendor = ""

// Parser parses one event in a sender's format and converts its measurement to a reading.
type Parser interface {
	// Parse parses a body. With a validation fault it still returns what could be parsed, without a reading.
	Parse(body []byte, now time.Time) (Event, error)
}

// Adapter handles one vendor's format.
type Adapter interface {
	// Verify authenticates the body, exactly as received, and returns which secret matched.
	Verify(header http.Header, body []byte, now time.Time) (SecretName, error)
	// Split returns the bodies of the events in an authenticated delivery; each is parsed and stored separately. A delivery that cannot be
	// split is one event.
	Split(body []byte) [][]byte
	// Parser is for authenticated bodies only.
	Parser
}

// Adapters are the supported vendors.
type Adapters map[Vendor]Adapter

// adapters are the vendors other than the contract's gateway. Each has a webhook with its name.
var adapters = map[Vendor]func(settings config.Gateway, maxFuture time.Duration) Adapter{
	Telli:  newTelli,
	Tenovi: newTenovi,
}

// Vendors returns the names of the vendors that have a webhook of their own.
func Vendors() []Vendor { return slices.Sorted(maps.Keys(adapters)) }

// NewAdapters returns an adapter for every vendor; one without a secret rejects everything. maxFuture is how far an event's timestamp may
// be ahead of now.
func NewAdapters(settings config.Gateway, maxFuture time.Duration) Adapters {
	all := Adapters{Contract: ContractAdapter{
		Secrets:   Secrets{Current: settings.WebhookSecret.Reveal(), Previous: settings.WebhookSecretPrevious.Reveal()},
		Tolerance: settings.TimestampTolerance, MaxFuture: maxFuture,
	}}
	for vendor, adapter := range adapters {
		all[vendor] = adapter(settings, maxFuture)
	}
	return all
}

// ContractAdapter is the adapter for the device gateway of the contract.
type ContractAdapter struct {
	Secrets Secrets
	// Tolerance is how far X-Gateway-Timestamp may be from now on either side; zero disables the check.
	Tolerance time.Duration
	// MaxFuture is how far an event's timestamp may be ahead of now.
	MaxFuture time.Duration

	vendor Vendor // the vendor of the converted events
}

var _ Adapter = ContractAdapter{}

// shape is the documented schema. Another spelling is rejected, and read only for an alert.
func (ContractAdapter) shape() shape { return contractShape }

// maxEvents bounds the events of one delivery of the contract's gateway.
const maxEvents = 1000

// Split returns the body: the contract's gateway sends one event at a time. Several are read, too.
func (ContractAdapter) Split(body []byte) [][]byte {
	return split(readable(body), contractShape.messagesOf)
}

// split returns the bodies of several messages, or the body of one in an envelope, or the body itself.
func split(body []byte, messagesOf func([]byte, int) []json.RawMessage) (bodies [][]byte) {
	for _, message := range messagesOf(body, maxEvents) {
		bodies = append(bodies, message)
	}
	if len(bodies) == 0 || len(bodies) == 1 && bytes.HasPrefix(bytes.TrimSpace(body), bodies[0]) {
		return [][]byte{body}
	}
	return bodies
}
