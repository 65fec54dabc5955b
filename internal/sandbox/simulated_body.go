package sandbox

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// profile is a type of patient. Values are the means of its readings; adherence is the share of days with a measurement.
type profile struct {
	systolic, diastolic, pulse float64 // mmHg, mmHg, bpm
	weightKg, swingKg          float64 // swing: gained over ten days, then lost again
	spO2, glucoseMgDL          float64
	adherence                  float64
}

// profiles are assigned by patient number, so that every practice of ten or more has one of each: most need no attention, some cross
// thresholds, and one misses too many days to be billed.
var profiles = [...]profile{
	0: {162, 98, 82, 94, 0, 96, 118, 0.90},   // uncontrolled hypertension
	1: {124, 78, 70, 72, 0, 98, 98, 1.00},    // well controlled, never misses a day
	2: {142, 88, 76, 88, 0, 97, 105, 0.90},   // around the warning bound
	3: {128, 80, 74, 81, 0, 97, 102, 0.35},   // about ten days a month
	4: {112, 68, 84, 79, 3.5, 95, 110, 0.95}, // heart failure: fluid varies
	5: {130, 80, 86, 66, 0, 91, 104, 0.90},   // chronic lung disease
	6: {134, 82, 78, 97, 0, 97, 215, 0.85},   // diabetes
	7: {118, 74, 66, 68, 0, 98, 96, 0.80},    // steady
	8: {100, 63, 72, 59, 0, 98, 94, 0.75},    // runs low
	9: {126, 79, 71, 84, 0, 97, 101, 0.60},   // about eighteen days a month
}

// simulatedBody is one simulated patient's body and habits, a function of seed, number and time, so that a month of history and today's
// events fit together.
type simulatedBody struct {
	seed, number uint64
	profile
	slowAmplitude, slowPhase float64 // drift over about two months, mmHg and days
	morning                  time.Duration
}

func newSimulatedBody(seed uint64, number int) simulatedBody {
	p := simulatedBody{seed: seed, number: uint64(number), profile: profiles[uint(number)%uint(len(profiles))]} //nolint:gosec // G115: any bits choose a stream
	luck := p.dice(topicTraits, 0)
	p.systolic += 4 * luck.NormFloat64()
	p.diastolic += 2 * luck.NormFloat64()
	p.pulse += 4 * luck.NormFloat64()
	p.weightKg *= math.Exp(0.08 * luck.NormFloat64())
	p.slowAmplitude = 2 + 4*luck.Float64()
	p.slowPhase = 60 * luck.Float64()
	p.morning = 6*time.Hour + time.Duration(luck.IntN(180))*time.Minute
	return p
}

// Topics of random draws; each has its own independent stream.
const (
	topicTraits = iota
	topicAdherence
	topicDay
	topicSchedule
	topicDevice
	topicReading // plus the kind's position, counted from 0
)

// dice returns the random stream of one topic at one day or instant.
func (b simulatedBody) dice(topic uint64, at int64) *rand.Rand {
	return rand.New(rand.NewPCG(mix(b.seed, b.number), mix(topic, uint64(at)))) //nolint:gosec // G115: any bits choose a stream
}

// mix is the finalizer of SplitMix64: adjacent seeds must not give similar streams.
func mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// dayNumber counts local calendar days, in the zone of at.
func dayNumber(at time.Time) int64 {
	year, month, day := at.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400
}

// measuresOn reports whether the patient measures on the local day of at.
func (b simulatedBody) measuresOn(at time.Time) bool {
	return b.dice(topicAdherence, dayNumber(at)).Float64() < b.adherence
}

// reading returns what the patient's device of that kind shows at an instant; its zone decides the hour of the day.
func (b simulatedBody) reading(kind vitals.Kind, deviceID string, at time.Time) vitals.Reading {
	r := vitals.Reading{Kind: kind, DeviceID: deviceID, MeasuredAt: at.UTC()}
	day := dayNumber(at)
	today := b.dice(topicDay, day)
	stress, fluid, sugar := today.NormFloat64(), today.NormFloat64(), today.NormFloat64()
	luck := b.dice(topicReading+uint64(kind.Definition().Position-1), at.Unix()) //nolint:gosec // G115: positions count from 1
	pulse := bounded(b.pulse+3*stress+b.circadian(at)/2+4*luck.NormFloat64(), 42, 150)
	switch kind {
	case vitals.BloodPressure:
		drift := b.slowAmplitude * math.Sin(2*math.Pi*(float64(day)+b.slowPhase)/60)
		systolic := bounded(b.systolic+drift+b.circadian(at)+4*stress+4*luck.NormFloat64(), 72, 230)
		diastolic := bounded(b.diastolic+drift/2+b.circadian(at)/2+2*stress+3*luck.NormFloat64(), 40, 130)
		r = r.With(vitals.Systolic, systolic).With(vitals.Diastolic, min(diastolic, systolic-15)).With(vitals.Pulse, pulse)
		r.SetQualifier(vitals.IrregularHeartbeat, vitals.No)
		if luck.Float64() < 0.02 {
			r.SetQualifier(vitals.IrregularHeartbeat, vitals.Yes)
		}
	case vitals.Weight:
		swing := b.swingKg * sawtooth(float64(day)+b.slowPhase)
		r = r.With(vitals.WeightKg, tenths(b.weightKg+swing+0.3*fluid+0.1*luck.NormFloat64()))
	case vitals.PulseOximetry:
		r = r.With(vitals.SpO2, bounded(b.spO2+0.7*stress+luck.NormFloat64(), 80, 100))
		r = r.With(vitals.Pulse, pulse).With(vitals.PerfusionIndex, tenths(1+5*luck.Float64()))
	case vitals.BloodGlucose:
		r.SetQualifier(vitals.MealContext, mealContext(at, luck))
		meal := map[string]float64{vitals.MealAfter: 45, vitals.MealBedtime: 20}[r.Qualifier(vitals.MealContext)]
		spread := b.glucoseMgDL / 10
		r = r.With(vitals.GlucoseMgDL, bounded(b.glucoseMgDL+meal+spread*sugar+spread*luck.NormFloat64(), 45, 480))
	default:
		for _, parameter := range kind.Definition().All {
			r = r.With(parameter, usual(parameter, luck))
		}
	}
	return r
}

// usual returns a value of a parameter without a profile: usually between its bounds.
func usual(p *vitals.Parameter, luck *rand.Rand) float64 {
	low, high := p.Range.Min, p.Range.Max
	if p.Defaults.Low != nil && p.Defaults.High != nil {
		low, high = *p.Defaults.Low, *p.Defaults.High
	}
	return tenths(min(max((low+high)/2+(high-low)/6*luck.NormFloat64(), p.Range.Min), p.Range.Max))
}

// circadian is highest in mid-afternoon and lowest before dawn, in mmHg.
func (b simulatedBody) circadian(at time.Time) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	return 6 * math.Cos(2*math.Pi*(hour-15)/24)
}

// sawtooth rises from 0 to 1 over ten days, then falls back over four.
func sawtooth(day float64) float64 {
	at := math.Mod(day, 14)
	if at < 10 {
		return at / 10
	}
	return (14 - at) / 4
}

func mealContext(at time.Time, luck *rand.Rand) string {
	switch hour := at.Hour(); {
	case hour < 9:
		return vitals.MealFasting
	case hour >= 21:
		return vitals.MealBedtime
	case luck.IntN(2) == 0:
		return vitals.MealBefore
	default:
		return vitals.MealAfter
	}
}

func bounded(value, low, high float64) float64 {
	return math.Round(min(max(value, low), high))
}

func tenths(value float64) float64 { return math.Round(value*10) / 10 }

// historyGap separates the history from the events of a simulator.
const historyGap = 10 * time.Minute

// History returns what a patient's devices measured on the given number of local days up to and including today, oldest first, ending ten
// minutes before now. The zone of now is the patient's. Missed days are missing. A Simulator with the same seed continues it.
func History(patient SimulatedPatient, days int, seed uint64, now time.Time) []vitals.Reading {
	p := newSimulatedBody(seed, patient.Number)
	until := now.Add(-historyGap)
	var readings []vitals.Reading
	for back := days - 1; back >= 0; back-- {
		noon := time.Date(now.Year(), now.Month(), now.Day()-back, 12, 0, 0, 0, now.Location())
		if !p.measuresOn(noon) {
			continue
		}
		for _, device := range patient.Devices {
			for _, at := range p.schedule(noon, device.Kind) {
				if !at.After(until) {
					readings = append(readings, p.reading(device.Kind, device.ID, at))
				}
			}
		}
	}
	slices.SortStableFunc(readings, func(a, b vitals.Reading) int { return a.MeasuredAt.Compare(b.MeasuredAt) })
	return readings
}

// schedule returns when the patient measures on a day: every morning, and on some evenings everything except what is watched for changes.
func (b simulatedBody) schedule(noon time.Time, kind vitals.Kind) []time.Time {
	// Four streams a day, for the four original kinds: another kind must not change their history.
	luck := b.dice(topicSchedule, dayNumber(noon)*4+int64(kind.Definition().Position-1))
	clock := func(sinceMidnight time.Duration) time.Time {
		return time.Date(noon.Year(), noon.Month(), noon.Day(), 0, 0, int(sinceMidnight/time.Second), 0, noon.Location())
	}
	jitter := time.Duration(luck.IntN(40*60)) * time.Second
	times := []time.Time{clock(b.morning + jitter)}
	if kind.Definition().Main().Change == nil && luck.Float64() < 0.4 {
		times = append(times, clock(b.morning+12*time.Hour+2*jitter))
	}
	return times
}
