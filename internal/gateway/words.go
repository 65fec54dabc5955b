package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// words are an event of another vendor in the words of the contract, so that one set of rules reads it, whoever sends.
type words struct {
	vendor Vendor
	event  map[string]any
	values map[string]any
	unit   string
	// names are what the vendor calls a field, where it has another name for it.
	names map[string]string
	// asides are fields of the contract, and what the vendor says in them can be left out of a reading. What cannot be read of them costs
	// nobody what can: labels go without a word, what was measured is in the event's Excluded.
	asides []string
}

// measuredAsides are the asides that somebody has to hear of: they may be dangerous.
var measuredAsides = []string{"values.pulse", "values.irregular_heartbeat"}

// parse reads the event; raw is what the vendor sent.
func (w words) parse(raw []byte, maxFuture time.Duration, now time.Time) (Event, error) {
	event, err := w.read(raw, maxFuture, now)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || len(refused.Fields) == 0 {
		return event, err
	}
	leftOut, whole := fault.Fields{}, true
	for field, messages := range refused.Fields {
		if !slices.Contains(w.asides, field) {
			whole = false
			continue
		}
		delete(w.event, field)
		delete(w.values, strings.TrimPrefix(field, "values."))
		if slices.Contains(measuredAsides, field) {
			leftOut[w.nameOf(field)] = messages
		}
	}
	rest, again := w.read(raw, maxFuture, now)
	if event.Implausible != nil { // with what is left out of the rest
		rest.Implausible = event.Implausible
	}
	if !whole {
		event.Implausible = rest.Implausible
		return event, renamed(err, w.nameOf)
	}
	if again == nil {
		rest.LeftOut = leftOut
	}
	return rest, renamed(again, w.nameOf)
}

func (w words) read(raw []byte, maxFuture time.Duration, now time.Time) (Event, error) {
	if w.values != nil {
		w.event["values"], w.event["unit"] = w.values, w.unit
	}
	body, err := json.Marshal(w.event)
	if err != nil {
		return Event{Vendor: w.vendor}, fault.New(fault.Invalid, "parse_error", "The request body cannot be read.").Because(err)
	}
	event, err := Gateway{MaxFuture: maxFuture, vendor: w.vendor}.Parse(body, now)
	event.Vendor, event.bodyHash = w.vendor, sha256.Sum256(raw)
	return event, err
}

// contractName is what the sender calls a field.
func (w words) nameOf(field string) string {
	field = strings.TrimPrefix(field, "values.")
	if name, other := w.names[field]; other {
		return name
	}
	return field
}

// renamed is a validation fault that names the fields as the sender does.
func renamed(err error, name func(field string) string) error {
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || len(refused.Fields) == 0 {
		return err
	}
	fields := fault.Fields{}
	for field, messages := range refused.Fields {
		for _, message := range messages {
			fields.Add(name(field), message)
		}
	}
	return fault.Validation(fields)
}

// scalar is a JSON value as text, for vendors who send numbers as numbers and as strings; null is "".
type scalar string

// UnmarshalJSON never fails: what is no scalar is a text that no check lets through as anything else.
func (s *scalar) UnmarshalJSON(raw []byte) error {
	var text string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		*s = scalar(strings.TrimSpace(text))
	case string(raw) != "null":
		*s = scalar(raw)
	}
	return nil
}

// texts are members of an event; what was not sent is none.
func texts(members map[string]scalar) map[string]any {
	event := map[string]any{}
	for name, value := range members {
		if value != "" {
			event[name] = string(value)
		}
	}
	return event
}

// numbers are values of a measurement: numbers where the texts are.
func numbers(members map[string]scalar) map[string]any {
	values := map[string]any{}
	for name, value := range members {
		if value != "" && name != "" {
			values[name] = valueOf(string(value))
		}
	}
	return values
}

// sharedSecret is a vendor that shows a secret in a header.
type sharedSecret struct {
	secret  string
	headers []string
}

// Verify looks for the secret as the whole value of one of the headers, or after the word of a scheme. All are compared, each in
// constant time. Faults: webhook_not_configured (Unavailable) and invalid_secret (Unauthenticated).
func (s sharedSecret) Verify(header http.Header, _ []byte, _ time.Time) (SecretName, error) {
	if s.secret == "" {
		return "", notConfigured()
	}
	shown := 0
	for _, name := range s.headers {
		for _, value := range header.Values(name) {
			_, afterScheme, _ := strings.Cut(value, " ")
			shown |= s.equals(value) | s.equals(strings.TrimSpace(afterScheme))
		}
	}
	if shown == 0 {
		return "", fault.New(fault.Unauthenticated, "invalid_secret", "The webhook secret is missing or wrong.")
	}
	return CurrentSecret, nil
}

// equals compares hashes, so that not even the length shows.
func (s sharedSecret) equals(value string) int {
	sent, wanted := sha256.Sum256([]byte(value)), sha256.Sum256([]byte(s.secret))
	return subtle.ConstantTimeCompare(sent[:], wanted[:])
}

// decode reads one object.
func decode[T any](raw []byte) (T, error) {
	var sent T
	err := validate.DecodeObject(raw, &sent)
	return sent, err
}
