package alerts

import (
	"fmt"
	"slices"
	"strconv"
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

// aboutReadings are the types about what was measured: the care team is to answer them, also where it is to say whose it is or when it was.
var aboutReadings = slices.Concat(ReadingTypes, []string{TypeImplausibleReading, TypeSuspectReading, TypeDeviceClock, TypeIrregularHeartbeat})

// AboutReading reports whether alerts of this type are about what was measured; the others are about devices and data that did not come.
func AboutReading(alertType string) bool { return slices.Contains(aboutReadings, alertType) }

// Types are all alert types.
var Types = slices.Concat(aboutReadings, DeviceTypes)

// DeviceTypes are those about devices and hubs, and about data that did not come.
var DeviceTypes = []string{TypeMissedReading, TypeNoReading24h, TypeDeviceBattery, TypeHubOffline, TypeStaleReading, TypeDeviceInfo}

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

// Date has the message state when the reading was taken, as that of a late one does: late data must not hide danger, nor pass for fresh.
// Source: docs/decisions/conventions.md, "Future and past measurement times".
func (f *Finding) Date(measuredAt time.Time) {
	f.Message += " Measured " + validate.FormatInstant(measuredAt) + "."
}

// Weighing is an earlier value of a parameter that is watched for its changes.
type Weighing struct {
	Of         *vitals.Parameter
	Value      float64
	MeasuredAt time.Time
	// Confirmed values were doubted once, and borne out.
	Confirmed bool
	// Origin says who vouches for it, where that is asked: staff, if somebody confirmed it.
	Origin vitals.Origin
}

// Evaluate compares a reading with the thresholds in force: one finding for each alert type it can speak about, worst
// parameter first. weighings are what changes are measured against; those outside the window are left aside.
// Source: docs/decisions/alerts.md, "One alert per vital type and reading" and "Weight rule".
func Evaluate(r vitals.Reading, t Thresholds, weighings []Weighing) []Finding {
	var findings []Finding
	for _, group := range r.Kind.Definition().Groups {
		finding, spoke := worst(r, group, t)
		if group[0].Change != nil {
			finding, spoke = weighed(r, group[0], t.Change(group[0]), weighings)
		}
		if spoke {
			findings = append(findings, finding)
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
