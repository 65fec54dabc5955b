package changefeed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Cursor is a place in the order of commits: behind a row, which it knows by its number and by what the row says.
type Cursor struct {
	seq  int64
	mark uint64
}

// mark is what a row says, in short. A row with the same number in another database, or in what became of this one after a restore, was written at
// another moment or about something else; the first row of every database names it.
func mark(row collections.Change) uint64 {
	h := fnv.New64a()
	for _, text := range []string{row.Type, row.Record, row.Change, row.Event, row.Patient, row.At} {
		_, _ = h.Write(append([]byte(text), 0)) // a hash takes everything
	}
	return h.Sum64()
}

// cursorBytes are a number and a mark.
const cursorBytes = 16

// String is the cursor as readers keep it.
func (c Cursor) String() string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(c.seq)) //nolint:gosec // numbers count from one
	raw = binary.BigEndian.AppendUint64(raw, c.mark)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// InvalidCursor is the code of a cursor that leads nowhere.
const InvalidCursor = "invalid_cursor"

// What is wrong with a cursor. Whoever is told has to start anew: between what was read and what is there now, nobody can say what was missed.
var (
	errNoCursor = fault.New(fault.Invalid, InvalidCursor, "This is no cursor.")
	errForeign  = fault.New(fault.Invalid, InvalidCursor,
		"The cursor is not of this database, or what it saw was undone by restoring a backup. Take a new cursor with since=latest, then read the lists anew.")
	errGone = fault.New(fault.Invalid, InvalidCursor,
		"The cursor is older than the changes that are kept. Take a new cursor with since=latest, then read the lists anew.")
)

// Parse reads a cursor. Whether its row is there, [Reader.Read] says.
func Parse(text string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != cursorBytes {
		return Cursor{}, errNoCursor
	}
	c := Cursor{int64(binary.BigEndian.Uint64(raw[:8])), binary.BigEndian.Uint64(raw[8:])} //nolint:gosec // the same bits back
	if c.seq < 1 {
		return Cursor{}, errNoCursor
	}
	return c, nil
}

// stands checks that the row of a cursor is there. As long as it is, so is every row behind it: the oldest go first.
func (c Cursor) stands(app core.App) error {
	row, err := collections.ChangeAt(app, c.seq)
	switch {
	case err == nil && mark(row) == c.mark:
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
		return errGone
	}
	return errForeign
}
