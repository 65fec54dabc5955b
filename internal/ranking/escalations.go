package ranking

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/escalations"
)

// OpenEscalation opens an escalation of a patient, see [escalations.Open].
func OpenEscalation(app core.App, draft escalations.Draft, by audit.Actor, now time.Time) (e *collections.Escalation, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		e, err = escalations.Open(tx, draft, by, now)
		return draft.PatientID, err
	})
	return e, err
}

// EscalateAlert opens an escalation about an alert, see [escalations.OpenAbout].
func EscalateAlert(app core.App, number int64, draft escalations.Draft, by audit.Actor, now time.Time) (e *collections.Escalation, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		if e, err = escalations.OpenAbout(tx, number, draft, by, now); err != nil {
			return "", err
		}
		return e.PatientID(), nil
	})
	return e, err
}

// UpdateEscalation changes an escalation, see [escalations.Update]. One that is resolved is billed by the engine.
func UpdateEscalation(
	app core.App, bills *billing.Engine, number int64, change escalations.Change, by audit.Actor, now time.Time,
) (e *collections.Escalation, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		var effect escalations.Effect
		if e, effect, err = escalations.Update(tx, number, change, by, now); err != nil {
			return "", err
		}
		return follow(tx, bills, e, effect, by, now)
	})
	return e, err
}

// GuardEscalation is [escalations.Guard], with what follows for the patient and for billing.
func GuardEscalation(tx core.App, bills *billing.Engine, e *collections.Escalation, by audit.Actor, now time.Time, save func() error) error {
	return Change(tx, now, func(tx core.App) (string, error) {
		effect, err := escalations.Guard(tx, e, by, now, save)
		if err != nil {
			return "", err
		}
		return follow(tx, bills, e, effect, by, now)
	})
}

// follow does what follows from a change of an escalation, and says who is to be ranked. Of one that was answered: the patient
// was looked at, and the time is logged. It is the assignee's, or that of whoever resolved it.
// Source: docs/decisions.md, "Escalation time versus interactive time" and "What a review is".
func follow(tx core.App, bills *billing.Engine, e *collections.Escalation, effect escalations.Effect, by audit.Actor, now time.Time) (patientID string, err error) {
	if effect == escalations.Nothing {
		return "", nil
	}
	if effect == escalations.Changed {
		return e.PatientID(), nil
	}
	if err := collections.SetReviewed(tx, e.PatientID(), by.Email, now); err != nil {
		return "", err
	}
	return e.PatientID(), bills.LogEscalation(tx, e, by.Email, now)
}
