package patients

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
)

// HoldReasons are the reasons of a patient hold.
var HoldReasons = []string{"hospital", "travel", "hospice", "other"}

// maxHoldDays limits how far ahead a hold may end. Source: docs/decisions/patients.md, "Patient hold".
const maxHoldDays = 30

// HoldBody is the body that sets a patient hold.
type HoldBody struct {
	Reason validate.String         `json:"reason"`
	Until  validate.String         `json:"until"`
	Notes  validate.String         `json:"notes"`
	Others validate.UnknownMembers `json:",embed"`
}

// HoldDraft is a validated [HoldBody].
type HoldDraft struct {
	reason string
	until  time.Time
	notes  phi.Text
}

// Read checks the body. A date means through the end of that day in the patient's zone.
func (b HoldBody) Read(c *validate.Checks, now time.Time, zone *time.Location) HoldDraft {
	d := HoldDraft{
		reason: c.Text("reason", b.Reason, validate.Required(0).OneOf(HoldReasons...)),
		notes:  phi.Text(c.Text("notes", b.Notes, validate.Optional(4000).Multiline())),
	}
	at, day := dateOrInstant(c, "until", b.Until, true, zone)
	c.RejectUnknown("", b.Others)
	last := now.In(zone).AddDate(0, 0, maxHoldDays)
	latest := last
	if elapsed := now.Add(maxHoldDays * 24 * time.Hour); elapsed.After(latest) { // a change of clocks takes no hour from the hold
		latest = elapsed
	}
	if !day.IsZero() {
		at, latest = collections.StartOfNextDay(day), collections.StartOfNextDay(last)
	}
	switch d.until = at; {
	case at.IsZero():
	case !at.After(now):
		c.Reject("until", "Must be in the future.")
	case at.After(latest):
		c.Reject("until", "A hold can last 30 days at most. Set it again when it ends.")
	}
	return d
}

// offset ends a date-time that names its offset.
var offset = regexp.MustCompile(`([Zz]|[+-]\d{2}:\d{2})$`)

// dateOrInstant reads a date or a date-time; both are in the zone unless an offset is named. day is the start of the day, for a date only.
func dateOrInstant(c *validate.Checks, name string, f validate.String, required bool, zone *time.Location) (at, day time.Time) {
	text := strings.TrimSpace(f.Value)
	if f.Given() {
		if _, err := validate.ParseDate(text); err == nil {
			day = collections.ParseDay(text, zone)
			return day, day
		}
	}
	at = c.Instant(name, f, required)
	if at.IsZero() || offset.MatchString(text) {
		return at, time.Time{}
	}
	return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), zone), time.Time{}
}

// SetHold sets a hold of an active patient; one in force is changed and keeps its start. Open alerts about missing readings are resolved.
// Source: docs/decisions/patients.md, "Patient hold".
func SetHold(app core.App, id string, d HoldDraft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientHold, by, now, func(p *collections.Patient) error {
		if !p.Active() {
			return fault.State("invalid_state", "The patient is archived. Unarchive the patient first.")
		}
		if !p.Hold().InForce(now) {
			p.Set(collections.PatientHoldFrom, collections.FormatInstant(now))
		}
		p.Set(collections.PatientHoldReason, d.reason)
		p.Set(collections.PatientHoldUntil, collections.FormatInstant(d.until))
		p.Set(collections.PatientHoldEndedAt, "")
		p.Set(collections.PatientHoldBy, authorOf(by))
		p.Set(collections.PatientHoldNotes, d.notes.Reveal())
		return nil
	})
}

// EndHold ends the hold in force; without one it returns a not-found fault.
func EndHold(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientHoldEnd, by, now, func(p *collections.Patient) error {
		if !p.Hold().InForce(now) {
			return fault.Missing()
		}
		p.Set(collections.PatientHoldEndedAt, collections.FormatInstant(now))
		return nil
	})
}

// holdBatch limits the holds that one run ends; the next run, a minute later, continues.
const holdBatch = 500

// EndDueHolds records the end of holds that are over, each in its own transaction, so that lists and followers of changes see it.
func EndDueHolds(ctx context.Context, app core.App, now time.Time) (ended int, err error) {
	ids, err := collections.DuePatientHolds(app, now, holdBatch)
	if err != nil {
		return 0, err
	}
	return async.ForEach(ctx, ids, func(id string) (did bool, err error) {
		_, err = modify(app, id, audit.PatientHoldEnd, audit.System(), now, func(p *collections.Patient) error {
			hold := p.Hold()
			if did = !hold.From.IsZero() && hold.EndedAt.IsZero() && !hold.InForce(now); !did {
				return errUnchanged // a user was first
			}
			p.Set(collections.PatientHoldEndedAt, collections.FormatInstant(hold.Until))
			return nil
		})
		if !did {
			return false, nil
		}
		return true, err
	})
}

// resolveMissing resolves the alerts about missing readings when a hold begins, because the hold
// explains them. An escalation that a user works on stays, with the time spent on it.
func resolveMissing(tx core.App, p *collections.Patient, by audit.Actor, now time.Time) error {
	why := phi.Text("Patient hold: " + p.Hold().Reason + ".")
	numbers, err := collections.UntakenEscalationsAbout(tx, p.Id, alerts.MissingTypes)
	if err != nil {
		return err
	}
	return closeAlertsAndEscalations(tx, p.Id, alerts.MissingTypes, numbers, alerts.ReasonPatientHold, why, by, now)
}

// closeAlertsAndEscalations resolves a patient's open alerts of some types, all for nil, cancels escalations, and updates the triage row.
func closeAlertsAndEscalations(tx core.App, id string, types []string, numbers []int64, reason string, why phi.Text, by audit.Actor, now time.Time) error {
	closed, err := alerts.CloseOpen(tx, id, types, reason, why, by, now)
	if err != nil {
		return err
	}
	if err := escalations.Cancel(tx, numbers, why, by, now); err != nil || closed+len(numbers) == 0 {
		return err
	}
	return triage.UpdateAndRescore(tx, now, func(core.App) (string, error) { return id, nil })
}

// HoldView is a hold in force as lists show it.
type HoldView struct {
	Reason string  `json:"reason"`
	From   *string `json:"from"`
	Until  *string `json:"until"`
	By     *string `json:"by"`
}

// ViewHold returns the view of a hold in force.
func ViewHold(h collections.PatientHold) *HoldView {
	return &HoldView{Reason: h.Reason, From: instant(h.From), Until: instant(h.Until), By: orNull(h.By)}
}

// PatientHoldView is a [HoldView] with its notes, as one role may see it.
type PatientHoldView struct {
	HoldView
	Notes *string `json:"notes"`
}

// viewPatientHold returns the hold in force, or nil. Notes and authors are for the staff.
func viewPatientHold(p *collections.Patient, role authz.Role, now time.Time) *PatientHoldView {
	hold := p.Hold()
	if !hold.InForce(now) {
		return nil
	}
	view := &PatientHoldView{HoldView: *ViewHold(hold)}
	if isClinical(role) {
		view.Notes = orNull(hold.Notes.Reveal())
	} else if role != authz.DataMonitor {
		view.By = nil
	}
	return view
}
