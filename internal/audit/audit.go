// Package audit knows the audit log: who did what to what, from where and with which result, one row per event, each
// row bound to the one before by a hash with a key. A changed, swapped or missing row breaks the chain, and [Verify]
// says where. How many rows there are and which hash the last one bears is sealed beside them, so an end cut off shows
// too. Only an older copy of the whole database holds in itself, so the hash of the last row has to be kept elsewhere.
//
// An entry is appended in the transaction of what it records: both are kept or neither is. The package refuses to
// know what the events mean, who may read them, and how to change or remove a row; the database refuses that too.
package audit

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Entry is one event to be recorded. Reason and Changes are encrypted; everything else is readable on disk, so it
// holds ids and never names.
type Entry struct {
	Event        Event
	Outcome      Outcome // success when empty
	Actor        Actor
	ResourceType string // User, Patient, Observation …
	ResourceID   string // the public id
	PatientID    string // whose data it was, when it was a patient's
	Reason       phi.Text
	Changes      Changes
}

// Changes are the fields that changed, by name. They refuse to print.
type Changes map[string]Change

// Change is a field's value before and after; nil for none.
type Change struct {
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
}

// Note notes a field whose value differs; values are texts, numbers or flags.
func (c Changes) Note(name string, before, after any) {
	if before != after {
		c[name] = Change{Old: before, New: after}
	}
}

// Format shows nothing of the values.
func (Changes) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[changes]") }

// LogValue shows nothing of the values.
func (Changes) LogValue() slog.Value { return slog.StringValue("[changes]") }

// MarshalJSON refuses.
func (Changes) MarshalJSON() ([]byte, error) {
	return nil, errors.New("audit: changes are not encoded")
}

// Format shows nothing of the values.
func (Change) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[change]") }

// LogValue shows nothing of the values.
func (Change) LogValue() slog.Value { return slog.StringValue("[change]") }

// plaintext is the JSON that is sealed; "" for no changes.
func (c Changes) plaintext() (string, error) {
	if len(c) == 0 {
		return "", nil
	}
	plain := make(map[string]Change, len(c))
	for field, change := range c {
		plain[field] = Change{Old: reveal(change.Old), New: reveal(change.New)}
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return "", errors.New("encode changes") // the cause could quote a value
	}
	return string(text), nil
}

func reveal(value any) any {
	if text, protected := value.(phi.Text); protected {
		return text.Reveal()
	}
	return value
}

// Append records one entry in the transaction of app, or in one of its own when app is in none.
func Append(app core.App, entry Entry, now time.Time) error {
	return inChain(app, func(chain *Chain) error { return chain.Add(entry, now) })
}

// inChain stores what is added in a transaction.
func inChain(app core.App, add func(*Chain) error) error {
	return app.RunInTransaction(func(tx core.App) error {
		chain, err := NewChain(tx)
		if err != nil {
			return err
		}
		if err := add(chain); err != nil {
			return err
		}
		return chain.Store()
	})
}

// Chain appends many entries in one transaction, reading the end of the trail only once: each is added, and all are stored together. It must
// not outlive the transaction or a savepoint in it, and nobody else may append while it is in use.
type Chain struct {
	tx     core.App
	keys   keys
	number int64
	hash   string
	// state is what is kept about the trail; sealed says that it is as the service wrote it. One that is not is never written over, or
	// whatever was done to the trail would be sealed with it.
	state  collections.AuditState
	sealed bool
	added  []collections.AuditRow
}

// NewChain starts where the log ends: where its sealed state says, so that rows that were cut off stay missing.
func NewChain(tx core.App) (*Chain, error) {
	if !tx.IsTransactional() {
		return nil, errors.New("audit: a chain needs a transaction")
	}
	k, err := loadKeys()
	if err != nil {
		return nil, err
	}
	end, err := collections.ReadAuditState(tx)
	sealed := err == nil && k.sealed(end)
	if !sealed && (err == nil || collections.IsNotFound(err)) {
		end, err = collections.ReadAuditEnd(tx)
	}
	if err != nil {
		return nil, err
	}
	last := collections.Number(end.ID)
	if end.ID != "" && last == 0 {
		return nil, errors.New("audit: the last row has a foreign id")
	}
	c := &Chain{tx: collections.WithStatementCache(tx), keys: k, number: last, hash: end.Hash, state: end.AuditState, sealed: sealed}
	switch {
	case c.sealed:
		c.number, c.hash = max(last, end.Entries), end.Head
	case last == 0:
		c.hash = firstPrevious
	}
	return c, nil
}

// Head is the id of the last entry, stored or added, "" while there is none.
func (c *Chain) Head() string {
	if c.number == 0 {
		return ""
	}
	return collections.NumberID(c.number)
}

// Add makes an entry the next one.
func (c *Chain) Add(entry Entry, now time.Time) error {
	row, err := entry.row(collections.NumberID(c.number+1), now)
	if err != nil {
		return fmt.Errorf("audit %s: %w", entry.Event, err)
	}
	row.PrevHash = c.hash
	row.Hash = rowHash(c.keys.row, c.hash, row)
	c.number, c.hash, c.added = c.number+1, row.Hash, append(c.added, row)
	return nil
}

// Store writes what was added. After an error the transaction must be rolled back.
func (c *Chain) Store() error {
	if len(c.added) == 0 {
		return nil
	}
	err := collections.InsertAuditRows(c.tx, c.added)
	c.added = c.added[:0]
	if err != nil || !c.sealed {
		return err
	}
	c.state.Entries, c.state.Head = c.number, c.hash
	c.state.Seal = c.keys.seal(c.state)
	return collections.UpdateAuditState(c.tx, c.state)
}

// row is the entry as it is stored, without the hashes.
func (e Entry) row(id string, now time.Time) (collections.AuditRow, error) {
	if e.Event == "" || e.Actor.Type == "" {
		return collections.AuditRow{}, errors.New("an entry needs an event and an actor")
	}
	changes, err := e.Changes.plaintext()
	if err == nil {
		changes, err = collections.Seal(changes, "audit_log.changes", id)
	}
	if err != nil {
		return collections.AuditRow{}, err
	}
	reason, err := collections.Seal(e.Reason.Reveal(), "audit_log.reason", id)
	if err != nil {
		return collections.AuditRow{}, err
	}
	return collections.AuditRow{
		ID:           id,
		RecordedAt:   collections.Instant(now),
		Event:        string(e.Event),
		Action:       string(e.Event.Action()),
		Outcome:      string(cmp.Or(e.Outcome, Success)),
		ActorType:    string(e.Actor.Type),
		ActorID:      clip(e.Actor.ID, 64),
		ActorEmail:   clip(e.Actor.Email, 254),
		ActorRole:    clip(e.Actor.Role, 30),
		ActorName:    clip(e.Actor.Name, 100),
		ResourceType: clip(e.ResourceType, 50),
		ResourceID:   clip(e.ResourceID, 128),
		Patient:      clip(e.PatientID, 36),
		SourceIP:     clip(e.Actor.From.Address, 45),
		Client:       clip(e.Actor.From.Client, 300),
		RequestID:    clip(e.Actor.From.RequestID, 64),
		Reason:       reason,
		Changes:      changes,
	}, nil
}

// clip keeps what a caller sent within its column: valid UTF-8 of at most max characters.
func clip(text string, max int) string {
	if !utf8.ValidString(text) { // mostly it is, which is quickly seen
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= max {
		return text
	}
	count := 0
	for at := range text {
		if count == max {
			return text[:at]
		}
		count++
	}
	return text
}

// firstPrevious stands where the first row has no predecessor.
var firstPrevious = strings.Repeat("0", 64)

// member is one member of a flat JSON object. An empty text is null: the log does not tell absent from empty.
type member struct {
	name, text string
	number     bool // text is a number, written bare
	late       bool // rows did not always have it: it is left out where it is empty, so that older rows keep their hashes
}

// chainHash is a hash, in lower-case hex, over the previous hash and the object in canonical form: keys sorted, no spaces, strings escaped no
// more than needed (RFC 8785). The members must come sorted by name and be valid UTF-8. Rows of today are hashed with a key; plain SHA-256 is
// for those of older versions. Source: docs/decisions/security.md, "Hash chain".
func chainHash(with hash.Hash, previous string, members []member) string {
	buffer := make([]byte, 0, 1024)
	buffer = append(buffer, previous...)
	for i, m := range members {
		if m.late && m.text == "" {
			continue
		}
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		buffer = append(buffer, separator)
		buffer = appendText(buffer, m.name)
		buffer = append(buffer, ':')
		switch {
		case m.number:
			buffer = append(buffer, m.text...)
		case m.text == "":
			buffer = append(buffer, "null"...)
		default:
			buffer = appendText(buffer, m.text)
		}
	}
	with.Reset()
	with.Write(append(buffer, '}'))
	return hex.EncodeToString(with.Sum(buffer[:0]))
}

// appendText quotes as RFC 8785, section 3.2.2.2, has it. Invalid UTF-8 is hashed as replacement characters, which
// is no loss: what is appended is valid, and what is not valid was tampered with.
func appendText(buffer []byte, text string) []byte {
	buffer, _ = jsontext.AppendQuote(buffer, text)
	return buffer
}

// rowHash is the hash of a row as stored, encrypted columns as ciphertext, over everything but the two hashes.
func rowHash(with hash.Hash, previous string, r collections.AuditRow) string {
	return chainHash(with, previous, []member{
		{name: "action", text: r.Action},
		{name: "actor_email", text: r.ActorEmail},
		{name: "actor_id", text: r.ActorID},
		{name: "actor_name", text: r.ActorName, late: true},
		{name: "actor_role", text: r.ActorRole},
		{name: "actor_type", text: r.ActorType},
		{name: "changes", text: r.Changes},
		{name: "client", text: r.Client},
		{name: "event", text: r.Event},
		{name: "id", text: strconv.FormatInt(r.Number(), 10), number: true},
		{name: "outcome", text: r.Outcome},
		{name: "patient_id", text: r.Patient},
		{name: "reason", text: r.Reason},
		{name: "recorded_at", text: r.RecordedAt},
		{name: "request_id", text: r.RequestID},
		{name: "resource_id", text: r.ResourceID},
		{name: "resource_type", text: r.ResourceType},
		{name: "source_ip", text: r.SourceIP},
	})
}

// Group records entries of many callers in few transactions: a commit waits for the disk, so those who read share that wait.
type Group struct {
	entries *async.Group[datedEntry, struct{}]
}

type datedEntry struct {
	Entry
	now time.Time
}

// NewGroup returns a group.
func NewGroup(log *slog.Logger) *Group {
	return &Group{async.NewGroup(async.GroupOptions[datedEntry, struct{}]{Store: appendAll, Log: log})}
}

// Append records one entry durably, in a transaction with those of others. app must be in no transaction of its own.
func (g *Group) Append(app core.App, entry Entry, now time.Time) error {
	_, err := g.entries.Commit(app, datedEntry{entry, now})
	return err
}

func appendAll(app core.App, entries []*async.GroupItem[datedEntry, struct{}]) error {
	return async.Along(app, func(tx core.App) error {
		return inChain(tx, func(chain *Chain) error {
			for _, e := range entries {
				if err := chain.Add(e.In.Entry, e.In.now); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
