package changes

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Cursor is a place in the order of commits: behind a row, which it knows by its number and by what is that row's alone.
type Cursor struct{ seq, nonce int64 }

// cursorBytes are a number and a nonce.
const cursorBytes = 16

// String is the cursor as readers keep it.
func (c Cursor) String() string {
	raw := binary.BigEndian.AppendUint64(nil, uint64(c.seq))
	raw = binary.BigEndian.AppendUint64(raw, uint64(c.nonce))
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
	c := Cursor{int64(binary.BigEndian.Uint64(raw[:8])), int64(binary.BigEndian.Uint64(raw[8:]))} //nolint:gosec // the same bits back
	if c.seq < 1 {
		return Cursor{}, errNoCursor
	}
	return c, nil
}

// stands checks that the row of a cursor is there. As long as it is, so is every row behind it: the oldest go first.
func (c Cursor) stands(app core.App) error {
	row, err := collections.ChangeAt(app, c.seq)
	switch {
	case err == nil && row.Nonce == c.nonce:
		return nil
	case err == nil:
		return errForeign
	case !collections.Missing(err):
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
