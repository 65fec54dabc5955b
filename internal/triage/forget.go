package triage

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Forget takes alerts of a patient that were taken back out of what snoozes know. One that nothing is left of ends, and so does one under
// which something came quietly that is more than what is left: what still stands is told, as at every end. It is part of a change that ranks
// the patient anew. Source: docs/decisions/alerts.md, "Breaking through a snooze".
func Forget(tx core.App, patientID string, gone []*collections.Alert, by audit.Actor, now time.Time) error {
	var seen []string
	for _, alert := range gone {
		if slices.Contains(seen, alert.Type()) {
			continue
		}
		seen = append(seen, alert.Type())
		snooze, err := collections.CurrentSnooze(tx, patientID, alert.Type())
		if err != nil {
			return err
		}
		if snooze == nil || !snooze.InForce(now) {
			continue
		}
		left, forgot, err := alerts.Forget(tx, snooze, gone)
		if err != nil {
			return err
		}
		if !forgot {
			continue
		}
		ends := len(left) == 0
		if !ends {
			if ends, err = moreCame(tx, snooze, left, now); err != nil {
				return err
			}
		}
		if !ends {
			continue
		}
		if err := alerts.EndForgotten(tx, snooze, by, now); err != nil {
			return err
		}
		if _, err := tellAfterSnooze(tx, snooze, now, now); err != nil {
			return err
		}
	}
	return nil
}

// moreCame reports whether something that a snooze has kept quiet would have been told by what it knows now.
func moreCame(tx core.App, snooze *collections.Snooze, known []alerts.Known, now time.Time) (bool, error) {
	quiet, err := collections.QuietSince(tx, snooze.PatientID(), snooze.Type(), snooze.CreatedAt())
	if err != nil || len(quiet) == 0 {
		return false, err
	}
	picture, err := ReadPicture(tx, snooze.PatientID(), nil, now)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(picture.Open, func(o alerts.Open) bool {
		return slices.Contains(quiet, o.ID) && o.Beyond(known, picture.Thresholds)
	}), nil
}
