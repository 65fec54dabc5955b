// Package directory records which practice a device, hub or gateway patient id belonged to at a time. Practices publish their claims to a NATS
// bucket, with keyed hashes in place of the ids; the ingress keeps all claims in memory. Rules: docs/decisions/events.md, "The directory".
package directory

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"time"
)

// Kind is a kind of identifier.
type Kind string

// The kinds.
const (
	Device  Kind = "device"
	Hub     Kind = "hub"
	Patient Kind = "patient" // the gateway's id of a patient
)

// Interval is a span of a claim; a zero To is open.
type Interval struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
}

func (i Interval) contains(at time.Time) bool {
	return !at.Before(i.From) && (i.To.IsZero() || at.Before(i.To))
}

// ID is an identifier in the directory: its kind and the keyed hash of its text, so that the bucket names no device and no patient.
type ID struct {
	Kind Kind
	Hash string
}

// NewID hashes an identifier with the company's directory key.
func NewID(key []byte, kind Kind, text string) ID {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(string(kind) + "|" + text))
	return ID{kind, base64.RawURLEncoding.EncodeToString(mac.Sum(nil))}
}

// Claims are the claims of all practices, by identifier and practice. A practice that has registered an identifier and holds it at no time has an empty
// list.
type Claims map[ID]map[string][]Interval

// Owner is the practice of an identifier at a time; "" if there is none, or if claims overlap.
type Owner struct {
	Practice string
	Overlaps bool
}

// Owner returns the practice with an interval that has the time of measurement, because a backlog of the former holder belongs to the former
// practice. Without one, the only practice that has registered the identifier gets the event: it was measured before the assignment or after its end,
// and that practice's quarantine shows it to a person.
func (c Claims) Owner(id ID, measured time.Time) Owner {
	claims := c[id]
	var holders []string
	for _, practice := range slices.Sorted(maps.Keys(claims)) {
		if slices.ContainsFunc(claims[practice], func(i Interval) bool { return i.contains(measured) }) {
			holders = append(holders, practice)
		}
	}
	switch {
	case len(holders) == 1:
		return Owner{Practice: holders[0]}
	case len(holders) > 1:
		return Owner{Overlaps: true}
	case len(claims) == 1:
		for practice := range claims {
			return Owner{Practice: practice}
		}
	}
	return Owner{}
}

// set replaces a practice's claim; nil removes it.
func (c Claims) set(id ID, practice string, intervals []Interval) {
	if intervals == nil {
		delete(c[id], practice)
		if len(c[id]) == 0 {
			delete(c, id)
		}
		return
	}
	if c[id] == nil {
		c[id] = map[string][]Interval{}
	}
	c[id][practice] = intervals
}
