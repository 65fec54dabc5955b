package dashboard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// signatureSize is enough of an HMAC-SHA-256 for a cursor, which opens nothing by itself.
const signatureSize = 16

// cursor is the place after an entry of the feed: its time and its id, signed, so that nobody makes up places.
func (b *Board) cursor(at, id string) string {
	place := at + " " + id
	return base64.RawURLEncoding.EncodeToString(append(b.sign(place), place...))
}

// readCursor returns the id of the entry that a cursor is after, or the fault invalid_cursor.
func (b *Board) readCursor(text string) (id string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) <= signatureSize {
		return "", invalidCursor()
	}
	place := string(raw[signatureSize:])
	_, id, found := strings.Cut(place, " ")
	if !hmac.Equal(raw[:signatureSize], b.sign(place)) || !found || collections.Number(id) == 0 {
		return "", invalidCursor()
	}
	return id, nil
}

func (b *Board) sign(place string) []byte {
	mac := hmac.New(sha256.New, b.CursorKey)
	mac.Write([]byte("feed " + place))
	return mac.Sum(nil)[:signatureSize]
}

func invalidCursor() *fault.Error {
	return fault.New(fault.Invalid, "invalid_cursor", "The cursor is not one of this feed.")
}
