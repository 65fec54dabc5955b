// Package alerts knows a patient's thresholds and what a reading means against them: which bound is met, how
// severe that is, and when later readings show that it is over. It decides with plain values; storing is done by
// whoever applies the decision, in their transaction. It knows nothing of requests, pushes or the EMR.
package alerts

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Bounds are thresholds as they are stored: group, field, value. A missing field is inherited from the practice's
// defaults, a null field removes that bound, and a null group raises no alerts at all.
// Source: docs/decisions/alerts.md, "No thresholds, no alert".
type Bounds map[string]map[string]*float64

// ParseBounds reads stored bounds; nothing stored is no bounds.
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

// ChangeRule says which change, within how many calendar days of the patient, deserves attention; nil where there is no bound.
type ChangeRule struct {
	Change, CriticalChange *float64
	WindowDays             int
	// Daily is the bound of a gain since the calendar day before, and Over that of the amount above Target.
	Daily, Target, Over *float64
	// Zone is the name of the time zone of the patient's days; "" is UTC.
	Zone string
}

// Since is when the calendar days begin that a change up to the given time is looked for in.
func (r ChangeRule) Since(at time.Time, days int) time.Time {
	return collections.StartOfDay(at.In(collections.Zone(r.Zone, time.UTC)).AddDate(0, 0, -days))
}

// Thresholds are what is in force for one patient, by the place of the parameter. They are never changed in place.
type Thresholds struct {
	limits  []vitals.Limits
	changes []ChangeRule
	zone    string
}

// In says where the patient's days begin; UTC where nobody says it.
func (t Thresholds) In(zone *time.Location) Thresholds {
	if t.zone = zone.String(); t.zone == time.UTC.String() {
		t.zone = ""
	}
	return t
}

// Of are the bounds of a parameter.
func (t Thresholds) Of(p *vitals.Parameter) (limits vitals.Limits) {
	if t.limits != nil {
		limits = t.limits[p.Place()]
	}
	return limits
}

// Change is the rule of a parameter that is watched for its changes.
func (t Thresholds) Change(p *vitals.Parameter) (rule ChangeRule) {
	if t.changes != nil {
		rule = t.changes[p.Place()]
	}
	rule.Zone = t.zone
	return rule
}

// InForce combines a patient's own bounds with the practice's defaults. An inherited default that would break the
// order critical_low < low < high < critical is not applied. Source: docs/decisions/alerts.md, "Extra threshold fields".
func InForce(defaults, own Bounds) Thresholds {
	t := Thresholds{limits: make([]vitals.Limits, len(vitals.Parameters)), changes: make([]ChangeRule, len(vitals.Parameters))}
	for _, p := range vitals.Watched {
		if p.Change != nil {
			t.changes[p.Place()] = changeRule(p, defaults, own)
			continue
		}
		bound := func(side vitals.Side) bound { return pick(defaults, own, p.Group, p.Prefix+string(side)) }
		t.limits[p.Place()] = ordered(bound(vitals.CriticalLow), bound(vitals.Low), bound(vitals.High), bound(vitals.Critical))
	}
	return t
}

// bound is one value in force and whether the patient inherited it.
type bound struct {
	value     *float64
	inherited bool
	explicit  bool // set for the patient, perhaps to nothing
}

func pick(defaults, own Bounds, group, field string) bound {
	fields, configured := own[group]
	if configured && fields == nil {
		return bound{explicit: true} // the group is switched off
	}
	if value, set := fields[field]; set {
		return bound{value: value, explicit: true}
	}
	return bound{value: defaults[group][field], inherited: true}
}

// ordered drops every inherited bound that contradicts one set for the patient.
func ordered(ascending ...bound) vitals.Limits {
	fits := func(i int) *float64 {
		candidate := ascending[i]
		if candidate.value == nil || !candidate.inherited {
			return candidate.value
		}
		for j, other := range ascending {
			if other.value == nil || other.inherited {
				continue
			}
			if (j < i && *other.value >= *candidate.value) || (j > i && *other.value <= *candidate.value) {
				return nil
			}
		}
		return candidate.value
	}
	return vitals.Limits{CriticalLow: fits(0), Low: fits(1), High: fits(2), Critical: fits(3)}
}

// changeRule: a critical change that nobody set is twice the change in force.
func changeRule(p *vitals.Parameter, defaults, own Bounds) ChangeRule {
	rule := ChangeRule{
		WindowDays: p.Change.DefaultWindow, Change: pick(defaults, own, p.Group, p.Change.Threshold).value,
		Daily: pick(defaults, own, p.Group, p.Change.Daily).value, Over: pick(defaults, own, p.Group, p.Change.Over).value,
		Target: own[p.Group][p.Change.Target], // no two patients have the same
	}
	if window := pick(defaults, own, p.Group, p.Change.Window).value; window != nil {
		rule.WindowDays = int(*window)
	}
	critical := pick(defaults, own, p.Group, p.Change.Critical)
	rule.CriticalChange = critical.value
	inheritedBreaks := critical.inherited && critical.value != nil && rule.Change != nil && *critical.value <= *rule.Change
	if !critical.explicit && (critical.value == nil || inheritedBreaks) && rule.Change != nil {
		twice := 2 * *rule.Change
		rule.CriticalChange = &twice
	}
	return rule
}

// InForceMemory combines stored bounds, each pair of texts once: most patients have none of their own, so that a page of
// them reads the practice's a single time. It serves one goroutine.
type InForceMemory map[[2]string]Thresholds

// NewInForce returns an empty memory.
func NewInForce() InForceMemory { return InForceMemory{} }

// Of is what is in force under the stored bounds of the practice and of a patient; nil or "" for none.
func (m InForceMemory) Of(practice, own *string) (Thresholds, error) {
	key := [2]string{orNone(practice), orNone(own)}
	if known, ok := m[key]; ok {
		return known, nil
	}
	defaults, err := ParseBounds(key[0])
	if err != nil {
		return Thresholds{}, err
	}
	bounds, err := ParseBounds(key[1])
	if err != nil {
		return Thresholds{}, err
	}
	m[key] = InForce(defaults, bounds)
	return m[key], nil
}

func orNone(stored *string) string {
	if stored == nil {
		return ""
	}
	return *stored
}
