package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

const (
	rescorePage  = 500 // patients read with one statement
	rescoreBatch = 25  // rows written in one transaction, so that no reading waits long for it
)

// Rescore reads a patient's picture anew and stores where the patient ranks; every cause but a reading leads here, through
// internal/triage.
func Rescore(tx core.App, patientID string, now time.Time) (Place, error) {
	picture, err := ReadPicture(tx, patientID, nil, now)
	if err != nil {
		return Place{}, err
	}
	place := picture.Place(now)
	if err := SavePlace(tx, patientID, place, now); err != nil {
		return place, err
	}
	return place, collections.CountListVersion(tx)
}

// RescoreAll catches up with what time alone changes, and with new defaults: readings and alerts grow old, reviews lie
// further back. It looks at every listed patient and writes the rows whose score, level or need of review differs; changed
// is told the patients of each batch after its commit.
func RescoreAll(ctx context.Context, app core.App, now time.Time, changed func(patientIDs []string)) (seen, written int, err error) {
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return seen, written, err
		}
		page, err := picturesAfter(app, after, now)
		if err != nil || len(page) == 0 {
			return seen, written, err
		}
		after = page[len(page)-1].PatientID
		seen += len(page)
		var differ []string
		for i := range page {
			if !page[i].stored.holds(page[i].Place(now)) {
				differ = append(differ, page[i].PatientID)
			}
		}
		for batch := range slices.Chunk(differ, rescoreBatch) {
			if err := ctx.Err(); err != nil {
				return seen, written, err
			}
			if err := rescoreTogether(app, batch, now); err != nil {
				return seen, written, err
			}
			written += len(batch)
			changed(batch)
		}
	}
}

// RescoreOutdated does the same once after an update of the program whose scores are made otherwise, and nothing at any other time.
func RescoreOutdated(ctx context.Context, app core.App, now time.Time, changed func(patientIDs []string)) error {
	outdated, err := collections.TriageOutdated(app)
	if err != nil || !outdated {
		return err
	}
	if _, _, err := RescoreAll(ctx, app, now, changed); err != nil {
		return err
	}
	return collections.SetTriageScored(app, now)
}

func (s shown) holds(now Place) bool {
	return s.score == now.Score.Value && s.level == string(now.Score.Level) && s.needsReview == now.NeedsReview && s.needsBounds == now.NeedsThresholds
}

// picturesAfter reads the pictures of the next page of listed patients, along the index of patients: the plus keeps SQLite from
// gathering and sorting everyone who is listed.
func picturesAfter(app core.App, patient string, now time.Time) ([]Picture, error) {
	page, err := readPictures(app, "t.patient > {:after} AND +t.listed = TRUE ORDER BY t.patient LIMIT +{:limit}",
		dbx.Params{"after": patient, "limit": rescorePage}, now)
	if err != nil {
		return nil, err
	}
	return page, loadWeighings(app, page, nil, now)
}

// rescoreTogether reads again inside the transaction: a reading may have come in between.
func rescoreTogether(app core.App, patients []string, now time.Time) error {
	list, err := json.Marshal(patients)
	if err != nil {
		return fmt.Errorf("list patients to rescore: %w", err)
	}
	return app.RunInTransaction(func(tx core.App) error {
		tx = collections.Prepared(tx)
		pictures, err := readPictures(tx, "t.patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": string(list)}, now)
		if err != nil {
			return err
		}
		if err := loadWeighings(tx, pictures, nil, now); err != nil {
			return err
		}
		for _, picture := range pictures {
			if err := SavePlace(tx, picture.PatientID, picture.Place(now), now); err != nil {
				return err
			}
		}
		return collections.CountListVersion(tx)
	})
}
