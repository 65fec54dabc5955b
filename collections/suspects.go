package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Review says whether a stored reading is believed, and what depends on that.
type Review struct {
	Status, State, Reason, ConfirmedBy string
	ConfirmedAt                        time.Time
	FHIRStatus                         string
	FHIRVersion                        int
	TransformedAt                      time.Time
}

// SetReview stores what is thought of a reading.
func SetReview(tx core.App, id string, r Review, now time.Time) error {
	return update(tx, "store the review", Observations, dbx.Params{
		"status": r.Status, "review_state": r.State, "suspect_reason": r.Reason, "confirmed_by": r.ConfirmedBy, "confirmed_at": Instant(r.ConfirmedAt),
		"fhir_status": r.FHIRStatus, "fhir_version": r.FHIRVersion, "transformed_at": Instant(r.TransformedAt), "updated_at": Instant(now),
	}, dbx.HashExp{"id": id})
}

// AskedInRun reports whether an alert of the type was raised for another suspect reading of the same run: those of the patient and kind
// without one that holds measured in between.
func AskedInRun(app core.App, id, alertType string) (bool, error) {
	return queryValue[bool](app, "look for the question about a run", `SELECT EXISTS (
		SELECT 1 FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.id != o.id
		JOIN alerts a ON a.observation = other.id AND a.observation != '' AND a.type = {:type}
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
			AND held.status = 'final' AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at)))`,
		dbx.Params{"id": id, "type": alertType})
}

// SuspectFollows reports whether what was measured next of an observation's patient and kind is suspect.
func SuspectFollows(app core.App, patientID, kind, id string, at time.Time) (bool, error) {
	status, err := queryValue[string](app, "look for what was measured next", `SELECT status FROM observations
		WHERE patient = {:patient} AND observation_type = {:kind} AND measured_at >= {:at} AND id != {:id} AND status IN ('final', 'suspect')
		ORDER BY measured_at LIMIT 1`, dbx.Params{"patient": patientID, "kind": kind, "id": id, "at": Instant(at)})
	return status == "suspect", unlessMissing(err)
}

// UnaskedAround lists the suspect readings next to one that is decided, the oldest first: those of its patient and kind without one that holds
// measured in between, about which no alert of the type was raised. Those that are suspect for another reason are none of them.
func UnaskedAround(app core.App, id, alertType, otherReason string) ([]string, error) {
	return queryColumn[string](app, "list the suspect readings about which nobody is asked", `SELECT other.id
		FROM observations o JOIN observations other ON other.patient = o.patient AND other.observation_type = o.observation_type
			AND other.status = 'suspect' AND other.suspect_reason != {:reason} AND other.id != o.id
		WHERE o.id = {:id} AND NOT EXISTS (SELECT 1 FROM alerts a WHERE a.observation = other.id AND a.observation != '' AND a.type = {:type})
			AND NOT EXISTS (SELECT 1 FROM observations held WHERE held.patient = o.patient AND held.observation_type = o.observation_type
				AND held.status = 'final' AND held.id != o.id
				AND held.measured_at BETWEEN min(o.measured_at, other.measured_at) AND max(o.measured_at, other.measured_at))
		ORDER BY other.measured_at, other.id`,
		dbx.Params{"id": id, "type": alertType, "reason": otherReason})
}

// EndAlertsOfObservation gives the alerts of a type about a reading that are not over a status that ends them.
func EndAlertsOfObservation(tx core.App, observationID, alertType, status, by string, now time.Time) ([]EndedAlert, error) {
	return endAlerts(tx, `observation = {:observation} AND observation != '' AND type = {:type} AND status IN ('active', 'acknowledged')`,
		dbx.Params{"observation": observationID, "type": alertType}, status, by, now)
}
