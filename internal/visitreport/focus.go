package visitreport

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// kindsByDiagnosis are the kinds that a diagnosis makes the subject of the report, by the start of its ICD-10-CM code. Source:
// docs/decisions/observations.md, "Report for a visit".
var kindsByDiagnosis = []struct {
	code string
	kind vitals.Kind
}{
	{"I50", vitals.Weight},
	{"E08", vitals.BloodGlucose},
	{"E09", vitals.BloodGlucose},
	{"E10", vitals.BloodGlucose},
	{"E11", vitals.BloodGlucose},
	{"E13", vitals.BloodGlucose},
	{"O24", vitals.BloodGlucose},
	{"I10", vitals.BloodPressure},
	{"I11", vitals.BloodPressure},
	{"I12", vitals.BloodPressure},
	{"I13", vitals.BloodPressure},
	{"I15", vitals.BloodPressure},
	{"I16", vitals.BloodPressure},
	{"I1A", vitals.BloodPressure},
	{"O1", vitals.BloodPressure},
	{"J44", vitals.PulseOximetry},
	{"J96", vitals.PulseOximetry},
}

// subject is the kind of the first chart and the headline: that of the first diagnosis with enough readings, otherwise the one with the most
// readings, and blood pressure without any.
func (r *Report) subject() vitals.Kind {
	for _, code := range r.patient.ICD10Codes() {
		for _, d := range kindsByDiagnosis {
			if strings.HasPrefix(code, d.code) && r.counted(d.kind) >= minReadings {
				return d.kind
			}
		}
	}
	most := vitals.BloodPressure
	for _, kind := range vitals.Kinds {
		if r.counted(kind) > r.counted(most) {
			most = kind
		}
	}
	return most
}

// counted returns how many readings of a kind count.
func (r *Report) counted(kind vitals.Kind) (n int) {
	for _, p := range r.points {
		if p.Reading.Kind == kind && !p.Suspect {
			n++
		}
	}
	return n
}

// secondChart returns the kind of a further chart: another one that the diagnoses name, or blood pressure, with enough readings.
func (r *Report) secondChart(first vitals.Kind) (kind vitals.Kind, ok bool) {
	for _, code := range r.patient.ICD10Codes() {
		for _, d := range kindsByDiagnosis {
			if strings.HasPrefix(code, d.code) && d.kind != first && r.counted(d.kind) >= minReadings {
				return d.kind, true
			}
		}
	}
	return vitals.BloodPressure, first != vitals.BloodPressure && r.counted(vitals.BloodPressure) >= minReadings
}

// control states whether the subject is controlled and by how much; "" if there are too few readings. It compares with the limits in
// force and the goals for glucose.
func (r *Report) control(kind vitals.Kind) string {
	switch kind {
	case vitals.BloodPressure:
		return r.pressureControl()
	case vitals.Weight:
		return r.weightControl()
	case vitals.BloodGlucose:
		return r.glucoseControl()
	}
	return r.parameterControl(kind.Definition().Main())
}

// pressureControl compares the mean of the last 7 days with the warning limits.
func (r *Report) pressureControl() string {
	week, recent := r.pressure(7)
	if !recent || !isEnough(week) {
		return ""
	}
	var worst distance
	of := ""
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		mean := week.All.Mean(p)
		if mean == nil {
			continue
		}
		if d, ok := distanceTo(r.bounds.Limits(p), math.Round(*mean)); ok && (of == "" || d.beyond > worst.beyond) {
			worst, of = d, vitals.FormatNumber(d.limit)+" "+strings.ToLower(p.Label)
		}
	}
	if of == "" {
		return ""
	}
	return worst.text("Blood pressure", vitals.FormatNumber(math.Abs(worst.beyond)), of) + fmt.Sprintf(" Mean of 7 days %s.", bothMeans(week.All))
}

// parameterControl compares the mean of the last 7 days of a parameter with its warning limits.
func (r *Report) parameterControl(p *vitals.Parameter) string {
	week, recent := r.group(7, p.Group)
	if !recent || !isEnough(week) || week.All.Mean(p) == nil {
		return ""
	}
	mean, units := *week.All.Mean(p), r.request.Units
	d, ok := distanceTo(r.bounds.Limits(p), mean)
	if !ok {
		return ""
	}
	amount := vitals.FormatNumber(units.difference(p, math.Abs(d.beyond))) + " " + units.unit(p)
	return d.text(subscript(p.Label), amount, units.value(p, d.limit)) + fmt.Sprintf(" Mean of 7 days %s.", units.value(p, mean))
}

// weightControl compares the mean of the last 7 days with the limit over the target (dry) weight.
func (r *Report) weightControl() string {
	p, units := vitals.WeightKg, r.request.Units
	rule := r.bounds.Change(p)
	week, recent := r.group(7, p.Group)
	if !recent || week.All.Mean(p) == nil {
		return ""
	}
	mean := *week.All.Mean(p)
	switch {
	case !isEnough(week):
		return ""
	case rule.Target == nil || rule.Over == nil:
		return fmt.Sprintf("Weight: no target (dry) weight is set. Mean of 7 days %s.", units.value(p, mean))
	}
	d, _ := distanceTo(vitals.Limits{High: new(*rule.Target + *rule.Over)}, mean)
	amount := vitals.FormatNumber(units.weightChange(math.Abs(d.beyond))) + " " + units.unit(p)
	return d.text("Weight", amount, units.value(p, vitals.RoundHundredths(d.limit))) +
		fmt.Sprintf(" Mean of 7 days %s, target %s.", units.value(p, mean), units.number(p, *rule.Target))
}

// distance is how far a value is beyond the nearer limit; negative if within.
type distance struct {
	beyond, limit float64
	isLow         bool
}

// distanceTo returns the distance to the nearer warning limit; ok is false without one. A limit's own value is beyond it.
func distanceTo(l vitals.Limits, value float64) (d distance, ok bool) {
	if l.High != nil {
		d, ok = distance{value - *l.High, *l.High, false}, true
	}
	if l.Low != nil && (!ok || *l.Low-value > d.beyond) {
		d, ok = distance{*l.Low - value, *l.Low, true}, true
	}
	d.beyond = vitals.RoundHundredths(d.beyond)
	return d, ok
}

// text words the distance, such as "Blood pressure uncontrolled, 22 above the limit of 140 systolic."
func (d distance) text(what, amount, limit string) string {
	state := "controlled"
	if d.beyond >= 0 {
		state = "uncontrolled"
		if d.isLow {
			state = "uncontrolled (low)"
		}
	}
	side := "above"
	if d.isLow == (d.beyond > 0) {
		side = "below"
	}
	if d.beyond == 0 {
		return fmt.Sprintf("%s %s, at the limit of %s.", what, state, limit)
	}
	return fmt.Sprintf("%s %s, %s %s the limit of %s.", what, state, amount, side, limit)
}

// since returns the counted points of a kind, oldest first, from a date on.
func (r *Report) since(kind vitals.Kind, from time.Time) (found []Point) {
	for _, p := range r.points {
		if p.Reading.Kind == kind && !p.Suspect && !p.At.Before(from) {
			found = append(found, p)
		}
	}
	return found
}

func (r *Report) otherReadingsMean() string {
	if r.isOfPeriod() {
		return "last, mean of " + r.longestDays()
	}
	return fmt.Sprintf("last, mean of %d days", r.closestPeriod())
}
