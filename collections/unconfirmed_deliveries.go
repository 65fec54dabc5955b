package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// unconfirmed matches dead letters that the EMR may have received.
const unconfirmed = `status = 'failed' AND next_retry_at = '' AND error_code != 'entered_in_error' AND ambiguous`

// UnconfirmedTransmission is a dead letter that the EMR may have received.
type UnconfirmedTransmission struct {
	LeasedTransmission
	LastAttemptedAt string `db:"last_attempted_at"`
	// UpdatedAt identifies this state of the record.
	UpdatedAt string `db:"updated_at"`
}

// UnconfirmedTransmissions returns up to limit unconfirmed deliveries, least recently reconciled first.
func UnconfirmedTransmissions(app core.App, limit int) ([]UnconfirmedTransmission, error) {
	return queryAll[UnconfirmedTransmission](app, "find unconfirmed transmissions", `SELECT `+leasedColumns+`, last_attempted_at, updated_at
		FROM transmissions WHERE `+unconfirmed+` ORDER BY updated_at LIMIT +{:limit}`, dbx.Params{"limit": limit})
}

// ReconcileResult is the result of querying the EMR for an unconfirmed delivery. The zero value records only the query.
type ReconcileResult struct {
	Status   string // "" keeps failed
	Resolved bool   // the outcome is certain
	// ErrorCode and ErrorMessage replace the stored ones unless "".
	ErrorCode, ErrorMessage string
	EMRID, SentHash         string // "" keeps the stored value
}

// NeedsNoCorrection: the EMR's copy is correct, or there is none.
func (r ReconcileResult) NeedsNoCorrection() bool {
	return r.Status == FHIRTransmitted || r.ErrorCode == NeverSent
}

// StoreReconcileResult stores the result; held is false if the record was changed in between.
func StoreReconcileResult(tx core.App, d UnconfirmedTransmission, c ReconcileResult, now time.Time) (held bool, err error) {
	n, err := updateCounted(tx, "store reconcile result", Transmissions, reconcileColumns(c, now),
		dbx.NewExp("id = {:id} AND updated_at = {:seen} AND "+unconfirmed, dbx.Params{"id": d.ID, "seen": d.UpdatedAt}))
	if err != nil || n == 0 || c.Status == "" || d.Form != FormReading {
		return n > 0, err
	}
	return true, SetFHIRStatus(tx, d.ObservationID, c.Status, c.EMRID, FormatInstant(now))
}

func reconcileColumns(c ReconcileResult, now time.Time) dbx.Params {
	set := dbx.Params{"updated_at": FormatInstant(now)}
	if c.Resolved {
		set["ambiguous"] = false
	}
	if c.Status != "" {
		set["status"], set["waits_for"], set["error_code"], set["error_message"], set["diagnostics"] = c.Status, "", "", "", ""
	}
	for column, value := range map[string]string{
		"error_code": c.ErrorCode, "error_message": c.ErrorMessage, "emr_resource_id": c.EMRID, "sent_hash": c.SentHash,
	} {
		if value != "" {
			set[column] = value
		}
	}
	return set
}
