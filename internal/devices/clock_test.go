package devices_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
)

func TestManufactureDate(t *testing.T) {
	for udi, want := range map[string]string{
		"(01)00844588003288(11)250105(17)300105(10)A1(21)X9": "2025-01-05",
		"(01)00844588003288(11)250200":                       "2025-02-28", // without a day
		"(01)00844588003288(17)300105":                       "",
		"(01)00844588003288(11)251305":                       "",
		"(01)00844588003288(11)250231":                       "",
		"":                                                   "",
	} {
		if got := devices.ManufactureDate(udi); got != want {
			t.Errorf("%s was made on %q, want %q", udi, got, want)
		}
	}
}

// A time is doubted for what is known about the device and the patient, and never for an hour's difference.
func TestIsTimeDoubtful(t *testing.T) {
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	facts := collections.ClockFacts{Enrolled: at(5, 0), Assigned: at(10, 0), Made: at(1, 0), Newest: at(20, 12)}
	without := func(change func(f *collections.ClockFacts)) collections.ClockFacts {
		f := facts
		change(&f)
		return f
	}
	unread := without(func(f *collections.ClockFacts) { f.Newest = time.Time{} })
	unassigned := without(func(f *collections.ClockFacts) { f.Newest, f.Assigned = time.Time{}, time.Time{} })
	for name, test := range map[string]struct {
		facts     collections.ClockFacts
		reading   devices.TimedReading
		dangerous bool
		want      bool
	}{
		"the same time":                         {facts, devices.TimedReading{MeasuredAt: at(20, 12)}, true, false},
		"an hour before":                        {facts, devices.TimedReading{MeasuredAt: at(20, 11)}, true, false},
		"more than an hour before":              {facts, devices.TimedReading{MeasuredAt: at(20, 11).Add(-time.Second)}, false, true},
		"the same, placed by a person":          {facts, devices.TimedReading{MeasuredAt: at(20, 10), IsDeferred: true}, true, false},
		"the same, sent before as a future one": {without(func(f *collections.ClockFacts) { f.WasAhead = true }), devices.TimedReading{MeasuredAt: at(20, 10)}, true, false},
		"before the assignment":                 {unread, devices.TimedReading{MeasuredAt: at(9, 23), IsLate: true}, false, true},
		"before the assignment, not late":       {unread, devices.TimedReading{MeasuredAt: at(9, 23)}, true, false},
		"the same without a named patient":      {unread, devices.TimedReading{MeasuredAt: at(9, 23), IsUnnamed: true}, false, true},
		"the same, placed":                      {unread, devices.TimedReading{MeasuredAt: at(9, 23), IsLate: true, IsDeferred: true}, true, false},
		"dangerous, before the enrollment":      {unassigned, devices.TimedReading{MeasuredAt: at(4, 0), IsLate: true}, true, true},
		"history from before the enrollment":    {unassigned, devices.TimedReading{MeasuredAt: at(4, 0), IsLate: true}, false, false},
		"before it was made":                    {unassigned, devices.TimedReading{MeasuredAt: time.Date(2026, 2, 27, 23, 0, 0, 0, time.UTC), IsLate: true, IsDeferred: true}, false, true},
		"a year before the enrollment": {
			without(func(f *collections.ClockFacts) { *f = collections.ClockFacts{Enrolled: at(5, 0)} }),
			devices.TimedReading{MeasuredAt: at(5, 0).AddDate(-1, 0, 0).Add(-time.Second), IsLate: true},
			false, true,
		},
		"nothing is known": {collections.ClockFacts{}, devices.TimedReading{MeasuredAt: at(1, 0), IsLate: true, IsUnnamed: true}, true, false},
	} {
		test.reading.IsDangerous = func() (bool, error) { return test.dangerous, nil }
		if got, err := devices.IsTimeDoubtful(test.facts, test.reading); got != test.want || err != nil {
			t.Errorf("%s: %t (%v)", name, got, err)
		}
	}
}
