package alerts

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Reported is a value behind an alert, in the unit of its parameter.
type Reported struct {
	Of    *vitals.Parameter
	Value float64
}

// ReportedBy are the values of a reading that an alert of this type speaks about, all of them: the alert itself names only the first of
// equally severe ones, which need not be the most dangerous. What is watched for changes is left out: there the alert's own value is the
// change.
func ReportedBy(r *vitals.Reading, alertType string) (list []Reported) {
	for _, p := range vitals.Watched {
		if p.Group != alertType || p.Change != nil {
			continue
		}
		if value := r.Value(p); value != nil {
			list = append(list, Reported{p, *value})
		}
	}
	return list
}

// ReadReported reads what was reported of values that became no reading, as JSON by field, in the order of the parameters. Fields that
// are no number of a parameter with bounds mean nothing here.
func ReadReported(stored string) (list []Reported, err error) {
	if stored == "" || stored == "null" {
		return nil, nil
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(stored), &fields); err != nil {
		return nil, fmt.Errorf("read reported values: %w", err)
	}
	for _, p := range vitals.Watched {
		if p.Change != nil {
			continue
		}
		if value, told := reportedAs(p, fields); told {
			list = append(list, Reported{p, value})
		}
	}
	return list, nil
}

// Alarms reports whether a value is why an implausible measurement alarms: it lies outside of what may be sent, or beyond a critical bound
// beside one that does.
func (t Thresholds) Alarms(p *vitals.Parameter, value float64) bool {
	level, _, _ := breach(p, value, t.Of(p))
	return level == Critical || len(p.Outside(value)) > 0
}

// Alarming are the types about which a measurement alarms that became no reading, as it was stored: JSON by column, and the name of the
// parameter that its alert was raised for.
func (t Thresholds) Alarming(stored, named string) (types []string, err error) {
	var fields map[string]float64
	if err := json.Unmarshal([]byte(stored), &fields); err != nil {
		return nil, fmt.Errorf("read reported values: %w", err)
	}
	for _, p := range vitals.Watched {
		value, told := fields[p.Column]
		if told && (p.Name == named || t.Alarms(p, value)) && !slices.Contains(types, p.Group) {
			types = append(types, p.Group)
		}
	}
	return types, nil
}

// reportedAs finds a parameter's value under its own name or in one of its other units.
func reportedAs(p *vitals.Parameter, fields map[string]any) (value float64, told bool) {
	for _, name := range []string{p.Column, p.Name} {
		if value, told = fields[name].(float64); told {
			return value, true
		}
	}
	for _, unit := range p.Units {
		if value, told = fields[unit.Field].(float64); told {
			return unit.Convert(value), true
		}
	}
	return 0, false
}

// Values are what the alert is about: all that was reported, or its worst value alone where no more is known. Of what is watched for
// changes it is the change, whichever rule names it.
func (o Open) Values() []Reported {
	if o.Reported != nil || !FromReading(o.Type) {
		return o.Reported
	}
	for _, p := range vitals.Watched {
		if p.Group == o.Type && (p.Change != nil || p.Name == o.Parameter) {
			return []Reported{{p, o.Value}}
		}
	}
	return nil
}
