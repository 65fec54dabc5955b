package vitalsummary

import (
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// periodCounter counts the readings of one period, in order of measurement.
type periodCounter struct {
	first  string // date
	bounds alerts.Thresholds
	counts []groupCounter // by index in Groups
}

// groupCounter counts the readings of one group.
type groupCounter struct {
	group   Group
	lastDay string
	inRange int64
	bounded bool
}

func newPeriodCounter(first string, bounds alerts.Thresholds) *periodCounter {
	t := &periodCounter{first: first, bounds: bounds, counts: make([]groupCounter, len(Groups))}
	for i, group := range Groups {
		c := &t.counts[i]
		c.group = group
		for _, values := range []*Values{&c.group.All, &c.group.Morning, &c.group.Evening} {
			values.sums = make([]sum, len(vitals.Parameters))
		}
		for _, p := range group.Parameters {
			c.bounded = c.bounded || bounds.Limits(p) != vitals.Limits{}
		}
	}
	return t
}

// add counts a reading with its time in the patient's zone.
func (pc *periodCounter) add(m measurement) {
	day := m.at.Format(time.DateOnly)
	if day < pc.first {
		return
	}
	for i := range pc.counts {
		pc.counts[i].add(m, day, pc.bounds)
	}
}

func (c *groupCounter) add(m measurement, day string, bounds alerts.Thresholds) {
	parts := []*Values{&c.group.All}
	switch hour := m.at.Hour(); {
	case hour >= morningFrom && hour < morningTo:
		parts = append(parts, &c.group.Morning)
	case hour >= eveningFrom && hour < eveningTo:
		parts = append(parts, &c.group.Evening)
	}
	measured, inRange := false, true
	for _, p := range c.group.Parameters {
		value := m.reading.Value(p)
		if value == nil {
			continue
		}
		measured, inRange = true, inRange && isInRange(*value, bounds.Limits(p).ForMeal(m.reading.Qualifier(vitals.MealContext)))
		for _, part := range parts {
			part.add(p.Index(), *value)
		}
	}
	if !measured {
		return
	}
	for _, part := range parts {
		part.Readings++
	}
	c.group.Readings++
	if day != c.lastDay {
		c.group.Days, c.lastDay = c.group.Days+1, day
	}
	if m.manual {
		c.group.Manual++
	} else {
		c.group.ByDevice++
	}
	if inRange {
		c.inRange++
	}
}

// isInRange reports whether a value is within all bounds; a value at a bound is not. Source: docs/decisions/alerts.md, "Default
// thresholds".
func isInRange(value float64, l vitals.Limits) bool {
	for _, low := range []*float64{l.Low, l.CriticalLow} {
		if low != nil && value <= *low {
			return false
		}
	}
	for _, high := range []*float64{l.High, l.Critical} {
		if high != nil && value >= *high {
			return false
		}
	}
	return true
}

func (pc *periodCounter) groups() []Group {
	groups := make([]Group, len(pc.counts))
	for i, c := range pc.counts {
		groups[i] = c.group
		if c.bounded && c.group.Readings > 0 {
			groups[i].InRange = new(tenths(1000*c.inRange, int64(c.group.Readings)))
		}
	}
	return groups
}
