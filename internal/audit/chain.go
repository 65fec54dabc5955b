package audit

import (
	"encoding/hex"
	"encoding/json/jsontext"
	"hash"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/groupcommit"
)

// firstPrevious stands where the first row has no predecessor.
var firstPrevious = strings.Repeat("0", 64)

// member is one member of a flat JSON object. An empty text is null: the log does not tell absent from empty.
type member struct {
	name, text string
	number     bool // text is a number, written bare
}

// chainHash is a hash, in lower-case hex, over the previous hash and the object in canonical form: keys sorted, no spaces, strings escaped no
// more than needed (RFC 8785). The members must come sorted by name and be valid UTF-8. Rows of today are hashed with a key; plain SHA-256 is
// for those of older versions. Source: docs/decisions/security.md, "Hash chain".
func chainHash(with hash.Hash, previous string, members []member) string {
	buffer := make([]byte, 0, 1024)
	buffer = append(buffer, previous...)
	for i, m := range members {
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
	entries *groupcommit.Group[datedEntry, struct{}]
}

type datedEntry struct {
	Entry
	now time.Time
}

// NewGroup returns a group.
func NewGroup(log *slog.Logger) *Group {
	return &Group{groupcommit.New(groupcommit.Options[datedEntry, struct{}]{Store: appendAll, Log: log})}
}

// Append records one entry durably, in a transaction with those of others. app must be in no transaction of its own.
func (g *Group) Append(app core.App, entry Entry, now time.Time) error {
	_, err := g.entries.Commit(app, datedEntry{entry, now})
	return err
}

func appendAll(app core.App, entries []*groupcommit.Item[datedEntry, struct{}]) error {
	return app.RunInTransaction(func(tx core.App) error {
		chain, err := NewChain(tx)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := chain.Add(e.In.Entry, e.In.now); err != nil {
				return err
			}
		}
		return chain.Store()
	})
}
