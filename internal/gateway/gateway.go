// Package gateway knows the language of the device vendor: how its webhook proves who sent it, what its events are
// called, what belongs to each and how a measurement in its words becomes a vitals.Reading. Everything particular to
// the vendor stays behind Adapter, so that a second vendor is one more implementation in one more file; CSV, the second
// user, reads tables that nobody signs and is a Parser alone. It refuses to know which patient an event belongs to,
// whether it was seen before and what happens because of it.
package gateway

import (
	"net/http"
	"time"
)

// Parser reads one event in a sender's words and maps its measurement to a reading.
type Parser interface {
	// Parse reads a body. With a validation fault it still returns what could be read, without a reading.
	Parse(body []byte, now time.Time) (Event, error)
}

// Adapter speaks one vendor's language.
type Adapter interface {
	// Verify proves that body, exactly as received, comes from the vendor and says which secret showed it.
	Verify(header http.Header, body []byte, now time.Time) (SecretName, error)
	// Parser is for verified bodies only.
	Parser
}

// Gateway is the adapter for the device gateway of the contract.
type Gateway struct {
	Secrets Secrets
	// Tolerance is how far X-Gateway-Timestamp may lie from now on either side; zero switches the age check off.
	Tolerance time.Duration
	// MaxFuture is how far an event's own timestamp may lie ahead of now.
	MaxFuture time.Duration
}

var _ Adapter = Gateway{}
