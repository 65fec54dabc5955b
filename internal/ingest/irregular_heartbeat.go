package ingest

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// recurrenceWindow is the span in which flags are counted together: a rolling week by time of measurement. Source:
// docs/decisions/alerts.md, "Irregular heartbeats".
const recurrenceWindow = 7 * 24 * time.Hour

// HeartbeatFlags are the times of readings with an irregular heartbeat, in order, including the current one.
type HeartbeatFlags struct {
	Times []time.Time
	// LastWarned is the time of the flag of the last warning; zero for none. HasOpenWarning: it is not yet acknowledged.
	LastWarned     time.Time
	HasOpenWarning bool
}

// loadHeartbeatFlags reads the flags that are counted with a reading's own.
func (rs *ReadingStore) loadHeartbeatFlags(tx core.App, o Observation, open []alerts.OpenAlert, now time.Time) (f HeartbeatFlags, err error) {
	if r := o.valuesToEvaluate(); rs.rules.IrregularHeartbeats == 0 || r.Qualifier(vitals.IrregularHeartbeat) != vitals.Yes {
		return f, nil
	}
	if f, err = findHeartbeatFlags(tx, o.PatientID, o.Reading.MeasuredAt, now); err != nil {
		return f, err
	}
	f.HasOpenWarning = slices.ContainsFunc(open, func(a alerts.OpenAlert) bool { return a.Type == alerts.TypeIrregularHeartbeat })
	if !slices.ContainsFunc(f.Times, o.Reading.MeasuredAt.Equal) { // not stored yet
		f.Times = append(f.Times, o.Reading.MeasuredAt)
		slices.SortFunc(f.Times, time.Time.Compare)
	}
	return f, nil
}

// findHeartbeatFlags reads the patient's flags that matter for one at a time, and when the last warning was.
func findHeartbeatFlags(tx core.App, patientID string, at, now time.Time) (f HeartbeatFlags, err error) {
	if f.LastWarned, err = collections.LastUnretractedAlert(tx, patientID, alerts.TypeIrregularHeartbeat); err != nil {
		return f, err
	}
	from := at
	if !f.LastWarned.IsZero() && f.LastWarned.Before(at) {
		from = f.LastWarned
	}
	f.Times, err = collections.FlaggedTimes(tx, patientID, flaggedKinds(), vitals.IrregularHeartbeat.Name, from.Add(-recurrenceWindow), now.Add(recurrenceWindow))
	return f, err
}

// flaggedKinds returns the kinds that can have the flag.
func flaggedKinds() (kinds []vitals.Kind) {
	for _, d := range vitals.Definitions {
		if slices.Contains(d.Qualifiers, vitals.IrregularHeartbeat) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

// countWithin returns the number of flags in the week that ends with one of them.
func (f HeartbeatFlags) countWithin(at time.Time) (n int) {
	for _, flag := range f.Times {
		if !flag.After(at) && at.Sub(flag) <= recurrenceWindow {
			n++
		}
	}
	return n
}

// hasRunAfter reports whether the warning at a flag, or one within a week after it, has enough flags.
func (f HeartbeatFlags) hasRunAfter(at time.Time, enough int) bool {
	return slices.ContainsFunc(f.Times, func(flag time.Time) bool {
		return !flag.Before(at) && flag.Sub(at) <= recurrenceWindow && f.countWithin(flag) >= enough
	})
}

// newRun returns the first flag, from one time on, that starts a run without a warning. A run continues with every flag that has enough
// others within the week before it, and ends with one that has not.
func (f HeartbeatFlags) newRun(from time.Time, enough int) (at time.Time, found bool) {
	if f.HasOpenWarning || len(f.Times) < enough {
		return at, false
	}
	for _, flag := range f.Times {
		if flag.Before(from) || f.countWithin(flag) < enough {
			continue
		}
		if f.LastWarned.IsZero() || !f.LastWarned.Before(flag) {
			return flag, f.LastWarned.IsZero()
		}
		ended := slices.ContainsFunc(f.Times, func(between time.Time) bool {
			return between.After(f.LastWarned) && between.Before(flag) && f.countWithin(between) < enough
		})
		return flag, ended
	}
	return at, false
}

// warningDraft returns the warning that irregular heartbeats recur, if the reading starts a run. A run that ended long ago is superseded.
func (f HeartbeatFlags) warningDraft(o Observation, rules Rules, now time.Time) (warning alerts.Draft, raised bool) {
	if len(f.Times) == 0 {
		return warning, false
	}
	at, found := f.newRun(o.Reading.MeasuredAt, rules.IrregularHeartbeats)
	if !found {
		return warning, false
	}
	warning = alertDraft(o, recurringFinding(f.countWithin(at)), false)
	warning.MeasuredAt, warning.OmitsValue = at, true
	if warning.Late = rules.isLate(o.Reading.MeasuredAt, now); warning.Late {
		warning.Superseded = now.Sub(f.Times[len(f.Times)-1]) > recurrenceWindow
	}
	return warning, true
}

func recurringFinding(n int) alerts.Finding {
	return alerts.Finding{
		Type: alerts.TypeIrregularHeartbeat, Level: alerts.Warning, Parameter: vitals.IrregularHeartbeat.Name,
		Message: fmt.Sprintf("Irregular heartbeat reported %d times within 7 days.", n),
	}
}
