package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// NeverSent is the error code of a delivery that ended before any request, because its reading was entered in error. It is not a dead letter.
const NeverSent = "entered_in_error"

// OutcomeUnknown is the error code of a delivery that the EMR accepted and does not return. Only a
// person can requeue this dead letter.
const OutcomeUnknown = "outcome_unknown"

// deadLettered matches dead letters: failed, no retry scheduled, not waiting, not corrected by a person. The first conditions are those of the
// partial index.
const deadLettered = `status = 'failed' AND next_retry_at = '' AND error_code != '` + NeverSent + `' AND waits_for = '' AND correction_closed_at = ''`

func (f TransmissionFilter) conditions() Conditions {
	c := Conditions{}.Equal("status", f.Status).Equal("patient", f.PatientID).
		Between("COALESCE(NULLIF(last_attempted_at, ''), created_at)", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if f.ErrorCode != "" {
		c = c.Equal("error_code", f.ErrorCode).And("error_code != ''") // the condition of its partial index
	}
	if f.CorrectionDue {
		c = c.And(correctionDue)
	}
	switch {
	case f.DeadLetter == nil:
	case *f.DeadLetter:
		c = c.And(deadLettered)
	default:
		c = c.And("NOT (" + deadLettered + ")")
	}
	return c
}

// count returns the total. Totals by status are stored; "all except dead letters" subtracts the few dead letters.
func (f TransmissionFilter) count(app core.App) (int, error) {
	if f.DeadLetter != nil && !*f.DeadLetter {
		every, dead := f, f
		every.DeadLetter, dead.DeadLetter = nil, new(true)
		all, err := every.count(app)
		if err != nil {
			return 0, err
		}
		some, err := dead.count(app)
		return all - some, err
	}
	if f == (TransmissionFilter{Status: f.Status}) {
		return queryValue[int](app, "count transmissions", `SELECT COALESCE(SUM(transmissions), 0) FROM transmission_totals WHERE {:status} IN ('', status)`,
			dbx.Params{"status": f.Status})
	}
	return f.conditions().Count(app, Transmissions)
}

// Diagnostics is the EMR's own text about a rejection. It may name the patient.
func (t *Transmission) Diagnostics() string { return t.GetString("diagnostics") }

// IsDeadLetter reports whether the delivery is a dead letter.
func (t *Transmission) IsDeadLetter() bool {
	return t.Status() == FHIRFailed && t.NextRetryAt().IsZero() && t.ErrorCode() != NeverSent &&
		t.GetString("waits_for") == "" && t.CorrectionClosedAt().IsZero()
}

// DeadLetterFilter selects dead letters; zero values do not narrow.
type DeadLetterFilter struct {
	ErrorCode, PatientID string
	// From and To bound the last attempt, or the creation if there was none; both inclusive.
	From, To time.Time
}

// conditions are those of the list, without suspect readings, which must not be sent, without unknown outcomes, and without deleted patients.
func (f DeadLetterFilter) conditions() Conditions {
	return TransmissionFilter{DeadLetter: new(true), ErrorCode: f.ErrorCode, PatientID: f.PatientID, From: f.From, To: f.To}.conditions().
		And(notDeleted).And("error_code != '" + OutcomeUnknown + "'").
		And(notSuspect)
}

// notSuspect excludes suspect readings, which must not be sent.
const notSuspect = "NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = transmissions.observation AND o.status = 'suspect')"

// CountDeadLetters counts all dead letters, as their list does, from the index alone, because the health check runs it every ten seconds.
func CountDeadLetters(app core.App) (int, error) {
	return queryValue[int](app, "count dead letters", `SELECT COUNT(*) FROM transmissions WHERE `+deadLettered+` AND `+notDeleted, nil)
}

// CountRequeueable counts the dead letters that may be requeued.
func CountRequeueable(app core.App, f DeadLetterFilter) (int, error) {
	return f.conditions().Count(app, Transmissions)
}

// RequeueDeadLetters queues up to limit dead letters again, oldest first, each with a full retry budget, and returns their ids. Their EMR id
// and attempts are kept.
func RequeueDeadLetters(tx core.App, f DeadLetterFilter, limit int, now time.Time) (requeued []string, err error) {
	var found []struct {
		ID          string `db:"id"`
		Observation string `db:"observation"`
		Form        string `db:"form"`
	}
	err = tx.NonconcurrentDB().Select("id", "observation", "form").From(Transmissions).Where(AllOf(f.conditions())).
		OrderBy("created_at", "id").Limit(int64(limit)).All(&found)
	if err != nil || len(found) == 0 {
		return nil, wrap(err, "find dead letters")
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
		dbx.Params{"now": FormatInstant(now), "ids": jsonList(requeued)})
	if err == nil {
		err = exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now} WHERE id IN (SELECT value FROM json_each({:ids}))`,
			dbx.Params{"now": FormatInstant(now), "ids": jsonList(observations)})
	}
	return requeued, err
}

// RetryTransmission queues one failed delivery again, with a full retry budget; false if it is not failed, is not to be sent or waits for something.
func RetryTransmission(tx core.App, id string, now time.Time) (done bool, err error) {
	params := dbx.Params{"id": id, "now": FormatInstant(now)}
	n, err := execCounted(tx, "retry transmission", `UPDATE transmissions SET status = 'pending', attempt_count = 0, error_code = '', error_message = '',
		diagnostics = '', next_retry_at = '', updated_at = {:now} WHERE id = {:id} AND status = 'failed' AND waits_for = '' AND correction_closed_at = ''
			AND error_code NOT IN ('`+NeverSent+`', '`+OutcomeUnknown+`') AND `+notSuspect, params)
	if err != nil || n == 0 {
		return false, err
	}
	return true, exec(tx, "set FHIR status", `UPDATE observations SET fhir_status = 'pending', updated_at = {:now}
		WHERE id = (SELECT observation FROM transmissions WHERE id = {:id} AND form = '')`, params)
}

// ActiveTransmission is a delivery in progress or delivered.
type ActiveTransmission struct {
	ID     string `db:"id"`
	Status string `db:"status"`
}

// FindActiveTransmission finds the delivery of an observation in progress or delivered, if a user or client (not the system) caused an audit
// event of the observation since a time.
func FindActiveTransmission(app core.App, observationID, event string, since time.Time) (t ActiveTransmission, err error) {
	err = app.DB().NewQuery(`SELECT id, status FROM transmissions WHERE observation = {:observation} AND form = '' AND status IN ('processing', 'transmitted')
		AND EXISTS (SELECT 1 FROM audit_log WHERE resource_type = 'Observation' AND resource_id = {:observation} AND event = {:event}
			AND actor_type != 'system' AND recorded_at >= {:since})`).
		Bind(dbx.Params{"observation": observationID, "event": event, "since": FormatInstant(since)}).One(&t)
	return t, wrap(err, "find the delivery")
}
