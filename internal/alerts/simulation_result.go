package alerts

import (
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// Tally counts alerts by level.
type Tally struct {
	Critical int `json:"critical"`
	Warning  int `json:"warning"`
}

func (t *Tally) add(level Level) {
	switch level {
	case Critical:
		t.Critical++
	case Warning:
		t.Warning++
	}
}

// DayTally is one day of a simulation: alerts raised, and alerts that the proposal would raise.
type DayTally struct {
	Day               string // YYYY-MM-DD
	Actual, Simulated Tally
}

// RaisedAlert is an alert that a reading raised.
type RaisedAlert struct {
	Type, Parameter  string
	Level            Level
	Value, Threshold *float64
}

// MissedAlert is a reading that raised a critical alert and would not under the proposed thresholds.
type MissedAlert struct {
	ObservationID, PatientID string
	MeasuredAt               time.Time
	Raised                   RaisedAlert
	// Simulated is the level that would be raised instead; "" for none.
	Simulated Level
}

// maxMissedListed limits the missed alerts that a simulation lists; all are counted.
const maxMissedListed = 100

// Simulation compares, over many readings, the alerts raised with those that the proposed thresholds would raise.
type Simulation struct {
	Patients, Readings int
	Actual, Simulated  Tally
	Days               []DayTally // every day of the span, in order
	MissedCount        int
	Missed             []MissedAlert // the first 100

	zone *time.Location
	from time.Time
	days map[string]int
}

// NewSimulation covers the calendar days between two times in a zone.
func NewSimulation(from, to time.Time, zone *time.Location) *Simulation {
	s := &Simulation{zone: zone, from: from, days: map[string]int{}, Days: []DayTally{}, Missed: []MissedAlert{}}
	last := to.In(zone).Format(time.DateOnly)
	for day := from.In(zone); ; day = day.AddDate(0, 0, 1) {
		name := day.Format(time.DateOnly)
		if name > last {
			return s
		}
		s.days[name] = len(s.Days)
		s.Days = append(s.Days, DayTally{Day: name})
	}
}

// Add adds one reading: the alerts it raised, and those under the proposed thresholds. baseline holds the patient's earlier weights.
func (s *Simulation) Add(
	observationID, patientID string, r vitals.Reading, proposed Thresholds, baseline []BaselineValue, raised []RaisedAlert,
) {
	at, counted := s.days[r.MeasuredAt.In(s.zone).Format(time.DateOnly)]
	if !counted || r.MeasuredAt.Before(s.from) {
		return
	}
	day := &s.Days[at]
	s.Readings++
	findings := Evaluate(r, proposed, baseline)
	for _, finding := range findings {
		day.Simulated.add(finding.Level)
		s.Simulated.add(finding.Level)
	}
	for _, alert := range raised {
		if !FromReading(alert.Type) {
			continue // no threshold raised it
		}
		day.Actual.add(alert.Level)
		s.Actual.add(alert.Level)
		if finding, _ := FindingOf(findings, alert.Type); alert.Level == Critical && finding.Level != Critical {
			s.MissedCount++
			if len(s.Missed) < maxMissedListed {
				s.Missed = append(s.Missed, MissedAlert{observationID, patientID, r.MeasuredAt, alert, finding.Level})
			}
		}
	}
}
