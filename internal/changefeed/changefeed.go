// Package changefeed reads the committed changes in commit order and keeps cursors into them. Triggers on the tables record each change in the
// transaction that makes it, so no write can bypass them. Change numbers are assigned under the single write lock, so a reader that has read up to a
// number has missed none before it.
// A change only identifies a resource. The package does not render resources and does not check who may read them.
// Source: docs/decisions/changes.md, "Triggers".
package changefeed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Change is the creation, update or deletion of a resource.
type Change struct {
	Seq    int64
	Type   string // one of [Types]
	Record string // the id in the API
	Kind   string // created, updated or deleted
	Event  string // the webhook event; "" for none
	// Patient is the patient concerned; "" for none.
	Patient string
	At      time.Time

	fingerprint uint64 // of the stored row
}

// ID returns the id as the API encodes it: a number for numbered resources.
func (c Change) ID() any {
	if number, err := strconv.ParseInt(c.Record, 10, 64); err == nil && collections.NumberedChange(c.Type) {
		return number
	}
	return c.Record
}

// Cursor returns the position after this change.
func (c Change) Cursor() Cursor { return Cursor{c.Seq, c.fingerprint} }

func newChange(row collections.Change) Change {
	return Change{
		Seq: row.Seq, Type: row.Type, Record: row.Record, Kind: row.Change, Event: row.Event, Patient: row.Patient, At: collections.ParseInstant(row.At), fingerprint: fingerprint(row),
	}
}

// Types lists all resource types in order.
func Types() []string { return slices.Clone(types) }

var types = collections.ChangeTypes()

// After returns at most limit changes after a position, in commit order. If types is not nil, only changes of these types are returned.
func After(app core.App, seq int64, types []string, limit int) ([]Change, error) {
	rows, err := collections.ChangesAfter(app, seq, collections.ChangeFilter{Types: types}, limit)
	return newChanges(rows), err
}

// LastSeq returns the number of the newest change, a position to start from. It is 1 before the first change.
func LastSeq(app core.App) (int64, error) {
	row, err := collections.LastChange(app)
	return row.Seq, err
}

func newChanges(rows []collections.Change) []Change {
	found := make([]Change, len(rows))
	for i, row := range rows {
		found[i] = newChange(row)
	}
	return found
}

// Cursor is a position in commit order: after the row with a number and a fingerprint.
type Cursor struct {
	seq         int64
	fingerprint uint64
}

// fingerprint returns a hash of a row. It detects a cursor from another database, or from before a restore: a row with the same number has another
// time or resource there. The first row of every database names the database.
func fingerprint(row collections.Change) uint64 {
	h := fnv.New64a()
	for _, text := range []string{row.Type, row.Record, row.Change, row.Event, row.Patient, row.At} {
		_, _ = h.Write(append([]byte(text), 0)) // a hash never fails
	}
	return h.Sum64()
}

// cursorBytes is the size of a number and a fingerprint.
const cursorBytes = 16

// String returns the cursor in the form that readers store.
func (c Cursor) String() string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(c.seq)) //nolint:gosec // numbers count from one
	raw = binary.BigEndian.AppendUint64(raw, c.fingerprint)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// InvalidCursor is the error code of a cursor that cannot be used.
const InvalidCursor = "invalid_cursor"

// Errors of a cursor. The reader has to start again from the lists, because the changes it missed cannot be determined.
var (
	errMalformed = fault.New(fault.Invalid, InvalidCursor, "The cursor is malformed. Send a cursor exactly as this API returned it.")
	errForeign   = fault.New(fault.Invalid, InvalidCursor,
		"The cursor belongs to another database, or a restored backup has undone the changes it points to. Request a new cursor with since=latest, then read the lists again.")
	errExpired = fault.New(fault.Invalid, InvalidCursor,
		"The cursor is older than the changes that are kept. Request a new cursor with since=latest, then read the lists again.")
)

// Parse decodes a cursor. [Reader.Read] checks that its row exists.
func Parse(text string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != cursorBytes {
		return Cursor{}, errMalformed
	}
	c := Cursor{int64(binary.BigEndian.Uint64(raw[:8])), binary.BigEndian.Uint64(raw[8:])} //nolint:gosec // restores the bits of String
	if c.seq < 1 {
		return Cursor{}, errMalformed
	}
	return c, nil
}

// verify checks that the row of a cursor exists unchanged. If it does, so do all later rows, because the oldest are deleted first.
func (c Cursor) verify(app core.App) error {
	row, err := collections.ChangeAt(app, c.seq)
	switch {
	case err == nil && fingerprint(row) == c.fingerprint:
		return nil
	case err == nil:
		return errForeign
	case !collections.IsNotFound(err):
		return err
	}
	first, err := collections.FirstChange(app)
	if err != nil {
		return err
	}
	if c.seq < first.Seq {
		return errExpired
	}
	return errForeign
}

// maxScanned bounds how many changes one page scans, so that a rare type costs no more than a frequent one.
const maxScanned = 20_000

// Reader selects the changes that a caller reads.
type Reader struct {
	Types []string // an empty list selects nothing
	// Team restricts the changes to the patients of a user (record id); "" does not restrict them.
	Team  string
	Limit int
}

// Page holds the changes after a position. It may hold fewer than the limit, or none, although More is true, if the scanned changes were of other
// types.
type Page struct {
	Changes []Change
	Next    Cursor
	More    bool
}

// Oldest returns the position before the oldest kept change.
func Oldest() Cursor { return Cursor{} }

// Latest returns the position after the newest committed change.
func Latest(app core.App) (Cursor, error) {
	row, err := collections.LastChange(app)
	return newChange(row).Cursor(), err
}

// Read returns the page after a position. The end is determined first, so changes committed during the read are on the next page. The cursor is
// verified last, so a deletion during the read cannot cause an unnoticed gap.
func (r Reader) Read(app core.App, from Cursor) (Page, error) {
	page, err := r.read(app, from)
	if err == nil && from != Oldest() {
		err = from.verify(app)
	}
	return page, err
}

func (r Reader) read(app core.App, from Cursor) (Page, error) {
	last, err := Latest(app)
	if err != nil {
		return Page{}, err
	}
	if from == Oldest() {
		first, err := collections.FirstChange(app)
		if err != nil {
			return Page{}, err
		}
		from.seq = first.Seq - 1
	}
	end := last
	if last.seq-from.seq > maxScanned {
		row, err := collections.ChangeUpTo(app, from.seq+maxScanned)
		if err != nil {
			return Page{}, err
		}
		end = newChange(row).Cursor()
	}
	filter := collections.ChangeFilter{Types: r.Types, Team: r.Team, UpTo: end.seq}
	rows, err := collections.ChangesAfter(app, from.seq, filter, r.Limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Changes: newChanges(rows[:min(len(rows), r.Limit)]), Next: end, More: end != last}
	if len(rows) > r.Limit {
		page.Next, page.More = page.Changes[r.Limit-1].Cursor(), true
	}
	return page, nil
}
