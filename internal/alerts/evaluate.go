package alerts

import (
	"fmt"
	"math"
	"slices"
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

// ReadingTypes are the alert types that readings raise: the groups of thresholds, in the order of the kinds.
var ReadingTypes = func() (types []string) {
	for _, kind := range vitals.Definitions {
		for _, group := range kind.Groups {
			if !slices.Contains(types, group[0].Group) {
				types = append(types, group[0].Group)
			}
		}
	}
	return types
}()

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
	TypeDeviceInfo    = "device_info"
)

// The alert types about a reading that are no comparison with thresholds.
const (
	TypeImplausibleReading = "implausible_reading" // values that no device should report: critical
	TypeSuspectReading     = "suspect_reading"     // values that may be somebody else's
	TypeDeviceClock        = "device_clock"        // a time that cannot be
	TypeIrregularHeartbeat = "irregular_heartbeat" // several flags in a row
)

// Types are all alert types.
var Types = slices.Concat(ReadingTypes,
	[]string{TypeImplausibleReading, TypeSuspectReading, TypeDeviceClock, TypeIrregularHeartbeat}, DeviceTypes)

// DeviceTypes are those about devices and hubs, and about data that did not come.
var DeviceTypes = []string{TypeMissedReading, TypeNoReading24h, TypeDeviceBattery, TypeHubOffline, TypeStaleReading, TypeDeviceInfo}

// lateAfter is the age from which a message states when the reading was taken: late data must not hide danger,
// nor pass for fresh. Source: docs/decisions/conventions.md, "Future and past measurement times".
const lateAfter = 24 * time.Hour

// Finding is what a reading means for one alert type: a breach to raise, or the word that all is well.
type Finding struct {
	Type      string
	Level     Level // "" when nothing is breached
	Parameter string
	// Value and Threshold are those of the worst parameter, in its unit; for a change the signed change.
	Value, Threshold float64
	// Message names every breach. It may be read next to the patient's name, so it is stored encrypted.
	Message string
}

// Breached reports whether the finding deserves an alert.
func (f Finding) Breached() bool { return f.Level != "" }

// Weighing is an earlier value of a parameter that is watched for its changes.
type Weighing struct {
	Of         *vitals.Parameter
	Value      float64
	MeasuredAt time.Time
}

// Evaluate compares a reading with the thresholds in force: one finding for each alert type it can speak about, worst
// parameter first. weighings are what changes are measured against; those outside the window are left aside.
// Source: docs/decisions/alerts.md, "One alert per vital type and reading" and "Weight rule".
func Evaluate(r vitals.Reading, t Thresholds, weighings []Weighing, now time.Time) []Finding {
	var findings []Finding
	for _, group := range r.Kind.Definition().Groups {
		finding, spoke := worst(r, group, t)
		if group[0].Change != nil {
			finding, spoke = changed(r, group[0], t.Change(group[0]), weighings)
		}
		if spoke {
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

// breach is the most severe bound that the value meets; bounds are inclusive.
func breach(p *vitals.Parameter, value float64, limits vitals.Limits) (level Level, threshold float64, message string) {
	sides := [...]struct {
		level Level
		bound *float64
		above bool
	}{
		{Critical, limits.Critical, true},
		{Critical, limits.CriticalLow, false},
		{Warning, limits.High, true},
		{Warning, limits.Low, false},
	}
	for _, side := range sides {
		if side.bound == nil || (side.above && value < *side.bound) || (!side.above && value > *side.bound) {
			continue
		}
		where := "at or below"
		if side.above {
			where = "at or above"
		}
		return side.level, *side.bound, fmt.Sprintf("%s %s %s is %s the %s limit %s.",
			p.Label, number(value), p.Range.Unit, where, side.level, number(*side.bound))
	}
	return "", 0, ""
}

// worst joins the parameters of one alert type; the first of equally severe ones gives value and threshold. It has
// nothing to say when none was measured.
func worst(r vitals.Reading, group []*vitals.Parameter, t Thresholds) (finding Finding, spoke bool) {
	finding.Type = group[0].Group
	var messages []string
	for _, p := range group {
		value := r.Value(p)
		if value == nil {
			continue
		}
		spoke = true
		level, threshold, message := breach(p, *value, t.Of(p))
		if level == "" {
			continue
		}
		messages = append(messages, message)
		if finding.Level == "" || (level == Critical && finding.Level == Warning) {
			finding.Level, finding.Parameter, finding.Value, finding.Threshold = level, p.Name, *value, threshold
		}
	}
	finding.Message = strings.Join(messages, " ")
	return finding, spoke
}

// Gain is the gain over the lowest, and the loss under the highest, earlier value of a parameter measured within the
// window before the reading; ok is false when there is none. Source: docs/decisions/alerts.md, "Weight rule".
func Gain(p *vitals.Parameter, value float64, at time.Time, windowDays int, weighings []Weighing) (gain, loss float64, ok bool) {
	from := at.AddDate(0, 0, -windowDays)
	for _, w := range weighings {
		if w.Of != p || w.MeasuredAt.Before(from) || !w.MeasuredAt.Before(at) {
			continue
		}
		rise := cents(value - w.Value)
		if !ok {
			gain, loss, ok = rise, -rise, true
			continue
		}
		gain, loss = max(gain, rise), max(loss, -rise)
	}
	return gain, loss, ok
}

// changed holds a parameter against its earlier values. It has nothing to say when there are none.
func changed(r vitals.Reading, p *vitals.Parameter, rule ChangeRule, weighings []Weighing) (Finding, bool) {
	value := r.Value(p)
	if value == nil {
		return Finding{}, false
	}
	gain, loss, known := Gain(p, *value, r.MeasuredAt, rule.WindowDays, weighings)
	if !known {
		return Finding{}, false
	}
	finding := Finding{Type: p.Group, Parameter: p.Name}
	breach := func(level Level, change, bound float64, direction string) Finding {
		finding.Level, finding.Value, finding.Threshold = level, change, bound
		finding.Message = fmt.Sprintf("%s %s of %s %s within %d days is at or above the %s limit %s %s.",
			p.Label, direction, number(math.Abs(change)), p.Range.Unit, rule.WindowDays, level, number(bound), p.Range.Unit)
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
func cents(value float64) float64 { return math.Round(value*100) / 100 }

// number writes a value as people do: 185, 92.5.
func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// autoResolveWithin bounds the age of a threshold alert that later readings may resolve.
// Source: docs/decisions/alerts.md, "Auto-resolve".
const autoResolveWithin = 24 * time.Hour

// Open is an unacknowledged alert as far as later readings are concerned.
type Open struct {
	ID             string
	Type           string
	Level          Level
	DeviceID       string // "" when it is about no device
	MeasuredAt     time.Time
	CreatedAt      time.Time
	NormalReadings int
	// Parameter is the name of the worst one, Value its value, which means nothing for an alert about no value; Origin is that of
	// the reading.
	Parameter string
	Value     float64
	Origin    vitals.Origin
	// Reported are all values behind a critical alert that are held against bounds.
	Reported []Reported
}

// NormalReadingsNeeded says how many consecutive normal readings resolve an alert.
type NormalReadingsNeeded struct{ Warning, Critical int }

// Progress is what a reading does to an open alert: it counts as normal, breaks the run, or resolves it.
type Progress struct {
	Alert          Open
	NormalReadings int
	Resolved       bool
}
