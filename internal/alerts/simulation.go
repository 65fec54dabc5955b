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

// DayTally is one day of a simulation: what was raised, and what would have been.
type DayTally struct {
	Day               string // YYYY-MM-DD
	Actual, Simulated Tally
}

// Raised is an alert that a reading really raised.
type Raised struct {
	Type, Parameter  string
	Level            Level
	Value, Threshold *float64
}

// Missed is a reading that really raised a critical alert, and under the proposed thresholds would not have.
type Missed struct {
	ObservationID, PatientID string
	MeasuredAt               time.Time
	Raised                   Raised
	// Simulated is what would have been raised instead; "" for nothing.
	Simulated Level
}

// missedShown bounds the readings that a simulation names; all are counted.
const missedShown = 100

// Simulation adds up what proposed thresholds make of readings, beside what really came of them.
type Simulation struct {
	Patients, Readings int
	Actual, Simulated  Tally
	Days               []DayTally // every day of the span, in order
	MissedCount        int
	Missed             []Missed // the first hundred

	zone *time.Location
	from time.Time
	days map[string]int
}

// NewSimulation covers the days from one time to another, as the zone has them.
func NewSimulation(from, to time.Time, zone *time.Location) *Simulation {
	s := &Simulation{zone: zone, from: from, days: map[string]int{}, Days: []DayTally{}, Missed: []Missed{}}
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

// Judge adds one reading: what it raised, and what the proposed thresholds say of it. weighings are the patient's earlier
// weights.
func (s *Simulation) Judge(
	observationID, patientID string, r vitals.Reading, proposed Thresholds, weighings []Weighing, raised []Raised,
) {
	at, counted := s.days[r.MeasuredAt.In(s.zone).Format(time.DateOnly)]
	if !counted || r.MeasuredAt.Before(s.from) {
		return
	}
	day := &s.Days[at]
	s.Readings++
	findings := Evaluate(r, proposed, weighings)
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
			if len(s.Missed) < missedShown {
				s.Missed = append(s.Missed, Missed{observationID, patientID, r.MeasuredAt, alert, finding.Level})
			}
		}
	}
}
