package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// onCallID is the id of the only row, the practice's rota.
const onCallID = "practiceoncall0"

// OnCallRow is the stored rota of the practice.
type OnCallRow struct {
	TimeZone  string `db:"time_zone"`
	Shifts    string `db:"shifts"`    // JSON
	Overrides string `db:"overrides"` // JSON
	UpdatedAt string `db:"updated_at"`
	UpdatedBy string `db:"updated_by"`
}

// Changed returns when the rota was last changed.
func (r OnCallRow) Changed() time.Time { return ParseInstant(r.UpdatedAt) }

// FindOnCall returns the rota, or an empty row.
func FindOnCall(app core.App) (OnCallRow, error) {
	rows, err := queryAll[OnCallRow](app, "find the rota", `SELECT time_zone, COALESCE(shifts, '[]') AS shifts, COALESCE(overrides, '[]') AS overrides,
		updated_at, updated_by FROM on_call_rota WHERE id = {:id}`, dbx.Params{"id": onCallID})
	if err != nil || len(rows) == 0 {
		return OnCallRow{}, err
	}
	return rows[0], nil
}

// StoreOnCall replaces the rota.
func StoreOnCall(tx core.App, row OnCallRow) error {
	return exec(tx, "store the rota", `INSERT INTO on_call_rota (id, time_zone, shifts, overrides, updated_at, updated_by)
			VALUES ({:id}, {:zone}, {:shifts}, {:overrides}, {:at}, {:by})
		ON CONFLICT (id) DO UPDATE SET time_zone = {:zone}, shifts = {:shifts}, overrides = {:overrides}, updated_at = {:at}, updated_by = {:by}`,
		dbx.Params{"id": onCallID, "zone": row.TimeZone, "shifts": row.Shifts, "overrides": row.Overrides, "at": row.UpdatedAt, "by": row.UpdatedBy})
}
