// Package audit stores and verifies the audit trail: who did what to which resource, from where and with which outcome.
// Each event is one row, chained to the previous row by a keyed hash, so [Verify] finds the first changed, swapped or
// missing row. The row count and the last hash are stored under a seal, so a truncated trail is detected too. An older
// copy of the whole database is consistent in itself; to detect it, store the last hash in another system.
//
// An entry is appended in the transaction of the change that it records: both are committed or neither is. Rows cannot
// be changed or removed: this package has no function for it, and database triggers refuse it.
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

// Entry is an event to record. Reason and Changes are sealed. The other fields are readable on disk, so they hold ids
// and never names.
type Entry struct {
	Event        Event
	Outcome      Outcome // success when empty
	Actor        Actor
	ResourceType string // User, Patient, Observation …
	ResourceID   string // public id
	PatientID    string // the patient concerned; "" for none
	Reason       phi.Text
	Changes      Changes
}

// Changes are the changed fields by name. They refuse to print.
type Changes map[string]Change

// Change is a field's value before and after; nil for none.
type Change struct {
	Old any `json:"old,omitempty"`
	New any `json:"new,omitempty"`
}

// Record records a field if its value differs. Values are strings, numbers or booleans.
func (c Changes) Record(name string, before, after any) {
	if before != after {
		c[name] = Change{Old: before, New: after}
	}
}

// Format and LogValue print a placeholder.
func (Changes) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[changes]") }
func (Changes) LogValue() slog.Value       { return slog.StringValue("[changes]") }

// MarshalJSON always fails.
func (Changes) MarshalJSON() ([]byte, error) {
	return nil, errors.New("audit: changes are not encoded")
}

// Format and LogValue print a placeholder.
func (Change) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[change]") }
func (Change) LogValue() slog.Value       { return slog.StringValue("[change]") }

// plaintext returns the changes as JSON before sealing; "" for no changes.
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

// Append records one entry in the transaction of app, or in a new one if app has none.
func Append(app core.App, entry Entry, now time.Time) error {
	return withChain(app, func(chain *Chain) error { return chain.Add(entry, now) })
}

// withChain runs add with a chain in a transaction and stores the added entries.
func withChain(app core.App, add func(*Chain) error) error {
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

// Chain appends many entries in one transaction and reads the end of the trail only once. Add queues entries, and Store writes them together. A
// Chain must not outlive its transaction or savepoint, and no other code may append in the transaction while it is in use.
type Chain struct {
	tx     core.App
	keys   keys
	number int64
	hash   string
	// state is the stored state of the trail. A state without a valid seal is never updated, because that would
	// seal a manipulated trail.
	state     collections.AuditState
	sealValid bool
	pending   []collections.AuditRow
}

// NewChain starts at the end that the sealed state records, so that removed rows stay detectable.
func NewChain(tx core.App) (*Chain, error) {
	if !tx.IsTransactional() {
		return nil, errors.New("audit: a chain needs a transaction")
	}
	k, err := loadKeys()
	if err != nil {
		return nil, err
	}
	end, err := collections.ReadAuditState(tx)
	sealed := err == nil && k.hasValidSeal(end)
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
	c := &Chain{tx: collections.WithStatementCache(tx), keys: k, number: last, hash: end.Hash, state: end.AuditState, sealValid: sealed}
	switch {
	case c.sealValid:
		c.number, c.hash = max(last, end.Entries), end.Head
	case last == 0:
		c.hash = firstPrevious
	}
	return c, nil
}

// LastID returns the id of the last entry, stored or added; "" if there is none.
func (c *Chain) LastID() string {
	if c.number == 0 {
		return ""
	}
	return collections.NumberID(c.number)
}

// Add queues an entry.
func (c *Chain) Add(entry Entry, now time.Time) error {
	row, err := entry.row(collections.NumberID(c.number+1), now)
	if err != nil {
		return fmt.Errorf("audit %s: %w", entry.Event, err)
	}
	row.PrevHash = c.hash
	row.Hash = rowHash(c.keys.row, c.hash, row)
	c.number, c.hash, c.pending = c.number+1, row.Hash, append(c.pending, row)
	return nil
}

// Store writes the queued entries. After an error the transaction must be rolled back.
func (c *Chain) Store() error {
	if len(c.pending) == 0 {
		return nil
	}
	err := collections.InsertAuditRows(c.tx, c.pending)
	c.pending = c.pending[:0]
	if err != nil || !c.sealValid {
		return err
	}
	c.state.Entries, c.state.Head = c.number, c.hash
	c.state.Seal = c.keys.seal(c.state)
	return collections.UpdateAuditState(c.tx, c.state)
}

// row returns the stored form of the entry without the hashes.
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
		RecordedAt:   collections.FormatInstant(now),
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
		SourceIP:     clip(e.Actor.Origin.Address, 45),
		Client:       clip(e.Actor.Origin.Client, 300),
		RequestID:    clip(e.Actor.Origin.RequestID, 64),
		Reason:       reason,
		Changes:      changes,
	}, nil
}

// clip returns text as valid UTF-8 of at most max characters, the size of its column.
func clip(text string, max int) string {
	if !utf8.ValidString(text) { // the check is cheaper than ToValidUTF8
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

// firstPrevious is the previous hash of the first row.
var firstPrevious = strings.Repeat("0", 64)

// member is a member of a flat JSON object. An empty text is encoded as null: the trail does not distinguish absent from empty.
type member struct {
	name, text string
	number     bool // text is a number, written without quotes
	omitEmpty  bool // added in a later version: omitted if empty, so that older rows keep their hashes
}

// chainHash returns the hash, in lower-case hex, of the previous hash and the object in canonical form: keys sorted, no spaces, minimal escaping
// (RFC 8785). The members must be sorted by name and valid UTF-8. New rows use a keyed hash; rows of older versions use plain SHA-256.
// Source: docs/decisions/security.md, "Hash chain".
func chainHash(with hash.Hash, previous string, members []member) string {
	buffer := make([]byte, 0, 1024)
	buffer = append(buffer, previous...)
	for i, m := range members {
		if m.omitEmpty && m.text == "" {
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

// appendText quotes text as in RFC 8785, section 3.2.2.2. Invalid UTF-8 is hashed as replacement characters. Only
// manipulated rows contain it, since clip makes all text valid.
func appendText(buffer []byte, text string) []byte {
	buffer, _ = jsontext.AppendQuote(buffer, text)
	return buffer
}

// rowHash returns the hash of a stored row over all columns except the two hashes, with sealed columns as ciphertext.
func rowHash(with hash.Hash, previous string, r collections.AuditRow) string {
	return chainHash(with, previous, []member{
		{name: "action", text: r.Action},
		{name: "actor_email", text: r.ActorEmail},
		{name: "actor_id", text: r.ActorID},
		{name: "actor_name", text: r.ActorName, omitEmpty: true},
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

// Group records entries of concurrent callers in shared transactions, so that reads that need an audit entry share the wait for the disk.
type Group struct {
	entries *async.GroupCommit[datedEntry, struct{}]
}

type datedEntry struct {
	Entry
	now time.Time
}

// NewGroup returns a Group.
func NewGroup(log *slog.Logger) *Group {
	return &Group{async.NewGroupCommit(async.GroupOptions[datedEntry, struct{}]{Store: appendAll, Log: log})}
}

// Append records one entry durably, in a transaction shared with other callers. app must not be in a transaction.
func (g *Group) Append(app core.App, entry Entry, now time.Time) error {
	_, err := g.entries.Commit(app, datedEntry{entry, now})
	return err
}

func appendAll(app core.App, entries []*async.GroupItem[datedEntry, struct{}]) error {
	return async.JoinTx(app, func(tx core.App) error {
		return withChain(tx, func(chain *Chain) error {
			for _, e := range entries {
				if err := chain.Add(e.In.Entry, e.In.now); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
