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
	rescorePage  = 500 // patients per statement
	rescoreBatch = 25  // rows per transaction, to keep readings from waiting
)

// RescoreAll updates what changes with time or with new defaults: readings and alerts age, reviews fall due. It checks every listed patient
// and writes the rows with a different score, level or need of review. changed gets the patients of each batch after its commit.
func RescoreAll(ctx context.Context, app core.App, now time.Time, changed func(patientIDs []string)) (seen, written int, err error) {
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return seen, written, err
		}
		page, err := snapshotsAfter(app, after, now)
		if err != nil || len(page) == 0 {
			return seen, written, err
		}
		after = page[len(page)-1].PatientID
		seen += len(page)
		var differ []string
		for i := range page {
			if !page[i].stored.equals(page[i].ComputeRow(now)) {
				differ = append(differ, page[i].PatientID)
			}
		}
		for batch := range slices.Chunk(differ, rescoreBatch) {
			if err := ctx.Err(); err != nil {
				return seen, written, err
			}
			if err := rescoreBatchOf(app, batch, now); err != nil {
				return seen, written, err
			}
			written += len(batch)
			changed(batch)
		}
	}
}

// RescoreOutdated rescores all patients once after an update that changed the formula; otherwise it does nothing.
func RescoreOutdated(ctx context.Context, app core.App, now time.Time, changed func(patientIDs []string)) error {
	outdated, err := collections.HasOutdatedScores(app)
	if err != nil || !outdated {
		return err
	}
	if _, _, err := RescoreAll(ctx, app, now, changed); err != nil {
		return err
	}
	return collections.SetTriageScored(app, now)
}

func (s storedRank) equals(now ComputedRow) bool {
	return s.score == now.Score.Value && s.level == string(now.Score.Level) && s.needsReview == now.NeedsReview && s.needsBounds == now.NeedsThresholds &&
		s.provisional == now.Provisional
}

// snapshotsAfter reads the next page of listed patients along the patient index; the plus keeps SQLite from sorting all listed patients.
func snapshotsAfter(app core.App, patient string, now time.Time) ([]PatientSnapshot, error) {
	page, err := readSnapshots(app, "t.patient > {:after} AND +t.listed = TRUE ORDER BY t.patient LIMIT +{:limit}",
		dbx.Params{"after": patient, "limit": rescorePage}, now)
	if err != nil {
		return nil, err
	}
	return page, loadBaseline(app, page, nil, now)
}

// rescoreBatchOf reads again inside the transaction, since a reading may have arrived in between.
func rescoreBatchOf(app core.App, patients []string, now time.Time) error {
	list, err := json.Marshal(patients)
	if err != nil {
		return fmt.Errorf("list patients to rescore: %w", err)
	}
	return app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		snapshots, err := readSnapshots(tx, "t.patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": string(list)}, now)
		if err != nil {
			return err
		}
		if err := loadBaseline(tx, snapshots, nil, now); err != nil {
			return err
		}
		for _, snapshot := range snapshots {
			if err := SaveRow(tx, snapshot.PatientID, snapshot.ComputeRow(now), now); err != nil {
				return err
			}
		}
		return collections.BumpListVersion(tx)
	})
}
