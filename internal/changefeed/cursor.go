package changefeed

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

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
