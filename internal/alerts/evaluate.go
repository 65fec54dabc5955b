package alerts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Level is how severe an alert is.
type Level string

// The alert levels of the contract.
const (
	Critical Level = "critical"
	Warning  Level = "warning"
	Normal   Level = "normal"
	NoData   Level = "no_data"
)

// The alert types that readings raise, beside the kinds of reading themselves.
const (
	TypeBloodPressure = string(vitals.BloodPressure)
	TypePulse         = "pulse"
	TypeWeight        = string(vitals.Weight)
	TypePulseOximetry = string(vitals.PulseOximetry)
	TypeBloodGlucose  = string(vitals.BloodGlucose)
	TypeDeviceInfo    = "device_info"
)

// The alert types that say that no data came, and that are over when some comes.
const (
	TypeMissedReading = "missed_reading"
	TypeNoReading24h  = "no_reading_24h"
)

// The other alert types about devices and hubs.
const (
	TypeDeviceBattery = "device_battery"
	TypeHubOffline    = "hub_offline"
	TypeStaleReading  = "stale_reading"
)

// Types are all alert types.
var Types = []string{
	TypeBloodPressure, TypePulse, TypeWeight, TypePulseOximetry, TypeBloodGlucose, TypeMissedReading, TypeNoReading24h, TypeDeviceBattery,
	TypeHubOffline, TypeStaleReading, TypeDeviceInfo,
}

// lateAfter is the age from which a message states when the reading was taken: late data must not hide danger,
// nor pass for fresh. Source: docs/decisions/conventions.md, "Future and past measurement times".
const lateAfter = 24 * time.Hour

// Finding is what a reading means for one alert type: a breach to raise, or the word that all is well.
type Finding struct {
	Type      string
	Level     Level // "" when nothing is breached
	Parameter string
	// Value and Threshold are those of the worst parameter, in its unit; for weight the signed change in kg.
	Value, Threshold float64
	// Message names every breach. It may be read next to the patient's name, so it is stored encrypted.
	Message string
}

// Breached reports whether the finding deserves an alert.
func (f Finding) Breached() bool { return f.Level != "" }

// Weighing is an earlier weight of the patient.
type Weighing struct {
	Kg         float64
	MeasuredAt time.Time
}

// Evaluate compares a reading with the thresholds in force: one finding for each alert type it can speak about, worst
// parameter first. weighings are the patient's other weights; those outside the window are left aside.
// Source: docs/decisions/alerts.md, "One alert per vital type and reading" and "Weight rule".
func Evaluate(r vitals.Reading, t Thresholds, weighings []Weighing, now time.Time) []Finding {
	var findings []Finding
	add := func(alertType string, checks ...check) {
		if finding, spoke := worst(alertType, checks); spoke {
			findings = append(findings, finding)
		}
	}
	switch r.Kind {
	case vitals.BloodPressure:
		add(TypeBloodPressure,
			check{"systolic", "Systolic", "mmHg", r.Systolic, t.Systolic},
			check{"diastolic", "Diastolic", "mmHg", r.Diastolic, t.Diastolic})
		add(TypePulse, check{"pulse", "Pulse", "bpm", r.Pulse, t.Pulse})
	case vitals.PulseOximetry:
		add(TypePulseOximetry, check{"spo2", "SpO2", "%", r.SpO2, t.SpO2})
		add(TypePulse, check{"pulse", "Pulse", "bpm", r.Pulse, t.Pulse})
	case vitals.BloodGlucose:
		add(TypeBloodGlucose, check{"glucose", "Glucose", "mg/dL", r.GlucoseMgDL, t.Glucose})
	case vitals.Weight:
		if finding, spoke := weightFinding(r, t.Weight, weighings); spoke {
			findings = append(findings, finding)
		}
	}
	if now.Sub(r.MeasuredAt) > lateAfter {
		for i := range findings {
			if findings[i].Breached() {
				findings[i].Message += " Measured " + input.FormatInstant(r.MeasuredAt) + "."
			}
		}
	}
	return findings
}

// check is one parameter of a reading beside its limits.
type check struct {
	parameter, name, unit string
	value                 *float64
	limits                Limits
}

// breach is the most severe bound that the value meets; bounds are inclusive.
func (c check) breach() (level Level, threshold float64, message string) {
	sides := [...]struct {
		level Level
		bound *float64
		above bool
	}{
		{Critical, c.limits.Critical, true},
		{Critical, c.limits.CriticalLow, false},
		{Warning, c.limits.High, true},
		{Warning, c.limits.Low, false},
	}
	for _, side := range sides {
		if side.bound == nil || (side.above && *c.value < *side.bound) || (!side.above && *c.value > *side.bound) {
			continue
		}
		where := "at or below"
		if side.above {
			where = "at or above"
		}
		return side.level, *side.bound, fmt.Sprintf("%s %s %s is %s the %s limit %s.",
			c.name, number(*c.value), c.unit, where, side.level, number(*side.bound))
	}
	return "", 0, ""
}

// worst joins the checks of one alert type; the first of equally severe ones gives value and threshold. It has nothing
// to say when no parameter was measured.
func worst(alertType string, checks []check) (finding Finding, spoke bool) {
	finding.Type = alertType
	var messages []string
	for _, c := range checks {
		if c.value == nil {
			continue
		}
		spoke = true
		level, threshold, message := c.breach()
		if level == "" {
			continue
		}
		messages = append(messages, message)
		if finding.Level == "" || (level == Critical && finding.Level == Warning) {
			finding.Level, finding.Parameter, finding.Value, finding.Threshold = level, c.parameter, *c.value, threshold
		}
	}
	finding.Message = strings.Join(messages, " ")
	return finding, spoke
}

// WeightGain is the gain in kg over the lowest, and the loss under the highest, earlier weight measured within the
// window before the reading; ok is false when there is none. Source: docs/decisions/alerts.md, "Weight rule".
func WeightGain(kg float64, at time.Time, windowDays int, weighings []Weighing) (gain, loss float64, ok bool) {
	from := at.AddDate(0, 0, -windowDays)
	for _, w := range weighings {
		if w.MeasuredAt.Before(from) || !w.MeasuredAt.Before(at) {
			continue
		}
		rise := cents(kg - w.Kg)
		if !ok {
			gain, loss, ok = rise, -rise, true
			continue
		}
		gain, loss = max(gain, rise), max(loss, -rise)
	}
	return gain, loss, ok
}

func weightFinding(r vitals.Reading, rule WeightRule, weighings []Weighing) (Finding, bool) {
	if r.WeightKg == nil {
		return Finding{}, false
	}
	gain, loss, known := WeightGain(*r.WeightKg, r.MeasuredAt, rule.WindowDays, weighings)
	if !known {
		return Finding{}, false
	}
	finding := Finding{Type: TypeWeight, Parameter: "weight"}
	breach := func(level Level, change, bound float64, direction string) Finding {
		finding.Level, finding.Value, finding.Threshold = level, change, bound
		finding.Message = fmt.Sprintf("Weight %s of %s kg within %d days is at or above the %s limit %s kg.",
			direction, number(math.Abs(change)), rule.WindowDays, level, number(bound))
		return finding
	}
	switch {
	case rule.CriticalChange != nil && gain >= *rule.CriticalChange:
		return breach(Critical, gain, *rule.CriticalChange, "gain"), true
	case rule.Change != nil && gain >= *rule.Change:
		return breach(Warning, gain, *rule.Change, "gain"), true
	case rule.Change != nil && loss >= *rule.Change:
		return breach(Warning, -loss, *rule.Change, "loss"), true
	}
	return finding, true
}

// cents rounds to two decimals, half away from zero, so that 82.3 − 80 is 2.3 and meets the bound 2.3.
func cents(kg float64) float64 { return math.Round(kg*100) / 100 }

// number writes a value as people do: 185, 92.5.
func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
