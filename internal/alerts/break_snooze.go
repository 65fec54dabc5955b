package alerts

import (
	"encoding/json"
	"math"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// breakingPart of the way from the critical bound to the end of what can be measured is how much worse than what was known a value
	// has to be to be told in spite of a snooze. Source: docs/decisions/alerts.md, "Breaking through a snooze".
	breakingPart = 0.1
	// changeRange says where the range of a change ends, in critical changes: it has no range of its own.
	changeRange = 3

	// What a snooze covers when it begins is known: what waits on the list, if it is not forgotten there, and what somebody has
	// acknowledged since yesterday.
	knownOpen, knownAcknowledged = 7 * 24 * time.Hour, 24 * time.Hour
)

// Known is the worst value of a parameter, in one direction, of the alerts that a snooze covered when it began.
type Known struct {
	Parameter string  `json:"parameter"`
	High      bool    `json:"high"`
	Value     float64 `json:"value"`
}

// ParseKnown reads what was stored with a snooze. Nothing that can be read is nothing known.
func ParseKnown(stored string) (known []Known) {
	if stored == "" || json.Unmarshal([]byte(stored), &known) != nil {
		return nil
	}
	return known
}

// Quiet says whether nobody is to be told of a finding in a reading because its kind is snoozed, and whether it breaks through the snooze.
func Quiet(snoozes []Snooze, f Finding, r vitals.Reading, t Thresholds, at time.Time) (quiet, breaks bool) {
	for _, s := range snoozes {
		if !s.Covers(f.Type, f.Level, at) {
			continue
		}
		if f.Level != Critical || !s.brokenBy(f, r, t) {
			quiet = true
			continue
		}
		breaks = true
	}
	return quiet && !breaks, breaks
}

// extreme is a value at or beyond a critical bound.
type extreme struct {
	Known
	bound, end float64
}

// extremes are the critical values that a finding is about.
func extremes(f Finding, r vitals.Reading, t Thresholds) (list []extreme) {
	for _, group := range r.Kind.Definition().Groups {
		if group[0].Group != f.Type {
			continue
		}
		if group[0].Change != nil {
			return []extreme{changed(f.Parameter, f.Value, f.Threshold)}
		}
		for _, p := range group {
			if value := r.Value(p); value != nil {
				list = append(list, t.extreme(p, *value)...)
			}
		}
	}
	return list
}

// changed is a change at or beyond a critical one.
func changed(parameter string, value, bound float64) extreme {
	bound = math.Copysign(bound, value)
	return extreme{Known{parameter, value >= 0, value}, bound, changeRange * bound}
}

// extreme is a value at or beyond a critical bound, or nothing.
func (t Thresholds) extreme(p *vitals.Parameter, value float64) []extreme {
	switch limits := t.Of(p); {
	case limits.Critical != nil && value >= *limits.Critical:
		return []extreme{{Known{p.Name, true, value}, *limits.Critical, p.Range.Max}}
	case limits.CriticalLow != nil && value <= *limits.CriticalLow:
		return []extreme{{Known{p.Name, false, value}, *limits.CriticalLow, p.Range.Min}}
	}
	return nil
}

// brokenBy reports whether a critical finding is more than what was known when the snooze began: worse, in another parameter, or in the
// other direction. Where nothing was known the bound itself stands for it: whoever had critical values included expected some.
func (s Snooze) brokenBy(f Finding, r vitals.Reading, t Thresholds) bool {
	return worse(extremes(f, r, t), s.Known, len(s.Known) == 0)
}

// worse reports whether any of the values is more than what is known; expected, that a value near its bound is known, too.
func worse(found []extreme, all []Known, expected bool) bool {
	for _, e := range found {
		reference, known := e.bound, expected
		for _, k := range all {
			if k.Parameter == e.Parameter && k.High == e.High {
				reference, known = k.Value, true
			}
		}
		worse := e.Value - reference
		if !e.High {
			worse = -worse
		}
		if !known || worse > 0 && cents(worse) >= cents(breakingPart*math.Abs(e.end-e.bound)) {
			return true
		}
	}
	return false
}

// knownTo is what a snooze of a type knows when it begins: the values of the alerts that are not over, and what else was critical in their
// readings.
func knownTo(tx core.App, patientID, alertType string, now time.Time) (known []Known, err error) {
	covered, err := collections.KnownAlerts(tx, patientID, alertType, now.Add(-knownOpen), now.Add(-knownAcknowledged))
	if err != nil {
		return nil, err
	}
	return knownOf(tx, patientID, alertType, covered)
}

// knownOf are the values of alerts, and what else was critical in their readings.
func knownOf(tx core.App, patientID, alertType string, covered []collections.KnownAlert) (known []Known, err error) {
	if len(covered) == 0 {
		return nil, nil
	}
	c, err := Configured(tx, patientID)
	if err != nil {
		return nil, err
	}
	for _, alert := range covered {
		known = worstOf(known, Known{alert.Parameter, c.InForce.high(alert), *alert.Value})
		record, err := collections.FindObservation(tx, alert.Observation)
		if collections.Missing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, p := range vitals.Watched {
			value, limits := collections.Optional(record, p.Column), c.InForce.Of(p)
			if p.Group != alertType || p.Change != nil || value == nil {
				continue
			}
			if limits.Critical != nil && *value >= *limits.Critical {
				known = worstOf(known, Known{p.Name, true, *value})
			}
			if limits.CriticalLow != nil && *value <= *limits.CriticalLow {
				known = worstOf(known, Known{p.Name, false, *value})
			}
		}
	}
	return known, nil
}

// worstOf adds a value to the worst ones.
func worstOf(known []Known, more Known) []Known {
	for i, k := range known {
		if k.Parameter != more.Parameter || k.High != more.High {
			continue
		}
		if more.High == (more.Value > k.Value) {
			known[i].Value = more.Value
		}
		return known
	}
	return append(known, more)
}

// high reports whether an alert is about a value that is too high, or about a gain. One that just meets its bound is told by which bound
// that is.
func (t Thresholds) high(alert collections.KnownAlert) bool {
	for _, p := range vitals.Watched {
		if p.Name != alert.Parameter || p.Change != nil || alert.Threshold == nil {
			continue
		}
		if *alert.Value != *alert.Threshold {
			return *alert.Value > *alert.Threshold
		}
		limits := t.Of(p)
		return !equal(limits.CriticalLow, alert.Threshold) && !equal(limits.Low, alert.Threshold)
	}
	return *alert.Value >= 0
}
