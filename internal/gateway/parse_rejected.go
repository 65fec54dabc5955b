package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/json/jsontext"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Parse parses an event. What is readable of a rejected body (repeated member, other spelling, not
// UTF-8) is returned for an alert. Source: docs/decisions/gateway.md, "Side values".
func Parse(sender Parser, body []byte, now time.Time) (Event, error) {
	event, err := sender.Parse(body, now)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return event, err
	}
	var of shape
	if spelled, documented := sender.(interface{ shape() shape }); documented {
		of = spelled.shape()
	}
	if event.Implausible != nil && bytes.Equal(of.conform(body), body) {
		return event, err
	}
	read, otherwise := sender.Parse(of.lenientBody(body), now)
	if _, isRefusal := errors.AsType[*fault.Error](otherwise); otherwise != nil && !isRefusal {
		return event, err
	}
	read.bodyHash, read.LeftOut = sha256.Sum256(body), nil
	if read.Reading != nil {
		read.Implausible, read.Reading = read.newImplausible(*read.Reading, nil), nil
	}
	if read.Implausible == nil {
		return event, err
	}
	// The values are never merely implausible: the sender means something else, or sent two values.
	if read.Implausible.RejectedFor = slices.Sorted(maps.Keys(refused.Fields)); len(refused.Fields) == 0 {
		read.Implausible.RejectedFor = []string{"body"}
	}
	return read, err
}

// unreadable takes the place of a member with different values.
var unreadable = jsontext.Value("[]")

// maxRepeatDepth is how deep repeated members are looked for; events are not deeper.
const maxRepeatDepth = 4

// withoutRepeats returns an object with each member once: with its value if all are equal, else unreadable. Anything else is returned as it is.
func withoutRepeats(raw jsontext.Value, depth int) jsontext.Value {
	members, ok := membersOf(raw)
	if !ok || depth > maxRepeatDepth {
		return raw
	}
	var single []memberText
	at := map[string]int{}
	for _, m := range members {
		m.Raw = withoutRepeats(m.Raw, depth+1)
		i, isRepeated := at[m.Name]
		switch {
		case !isRepeated:
			at[m.Name] = len(single)
			single = append(single, m)
		case !isSame(single[i].Raw, m.Raw):
			single[i].Raw = unreadable
		}
	}
	return objectOf(single)
}

// isSame reports whether two values are equal but for their spelling.
func isSame(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}
