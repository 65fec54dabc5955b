package sandbox

import (
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/vitals"
)

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
func (p simulatedBody) schedule(noon time.Time, kind vitals.Kind) []time.Time {
	// Four streams a day, for the four original kinds: another kind must not change their history.
	luck := p.dice(topicSchedule, dayNumber(noon)*4+int64(kind.Definition().Position-1))
	clock := func(sinceMidnight time.Duration) time.Time {
		return time.Date(noon.Year(), noon.Month(), noon.Day(), 0, 0, int(sinceMidnight/time.Second), 0, noon.Location())
	}
	jitter := time.Duration(luck.IntN(40*60)) * time.Second
	times := []time.Time{clock(p.morning + jitter)}
	if kind.Definition().Main().Change == nil && luck.Float64() < 0.4 {
		times = append(times, clock(p.morning+12*time.Hour+2*jitter))
	}
	return times
}
