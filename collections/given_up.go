package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// NeverSent is the error code of a delivery that ended before anything left, because its reading was entered in error: nobody gave it up.
const NeverSent = "entered_in_error"

// givenUp are the deliveries that are not tried again by themselves, but for those that wait for something else and copies that a person has corrected. What
// their partial index wants to hear comes first.
const givenUp = `status = 'failed' AND next_retry_at = '' AND error_code != '` + NeverSent + `' AND waits_for = '' AND correction_closed_at = ''`

func (f TransmissionFilter) conditions() Conditions {
	c := Conditions{}.Equal("status", f.Status).Equal("patient", f.PatientID).
		Between("COALESCE(NULLIF(last_attempted_at, ''), created_at)", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if f.ErrorCode != "" {
		c = c.Equal("error_code", f.ErrorCode).And("error_code != ''") // what its partial index wants to hear
	}
	if f.CorrectionDue {
		c = c.And(correctionDue)
	}
	switch {
	case f.GivenUp == nil:
	case *f.GivenUp:
		c = c.And(givenUp)
	default:
		c = c.And("NOT (" + givenUp + ")")
	}
	return c
}

// count is how many there are. Where only a status is asked for, or nothing, it is kept; all but those given up are the few fewer.
func (f TransmissionFilter) count(app core.App) (int, error) {
	if f.GivenUp != nil && !*f.GivenUp {
		every, given := f, f
		every.GivenUp, given.GivenUp = nil, new(true)
		all, err := every.count(app)
		if err != nil {
			return 0, err
		}
		some, err := given.count(app)
		return all - some, err
	}
	if f == (TransmissionFilter{Status: f.Status}) {
		return queryValue[int](app, "count transmissions", `SELECT COALESCE(SUM(transmissions), 0) FROM transmission_totals WHERE {:status} IN ('', status)`,
			dbx.Params{"status": f.Status})
	}
	return f.conditions().Count(app, Transmissions)
}

// Diagnostics are the EMR's own words about why it refused; they may name the patient.
func (t *Transmission) Diagnostics() string { return t.GetString("diagnostics") }

// GivenUp reports whether the delivery is not tried again by itself.
func (t *Transmission) GivenUp() bool {
	return t.Status() == FHIRFailed && t.NextRetryAt().IsZero() && t.ErrorCode() != NeverSent &&
		t.GetString("waits_for") == "" && t.CorrectionClosedAt().IsZero()
}

// GivenUpFilter says which of the deliveries that were given up; zero values do not narrow.
type GivenUpFilter struct {
	ErrorCode, PatientID string
	// From and To bound the last attempt, else the creation; both inclusive.
	From, To time.Time
}

// conditions are those of the list, and that nobody has to doubt whose the reading is: such a one is not for the EMR. What belongs to deleted
// patients is in no list, and stays as it is.
func (f GivenUpFilter) conditions() Conditions {
	return TransmissionFilter{GivenUp: new(true), ErrorCode: f.ErrorCode, PatientID: f.PatientID, From: f.From, To: f.To}.conditions().
		And(notDeleted).
		And("NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = transmissions.observation AND o.status = 'suspect')")
}

// AllGivenUp counts the deliveries that were given up, of all days, as their list does: by their index alone, since health asks every ten seconds.
func AllGivenUp(app core.App) (int, error) {
	return queryValue[int](app, "count what was given up", `SELECT COUNT(*) FROM transmissions WHERE `+givenUp+` AND `+notDeleted, nil)
}

// CountGivenUp counts the deliveries that were given up and that may be queued again.
func CountGivenUp(app core.App, f GivenUpFilter) (int, error) {
	return f.conditions().Count(app, Transmissions)
}

// RequeueGivenUp makes pending again up to limit of the deliveries that were given up, the oldest first, each with all its retries before it, and
// returns their numbers. What is known of the EMR's copy stays, and so does the ledger.
func RequeueGivenUp(tx core.App, f GivenUpFilter, limit int, now time.Time) (requeued []string, err error) {
	var found []struct {
		ID          string `db:"id"`
		Observation string `db:"observation"`
		Form        string `db:"form"`
	}
	err = tx.NonconcurrentDB().Select("id", "observation", "form").From(Transmissions).Where(Every(f.conditions())).
		OrderBy("created_at", "id").Limit(int64(limit)).All(&found)
	if err != nil || len(found) == 0 {
		return nil, wrap(err, "find what was given up")
	}
	var observations []string
	for _, t := range found {
		requeued = append(requeued, t.ID)
		if t.Form == FormReading {
			observations = append(observations, t.Observation)
		}
	}
	err = exec(tx, "queue transmissions again", `UPDATE transmissions SET status = 'pending', attempt_count = 0, error_code = '', error_message = '',
			diagnostics = '', next_retry_at = '', updated_at = {:now} WHERE id IN (SELECT value FROM json_each({:ids}))`,
		dbx.Params{"now": Instant(now), "ids": jsonList(requeued)})
	if err == nil {
		err = exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now} WHERE id IN (SELECT value FROM json_each({:ids}))`,
			dbx.Params{"now": Instant(now), "ids": jsonList(observations)})
	}
	return requeued, err
}

// TakenTransmission is one that a worker has taken, or has delivered.
type TakenTransmission struct {
	ID     string `db:"id"`
	Status string `db:"status"`
}

// FindTaken finds the transmission of an observation that is under way or delivered, if somebody has made an event of the audit trail of the
// observation since a time; the service itself is nobody.
func FindTaken(app core.App, observationID, event string, since time.Time) (t TakenTransmission, err error) {
	err = app.DB().NewQuery(`SELECT id, status FROM transmissions WHERE observation = {:observation} AND form = '' AND status IN ('processing', 'transmitted')
		AND EXISTS (SELECT 1 FROM audit_log WHERE resource_type = 'Observation' AND resource_id = {:observation} AND event = {:event}
			AND actor_type != 'system' AND recorded_at >= {:since})`).
		Bind(dbx.Params{"observation": observationID, "event": event, "since": Instant(since)}).One(&t)
	return t, wrap(err, "find the delivery")
}
