package ingest

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// isLate reports whether a reading arrives long after it was measured.
func (r Rules) isLate(measuredAt, now time.Time) bool {
	return r.LateAfter > 0 && now.Sub(measuredAt) > r.LateAfter
}

// IsLate reports whether a reading measured at a time is late.
func (rs *ReadingStore) IsLate(measuredAt, now time.Time) bool {
	return rs.rules.isLate(measuredAt, now)
}

// mayBeSuperseded reports whether newer readings can supersede this one: late, or with an unproven clock.
func (rs *ReadingStore) mayBeSuperseded(measuredAt, now time.Time) bool {
	return rs.rules.isLate(measuredAt, now) || !devices.ProvesClock(measuredAt, now)
}

// hasNewerLatest reports whether the patient's latest values include a newer one of a group that the reading has.
func hasNewerLatest(latest triage.Latest, r vitals.Reading) bool {
	for _, group := range r.Kind.Definition().Groups {
		if !anyValue(r, group) {
			continue
		}
		for _, p := range group {
			if value, measured := latest.Value(p); value != nil && measured.After(r.MeasuredAt) {
				return true
			}
		}
	}
	return false
}

// isSuperseded reports whether the group was measured after a late reading by an origin at least as reliable, in the same request or
// stored.
func isSuperseded(tx core.App, o Observation, group []*vitals.Parameter, following []vitals.Reading, unproven bool) (bool, error) {
	late := lateReading{o.PatientID, o.Reading.MeasuredAt, o.Origin, unprovenDevice(o.Reading.DeviceID, unproven), o.Received()}
	if slices.ContainsFunc(following, func(r vitals.Reading) bool {
		return r.MeasuredAt.After(late.at) && anyValue(r, group) && (late.device == nil || *late.device == r.DeviceID)
	}) {
		return true, nil
	}
	return late.hasNewer(tx, [][]*vitals.Parameter{group})
}

// lateReading can be superseded. If device is set, its clock is unproven: only its own readings and
// those measured after the receipt are newer. Source: docs/decisions/devices.md, "Doubtful time".
type lateReading struct {
	patientID string
	at        time.Time
	origin    vitals.Origin
	device    *string
	received  time.Time
}

// unprovenDevice returns the only device that supersedes its late readings, or nil if any does.
func unprovenDevice(deviceID string, unproven bool) *string {
	if !unproven {
		return nil
	}
	return &deviceID
}

// hasNewer reports whether the patient has a newer reading of each group, from an origin at least as reliable. A late alert about these
// groups is superseded then. Source: docs/decisions/alerts.md, "Late readings".
func (r lateReading) hasNewer(tx core.App, groups [][]*vitals.Parameter) (newer bool, err error) {
	for i, group := range groups {
		columns := make([]string, len(group))
		for k, p := range group {
			columns[k] = p.Column
		}
		newer, err = collections.NewerReadings[vitals.Kind]{
			PatientID: r.patientID, Kinds: kindsOf(groups[i : i+1]), Columns: columns, After: r.at,
			TypedToo: vitals.OriginPatient.CanResolve(r.origin), OfDevice: r.device, OrAfter: r.received,
		}.Exist(tx)
		if err != nil || !newer {
			return false, err
		}
	}
	return newer, nil
}

// addNewerInGroup adds the later readings of the sorted group that can supersede s: with a trusted
// time and an origin at least as reliable. Source: docs/decisions/alerts.md, "Late readings".
func (rs *ReadingStore) addNewerInGroup(s Submission, after []*groupItem, now time.Time) Submission {
	if len(after) == 0 || !rs.mayBeSuperseded(s.Reading.MeasuredAt, now) {
		return s
	}
	s.NewerInBatch = slices.Clip(s.NewerInBatch)
	for _, other := range after {
		if other.In.PatientID == s.PatientID && !other.In.TimeInDoubt && other.In.origin().CanResolve(s.origin()) {
			s.NewerInBatch = append(s.NewerInBatch, other.In.Reading)
		}
	}
	return s
}

// setLateness marks an alert as late, and as superseded if newer readings exist. An alert that is not late is auto-resolved as if all
// readings had arrived in order.
func (ai AssessInput) setLateness(raised *alerts.Draft, deviceID string, sequence []alerts.EvaluatedReading, rules Rules, now time.Time) {
	raised.ClockUnproven, raised.Late = ai.IsClockUnproven, rules.isLate(raised.MeasuredAt, now)
	addTimes(raised, now)
	if raised.Late {
		raised.Superseded = slices.Contains(ai.Surrounding.Superseded, raised.Finding.Type)
		return
	}
	if sequence != nil {
		alert := alerts.OpenAlert{
			Type: raised.Finding.Type, Level: raised.Finding.Level, MeasuredAt: raised.MeasuredAt, CreatedAt: now, Origin: raised.Origin,
			UnprovenDevice: unprovenDevice(deviceID, ai.IsClockUnproven),
		}
		raised.NormalReadings, raised.ResolvedByLater = alert.ResolvedBy(sequence, rules.NormalReadingsNeeded)
	}
}

// addTimes states when a late reading was measured, and when it was received if nothing proves the clock of its device.
func addTimes(draft *alerts.Draft, received time.Time) {
	switch {
	case draft.Late && draft.ClockUnproven:
		draft.Finding.AddDeviceTime(draft.MeasuredAt, received)
	case draft.Late:
		draft.Finding.AddMeasuredAt(draft.MeasuredAt)
	}
}

// isStillSuperseded reports whether a newer reading of each of an alert's groups is stored. An alert without groups stays superseded.
func isStillSuperseded(tx core.App, alert *collections.Alert, now time.Time) (bool, error) {
	groups, err := alertGroups(tx, alert, now)
	if err != nil || len(groups) == 0 {
		return true, err
	}
	device, err := alert.UnprovenDevice(tx)
	if err != nil {
		return true, err
	}
	return lateReading{alert.PatientID(), alert.MeasuredAt(), vitals.Origin(alert.Origin()), device, alert.CreatedAt()}.hasNewer(tx, groups)
}

// alertGroups returns the parameter groups of a reading's alert: that of its type, or those of its alarming implausible values.
func alertGroups(tx core.App, alert *collections.Alert, now time.Time) (groups [][]*vitals.Parameter, err error) {
	types := []string{alert.Type()}
	if alert.Type() == alerts.TypeImplausibleReading {
		snapshot, err := triage.ReadSnapshot(tx, alert.PatientID(), nil, now)
		if err != nil {
			return nil, err
		}
		if types, err = snapshot.Thresholds.DangerousTypes(alert.ReportedValues().Reveal(), alert.Parameter()); err != nil {
			return nil, err
		}
	}
	for _, alertType := range types {
		for _, definition := range vitals.Definitions {
			i := slices.IndexFunc(definition.Groups, func(group []*vitals.Parameter) bool { return group[0].Group == alertType })
			if i >= 0 {
				groups = append(groups, definition.Groups[i])
				break
			}
		}
	}
	return groups, nil
}

// reopenAlert reopens an alert and announces it, because its resolution was announced too. A
// critical one without an escalation escalates, unless it is about the past.
func (rs *ReadingStore) reopenAlert(tx core.App, alert *collections.Alert, normal int, now time.Time) error {
	if err := alerts.Reopen(tx, alert, normal, now); err != nil || alert.Snoozed() {
		return err
	}
	if err := rs.decideReopened(tx, alert, now); err != nil {
		return err
	}
	if err := escalateReopened(tx, alert, now); err != nil {
		return err
	}
	label, err := collections.PatientLabel(tx, alert.PatientID())
	if err != nil {
		return err
	}
	key := alerts.AnnouncementKey(alert.Id) + " reopened " + collections.FormatInstant(now)
	return notifications.Announce(tx, alerts.Reannouncement(alert, label, key), now)
}

// ReopenSuperseded checks the patient's late readings stored since a time that were evaluated against newer ones of their batch: if none
// of those was stored, the alert reopens.
func (rs *ReadingStore) ReopenSuperseded(app core.App, patientID string, since, now time.Time) error {
	return triage.UpdateAndRescore(app, now, func(tx core.App) (string, error) {
		ended, err := collections.SupersededAlerts(tx, patientID, since)
		if err != nil {
			return "", err
		}
		for _, alert := range ended {
			superseded, err := isStillSuperseded(tx, alert, now)
			if err == nil && !superseded {
				err = rs.reopenAlert(tx, alert, 0, now)
			}
			if err != nil {
				return "", err
			}
		}
		return patientID, nil
	})
}
