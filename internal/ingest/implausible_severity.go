package ingest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// boundCheck is one value compared with its range and critical bounds.
type boundCheck struct {
	parameter            *vitals.Parameter
	value, limit         float64
	outOfRange, critical bool    // beyond the range that may be sent; beyond a critical bound
	depth                float64 // distance beyond the critical bound, relative to the rest of the range
}

// compareToBounds compares one value with its range and the patient's critical bounds. A value beyond an end of its range is also beyond
// the critical bound on that side, if there is one.
func (r quarantinedReading) compareToBounds(p *vitals.Parameter, value float64) boundCheck {
	limits := r.snapshot.Thresholds.Limits(p)
	b := boundCheck{parameter: p, value: value, outOfRange: slices.Contains(r.OutOfRange, p), limit: p.Range.Min}
	if value > p.Range.Min { // a value rounded to an end counts as sent
		b.limit = p.Range.Max
	}
	for _, side := range []struct {
		critical       *float64
		end, direction float64
	}{{limits.CriticalLow, p.Range.Min, -1}, {limits.Critical, p.Range.Max, 1}} {
		if side.critical == nil {
			continue
		}
		if past := (value - *side.critical) * side.direction; past >= 0 {
			b.critical, b.limit, b.depth = true, *side.critical, past/max(math.Abs(side.end-*side.critical), 1)
		}
	}
	return b
}

// finding returns the finding of an implausible reading, named by its worst value, and whether that is beyond a critical bound. Its level
// is critical, except for a weight that is only too low for an adult.
func (r quarantinedReading) finding() (finding alerts.Finding, grave bool) {
	finding = alerts.Finding{Type: alerts.TypeImplausibleReading, Level: alerts.Critical}
	worst := r.worstValue()
	var impossible, others []string
	for _, p := range vitals.Parameters {
		value := r.Reading.Value(p)
		if value == nil {
			continue
		}
		if slices.Contains(r.OutOfRange, p) {
			impossible = append(impossible, fmt.Sprintf("%s is outside %s to %s.", p.Text(*value), vitals.FormatNumber(p.Range.Min), vitals.FormatNumber(p.Range.Max)))
		} else {
			others = append(others, p.Text(*value))
		}
	}
	message := strings.Join(impossible, " ")
	switch reported := strings.Join(others, ", ") + "."; {
	case message == "":
		message = "Reported: " + reported
	case len(others) > 0:
		message += " Reported with it: " + reported
	}
	if !worst.critical && r.isBelowAdultRangeOnly() {
		finding.Level = alerts.Warning
	}
	finding.Message = r.findingText() + message + r.doubtText() + " Not stored as a reading until a person confirms it."
	if r.IsIncomplete {
		finding.Message = r.findingText() + message + r.doubtText() + " Not stored as a reading, because a value is missing."
	}
	finding.Parameter, finding.Value, finding.Threshold = worst.parameter.Name, worst.value, worst.limit
	return finding, worst.critical
}

// isBelowAdultRangeOnly reports whether a minor's values are too low only for adults. Source: docs/decisions/observations.md, "Implausible
// values".
func (r quarantinedReading) isBelowAdultRangeOnly() bool {
	for _, p := range r.OutOfRange {
		if value := r.Reading.Value(p); r.snapshot.Minor == nil || !p.OfAdults || value == nil || *value >= p.Range.Min {
			return false
		}
	}
	return len(r.OutOfRange) > 0
}

// doubtText returns the alert's sentence about the device's clock, or why the event was rejected; "" if only values are out of range.
func (r quarantinedReading) doubtText() string {
	times := ""
	if r.isTimeInDoubt() {
		times = " " + doubtText(r.reported, r.received)
	}
	switch r.doubt {
	case futureClock:
		return fmt.Sprintf(" The clock of device %s is ahead: it reports %s, received %s.",
			r.Reading.DeviceID, validate.FormatInstant(r.FutureTime), validate.FormatInstant(r.Reading.MeasuredAt))
	case unreadable:
		if r.isConflict {
			return fmt.Sprintf(" Received %s. Device %s sent other values with the same time before: its clock may have stopped.",
				validate.FormatInstant(r.Reading.MeasuredAt), r.Reading.DeviceID)
		}
		if times == "" {
			times = fmt.Sprintf(" Received %s.", validate.FormatInstant(r.received))
		}
		return fmt.Sprintf("%s The device's event was rejected for: %s.", times, strings.Join(r.RejectedFor, ", "))
	}
	return times
}

// isWorseThan orders by: beyond a critical bound, out of range, distance.
func (b boundCheck) isWorseThan(o boundCheck) bool {
	switch {
	case b.critical != o.critical:
		return b.critical
	case b.outOfRange != o.outOfRange:
		return b.outOfRange
	}
	return b.depth > o.depth
}
