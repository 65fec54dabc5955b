package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// TypeEarlyWarning is the alert about several values that together mean danger. It is also the parameter of these alerts.
const TypeEarlyWarning = "early_warning"

// The early warning score is the part of NEWS2 that home devices measure: saturation, systolic pressure, pulse and temperature. Respiration,
// oxygen and consciousness are not measured, so the true score is at least as high. Source: Royal College of Physicians, NEWS2, 2017, charts 1
// and 2; docs/decisions/alerts.md, "Early warning score".
const (
	earlyWarningUrgent = 5
	// EarlyWarningEmergency is the sum from which a response is an emergency, and EarlyWarningHighest the sum of four extreme values.
	EarlyWarningEmergency = 7
	EarlyWarningHighest   = 12
	extremePoints         = 3
	earlyWarningWindow    = time.Hour
)

// pointBand gives points to values from a value on.
type pointBand struct {
	from   float64
	points int
}

// news2 has the bands of each parameter in ascending order, and the precision of the chart.
var news2 = map[*vitals.Parameter][]pointBand{
	vitals.SpO2:         {{0, 3}, {92, 2}, {94, 1}, {96, 0}},
	vitals.Systolic:     {{0, 3}, {91, 2}, {101, 1}, {111, 0}, {220, 3}},
	vitals.Pulse:        {{0, 3}, {41, 1}, {51, 0}, {91, 1}, {111, 2}, {131, 3}},
	vitals.TemperatureC: {{0, 3}, {35.1, 1}, {36.1, 0}, {38.1, 1}, {39.1, 2}},
}

// spo2Scale2 is for a target saturation of 88 to 92 %, breathing air: whether the patient has oxygen is not known.
var spo2Scale2 = []pointBand{{0, 3}, {84, 2}, {86, 1}, {88, 0}}

// EarlyWarningParameters are those that are scored, in the order of the message.
var EarlyWarningParameters = []*vitals.Parameter{vitals.SpO2, vitals.Systolic, vitals.Pulse, vitals.TemperatureC}

// EarlyWarningRules are what the score of a patient depends on besides the values.
type EarlyWarningRules struct {
	// Scale2: the template for chronic hypercapnia is in force.
	Scale2  bool
	InForce Thresholds
}

// ScoredValue is a measured value of a parameter that is scored.
type ScoredValue struct {
	Parameter *vitals.Parameter
	Value     float64
	At        time.Time
	Typed     bool // by the patient
	// Doubtful: its time is in doubt, and it is dated by receipt. Like a typed value it adds points and takes none away.
	Doubtful bool
	// WaitsUntil is when a value measured with a weak signal counts without a repeat; zero for one that counts already.
	WaitsUntil time.Time
	// HidesNone: a value measured with a weak signal while an earlier one waits proves nothing in range.
	HidesNone bool
	// Clock is set for a doubtful value of a device with an unproven clock: the device's own newer values replace it.
	Clock         *DeviceTime
	ObservationID string
}

// DeviceTime is a time by the clock of a device.
type DeviceTime struct {
	Device string
	At     time.Time
}

// EarlyWarning is the score of the values within an hour. Level is "" if it needs no clinician.
type EarlyWarning struct {
	Level         Level
	Sum           int
	At            time.Time // forLevel the newest value, which is of the observation
	ObservationID string
	Values        []ScoredValue // one per parameter, in the order of EarlyWarningParameters
	// WaitsUntil is when a repeat must have decided about a value with a weak signal, without which the level is lower; zero if none must.
	WaitsUntil time.Time
	points     []int
}

func (r EarlyWarningRules) points(p *vitals.Parameter, value float64) (points int) {
	decimals, bands := 0, news2[p]
	if p == vitals.TemperatureC {
		decimals = 1
	}
	if p == vitals.SpO2 && r.Scale2 {
		bands = spo2Scale2
	}
	value = vitals.RoundHalfUp(value, decimals)
	for _, band := range bands {
		if value >= band.from {
			points = band.points
		}
	}
	return points
}

// alone reports whether a single extreme value calls for a clinician: it raised no critical alert.
func (r EarlyWarningRules) alone(v ScoredValue) bool {
	level, _, _ := breach(v.Parameter, v.Value, "", r.InForce.Limits(v.Parameter))
	return level != Critical
}

// assess scores values, one per parameter.
func (r EarlyWarningRules) assess(values []ScoredValue) (w EarlyWarning) {
	w.Values = values
	extreme := false
	for _, v := range values {
		points := r.points(v.Parameter, v.Value)
		w.points = append(w.points, points)
		w.Sum += points
		extreme = extreme || points == extremePoints && r.alone(v)
		if !v.At.Before(w.At) {
			w.At, w.ObservationID = v.At, v.ObservationID
		}
	}
	switch {
	case w.Sum >= EarlyWarningEmergency:
		w.Level = Critical
	case w.Sum >= earlyWarningUrgent || extreme:
		w.Level = Warning
	}
	return w
}

// exceeds reports whether the score is graver than another, or as grave without a repeat to wait for.
func (w EarlyWarning) exceeds(other EarlyWarning) bool {
	isSurer := w.WaitsUntil.IsZero() && !other.WaitsUntil.IsZero()
	return w.Level == Critical && other.Level != Critical || w.Level == other.Level && (w.Sum > other.Sum || isSurer) || other.Level == ""
}

// threshold is the limit reached; for a single extreme value, the urgent limit not reached.
func (w EarlyWarning) threshold() int {
	if w.Level == Critical {
		return EarlyWarningEmergency
	}
	return earlyWarningUrgent
}

// Finding returns the finding of a score that needs a clinician; its message names the parts.
func (w EarlyWarning) Finding() Finding {
	var parts []string
	for i, v := range w.Values {
		if w.points[i] > 0 {
			part := fmt.Sprintf("%s %s %s (%d)", v.Parameter.Label, vitals.FormatNumber(v.Value), v.Parameter.Range.Unit, w.points[i])
			if v.Doubtful {
				part += ", received " + validate.FormatInstant(v.At) + " from a clock in doubt"
			}
			parts = append(parts, part)
		}
	}
	what := fmt.Sprintf("Early warning score %d is at or above the %s limit %d", w.Sum, w.Level, w.threshold())
	if w.Sum < earlyWarningUrgent {
		what = fmt.Sprintf("Early warning score %d, of one value alone", w.Sum)
		if len(parts) > 1 {
			what = fmt.Sprintf("Early warning score %d, one value scores %d", w.Sum, extremePoints)
		}
	}
	return Finding{
		Type: TypeEarlyWarning, Level: w.Level, Parameter: TypeEarlyWarning, Value: float64(w.Sum), Threshold: float64(w.threshold()),
		Message: what + ": " + strings.Join(parts, ", ") + ".",
	}
}

// Reported returns the scored values by column, and their points.
func (w EarlyWarning) Reported() (phi.Text, error) {
	fields, points := map[string]any{}, map[string]int{}
	for i, v := range w.Values {
		fields[v.Parameter.Column], points[v.Parameter.Column] = v.Value, w.points[i]
	}
	fields["points"] = points
	text, err := json.Marshal(fields)
	return phi.Text(text), err
}

// Origin is the patient if only the patient reported the values.
func (w EarlyWarning) Origin() vitals.Origin {
	if slices.ContainsFunc(w.Values, func(v ScoredValue) bool { return !v.Typed }) {
		return vitals.OriginDevice
	}
	return vitals.OriginPatient
}

// EarlyWarningRun is a run of scores that need a clinician, and the worst one of the last hour.
type EarlyWarningRun struct {
	Since time.Time
	Worst EarlyWarning
	// parts are the parameters that scored, by what ends them.
	parts map[*vitals.Parameter]scoredPart
}

// Run returns the current run of a patient's values, in order of measurement. A run ends when
// newer, equally reliable values of all its parts no longer score. Order of arrival does not count.
func (r EarlyWarningRules) Run(history []ScoredValue, now time.Time) (run EarlyWarningRun, lasts bool) {
	latest := newestValues{}
	for i, v := range history {
		latest.add(v)
		if i+1 < len(history) && history[i+1].At.Equal(v.At) {
			continue // the parts of one reading are scored together
		}
		from := v.At.Add(-earlyWarningWindow)
		switch found := latest.score(r, from); {
		case found.Level != "":
			if !lasts {
				run, lasts = EarlyWarningRun{Since: v.At, parts: map[*vitals.Parameter]scoredPart{}}, true
			}
			run.extend(found)
			if from.Before(now.Add(-earlyWarningWindow)) {
				found = latest.score(r, now.Add(-earlyWarningWindow))
			}
			if found.Level != "" && found.exceeds(run.Worst) {
				run.Worst = found
			}
		case lasts && latest.isFresh(run, from):
			lasts = false
		}
	}
	return run, lasts
}

// ScoreAt returns the score of the values within an hour before a time.
func (r EarlyWarningRules) ScoreAt(history []ScoredValue, at time.Time) EarlyWarning {
	latest := newestValues{}
	for _, v := range history {
		if !v.At.After(at) {
			latest.add(v)
		}
	}
	return latest.score(r, at.Add(-earlyWarningWindow))
}

// CallsFor reports whether the values within an hour before a time call for at least a level.
func (r EarlyWarningRules) CallsFor(level Level, history []ScoredValue, at time.Time) bool {
	found := r.ScoreAt(history, at).Level
	return found == level || found == Critical
}

// ScoredParts returns the parameters that scored in the reported values of an early warning.
func ScoredParts(reported phi.Text) (parts []*vitals.Parameter) {
	var stored struct {
		Points map[string]int `json:"points"`
	}
	if json.Unmarshal([]byte(reported.Reveal()), &stored) != nil {
		return nil // damaged: nothing ends it
	}
	for _, p := range EarlyWarningParameters {
		if stored.Points[p.Column] > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// HasEnded reports whether a run that began before the history is over: all its parts were measured again within an hour, at least as reliably,
// and need no clinician.
func (r EarlyWarningRules) HasEnded(parts []*vitals.Parameter, typed bool, history []ScoredValue) bool {
	latest, run := newestValues{}, EarlyWarningRun{parts: map[*vitals.Parameter]scoredPart{}}
	for _, v := range history {
		latest.add(v)
	}
	for _, p := range parts {
		if run.parts[p] = (scoredPart{typed: typed}); len(latest[p]) == 0 {
			return false
		}
	}
	if len(parts) == 0 || len(history) == 0 {
		return false
	}
	from := history[len(history)-1].At.Add(-earlyWarningWindow)
	return latest.isFresh(run, from) && latest.score(r, from).Level == ""
}

func (run *EarlyWarningRun) extend(w EarlyWarning) {
	for i, v := range w.Values {
		if w.points[i] == 0 {
			continue
		}
		part, scored := run.parts[v.Parameter]
		if !scored {
			part = scoredPart{typed: true, clock: v.Clock}
		}
		run.parts[v.Parameter] = part.with(v)
	}
}

// Points returns the points of a reading's values.
func (r EarlyWarningRules) Points(of vitals.Reading) (sum int) {
	for _, p := range EarlyWarningParameters {
		if value := of.Value(p); value != nil {
			sum += r.points(p, *value)
		}
	}
	return sum
}

// MayScore reports whether a value of a reading scores, by the stricter scale.
func MayScore(r vitals.Reading) bool { return EarlyWarningRules{}.Points(r) > 0 }

// MayBeEarlyWarning reports whether values within an hour may need a clinician, by the stricter scale.
func MayBeEarlyWarning(values []ScoredValue) bool {
	rules, sum := EarlyWarningRules{}, 0
	for _, v := range values {
		points := rules.points(v.Parameter, v.Value)
		if sum += points; points == extremePoints {
			return true
		}
	}
	return sum >= earlyWarningUrgent
}

// IsScored reports whether a parameter counts for a patient: it has bounds. A group without any is switched off.
func (r EarlyWarningRules) IsScored(p *vitals.Parameter) bool {
	return r.InForce.Limits(p) != vitals.Limits{}
}
