package triage

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Moment is a time that is encoded as the contract shows times, so that what is stored is what callers see.
type Moment struct{ time.Time }

// MarshalJSON writes the time as the contract has it.
func (m Moment) MarshalJSON() ([]byte, error) { return json.Marshal(input.FormatInstant(m.Time)) }

// Latest is the latest reading of each kind, by time of measurement, in the contract's latest_vitals form. Of pulse, which
// two kinds may hold or leave out, the latest value is kept as well; [Latest.Shown] is without it.
type Latest struct {
	BloodPressure *LatestBloodPressure `json:"blood_pressure,omitempty"`
	Weight        *LatestWeight        `json:"weight,omitempty"`
	PulseOximetry *LatestPulseOximetry `json:"pulse_oximetry,omitempty"`
	BloodGlucose  *LatestBloodGlucose  `json:"blood_glucose,omitempty"`
	Pulse         *LatestPulse         `json:"pulse,omitempty"`
}

// LatestBloodPressure is in mmHg and beats per minute.
type LatestBloodPressure struct {
	Systolic   float64  `json:"systolic"`
	Diastolic  float64  `json:"diastolic"`
	Pulse      *float64 `json:"pulse"`
	MeasuredAt Moment   `json:"measured_at"`
}

// LatestWeight is in kilograms.
type LatestWeight struct {
	WeightKg   float64 `json:"weight_kg"`
	MeasuredAt Moment  `json:"measured_at"`
}

// LatestPulseOximetry is in percent and beats per minute.
type LatestPulseOximetry struct {
	SpO2       float64  `json:"spo2"`
	Pulse      *float64 `json:"pulse"`
	MeasuredAt Moment   `json:"measured_at"`
}

// LatestBloodGlucose is in mg/dL.
type LatestBloodGlucose struct {
	GlucoseMgDL float64 `json:"glucose_mg_dl"`
	MealContext *string `json:"meal_context"`
	MeasuredAt  Moment  `json:"measured_at"`
}

// LatestPulse is in beats per minute.
type LatestPulse struct {
	Pulse      float64 `json:"pulse"`
	MeasuredAt Moment  `json:"measured_at"`
}

// ParseLatest reads the stored form; nothing stored is no reading.
func ParseLatest(stored string) (Latest, error) {
	var latest Latest
	if stored == "" || stored == "null" {
		return latest, nil
	}
	if err := json.Unmarshal([]byte(stored), &latest); err != nil {
		return latest, fmt.Errorf("read latest vitals: %w", err)
	}
	return latest, nil
}

// With returns the latest readings after one more arrived, which may be older than what is there.
func (l Latest) With(r vitals.Reading) Latest {
	at := Moment{r.MeasuredAt}
	switch r.Kind {
	case vitals.BloodPressure:
		if l.BloodPressure == nil || !at.Before(l.BloodPressure.MeasuredAt.Time) {
			l.BloodPressure = &LatestBloodPressure{Systolic: *r.Systolic, Diastolic: *r.Diastolic, Pulse: r.Pulse, MeasuredAt: at}
		}
	case vitals.Weight:
		if l.Weight == nil || !at.Before(l.Weight.MeasuredAt.Time) {
			l.Weight = &LatestWeight{WeightKg: *r.WeightKg, MeasuredAt: at}
		}
	case vitals.PulseOximetry:
		if l.PulseOximetry == nil || !at.Before(l.PulseOximetry.MeasuredAt.Time) {
			l.PulseOximetry = &LatestPulseOximetry{SpO2: *r.SpO2, Pulse: r.Pulse, MeasuredAt: at}
		}
	case vitals.BloodGlucose:
		if l.BloodGlucose == nil || !at.Before(l.BloodGlucose.MeasuredAt.Time) {
			latest := &LatestBloodGlucose{GlucoseMgDL: *r.GlucoseMgDL, MeasuredAt: at}
			if r.MealContext != "" {
				latest.MealContext = &r.MealContext
			}
			l.BloodGlucose = latest
		}
	}
	if r.Pulse != nil && (l.Pulse == nil || !at.Before(l.Pulse.MeasuredAt.Time)) {
		l.Pulse = &LatestPulse{Pulse: *r.Pulse, MeasuredAt: at}
	}
	return l
}

// Shown is what the contract knows of the latest readings.
func (l Latest) Shown() Latest {
	l.Pulse = nil
	return l
}

// MeasuredAt is the time of the newest reading of any kind; zero when there is none.
func (l Latest) MeasuredAt() (newest time.Time) {
	for _, at := range l.times() {
		if at.After(newest) {
			newest = at
		}
	}
	return newest
}

func (l Latest) times() (times []time.Time) {
	if l.BloodPressure != nil {
		times = append(times, l.BloodPressure.MeasuredAt.Time)
	}
	if l.Weight != nil {
		times = append(times, l.Weight.MeasuredAt.Time)
	}
	if l.PulseOximetry != nil {
		times = append(times, l.PulseOximetry.MeasuredAt.Time)
	}
	if l.BloodGlucose != nil {
		times = append(times, l.BloodGlucose.MeasuredAt.Time)
	}
	return times
}

func (l Latest) measuredSince(since time.Time) bool {
	newest := l.MeasuredAt()
	return !newest.IsZero() && !newest.Before(since)
}

// parameter is one value of the latest readings beside its limits.
type parameter struct {
	name   string
	value  float64
	limits alerts.Limits
}

// parameters lists what counts for the score: measured since the given time. Weight counts by its gain within the window
// of the patient's weight rule.
func (l Latest) parameters(t alerts.Thresholds, weighings []alerts.Weighing, since time.Time) (list []parameter) {
	if bp := l.BloodPressure; bp != nil && !bp.MeasuredAt.Before(since) {
		list = append(list, parameter{"Systolic", bp.Systolic, t.Systolic}, parameter{"Diastolic", bp.Diastolic, t.Diastolic})
	}
	if pulse := l.Pulse; pulse != nil && !pulse.MeasuredAt.Before(since) {
		list = append(list, parameter{"Pulse", pulse.Pulse, t.Pulse})
	}
	if ox := l.PulseOximetry; ox != nil && !ox.MeasuredAt.Before(since) {
		list = append(list, parameter{"SpO2", ox.SpO2, t.SpO2})
	}
	if glucose := l.BloodGlucose; glucose != nil && !glucose.MeasuredAt.Before(since) {
		list = append(list, parameter{"Glucose", glucose.GlucoseMgDL, t.Glucose})
	}
	if weight := l.Weight; weight != nil && !weight.MeasuredAt.Before(since) {
		gain, _, known := alerts.WeightGain(weight.WeightKg, weight.MeasuredAt.Time, t.Weight.WindowDays, weighings)
		if known {
			list = append(list, parameter{"Weight gain", gain, alerts.Limits{High: t.Weight.Change, Critical: t.Weight.CriticalChange}})
		}
	}
	return list
}
