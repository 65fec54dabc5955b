package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AskedReadings returns the kinds of readings that messages to a patient requested since a time, each once.
func AskedReadings(app core.App, patientID string, since time.Time) ([]string, error) {
	return queryColumn[string](app, "find requests for readings", `SELECT DISTINCT asks FROM messages
		WHERE patient = {:patient} AND created_at >= {:since} AND direction = 'out' AND asks != '' AND state NOT IN ('queued', 'suppressed') ORDER BY asks`,
		dbx.Params{"patient": patientID, "since": Instant(since)})
}

// unmatched selects the texts of no or several patients.
const unmatched = `patient = '' AND direction = 'in'`

// PageOfUnmatchedTexts returns a page of the texts from numbers of no patient or of several, newest first, and the total. isOpen selects those
// that no one has dealt with.
func PageOfUnmatchedTexts(app core.App, isOpen bool, offset, limit int) ([]*Message, int, error) {
	where := dbx.And(dbx.NewExp(unmatched), dbx.NewExp(`read_at = ''`))
	if !isOpen {
		where = dbx.And(dbx.NewExp(unmatched), dbx.NewExp(`read_at != ''`))
	}
	return pageOf[Message](app, Messages, where, []string{"created_at DESC", "id DESC"}, offset, limit)
}

// MarkMessageRead records who dealt with a text; a second time changes nothing.
func MarkMessageRead(tx core.App, id, by string, now time.Time) error {
	_, err := updateCounted(tx, "mark a message as read", Messages, dbx.Params{"read_at": Instant(now), "read_by": by, "updated_at": Instant(now)},
		dbx.HashExp{"id": id, "read_at": ""})
	return err
}
