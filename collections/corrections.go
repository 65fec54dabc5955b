package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// correctionDue are the transmissions whose copy at the EMR a person is to correct, as their partial index has them.
const correctionDue = `correction_due_at != '' AND correction_closed_at = ''`

func (t *Transmission) CorrectionDueAt() time.Time    { return instantOf(t, "correction_due_at") }
func (t *Transmission) CorrectionClosedAt() time.Time { return instantOf(t, "correction_closed_at") }
func (t *Transmission) CorrectionClosedBy() string    { return t.GetString("correction_closed_by") }
func (t *Transmission) CorrectionNote() phi.Text {
	return phi.Text(TextOf(t.ProxyRecord(), "correction_note"))
}

// OpenCorrection makes a task for a person of the EMR's copy of something. One that is open stays as it is; one that somebody has closed is opened
// again only by a change that came after.
func OpenCorrection(tx core.App, id string, now time.Time) error {
	return exec(tx, "open correction", `UPDATE transmissions SET correction_due_at = {:now}, correction_closed_at = '', correction_closed_by = '',
			correction_note = '', updated_at = {:now}
		WHERE id = {:id} AND (correction_due_at = '' OR correction_closed_at != '' AND corrections > correction_closed_at_change)`,
		dbx.Params{"id": id, "now": Instant(now)})
}

// DropCorrection ends the task that the EMR's copy was: it says what it is to say.
func DropCorrection(tx core.App, id string) error {
	return exec(tx, "drop correction", `UPDATE transmissions SET correction_due_at = '', correction_closed_at = '', correction_closed_by = '',
		correction_note = '' WHERE id = {:id} AND correction_due_at != ''`, dbx.Params{"id": id})
}

// CloseCorrection notes that somebody has seen to the EMR's copy; not closed where nothing was open.
func CloseCorrection(tx core.App, id, by string, note phi.Text, now time.Time) (closed bool, err error) {
	sealed, err := Seal(note.Reveal(), "transmissions.correction_note", id)
	if err != nil {
		return false, fmt.Errorf("seal note: %w", err)
	}
	n, err := change(tx, "close correction", `UPDATE transmissions SET correction_closed_at = {:now}, correction_closed_by = {:by}, correction_note = {:note},
		correction_closed_at_change = corrections, updated_at = {:now} WHERE id = {:id} AND `+correctionDue,
		dbx.Params{"id": id, "by": by, "note": sealed, "now": Instant(now)})
	return n > 0, err
}

// CorrectionsDue counts the copies at the EMR that a person is to correct, as their list does.
func CorrectionsDue(app core.App) (int, error) {
	return queryValue[int](app, "count corrections", `SELECT COUNT(*) FROM transmissions WHERE `+correctionDue+` AND `+notDeleted, nil)
}
