package collections

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ThresholdsRow is the stored bounds of one patient, or of the practice when Patient is empty.
type ThresholdsRow struct {
	ID        string `db:"id"`
	Patient   string `db:"patient"`
	Bounds    string `db:"bounds"` // JSON
	UpdatedAt string `db:"updated_at"`
	UpdatedBy string `db:"updated_by"`
}

// Changed is when the bounds were last changed; zero for the values of the first day.
func (r ThresholdsRow) Changed() time.Time { return ParseInstant(r.UpdatedAt) }

// FindThresholds returns the stored bounds of the practice and of a patient; a row without an id for none.
func FindThresholds(app core.App, patientID string) (practice, own ThresholdsRow, err error) {
	var rows []ThresholdsRow
	err = app.DB().Select("id", "patient", "COALESCE(bounds, '') AS bounds", "updated_at", "updated_by").From(Thresholds).
		Where(dbx.In("patient", "", patientID)).All(&rows)
	if err != nil {
		return practice, own, fmt.Errorf("find thresholds: %w", err)
	}
	for _, row := range rows {
		if row.Patient == "" {
			practice = row
		}
		if row.Patient == patientID {
			own = row
		}
	}
	return practice, own, nil
}

// StoreThresholds writes the bounds of a patient, or of the practice.
func StoreThresholds(tx core.App, row ThresholdsRow) error {
	return exec(tx, "store thresholds", `INSERT INTO thresholds (id, patient, bounds, updated_at, updated_by)
			VALUES ({:id}, {:patient}, {:bounds}, {:at}, {:by})
		ON CONFLICT (patient) DO UPDATE SET bounds = {:bounds}, updated_at = {:at}, updated_by = {:by}`, dbx.Params{"id": row.ID, "patient": row.Patient, "bounds": row.Bounds, "at": row.UpdatedAt, "by": row.UpdatedBy})
}
