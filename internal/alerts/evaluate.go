package alerts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
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

// ReadingTypes are the alert types raised by thresholds, in the order of the kinds.
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

// Alert types about missing data; the first data resolves them.
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

// Alert types about a reading that do not come from thresholds.
const (
	TypeImplausibleReading = "implausible_reading" // values that no device should report: critical
	TypeSuspectReading     = "suspect_reading"     // values that may be another person's
	TypeDeviceClock        = "device_clock"        // a measurement time that cannot be trusted
	TypeIrregularHeartbeat = "irregular_heartbeat" // several flags in a row
)

// aboutReadings are the alert types that the care team answers, including those that only need an identity or a time confirmed.
var aboutReadings = slices.Concat(ReadingTypes, []string{TypeImplausibleReading, TypeSuspectReading, TypeDeviceClock, TypeIrregularHeartbeat, TypeEarlyWarning})

// AboutReading reports whether alerts of this type are about measured values; the others are about devices and missing data.
func AboutReading(alertType string) bool { return slices.Contains(aboutReadings, alertType) }

// Types lists all alert types.
var Types = slices.Concat(aboutReadings, DeviceTypes)

// MissingTypes are about readings that did not arrive; a patient hold suppresses them.
var MissingTypes = []string{TypeMissedReading, TypeNoReading24h, TypeHubOffline}

// DeviceTypes are the alert types about devices, hubs and missing data.
var DeviceTypes = []string{TypeMissedReading, TypeNoReading24h, TypeDeviceBattery, TypeHubOffline, TypeStaleReading, TypeDeviceInfo}

// Finding is the result of evaluating a reading for one alert type: a breach, or nothing breached.
type Finding struct {
	Type      string
	Level     Level // "" when nothing is breached
	Parameter string
	// Value and Threshold belong to the worst parameter, in its unit; for a change they are signed.
	Value, Threshold float64
	// Message names every breach. It is stored encrypted, because it is shown next to the patient's name.
	Message string
}

// Breached reports whether the finding raises an alert.
func (f Finding) Breached() bool { return f.Level != "" }

// AddMeasuredAt appends the measurement time to the message, for late readings: late data must not hide danger and must not look fresh.
// Source: docs/decisions/conventions.md, "Future and past measurement times".
func (f *Finding) AddMeasuredAt(measuredAt time.Time) {
	f.Message += " Measured " + validate.FormatInstant(measuredAt) + "."
}

// AddDeviceTime appends both times of a reading to the message, because nothing proves the clock of its device.
func (f *Finding) AddDeviceTime(measured, received time.Time) {
	f.Message += fmt.Sprintf(" Measured %s by the device's clock, which nothing proves, received %s.", validate.FormatInstant(measured), validate.FormatInstant(received))
}

// BaselineValue is an earlier value that a change is measured against.
type BaselineValue struct {
	Parameter  *vitals.Parameter
	Value      float64
	MeasuredAt time.Time
	// Confirmed values were suspect and then confirmed.
	Confirmed bool
	// Origin is who verified the value; staff, if a user confirmed it.
	Origin vitals.Origin
}

// Evaluate compares a reading with the thresholds in force and returns one finding per alert type, worst parameter first. Changes are
// measured against baseline; values outside the window are ignored.
// Source: docs/decisions/alerts.md, "One alert per vital type and reading" and "Weight rule".
func Evaluate(r vitals.Reading, t Thresholds, baseline []BaselineValue) []Finding {
	var findings []Finding
	for _, group := range r.Kind.Definition().Groups {
		finding, spoke := evaluateGroup(r, group, t)
		if group[0].Change != nil {
			finding, spoke = evaluateChange(r, group[0], t.Change(group[0]), baseline)
		}
		if spoke {
			if finding.Breached() {
				finding.Message += t.proposedNotes(r, group, finding)
			}
			findings = append(findings, finding)
		}
	}
	return findings
}

// breach returns the most severe bound that the value meets; bounds are inclusive. The message has the value as the text.
func breach(p *vitals.Parameter, value float64, text string, limits vitals.Limits) (level Level, threshold float64, message string) {
	side, threshold := limits.Breached(value)
	if side == "" {
		return "", 0, ""
	}
	level, where := Warning, "at or below"
	if side.IsCritical() {
		level = Critical
	}
	if side == vitals.Critical || side == vitals.High {
		where = "at or above"
	}
	return level, threshold, fmt.Sprintf("%s %s %s is %s the %s limit %s.", p.Label, text, p.Range.Unit, where, level, vitals.FormatNumber(threshold))
}

// evaluateGroup combines the parameters of one alert type; the first of the most severe ones gives value and threshold. spoke is false if
// none was measured.
func evaluateGroup(r vitals.Reading, group []*vitals.Parameter, t Thresholds) (finding Finding, spoke bool) {
	finding.Type = group[0].Group
	var messages []string
	for _, p := range group {
		value := r.Value(p)
		if value == nil {
			continue
		}
		spoke = true
		level, threshold, message := breach(p, *value, r.ValueText(p), t.Limits(p).ForMeal(r.Qualifier(vitals.MealContext)))
		if level == "" {
			continue
		}
		messages = append(messages, message)
		if finding.Level == "" || (level == Critical && finding.Level == Warning) {
			finding.Level, finding.Parameter, finding.Value, finding.Threshold = level, p.Name, *value, threshold
		}
	}
	if len(messages) > 0 && r.HasWeakSignal() {
		messages = append(messages, fmt.Sprintf("Perfusion index %s %%: weak signal, repeat.", r.ValueText(vitals.PerfusionIndex)))
	}
	finding.Message = strings.Join(messages, " ")
	return finding, spoke
}

// OpenAlert is an unacknowledged alert, as evaluation of later readings needs it.
type OpenAlert struct {
	ID             string
	Type           string
	Level          Level
	DeviceID       string // "" if the alert is not about a device
	MeasuredAt     time.Time
	CreatedAt      time.Time
	NormalReadings int
	// Parameter is the worst one and Value its value, unused for alerts without a value. Origin is the reading's.
	Parameter string
	Value     float64
	Origin    vitals.Origin
	// ResolvesWithin is how long later readings may resolve it, see [ResolveWindow].
	ResolvesWithin time.Duration
	// ReportedValue are all values behind a critical alert that have bounds.
	Reported []ReportedValue
	// Late: its reading arrived long after it was measured, so that the first newer one supersedes it.
	Late bool
	// TimeInDoubt: when its reading was measured is not known, so no other reading was measured after it.
	TimeInDoubt bool
	// UnprovenDevice is the device of its reading if nothing proves its clock: a reading of another device was measured after it only if it
	// was measured after its receipt. Nil for a proven clock.
	UnprovenDevice *string
}

// DangerAt is when the values of an alert may have been measured, at the latest: with an unproven clock when they were received.
func (o OpenAlert) DangerAt() time.Time {
	if o.UnprovenDevice != nil {
		return o.CreatedAt
	}
	return o.MeasuredAt
}

// NormalReadingsRequired is how many consecutive normal readings resolve an alert.
type NormalReadingsRequired struct{ Warning, Critical int }

// Progress is the effect of a reading on an open alert: the count of normal readings, and whether the alert is resolved; Superseded if only
// because the reading is newer.
type Progress struct {
	Alert                OpenAlert
	NormalReadings       int
	Resolved, Superseded bool
}

// Extremes picks, from the baseline of many readings, the lowest and the highest value of each span, which decide a change. Spans begin
// with a calendar day, so the readings of a day share one pass.
type Extremes struct {
	baseline []BaselineValue // in order of measurement
	spans    map[span]*extent
}

type span struct {
	of   *vitals.Parameter
	from time.Time
}

// extent is the lowest and highest value of a span before the last reading queried.
type extent struct {
	next      int // in the weighings
	low, high *BaselineValue
}

// NewExtremes returns the extremes of a baseline.
func NewExtremes(baseline []BaselineValue) *Extremes {
	baseline = slices.Clone(baseline)
	slices.SortStableFunc(baseline, func(a, b BaselineValue) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return &Extremes{baseline, map[span]*extent{}}
}

// DecidingValues returns the values that decide the changes of a reading, at most two per span. Readings must be queried in order of measurement.
func (d *Extremes) DecidingValues(r vitals.Reading, t Thresholds) (deciding []BaselineValue) {
	for _, p := range vitals.ChangeParameters {
		if r.Value(p) == nil {
			continue
		}
		rule := t.Change(p)
		for _, days := range []int{1, rule.WindowDays} {
			if e := d.before(span{p, rule.Since(r.MeasuredAt, days).UTC()}, r.MeasuredAt); e.low != nil {
				deciding = append(deciding, *e.low, *e.high)
			}
		}
	}
	return deciding
}

func (d *Extremes) before(s span, at time.Time) *extent {
	e := d.spans[s]
	if e == nil {
		first, _ := slices.BinarySearchFunc(d.baseline, s.from, func(w BaselineValue, from time.Time) int { return w.MeasuredAt.Compare(from) })
		e = &extent{next: first}
		d.spans[s] = e
	}
	for ; e.next < len(d.baseline) && d.baseline[e.next].MeasuredAt.Before(at); e.next++ {
		w := &d.baseline[e.next]
		if w.Parameter != s.of {
			continue
		}
		if e.low == nil || w.Value < e.low.Value {
			e.low = w
		}
		if e.high == nil || w.Value > e.high.Value {
			e.high = w
		}
	}
	return e
}
