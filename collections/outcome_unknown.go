package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// StatedPresent takes the place of the hash of what was sent if a person stated that the EMR has the reading. Its id is unknown, so a correction
// has to find it first.
const StatedPresent = "stated present"

// ResolveTransmission resolves an unknown outcome. With present the delivery becomes transmitted;
// otherwise it is queued with all retries and without a search. A waiting correction is then due.
// done is false if the outcome was not unknown.
func ResolveTransmission(tx core.App, id string, present bool, now time.Time) (done bool, err error) {
	status := FHIRPending
	if present {
		status = FHIRTransmitted
	}
	var settled struct {
		Observation string `db:"observation"`
		Form        string `db:"form"`
	}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE transmissions SET status = CASE WHEN {:present} AND corrections > 0 THEN 'pending' ELSE {:status} END, error_code = '', error_message = '', diagnostics = '',
			next_retry_at = '', ambiguous = FALSE, sent_hash = CASE WHEN {:present} THEN '` + StatedPresent + `' ELSE '' END, waits_for_line = FALSE, updated_at = {:now},
			attempt_count = CASE WHEN {:present} THEN attempt_count ELSE 0 END
		WHERE id = {:id} AND status = 'failed' AND error_code = '` + OutcomeUnknown + `'
		RETURNING observation, form`).Bind(dbx.Params{"id": id, "status": status, "present": present, "now": FormatInstant(now)}).One(&settled)
	if IsNotFound(err) {
		return false, nil
	}
	if err != nil || settled.Form != FormReading {
		return err == nil, wrap(err, "resolve transmission")
	}
	return true, SetFHIRStatus(tx, settled.Observation, status, "", FormatInstant(now))
}

// HasUnknownOutcome reports whether a delivery of the observation waits until a person states whether the EMR has it.
func HasUnknownOutcome(app core.App, observationID string) (bool, error) {
	return queryValue[bool](app, "find an unknown outcome", `SELECT EXISTS (SELECT 1 FROM transmissions
		WHERE observation = {:observation} AND error_code = '`+OutcomeUnknown+`' AND status != 'transmitted')`, dbx.Params{"observation": observationID})
}
