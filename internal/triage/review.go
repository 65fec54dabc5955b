package triage

import (
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// undoReviewWithin limits how long a review can be undone. Source: docs/decisions/triage.md, "Reviews".
const undoReviewWithin = time.Minute

// Review stores that a clinician has reviewed the patient, with optional notes, sealed in the audit trail.
// Source: docs/decisions/triage.md, "Reviews".
func Review(app core.App, patientID string, notes phi.Text, by audit.Actor, now time.Time) error {
	return UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		before, err := lastReview(tx, patientID)
		if err != nil {
			return "", err
		}
		if err := collections.SetReviewed(tx, patientID, by.Email, now); err != nil {
			return "", err
		}
		changes := audit.Changes{}
		changes.Record(alerts.ChangedReview, before, reviewText(now, by.Email))
		return patientID, appendReview(tx, audit.TriageReview, patientID, notes, changes, by, now)
	})
}

// UndoReview reverses the patient's last review, in the state before it. Only its reviewer can, within a minute, and only if the patient was
// not reviewed since, by an action on an alert or an escalation either.
func UndoReview(app core.App, patientID string, by audit.Actor, now time.Time) error {
	return UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		current, err := lastReview(tx, patientID)
		if err != nil {
			return "", err
		}
		last, _, err := audit.List(tx, audit.Filter{Event: string(audit.TriageReview), PatientID: patientID}, 0, 1)
		if err != nil {
			return "", err
		}
		switch {
		case len(last) == 0 || last[0].Changes[alerts.ChangedReview].New != current:
			return "", fault.State("invalid_state", "There is nothing to undo: the last review of the patient was another action.")
		case last[0].ActorType != string(audit.ByUser) || last[0].ActorID != by.ID || by.Type != audit.ByUser:
			return "", fault.State("invalid_state", "Only the user who reviewed the patient can undo it.")
		case now.Sub(collections.ParseInstant(last[0].RecordedAt)) > undoReviewWithin:
			return "", fault.State("invalid_state", "It is too late to undo this.")
		}
		before, _ := last[0].Changes[alerts.ChangedReview].Old.(string)
		if err := restoreReview(tx, patientID, before); err != nil {
			return "", err
		}
		changes := audit.Changes{}
		changes.Record(alerts.ChangedReview, current, before)
		return patientID, appendReview(tx, audit.TriageReviewUndo, patientID, "", changes, by, now)
	})
}

func appendReview(tx core.App, event audit.Event, patientID string, notes phi.Text, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: patientID, PatientID: patientID, Reason: notes, Changes: changes,
	}, now)
}

// reviewText is a review in the form of [alerts.ChangedReview].
func reviewText(at time.Time, by string) string { return collections.FormatInstant(at) + " " + by }

// lastReview returns the patient's last review in the form of [alerts.ChangedReview]; "" for none.
func lastReview(tx core.App, patientID string) (string, error) {
	at, by, err := collections.LastReview(tx, patientID)
	if err != nil || at.IsZero() {
		return "", err
	}
	return reviewText(at, by), nil
}

// restoreReview stores a review in the form of [alerts.ChangedReview].
func restoreReview(tx core.App, patientID, review string) error {
	at, by, _ := strings.Cut(review, " ")
	return collections.SetReviewed(tx, patientID, by, collections.ParseInstant(at))
}
