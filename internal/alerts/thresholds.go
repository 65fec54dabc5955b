// Package alerts defines a patient's thresholds, evaluates readings against them, and decides when later readings resolve an alert.
// Decisions use plain values; the caller stores them in its transaction. Requests, notifications and the EMR are outside of this package.
// The rules are in docs/decisions/alerts.md.
package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Bounds are thresholds as stored: group, field, value. A missing field is inherited from the practice's defaults, a null field removes the
// bound, and a null group raises no alerts. Source: docs/decisions/alerts.md, "No thresholds, no alert".
type Bounds map[string]map[string]*float64

// ParseBounds reads stored bounds; an empty text has none.
func ParseBounds(stored string) (Bounds, error) {
	bounds := Bounds{}
	if stored == "" || stored == "null" {
		return bounds, nil
	}
	if err := json.Unmarshal([]byte(stored), &bounds); err != nil {
		return nil, fmt.Errorf("read thresholds: %w", err)
	}
	return bounds, nil
}

// ChangeRule bounds the change of a parameter within calendar days of the patient; nil for no bound.
type ChangeRule struct {
	Change, CriticalChange *float64
	WindowDays             int
	// Daily bounds the gain since the previous calendar day, and Over the amount above Target.
	Daily, Target, Over *float64
	// SlowGain and SlowCritical bound the gain over weeks, and Losses the losses.
	SlowGain, SlowCritical *float64
	Losses                 []LossRule
	// Zone is the name of the patient's time zone; "" is UTC.
	Zone string
}

// LossRule bounds the loss in percent within a number of days.
type LossRule struct {
	Days    int
	Percent *float64
}

// Loss returns the bound of the loss within a number of days; nil for none.
func (r ChangeRule) Loss(days int) *float64 {
	for _, rule := range r.Losses {
		if rule.Days == days {
			return rule.Percent
		}
	}
	return nil
}

// Since returns the start of the window of calendar days that ends at the given time.
func (r ChangeRule) Since(at time.Time, days int) time.Time {
	return collections.StartOfDay(at.In(collections.Zone(r.Zone, time.UTC)).AddDate(0, 0, -days))
}

// Thresholds are the bounds in force for one patient, indexed by parameter. They are never changed in place.
type Thresholds struct {
	limits  []vitals.Limits
	changes []ChangeRule
	zone    string
	// proposed are bounds of undecided templates, most of them in force.
	proposed []ProvisionalBound
}

// In returns the thresholds with the patient's time zone; the default is UTC.
func (t Thresholds) In(zone *time.Location) Thresholds {
	if t.zone = zone.String(); t.zone == time.UTC.String() {
		t.zone = ""
	}
	return t
}

// Limits returns the bounds of a parameter.
func (t Thresholds) Limits(p *vitals.Parameter) (limits vitals.Limits) {
	if t.limits != nil {
		limits = t.limits[p.Index()]
	}
	return limits
}

// Change returns the rule of a parameter that is watched for changes.
func (t Thresholds) Change(p *vitals.Parameter) (rule ChangeRule) {
	if t.changes != nil {
		rule = t.changes[p.Index()]
	}
	rule.Zone = t.zone
	return rule
}

// InForce combines a patient's own bounds with the practice's defaults. Where they would break the order critical_low < low < high < critical,
// a critical bound displaces a warning, and otherwise a bound of the patient's own an inherited one. Source: docs/decisions/alerts.md, "Extra threshold fields".
func InForce(defaults, own Bounds) Thresholds {
	t := Thresholds{limits: make([]vitals.Limits, len(vitals.Parameters)), changes: make([]ChangeRule, len(vitals.Parameters))}
	for _, p := range vitals.ThresholdParameters {
		if p.Change != nil {
			t.changes[p.Index()] = changeRule(p, defaults, own)
			continue
		}
		bound := func(side vitals.Bound) bound { return boundInForce(defaults, own, p.Group, p.Prefix+string(side)) }
		limits := ordered(bound(vitals.CriticalLow), bound(vitals.Low), bound(vitals.High), bound(vitals.Critical))
		if slices.Contains(p.Bounds, vitals.FastingHigh) {
			limits.FastingHigh = fastingInForce(bound(vitals.FastingHigh), limits)
		}
		t.limits[p.Index()] = limits
	}
	return t
}

// bound is one value in force.
type bound struct {
	value     *float64
	inherited bool
	explicit  bool // set for the patient, possibly to null
}

func boundInForce(defaults, own Bounds, group, field string) bound {
	fields, configured := own[group]
	if configured && fields == nil {
		return bound{explicit: true} // the group is switched off
	}
	if value, set := fields[field]; set {
		return bound{value: value, explicit: true}
	}
	return bound{value: defaults[group][field], inherited: true}
}

// ordered drops one of two bounds that exclude each other: the warning if the other is critical,
// else the inherited one. A stricter critical bound of the practice thus displaces an own warning.
func ordered(ascending ...bound) vitals.Limits {
	isCritical := func(i int) bool { return i == 0 || i == len(ascending)-1 }
	fits := func(i int) *float64 {
		candidate := ascending[i]
		for j, other := range ascending {
			if candidate.value == nil || other.value == nil || candidate.inherited == other.inherited || !isContradiction(i, *candidate.value, j, *other.value) {
				continue
			}
			if isCritical(i) != isCritical(j) && isCritical(j) || isCritical(i) == isCritical(j) && candidate.inherited {
				return nil
			}
		}
		return candidate.value
	}
	return vitals.Limits{CriticalLow: fits(0), Low: fits(1), High: fits(2), Critical: fits(3)}
}

// fastingInForce drops an inherited bound of fasting values that contradicts the other bounds. It never displaces one of them.
func fastingInForce(fasting bound, l vitals.Limits) *float64 {
	if fasting.value == nil || !fasting.inherited {
		return fasting.value
	}
	for _, lower := range []*float64{l.CriticalLow, l.Low} {
		if lower != nil && *lower >= *fasting.value {
			return nil
		}
	}
	for _, upper := range []*float64{l.High, l.Critical} {
		if upper != nil && *upper < *fasting.value {
			return nil
		}
	}
	return fasting.value
}

// changeRule returns the rule in force. An unset critical change is twice the change in force.
func changeRule(p *vitals.Parameter, defaults, own Bounds) ChangeRule {
	rule := ChangeRule{
		WindowDays: p.Change.DefaultWindow, Change: boundInForce(defaults, own, p.Group, p.Change.Threshold).value,
		Daily: boundInForce(defaults, own, p.Group, p.Change.Daily).value, Over: boundInForce(defaults, own, p.Group, p.Change.Over).value,
		Target:   own[p.Group][p.Change.Target], // never inherited
		SlowGain: boundInForce(defaults, own, p.Group, p.Change.SlowGain).value,
	}
	slow := boundInForce(defaults, own, p.Group, p.Change.SlowCritical)
	if rule.SlowCritical = slow.value; slow.inherited && slow.value != nil && rule.SlowGain != nil && *slow.value <= *rule.SlowGain {
		rule.SlowGain = nil // as in ordered
	}
	for _, loss := range p.Change.Losses {
		if percent := boundInForce(defaults, own, p.Group, loss.Field).value; percent != nil {
			rule.Losses = append(rule.Losses, LossRule{loss.Days, percent})
		}
	}
	if window := boundInForce(defaults, own, p.Group, p.Change.Window).value; window != nil {
		rule.WindowDays = int(*window)
	}
	critical := boundInForce(defaults, own, p.Group, p.Change.Critical)
	rule.CriticalChange = critical.value
	inheritedBreaks := critical.inherited && critical.value != nil && rule.Change != nil && *critical.value <= *rule.Change
	if !critical.explicit && (critical.value == nil || inheritedBreaks) && rule.Change != nil {
		twice := 2 * *rule.Change
		rule.CriticalChange = &twice
	}
	return rule
}

// InForceCache combines stored bounds once per set of texts: most patients have no own bounds, so a page parses the practice's once. It is
// for one goroutine.
type InForceCache map[[3]string]Thresholds

// NewInForceCache returns an empty cache.
func NewInForceCache() InForceCache { return InForceCache{} }

// Thresholds returns the thresholds in force under the stored bounds of the practice, of a patient and of undecided templates; nil or "" for none.
func (c InForceCache) Thresholds(practice, own, proposed *string) (Thresholds, error) {
	key := [3]string{orEmpty(practice), orEmpty(own), orEmpty(proposed)}
	if found, ok := c[key]; ok {
		return found, nil
	}
	defaults, err := ParseBounds(key[0])
	if err != nil {
		return Thresholds{}, err
	}
	bounds, err := ParseBounds(key[1])
	if err != nil {
		return Thresholds{}, err
	}
	templates, err := parseProposed(key[2])
	if err != nil {
		return Thresholds{}, err
	}
	c[key] = inForceWith(defaults, bounds, templates)
	return c[key], nil
}

func orEmpty(stored *string) string {
	if stored == nil {
		return ""
	}
	return *stored
}
