package devices_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/vitals"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loaded, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func utc(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

func TestParseType(t *testing.T) {
	for _, test := range []struct {
		sent, want string
		kind       vitals.Kind
		ok         bool
	}{
		{"blood_pressure", "blood_pressure", vitals.BloodPressure, true},
		{"BP_Monitor", "blood_pressure", vitals.BloodPressure, true},
		{"scale", "weight", vitals.Weight, true},
		{"pulse_oximeter", "pulse_oximetry", vitals.PulseOximetry, true},
		{"glucometer", "blood_glucose", vitals.BloodGlucose, true},
		{"Spirometer-2", "Spirometer-2", "", true},
		{"two words", "two words", "", false},
		{"", "", "", false},
	} {
		deviceType, kind, ok := devices.ParseType(test.sent)
		if deviceType != test.want || kind != test.kind || ok != test.ok {
			t.Errorf("%q is %q, %q, %v", test.sent, deviceType, kind, ok)
		}
	}
}

func TestDeliveryDate(t *testing.T) {
	newYork := zone(t, "America/New_York")
	for now, want := range map[string]string{
		"2026-01-15T13:45:00Z": "2026-01-23", // with Martin Luther King Jr. Day in between
		"2026-01-16T03:00:00Z": "2026-01-23", // still the 15th in New York
		"2026-03-06T17:00:00Z": "2026-03-13", // clocks change on the 8th
		"2026-06-29T12:00:00Z": "2026-07-07", // the 4th is a Saturday and observed on Friday
		"2026-12-23T12:00:00Z": "2026-12-31",
		"2026-12-24T12:00:00Z": "2027-01-04", // Christmas and New Year's Day
		"2026-11-20T12:00:00Z": "2026-11-30", // Thanksgiving; the day after is a working day
	} {
		if got := devices.DeliveryDate(utc(now), newYork, 5); got != want {
			t.Errorf("from %s it takes until %s, want %s", now, got, want)
		}
	}
	if got := devices.DeliveryDate(utc("2026-01-17T12:00:00Z"), newYork, 0); got != "2026-01-17" {
		t.Errorf("at once is %s", got)
	}
}

// The levels of one device in order, and the alerts.
func TestEvaluateBattery(t *testing.T) {
	level := func(n float64) *float64 { return &n }
	for name, steps := range map[string][]struct {
		level *float64
		want  devices.BatteryAction
	}{
		"slowly empty, then charged": {
			{level(84), devices.BatteryAction{Recovered: true}},
			{level(21), devices.BatteryAction{Recovered: true}},
			{level(20), devices.BatteryAction{Notified: "low", Raise: "low"}},
			{level(15), devices.BatteryAction{Notified: "low"}},
			{level(10), devices.BatteryAction{Notified: "low"}},
			{level(9), devices.BatteryAction{Notified: "critical", Raise: "critical"}},
			{level(12), devices.BatteryAction{Notified: "critical"}},
			{level(3), devices.BatteryAction{Notified: "critical"}},
			{level(100), devices.BatteryAction{Recovered: true}},
			{level(20), devices.BatteryAction{Notified: "low", Raise: "low"}},
		},
		"around the limit": {
			{level(19), devices.BatteryAction{Notified: "low", Raise: "low"}},
			{level(25), devices.BatteryAction{Notified: "low", Recovered: true}},
			{level(19), devices.BatteryAction{Notified: "low"}},
			{level(30), devices.BatteryAction{Notified: "low", Recovered: true}},
			{level(19), devices.BatteryAction{Notified: "low"}},
			{level(31), devices.BatteryAction{Recovered: true}},
			{level(19), devices.BatteryAction{Notified: "low", Raise: "low"}},
		},
		"at once critical": {
			{level(0), devices.BatteryAction{Notified: "critical", Raise: "critical"}},
			{level(15), devices.BatteryAction{Notified: "critical"}},
		},
		"level unknown": {
			{nil, devices.BatteryAction{Notified: "low", Raise: "low"}},
			{nil, devices.BatteryAction{Notified: "low"}},
		},
	} {
		notified := devices.BatteryBand("")
		for i, step := range steps {
			band := devices.BatteryLow
			if step.level != nil {
				band = devices.BatteryBandFor(*step.level)
			}
			action := devices.EvaluateBattery(notified, band, step.level)
			if action != step.want {
				t.Errorf("%s, step %d: %+v, want %+v", name, i, action, step.want)
			}
			notified = action.Notified
		}
	}
}

func TestSilentSince(t *testing.T) {
	newYork := zone(t, "America/New_York")
	assigned := utc("2026-03-05T15:00:00Z")
	for name, test := range map[string]struct {
		held devices.AssignedDevice
		want string
	}{
		"last reading":                {devices.AssignedDevice{LastReadingAt: utc("2026-03-07T12:00:00Z")}, "2026-03-07T12:00:00Z"},
		"a reading of the one before": {devices.AssignedDevice{LastReadingAt: utc("2026-03-01T12:00:00Z")}, "2026-03-05T15:00:00Z"},
		"nothing yet":                 {devices.AssignedDevice{}, "2026-03-05T15:00:00Z"},
		"on its way":                  {devices.AssignedDevice{Delivery: "2026-03-07"}, "2026-03-08T05:00:00Z"},
		"arrives as clocks change":    {devices.AssignedDevice{Delivery: "2026-03-08"}, "2026-03-09T04:00:00Z"},
		"delivered before":            {devices.AssignedDevice{Delivery: "2026-03-01"}, "2026-03-05T15:00:00Z"},
		"delivered, and a reading":    {devices.AssignedDevice{Delivery: "2026-03-12", LastReadingAt: utc("2026-03-06T12:00:00Z")}, "2026-03-06T12:00:00Z"},
	} {
		test.held.AssignedAt, test.held.Zone = assigned, newYork
		if got := test.held.SilentSince(); !got.Equal(utc(test.want)) {
			t.Errorf("%s: quiet since %s, want %s", name, got.UTC(), test.want)
		}
	}
}

// Calendar days of any length: 23 hours in spring, 25 in autumn, without midnight where it is skipped.
func TestEndedDays(t *testing.T) {
	for name, test := range map[string]struct {
		zone       string
		since, now string
		want       []string
	}{
		"no check before":      {"America/New_York", "", "2026-01-15T13:45:00Z", []string{"2026-01-14"}},
		"nothing ended":        {"America/New_York", "2026-01-15T13:30:00Z", "2026-01-15T13:45:00Z", nil},
		"just ended":           {"America/New_York", "2026-01-15T04:45:00Z", "2026-01-15T05:00:00Z", []string{"2026-01-14"}},
		"a microsecond before": {"America/New_York", "2026-01-15T04:45:00Z", "2026-01-15T04:59:59.999999Z", nil},
		"ended when checked":   {"America/New_York", "2026-01-15T05:00:00Z", "2026-01-15T05:15:00Z", nil},
		"short day":            {"America/New_York", "2026-03-09T03:50:00Z", "2026-03-09T04:00:00Z", []string{"2026-03-08"}},
		"short day not over":   {"America/New_York", "2026-03-09T03:45:00Z", "2026-03-09T03:59:00Z", nil},
		"long day":             {"America/New_York", "2026-11-02T04:50:00Z", "2026-11-02T05:00:00Z", []string{"2026-11-01"}},
		"long day not over":    {"America/New_York", "2026-11-02T03:50:00Z", "2026-11-02T04:30:00Z", nil},
		"no midnight":          {"America/Santiago", "2026-09-06T03:50:00Z", "2026-09-06T04:15:00Z", []string{"2026-09-05"}},
		"ahead of the world":   {"Pacific/Kiritimati", "2026-01-15T09:55:00Z", "2026-01-15T10:00:00Z", []string{"2026-01-15"}},
		"three days down":      {"America/New_York", "2026-01-12T12:00:00Z", "2026-01-15T12:00:00Z", []string{"2026-01-12", "2026-01-13", "2026-01-14"}},
		"down for a month":     {"UTC", "2025-12-15T12:00:00Z", "2026-01-15T12:00:00Z", []string{"2026-01-08", "2026-01-09", "2026-01-10", "2026-01-11", "2026-01-12", "2026-01-13", "2026-01-14"}},
	} {
		var since time.Time
		if test.since != "" {
			since = utc(test.since)
		}
		if got := devices.EndedDays(zone(t, test.zone), since, utc(test.now)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestMissed(t *testing.T) {
	cuff := devices.Expected{Kind: vitals.BloodPressure, After: "2026-01-05"}
	for name, test := range map[string]struct {
		monitoring devices.Monitoring
		day        string
		got        devices.ReadingDay
		want       string
	}{
		"no device":             {devices.Monitoring{}, "2026-01-14", nil, ""},
		"one a day by device":   {devices.Monitoring{Devices: []devices.Expected{cuff}}, "2026-01-14", nil, "blood pressure"},
		"measured":              {devices.Monitoring{Devices: []devices.Expected{cuff, cuff}}, "2026-01-14", devices.ReadingDay{vitals.BloodPressure: 1}, ""},
		"the day of assignment": {devices.Monitoring{Devices: []devices.Expected{cuff}}, "2026-01-05", nil, ""},
		"the day after":         {devices.Monitoring{Devices: []devices.Expected{cuff}}, "2026-01-06", nil, "blood pressure"},
		"unknown kind":          {devices.Monitoring{Devices: []devices.Expected{{After: "2026-01-05"}}}, "2026-01-14", nil, ""},
		"nothing expected":      {devices.Monitoring{Schedule: collections.Schedule{}, Devices: []devices.Expected{cuff}}, "2026-01-14", nil, ""},
		"too few":               {devices.Monitoring{Schedule: collections.Schedule{"blood_glucose": {PerDay: 3}}}, "2026-01-14", devices.ReadingDay{vitals.BloodGlucose: 1}, "blood glucose (1 of 3)"},
		"not on this weekday":   {devices.Monitoring{Schedule: collections.Schedule{"weight": {PerDay: 1, Days: []string{"monday"}}}}, "2026-01-14", nil, ""},
		"on this weekday":       {devices.Monitoring{Schedule: collections.Schedule{"weight": {PerDay: 1, Days: []string{"wednesday"}}}}, "2026-01-14", nil, "weight"},
		"two kinds":             {devices.Monitoring{Schedule: collections.Schedule{"weight": {PerDay: 1}, "blood_pressure": {PerDay: 1}}}, "2026-01-14", nil, "blood pressure, weight"},
		"day of enrolment":      {devices.Monitoring{Schedule: collections.Schedule{"weight": {PerDay: 1}}, Enrolled: "2026-01-14"}, "2026-01-14", nil, ""},
		"device still on its way": {devices.Monitoring{
			Schedule: collections.Schedule{"weight": {PerDay: 1}}, Devices: []devices.Expected{{Kind: vitals.Weight, After: "2026-01-20"}},
		}, "2026-01-14", nil, ""},
	} {
		got := ""
		for _, missing := range test.monitoring.Missed(test.day, test.got) {
			if got != "" {
				got += ", "
			}
			got += missing.String()
		}
		if got != test.want {
			t.Errorf("%s: missed %q, want %q", name, got, test.want)
		}
	}
}

func TestStreak(t *testing.T) {
	daily := devices.Monitoring{Devices: []devices.Expected{{Kind: vitals.Weight, After: "2026-01-01"}}}
	mondays := devices.Monitoring{Schedule: collections.Schedule{"weight": {PerDay: 1, Days: []string{"monday"}}}, Enrolled: "2025-12-01"}
	measured := func(days ...string) map[string]devices.ReadingDay {
		m := map[string]devices.ReadingDay{}
		for _, day := range days {
			m[day] = devices.ReadingDay{vitals.Weight: 1}
		}
		return m
	}
	for name, test := range map[string]struct {
		m    devices.Monitoring
		day  string
		days map[string]devices.ReadingDay
		want int
	}{
		"measured":                    {daily, "2026-01-14", measured("2026-01-14"), 0},
		"one":                         {daily, "2026-01-14", measured("2026-01-13"), 1},
		"three":                       {daily, "2026-01-14", measured("2026-01-11"), 3},
		"no end is looked for":        {daily, "2026-01-14", nil, 4},
		"since the device came":       {daily, "2026-01-03", nil, 2},
		"only the days that count":    {mondays, "2026-01-12", measured("2025-12-22"), 3},
		"other days do not help":      {mondays, "2026-01-12", measured("2026-01-05", "2026-01-08"), 1},
		"across the change of clocks": {devices.Monitoring{Devices: []devices.Expected{{Kind: vitals.Weight, After: "2026-03-01"}}}, "2026-03-09", measured("2026-03-06"), 3},
	} {
		if got := test.m.Streak(test.day, test.days, 3); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestStale(t *testing.T) {
	newYork := zone(t, "America/New_York")
	value := func(n float64) *float64 { return &n }
	weight := func(kg float64) vitals.Reading { return vitals.Reading{Kind: vitals.Weight}.With(vitals.WeightKg, kg) }
	pressure := func(pulse *float64) vitals.Reading {
		return measured(vitals.Reading{Kind: vitals.BloodPressure}.With(vitals.Systolic, 120).With(vitals.Diastolic, 80), vitals.Pulse, pulse)
	}
	oxygen := func(pulse *float64) vitals.Reading {
		return measured(vitals.Reading{Kind: vitals.PulseOximetry}.With(vitals.SpO2, 97), vitals.Pulse, pulse)
	}
	glucose := func(comparator string) vitals.Reading {
		return vitals.Reading{Kind: vitals.BloodGlucose}.With(vitals.GlucoseMgDL, 110).WithQualifier(vitals.Comparator, comparator)
	}
	times := func(r vitals.Reading, n int) []vitals.Reading { return slices.Repeat([]vitals.Reading{r}, n) }
	for name, test := range map[string]struct {
		readings []vitals.Reading // one a day, newest first
		want     bool
	}{
		"five":                   {times(weight(80), 5), true},
		"four":                   {times(weight(80), 4), false},
		"to a tenth":             {[]vitals.Reading{weight(80.01), weight(80.04), weight(79.96), weight(80), weight(80)}, true},
		"another value":          {[]vitals.Reading{weight(80), weight(80), weight(80.1), weight(80), weight(80)}, false},
		"another before":         {append(times(weight(80), 5), weight(81)), true},
		"pressure and pulse":     {times(pressure(value(70)), 5), true},
		"other pulse":            {append(times(pressure(value(70)), 4), pressure(value(71))), false},
		"oxygen and pulse":       {times(oxygen(value(70)), 5), true},
		"oxygen alone":           {times(oxygen(nil), 9), false},
		"glucose three days":     {times(glucose(""), 3), true},
		"glucose two days":       {times(glucose(""), 2), false},
		"a meter beyond its end": {times(glucose(">"), 9), false},
		"nothing":                {nil, false},
	} {
		at := time.Date(2026, time.March, 10, 9, 0, 0, 0, newYork) // across the change of clocks
		for i := range test.readings {
			test.readings[i].MeasuredAt = at.AddDate(0, 0, -i)
		}
		if _, got := devices.Stale(test.readings, newYork); got != test.want {
			t.Errorf("%s: stale %v, want %v", name, got, test.want)
		}
	}
	gap := times(weight(80), 5)
	for i := range gap {
		gap[i].MeasuredAt = time.Date(2026, time.March, 10-2*i, 9, 0, 0, 0, newYork)
	}
	if _, got := devices.Stale(gap, newYork); got {
		t.Error("days between are no days in a row")
	}
	late := times(weight(80), 5)
	for i := range late { // 23:30 in New York is the next day in UTC
		late[i].MeasuredAt = time.Date(2026, time.March, 10-i, 23, 30, 0, 0, newYork).UTC()
	}
	since, got := devices.Stale(late, newYork)
	if diff := cmp.Diff(late[4].MeasuredAt, since); !got || diff != "" {
		t.Errorf("stale %v since %s", got, diff)
	}
}

// measured adds a value that may be missing.
func measured(r vitals.Reading, p *vitals.Parameter, value *float64) vitals.Reading {
	if value == nil {
		return r
	}
	return r.With(p, *value)
}
