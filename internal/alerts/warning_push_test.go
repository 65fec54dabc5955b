package alerts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// measured is a systolic pressure, days before now; pushed values were pushed.
type measured struct {
	daysAgo, systolic float64
	pushed            bool
}

// pushTrend decides about the newest of the values, given oldest first.
func pushTrend(limits vitals.Limits, values ...measured) alerts.PushDecision {
	at := time.Date(2026, 1, 15, 8, 0, 0, 0, time.UTC)
	h := alerts.PushHistory{Parameters: []*vitals.Parameter{vitals.Systolic}}
	for i, v := range values {
		r := alerts.PushReading{
			ObservationID: fmt.Sprint(i), MeasuredAt: at.Add(-time.Duration(v.daysAgo * 24 * float64(time.Hour))), Values: []*float64{new(v.systolic)},
		}
		h.Readings = append(h.Readings, r)
		if v.pushed {
			h.Pushed = append(h.Pushed, alerts.Pushed{PushReading: r, Parameter: "systolic", Beyond: v.systolic - 139})
		}
	}
	slices.Reverse(h.Readings)
	h.Readings = h.Readings[:min(len(h.Readings), alerts.PushReadings)]
	slices.Reverse(h.Pushed)
	bounds := alerts.Bounds{"blood_pressure": {
		"systolic_high": limits.High, "systolic_critical": limits.Critical, "systolic_low": limits.Low, "systolic_critical_low": limits.CriticalLow,
	}}
	newest := values[len(values)-1]
	d := alerts.Draft{Finding: alerts.Finding{Type: "blood_pressure", Level: alerts.Warning}}
	return alerts.PushTrend.DecidePush(d, vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: h.Readings[0].MeasuredAt}.With(vitals.Systolic, newest.systolic),
		alerts.InForce(alerts.Bounds{}, bounds), h)
}

// daily returns one value a day; the last is today's. A negative value was pushed.
func daily(systolic ...float64) (list []measured) {
	for i, value := range systolic {
		list = append(list, measured{float64(len(systolic) - 1 - i), max(value, -value), value < 0})
	}
	return list
}

func TestWarningPushByTrend(t *testing.T) {
	usual := vitals.Limits{CriticalLow: new(80.0), Low: new(90.0), High: new(140.0), Critical: new(180.0)}
	for name, test := range map[string]struct {
		limits vitals.Limits
		values []measured
		want   alerts.PushRule
		reason string
	}{
		"one reading":                       {usual, daily(152), alerts.ListedByTrend, "has 1 of the 3 readings"},
		"one reading halfway to critical":   {usual, daily(160), alerts.PushedMidway, "halfway"},
		"just below halfway":                {usual, daily(159), alerts.ListedByTrend, ""},
		"two readings":                      {usual, daily(150, 152), alerts.ListedByTrend, "has 2 of the 3"},
		"three readings with a high mean":   {usual, daily(150, 150, 150), alerts.PushedMean, "3-reading mean 150"},
		"the mean at the bound":             {usual, daily(139, 139, 142), alerts.PushedMean, "mean 140 is at or beyond 140"},
		"the mean just inside":              {usual, daily(130, 130, 130, 130, 130, 130, 150), alerts.ListedByTrend, "7-reading mean 132.9 is within 140"},
		"only seven count":                  {usual, daily(200, 130, 130, 130, 130, 130, 130, 141), alerts.ListedByTrend, "7-reading mean 131.6"},
		"readings over 14 days old":         {usual, []measured{{30, 150, false}, {29, 120, false}, {0, 150, false}}, alerts.ListedByTrend, "has 1 of the 3"},
		"out each time, every ten days":     {usual, []measured{{20, 150, false}, {10, 150, false}, {0, 150, false}}, alerts.PushedRepeated, "3 of the last 5"},
		"out on both sides":                 {usual, daily(120, 150, 86, 120, 150), alerts.PushedRepeated, "3 of the last 5"},
		"three of five":                     {usual, daily(120, 141, 120, 141, 141), alerts.PushedRepeated, "3 of the last 5"},
		"two of five":                       {usual, daily(141, 120, 120, 120, 141), alerts.ListedByTrend, ""},
		"the run was pushed":                {usual, daily(150, 150, -150, 152), alerts.ListedByTrend, "was pushed before"},
		"the run was pushed, and worse":     {usual, daily(150, 150, -150, 160), alerts.PushedWorse, "worse than 150"},
		"less than a quarter worse":         {usual, daily(150, 150, -150, 159), alerts.ListedByTrend, ""},
		"back inside, but by less than 2 %": {usual, daily(145, 145, -145, 140, 135, 135, 135, 136, 136, 139, 139, 139, 150), alerts.ListedByTrend, ""},
		"back inside, and out again": {
			usual, daily(145, 145, -145, 120, 120, 120, 120, 120, 120, 120, 120, 150, 150, 150, 150, 150, 150), alerts.PushedMean, "",
		},
		"pushed within seven days":   {usual, daily(120, 120, -165, 120, 120, 166), alerts.ListedByTrend, "and it was pushed within 7 days"},
		"worse within seven days":    {usual, daily(120, 120, -165, 120, 120, 175), alerts.PushedWorse, ""},
		"pushed eight days ago":      {usual, []measured{{9, 120, false}, {8, 165, true}, {7, 120, false}, {6, 120, false}, {0, 166, false}}, alerts.PushedMidway, ""},
		"pushed while inside":        {usual, daily(120, 120, -161, 135, 150, 150, 150, 155), alerts.PushedMean, ""},
		"too low, halfway":           {usual, daily(85), alerts.PushedMidway, "85 is at or beyond 85"},
		"too low, not halfway":       {usual, daily(88), alerts.ListedByTrend, ""},
		"too low, after a high push": {usual, daily(120, -165, 85), alerts.PushedMidway, ""},
		"no critical bound":          {vitals.Limits{High: new(140.0)}, daily(219), alerts.ListedByTrend, ""},
		"no critical bound, halfway": {vitals.Limits{High: new(140.0)}, daily(220), alerts.PushedMidway, "halfway"},
	} {
		t.Run(name, func(t *testing.T) {
			got := pushTrend(test.limits, test.values...)
			if got.Rule != test.want || !strings.Contains(got.Reason, test.reason) {
				t.Errorf("%+v, want %s with %q", got, test.want, test.reason)
			}
			if begin := map[bool]string{true: "Pushed: ", false: "Not pushed: "}[got.Rule.Pushes()]; !strings.HasPrefix(got.Reason, begin) {
				t.Errorf("reason %q", got.Reason)
			}
		})
	}
}

// A run of means beyond the bound is pushed once, however long it lasts, also beyond the readings that a decision looks at.
func TestLongRunIsPushedOnce(t *testing.T) {
	values := []float64{150, 150, -150}
	for range 3 * alerts.PushReadings {
		values = append(values, 150)
		if got := pushTrend(vitals.Limits{High: new(140.0), Critical: new(180.0)}, daily(values...)...); got.Rule != alerts.ListedByTrend {
			t.Fatalf("after %d days: %+v", len(values), got)
		}
	}
}

func TestWarningPushChoices(t *testing.T) {
	warning := alerts.Finding{Type: "blood_pressure", Level: alerts.Warning}
	critical := alerts.Finding{Type: "blood_pressure", Level: alerts.Critical}
	for name, test := range map[string]struct {
		choice alerts.WarningPush
		draft  alerts.Draft
		want   alerts.PushRule
	}{
		"each":                  {alerts.PushEach, alerts.Draft{Finding: warning}, alerts.PushedEach},
		"not chosen":            {"", alerts.Draft{Finding: warning}, alerts.PushedEach},
		"never":                 {alerts.PushNever, alerts.Draft{Finding: warning}, alerts.ListedNever},
		"never, critical":       {alerts.PushNever, alerts.Draft{Finding: critical}, alerts.PushedCritical},
		"critical":              {alerts.PushTrend, alerts.Draft{Finding: critical}, alerts.PushedCritical},
		"snoozed":               {alerts.PushTrend, alerts.Draft{Finding: critical, Snoozed: true}, alerts.ListedSnoozed},
		"superseded":            {alerts.PushTrend, alerts.Draft{Finding: critical, Superseded: true}, alerts.ListedSuperseded},
		"ended by later ones":   {alerts.PushTrend, alerts.Draft{Finding: warning, ResolvedByLater: true}, alerts.ListedSuperseded},
		"weight":                {alerts.PushTrend, alerts.Draft{Finding: alerts.Finding{Type: "weight", Level: alerts.Warning}}, alerts.PushedKind},
		"irregular heartbeat":   {alerts.PushTrend, alerts.Draft{Finding: alerts.Finding{Type: "irregular_heartbeat", Level: alerts.Warning}}, alerts.PushedKind},
		"suspect reading":       {alerts.PushTrend, alerts.Draft{Finding: alerts.Finding{Type: "suspect_reading", Level: alerts.Warning}}, alerts.PushedKind},
		"worse than snoozed":    {alerts.PushTrend, alerts.Draft{Finding: warning, WorseThanNotified: true}, alerts.PushedWorse},
		"informative":           {alerts.PushTrend, alerts.Draft{Finding: warning, Informative: true}, ""},
		"missing data":          {alerts.PushNever, alerts.Draft{Finding: alerts.Finding{Type: "missed_reading", Level: alerts.NoData}}, ""},
		"never, weight":         {alerts.PushNever, alerts.Draft{Finding: alerts.Finding{Type: "weight", Level: alerts.Warning}}, alerts.ListedNever},
		"no history, no values": {alerts.PushTrend, alerts.Draft{Finding: warning}, alerts.ListedByTrend},
	} {
		if got := test.choice.DecidePush(test.draft, vitals.Reading{}, alerts.Thresholds{}, alerts.PushHistory{}); got.Rule != test.want {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}
