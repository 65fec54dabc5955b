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

// recurringWithin is the span within which flags are counted together: a rolling week, by the time of measurement.
// Source: docs/decisions/alerts.md, "Irregular heartbeats".
const recurringWithin = 7 * 24 * time.Hour

// Flags are when readings with an irregular heartbeat were measured, in order, the one at hand among them.
type Flags struct {
	Times []time.Time
	// Told is the flag at which people were last warned; zero for never. Open: they have not looked at that yet.
	Told time.Time
	Open bool
}

// lookForFlags reads what a reading with a flag is counted with.
func (e *Evaluator) lookForFlags(tx core.App, o Observation, open []alerts.Open, now time.Time) (f Flags, err error) {
	if r := o.judged(); e.rules.IrregularHeartbeats == 0 || r.Says(vitals.IrregularHeartbeat) != vitals.Yes {
		return f, nil
	}
	if f, err = findFlags(tx, o.PatientID, o.Reading.MeasuredAt, now); err != nil {
		return f, err
	}
	f.Open = slices.ContainsFunc(open, func(a alerts.Open) bool { return a.Type == alerts.TypeIrregularHeartbeat })
	if !slices.ContainsFunc(f.Times, o.Reading.MeasuredAt.Equal) { // it is about to be stored
		f.Times = append(f.Times, o.Reading.MeasuredAt)
		slices.SortFunc(f.Times, time.Time.Compare)
	}
	return f, nil
}

// findFlags reads the flags of a patient that matter for one measured at a time, and when people were last warned.
func findFlags(tx core.App, patientID string, at, now time.Time) (f Flags, err error) {
	if f.Told, err = collections.LastRecurring(tx, patientID, alerts.TypeIrregularHeartbeat); err != nil {
		return f, err
	}
	from := at
	if !f.Told.IsZero() && f.Told.Before(at) {
		from = f.Told
	}
	f.Times, err = collections.FlaggedTimes(tx, patientID, flagged(), vitals.IrregularHeartbeat.Name, from.Add(-recurringWithin), now.Add(recurringWithin))
	return f, err
}

// flagged are the kinds that can have the flag.
func flagged() (kinds []vitals.Kind) {
	for _, d := range vitals.Definitions {
		if slices.Contains(d.Marks, vitals.IrregularHeartbeat) {
			kinds = append(kinds, d.Kind)
		}
	}
	return kinds
}

// within is how many flags there are in the week that ends with one of them.
func (f Flags) within(at time.Time) (n int) {
	for _, flag := range f.Times {
		if !flag.After(at) && at.Sub(flag) <= recurringWithin {
			n++
		}
	}
	return n
}

// anyWith reports whether the warning at a flag, or one soon after it, has enough flags.
func (f Flags) anyWith(at time.Time, enough int) bool {
	return slices.ContainsFunc(f.Times, func(flag time.Time) bool {
		return !flag.Before(at) && flag.Sub(at) <= recurringWithin && f.within(flag) >= enough
	})
}

// begun is the flag, from one measured at a time on, with which a run of so many begins that nobody was warned of. A run goes on with
// every flag that has enough within the week before it, and is over with one that has not.
func (f Flags) begun(from time.Time, enough int) (at time.Time, begun bool) {
	if f.Open || len(f.Times) < enough {
		return at, false
	}
	for _, flag := range f.Times {
		if flag.Before(from) || f.within(flag) < enough {
			continue
		}
		if f.Told.IsZero() || !f.Told.Before(flag) {
			return flag, f.Told.IsZero()
		}
		over := slices.ContainsFunc(f.Times, func(between time.Time) bool {
			return between.After(f.Told) && between.Before(flag) && f.within(between) < enough
		})
		return flag, over
	}
	return at, false
}

// draft is the warning that irregular heartbeats recur, if the reading makes a run of them. Of a run that is over long since, people
// see that there was one.
func (f Flags) draft(o Observation, rules Rules, now time.Time) (warning alerts.Draft, raised bool) {
	if len(f.Times) == 0 {
		return warning, false
	}
	at, begun := f.begun(o.Reading.MeasuredAt, rules.IrregularHeartbeats)
	if !begun {
		return warning, false
	}
	warning = draft(o, recurringFinding(f.within(at)), false)
	warning.MeasuredAt, warning.Unmeasured = at, true
	if warning.Late = rules.late(o.Reading.MeasuredAt, now); warning.Late {
		warning.Superseded = now.Sub(f.Times[len(f.Times)-1]) > recurringWithin
	}
	return warning, true
}

func recurringFinding(n int) alerts.Finding {
	return alerts.Finding{
		Type: alerts.TypeIrregularHeartbeat, Level: alerts.Warning, Parameter: vitals.IrregularHeartbeat.Name,
		Message: fmt.Sprintf("Irregular heartbeat reported %d times within 7 days.", n),
	}
}
