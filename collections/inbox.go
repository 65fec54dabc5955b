package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RequestedReadings returns the kinds of readings that messages to a patient requested since a time, each once; [AnyKind] may be among them.
func RequestedReadings(app core.App, patientID string, since time.Time) ([]string, error) {
	return queryColumn[string](app, "find requests for readings", `SELECT DISTINCT requested_kind FROM messages
		WHERE patient = {:patient} AND created_at >= {:since} AND direction = 'out' AND requested_kind != '' AND state NOT IN ('queued', 'suppressed') ORDER BY requested_kind`,
		dbx.Params{"patient": patientID, "since": FormatInstant(since)})
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

// MarkHandled records that no person needs to read a text.
func MarkHandled(tx core.App, id string, now time.Time) error {
	_, err := markRead(tx, "system", now, dbx.HashExp{"id": id})
	return err
}

// MarkTextsRead records who dealt with a text and, if it is of a patient, with the patient's earlier ones. It returns how many were not read.
func MarkTextsRead(tx core.App, m *Message, by string, now time.Time) (int64, error) {
	if m.PatientID() == "" {
		return markRead(tx, by, now, dbx.HashExp{"id": m.Id})
	}
	return markRead(tx, by, now, dbx.And(dbx.HashExp{"patient": m.PatientID()},
		dbx.NewExp(`created_at <= {:until}`, dbx.Params{"until": m.GetString("created_at")})))
}

func markRead(tx core.App, by string, now time.Time, which dbx.Expression) (int64, error) {
	return updateCounted(tx, "mark texts as read", Messages, dbx.Params{"read_at": FormatInstant(now), "read_by": by, "updated_at": FormatInstant(now)},
		dbx.And(which, dbx.HashExp{"direction": MessageIn, "read_at": ""}))
}
