package triage

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Relearn replaces what is known of a patient's latest readings, for when one of them no longer counts, and ranks the
// patient anew, inside the caller's transaction.
func Relearn(tx core.App, patientID string, latest Latest, now time.Time) error {
	raw, err := latest.encode()
	if err != nil {
		return fmt.Errorf("encode latest vitals: %w", err)
	}
	_, err = tx.DB().Update(collections.TriageScores, dbx.Params{"latest_vitals": string(raw)}, dbx.HashExp{"patient": patientID}).Execute()
	if err != nil {
		return fmt.Errorf("replace latest vitals: %w", err)
	}
	_, err = Rescore(tx, patientID, now)
	return err
}
