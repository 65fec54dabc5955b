package transmissions

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// codeWithdrawn is the error code of what will not be delivered because the reading was entered in error.
const codeWithdrawn = "entered_in_error"

// Withdraw ends the delivery of an observation that was entered in error, inside the caller's transaction: what has not
// left yet never leaves. reached says that the EMR has a copy, or may have one; to correct that is a person's task.
// Source: docs/decisions/observations.md, "Wrongly entered reading".
func Withdraw(tx core.App, observationID string, now time.Time) (reached bool, err error) {
	row := struct {
		Status    string `db:"status"`
		Ambiguous bool   `db:"ambiguous"`
	}{}
	err = tx.DB().NewQuery(`SELECT status, ambiguous FROM transmissions WHERE observation = {:id}`).
		Bind(dbx.Params{"id": observationID}).One(&row)
	if collections.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find transmission: %w", err)
	}
	if row.Status == collections.FHIRTransmitted || row.Status == collections.FHIRProcessing {
		return true, nil // done, or under way: its end is stored as always
	}
	at := collections.Instant(now)
	_, err = tx.DB().Update(collections.Transmissions, dbx.Params{
		"status": collections.FHIRFailed, "next_retry_at": "", "error_code": codeWithdrawn,
		"error_message": "Not sent: the reading was entered in error", "updated_at": at,
	}, dbx.HashExp{"observation": observationID}).Execute()
	if err != nil {
		return false, fmt.Errorf("withdraw transmission: %w", err)
	}
	return row.Ambiguous, collections.SetFHIRStatus(tx, observationID, collections.FHIRFailed, "", at)
}
