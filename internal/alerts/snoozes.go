package alerts

import (
	"slices"
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// How long alerts can be snoozed. Source: docs/decisions/alerts.md, "Snooze".
const (
	maxSnooze         = 30 * 24 * time.Hour
	maxCriticalSnooze = 4 * time.Hour
)

// Snooze suppresses the notifications of alerts of one type until it ends. The alerts are still stored and counted.
type Snooze struct {
	Type string
	// IncludeCritical also suppresses critical alerts.
	IncludeCritical bool
	EndsAt          time.Time
	// Baseline are the worst values of the alerts it covered when it began.
	Baseline []WorstValue
}

// Covers reports whether the snooze suppresses an alert at a time.
func (s Snooze) Covers(alertType string, level Level, at time.Time) bool {
	return s.Type == alertType && at.Before(s.EndsAt) && (level != Critical || s.IncludeCritical)
}

// SnoozeBody is the body of a request to snooze.
type SnoozeBody struct {
	Type            validate.String  `json:"type"`
	Reason          validate.String  `json:"reason"`
	EndsAt          validate.String  `json:"ends_at"`
	IncludeCritical validate.Boolean `json:"include_critical"`
}

// SnoozeDraft is a validated [SnoozeBody].
type SnoozeDraft struct {
	Snooze
	Reason phi.Text // 1 to 500 characters
}

// Read checks the body.
func (b SnoozeBody) Read(c *validate.Checks, now time.Time) (draft SnoozeDraft) {
	draft.Type = c.Text("type", b.Type, validate.Required(0).OneOf(ReadingTypes...))
	draft.Reason = phi.Text(c.Text("reason", b.Reason, validate.Required(500).Multiline()))
	draft.EndsAt = c.Instant("ends_at", b.EndsAt, true)
	if critical := c.Boolean("include_critical", b.IncludeCritical, false); critical != nil {
		draft.IncludeCritical = *critical
	}
	switch until := draft.EndsAt.Sub(now); {
	case draft.EndsAt.IsZero():
	case until <= 0:
		c.Reject("ends_at", "Must be in the future.")
	case draft.IncludeCritical && until > maxCriticalSnooze:
		c.Reject("ends_at", "Critical alerts can be snoozed for 4 hours at most.")
	case until > maxSnooze:
		c.Reject("ends_at", "Alerts can be snoozed for 30 days at most.")
	}
	return draft
}

// StartSnooze stores a snooze in the caller's transaction and ends an earlier one of the same type. Consecutive snoozes together may last
// no longer than a single one may; otherwise it returns a fault of the field ends_at.
func StartSnooze(tx core.App, patientID string, draft SnoozeDraft, by audit.Actor, now time.Time) (*collections.Snooze, error) {
	quiet, critical, err := draft.runStarts(tx, patientID, now)
	if err != nil {
		return nil, err
	}
	found, err := snoozeBaseline(tx, patientID, draft.Type, now)
	if err != nil {
		return nil, err
	}
	if err := collections.EndSnoozesOf(tx, patientID, draft.Type, ActorName(by), System, now); err != nil {
		return nil, err
	}
	snooze, err := collections.NewSnooze(tx, patientID, draft.Type, draft.Reason, draft.EndsAt, ActorName(by), now)
	if err != nil {
		return nil, err
	}
	snooze.SetIncludeCritical(draft.IncludeCritical)
	snooze.SetSuppressedSince(quiet, critical)
	if err := snooze.SetBaseline(found); err != nil {
		return nil, err
	}
	if err := collections.Insert(tx, snooze.ProxyRecord()); err != nil {
		return nil, err
	}
	return snooze, auditSnooze(tx, audit.SnoozeCreate, snooze, draft.Reason, audit.Changes{
		"type": {New: draft.Type}, "ends_at": {New: validate.FormatInstant(draft.EndsAt)}, "include_critical": {New: draft.IncludeCritical},
	}, by, now)
}

// runStarts returns when the uninterrupted snoozing of the type began, also for critical alerts, if this snooze starts now; zero if it does
// not cover them. An expired snooze does not interrupt; the notification at its end does, see internal/triage.
func (d SnoozeDraft) runStarts(tx core.App, patientID string, now time.Time) (quiet, critical time.Time, err error) {
	before, err := collections.CurrentSnooze(tx, patientID, d.Type)
	if err != nil {
		return quiet, critical, err
	}
	quiet = now
	if d.IncludeCritical {
		critical = now
	}
	if before != nil && before.InForce(now) {
		quiet = before.SuppressedSince()
		if d.IncludeCritical && before.IncludeCritical() {
			critical = before.CriticalSince()
		}
	}
	switch {
	case d.IncludeCritical && d.EndsAt.Sub(critical) > maxCriticalSnooze:
		return quiet, critical, fault.Field("ends_at", "Critical alerts can be snoozed for 4 hours in a row at most, and have been since "+validate.FormatInstant(critical)+".")
	case d.EndsAt.Sub(quiet) > maxSnooze:
		return quiet, critical, fault.Field("ends_at", "Alerts can be snoozed for 30 days in a row at most, and have been since "+validate.FormatInstant(quiet)+".")
	}
	return quiet, critical, nil
}

// ExpireSnooze ends an expired snooze, as the system, in the caller's transaction.
func ExpireSnooze(tx core.App, snooze *collections.Snooze, now time.Time) error {
	if err := snooze.End(tx, System, snooze.EndsAt()); err != nil {
		return err
	}
	return auditSnooze(tx, audit.SnoozeEnd, snooze, "", nil, audit.System(), now)
}

// EndSnooze ends a snooze of a patient before its time, in the caller's transaction; one that has ended is an invalid_state fault.
func EndSnooze(tx core.App, patientID string, number int64, by audit.Actor, now time.Time) (*collections.Snooze, error) {
	snooze, err := collections.FindSnooze(tx, patientID, number)
	if err != nil {
		return nil, fault.OrMissing(err)
	}
	if !snooze.InForce(now) {
		return nil, fault.State("invalid_state", "The snooze has already ended.")
	}
	return snooze, EndSnoozeNow(tx, snooze, by, now)
}

func auditSnooze(tx core.App, event audit.Event, s *collections.Snooze, reason phi.Text, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: event, Actor: by, ResourceType: audit.ResourceSnooze, ResourceID: strconv.FormatInt(s.Number(), 10), PatientID: s.PatientID(),
		Reason: reason, Changes: changes,
	}, now)
}

// RetractFromBaseline removes retracted alerts from the baseline of a snooze, in the caller's transaction. The result is
// the baseline without them, never above the current one; changed reports whether it shrank. Source: docs/decisions/alerts.md, "Breaking
// through a snooze".
func RetractFromBaseline(tx core.App, snooze *collections.Snooze, retracted []*collections.Alert) (remaining []WorstValue, changed bool, err error) {
	found := ParseWorstValues(snooze.Baseline())
	if len(found) == 0 {
		return found, false, nil
	}
	begun := snooze.CreatedAt()
	covered, err := collections.BaselineAlertsAt(tx, snooze.PatientID(), snooze.Type(), begun, begun.Add(-baselineOpen), begun.Add(-baselineAcknowledged))
	if err != nil {
		return nil, false, err
	}
	among := func(a collections.BaselineAlert) bool {
		return slices.ContainsFunc(retracted, func(g *collections.Alert) bool { return g.Id == a.ID })
	}
	if !slices.ContainsFunc(covered, among) {
		return found, false, nil
	}
	covered = slices.DeleteFunc(covered, func(a collections.BaselineAlert) bool { return a.Retracted || among(a) })
	remainder, err := worstValuesOf(tx, snooze.PatientID(), snooze.Type(), covered)
	if err != nil {
		return nil, false, err
	}
	remaining = commonMilder(found, remainder)
	if slices.Equal(remaining, found) {
		return found, false, nil
	}
	return remaining, true, snooze.StoreBaseline(tx, remaining)
}

// commonMilder returns the values that are in both lists, each the milder one.
func commonMilder(found, remainder []WorstValue) (both []WorstValue) {
	for _, k := range found {
		for _, r := range remainder {
			if r.Parameter != k.Parameter || r.High != k.High || r.Warning != k.Warning {
				continue
			}
			if k.High {
				k.Value = min(k.Value, r.Value)
			} else {
				k.Value = max(k.Value, r.Value)
			}
			both = append(both, k)
		}
	}
	return both
}

// Exceeds reports whether an alert exceeds the baseline, as [SuppressedBy] would decide.
func (o OpenAlert) Exceeds(ok []WorstValue, t Thresholds) bool {
	var found []criticalValue
	for _, v := range o.Values() {
		if v.Parameter.Change == nil {
			found = append(found, t.criticalValue(v.Parameter, v.Value)...)
			continue
		}
		if bound := t.Change(v.Parameter).CriticalChange; bound != nil {
			found = append(found, criticalChange(o.Parameter, v.Value, *bound))
		}
	}
	return exceedsReference(found, ok, false)
}

// EndSnoozeNow ends a snooze before its time, in the caller's transaction.
func EndSnoozeNow(tx core.App, snooze *collections.Snooze, by audit.Actor, now time.Time) error {
	if err := snooze.End(tx, ActorName(by), now); err != nil {
		return err
	}
	return auditSnooze(tx, audit.SnoozeEnd, snooze, "", nil, by, now)
}
