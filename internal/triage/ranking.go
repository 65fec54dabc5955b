// Package ranking carries out what moves a patient's place on the triage list, and ranks the patient anew in the same
// transaction: whoever acts on an alert, opens or changes an escalation, reviews a patient or raises an alert by the clock comes
// through here. It knows what follows for the patient, and nothing of how a score is made, which internal/triage knows. Readings
// do not come this way: they are assessed and ranked in one go.
package triage

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Change carries out a change and then ranks the patient it is about anew, in one transaction, which may be app's own. A change
// that comes back with "" moves nobody.
func Change(app core.App, now time.Time, change func(tx core.App) (patientID string, err error)) error {
	return app.RunInTransaction(func(tx core.App) error {
		patientID, err := change(tx)
		if err != nil || patientID == "" {
			return err
		}
		_, err = Rescore(tx, patientID, now)
		return err
	})
}

// Review stores that somebody has reviewed the patient, with notes or "", which are kept in the audit trail, sealed.
// Source: docs/decisions/triage.md, "Reviews".
func Review(app core.App, patientID string, notes phi.Text, by audit.Actor, now time.Time) error {
	return Change(app, now, func(tx core.App) (string, error) {
		if err := collections.SetReviewed(tx, patientID, by.Email, now); err != nil {
			return "", err
		}
		return patientID, audit.Append(tx, audit.Entry{
			Event: audit.TriageReview, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: patientID, PatientID: patientID, Reason: notes,
		}, now)
	})
}

// ActOnAlert carries out what a person does with an alert, see [alerts.Act].
func ActOnAlert(app core.App, number int64, action alerts.Action, by audit.Actor, now time.Time) (alert *collections.Alert, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		if alert, err = alerts.Find(tx, number); err != nil {
			return "", err
		}
		if action.Reviewed, err = review(tx, alert.PatientID()); err != nil {
			return "", err
		}
		if err := alerts.Act(tx, alert, action, by, now); err != nil {
			return "", err
		}
		return alert.PatientID(), noteReview(tx, alert.PatientID(), action.Move, by, now)
	})
	return alert, err
}

// GuardAlert is [alerts.Guard], with what follows for the patient.
func GuardAlert(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time, save func() error) error {
	return Change(tx, now, func(tx core.App) (string, error) {
		move, err := alerts.Guard(tx, alert, by, now, save)
		if err != nil || move == "" {
			return "", err
		}
		return alert.PatientID(), noteReview(tx, alert.PatientID(), move, by, now)
	})
}

// noteReview: acknowledging and resolving are reviews of the patient. Source: docs/decisions/triage.md, "Reviews".
func noteReview(tx core.App, patientID string, move alerts.Move, by audit.Actor, now time.Time) error {
	if move != alerts.Acknowledge && move != alerts.Resolve {
		return nil
	}
	return collections.SetReviewed(tx, patientID, by.Email, now)
}

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
// Source: docs/decisions/billing.md, "Escalation time versus interactive time" and docs/decisions/triage.md, "Reviews".
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

// SetThresholds changes the thresholds of a patient, see [alerts.SetThresholds]. With an empty patientID it changes the practice's
// defaults; [triage.RescoreAll] then catches up with everyone who inherits them. A patient who does not exist or is deleted is a
// not-found fault.
func SetThresholds(app core.App, patientID string, change alerts.Change, by audit.Actor, now time.Time) (c alerts.Configuration, err error) {
	err = Change(app, now, func(tx core.App) (string, error) {
		if patientID != "" {
			if _, err := collections.FindPatient(tx, patientID); err != nil {
				return "", fault.OrMissing(err)
			}
		}
		changed := false
		if c, changed, err = alerts.SetThresholds(tx, patientID, change, by, now); err != nil || !changed {
			return "", err
		}
		return patientID, nil
	})
	return c, err
}

// GuardThresholds is [alerts.GuardThresholds], and ranks the patient anew.
func GuardThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, save func() error) error {
	return Change(tx, now, func(tx core.App) (string, error) {
		return collections.PatientOf(record), alerts.GuardThresholds(tx, record, by, now, save)
	})
}

// DropThresholds is [alerts.DropThresholds], and ranks the patient anew.
func DropThresholds(tx core.App, record *core.Record, by audit.Actor, now time.Time, remove func() error) error {
	return Change(tx, now, func(tx core.App) (string, error) {
		return collections.PatientOf(record), alerts.DropThresholds(tx, record, by, now, remove)
	})
}

// answered is the alert about a critical value of the last day that somebody has acknowledged and that still stands; nil for none. What the
// patient typed since, critical or not, takes no device's place: each is looked for by itself. One that is over, by somebody's word or by what
// was measured, is not told again. Source: docs/decisions/alerts.md, "Snooze" and "Reading origins".
func answered(tx core.App, picture Picture, kind string, now time.Time) (*collections.Alert, error) {
	for _, measured := range picture.CriticalSince(kind, now.Add(-currentWithin)) {
		alert, err := collections.CriticalMeasuredAt(tx, picture.PatientID, kind, string(alerts.StatusAcknowledged), measured)
		if err != nil || alert != nil {
			return alert, err
		}
	}
	return nil, nil
}

// overtaken reports whether something at least as reliable was measured after the reading behind an alert: of one that came late it is then
// no news how the patient was. Source: docs/decisions/alerts.md, "Late readings".
func overtaken(tx core.App, patientID string, alert alerts.Open) (bool, error) {
	var kinds []vitals.Kind
	var columns []string
	for _, p := range vitals.Watched {
		if p.Group == alert.Type {
			kinds, columns = append(kinds, p.Kinds...), append(columns, p.Column)
		}
	}
	if len(columns) == 0 {
		return false, nil
	}
	return collections.MeasuredAfter(tx, patientID, kinds, columns, alert.MeasuredAt, vitals.OriginPatient.Settles(alert.Origin))
}

// Expect ranks a minor anew of whom other kinds are expected from now on: there may be no bounds for them. For an adult nothing follows.
// Source: docs/decisions/alerts.md, "Minors".
func Expect(tx core.App, patientID string, now time.Time) error {
	group, err := collections.AgeGroupOf(tx, patientID)
	if err != nil || group != collections.AgeMinor {
		return err
	}
	_, err = Rescore(tx, patientID, now)
	return err
}
