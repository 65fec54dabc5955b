// Package vitalsummary summarizes a patient's readings over the last days: means, extremes, counts, origins, and the share in range. Days
// are calendar days in the patient's time zone. It does not evaluate single readings or render summaries.
// Rules: docs/decisions/observations.md, "Summary of a patient's readings".
package vitalsummary

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// PeriodDays are the lengths of a summary's periods, in calendar days including today. Source: docs/decisions/observations.md, "Summary of
// a patient's readings".
var PeriodDays = []int{7, 30, 90}

// The hours of morning and evening in the patient's time zone, the end excluded.
const (
	morningFrom, morningTo = 4, 12
	eveningFrom, eveningTo = 16, 24
)

// Reader reads summaries.
type Reader struct{ practice *time.Location }

// NewReader returns a reader; patients without a time zone are in the practice's.
func NewReader(practice *time.Location) *Reader { return &Reader{practice} }

// Summary is the summary of a patient's readings.
type Summary struct {
	PatientID string
	AsOf      time.Time
	Periods   []Period
}

// Period is a number of last calendar days, with a group for each type of reading alerts: blood pressure, pulse and so on.
type Period struct {
	Days   int
	Groups []Group
}

// Group is the summary of one group of parameters.
type Group struct {
	Name       string
	Parameters []*vitals.Parameter
	Readings   int
	Days       int // with readings
	ByDevice   int
	Manual     int
	// InRange is the percentage within the current bounds; nil without bounds or readings.
	InRange *float64
	All     Values
	Morning Values
	Evening Values
}

// Load reads the summary of a patient.
func (r *Reader) Load(app core.App, patientID string, now time.Time) (Summary, error) {
	zone, err := collections.ZoneOfPatient(app, patientID, r.practice)
	if err != nil {
		return Summary{}, err
	}
	from := collections.ParseDay(periodStart(now, zone, slices.Max(PeriodDays)), zone)
	return load(app, patientID, from, collections.StartOfNextDay(now.In(zone)), now.In(zone))
}

// LoadMonth is [Reader.Load] at the end of a month, from its start to its exclusive end, without earlier readings. Days are in the zone of from.
func LoadMonth(app core.App, patientID string, from, to time.Time) (Summary, error) {
	return load(app, patientID, from, to, to.Add(-time.Second).In(from.Location()))
}

// load summarizes the readings of a half-open span in periods that end on the day of now, in its zone.
func load(app core.App, patientID string, from, to, now time.Time) (Summary, error) {
	configured, err := alerts.Configured(app, patientID)
	if err != nil {
		return Summary{}, err
	}
	tallies, zone := make([]*periodCounter, len(PeriodDays)), now.Location()
	for i, days := range PeriodDays {
		tallies[i] = newPeriodCounter(periodStart(now, zone, days), configured.InForce)
	}
	err = eachMeasurement(app, patientID, "", from, to, func(m measurement) {
		m.at = m.at.In(zone)
		for _, t := range tallies {
			t.add(m)
		}
	})
	summary := Summary{PatientID: patientID, AsOf: now}
	for i, t := range tallies {
		summary.Periods = append(summary.Periods, Period{Days: PeriodDays[i], Groups: t.groups()})
	}
	return summary, err
}

// periodStart returns the first date of a period of calendar days that ends today.
func periodStart(now time.Time, zone *time.Location, days int) string {
	year, month, day := now.In(zone).Date()
	return time.Date(year, month, day-days+1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly) // a date: no zone may move it
}

// measurement is the part of a stored reading that summaries need.
type measurement struct {
	reading vitals.Reading
	at      time.Time
	manual  bool
}

func eachMeasurement(app core.App, patientID, kind string, from, to time.Time, add func(measurement)) error {
	values := make([]*float64, len(vitals.Parameters))
	return collections.EachSummaryReading(app, patientID, kind, from, to, vitals.MealContext.Name+", "+vitals.Columns(vitals.Parameters), func(rows *dbx.Rows) error {
		var name, at, source, origin, meal string
		into := []any{&name, &at, &source, &origin, &meal}
		for i := range values {
			values[i] = nil
			into = append(into, &values[i])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		m := measurement{reading: vitals.Reading{Kind: vitals.Kind(name)}, at: collections.ParseInstant(at)}
		for i, p := range vitals.Parameters {
			if values[i] != nil {
				m.reading = m.reading.With(p, *values[i])
			}
		}
		m.reading.SetQualifier(vitals.MealContext, meal)
		by := vitals.Origin(origin)
		if by == "" {
			by = vitals.Source(source).Origin()
		}
		m.manual = by == vitals.OriginStaff || by == vitals.OriginPatient
		add(m)
		return nil
	})
}

// Groups are the groups of parameters in display order.
var Groups = func() (groups []Group) {
	for _, p := range vitals.ThresholdParameters {
		at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == p.Group })
		if at < 0 {
			at, groups = len(groups), append(groups, Group{Name: p.Group})
		}
		groups[at].Parameters = append(groups[at].Parameters, p)
	}
	slices.SortStableFunc(groups, func(a, b Group) int {
		return slices.Index(alerts.ReadingTypes, a.Name) - slices.Index(alerts.ReadingTypes, b.Name)
	})
	return groups
}()

// LoadMean returns the mean blood pressure from one date to another, both included.
func (r *Reader) LoadMean(app core.App, patientID, from, to string) (fhir.MeanBloodPressure, error) {
	zone, err := collections.ZoneOfPatient(app, patientID, r.practice)
	if err != nil {
		return fhir.MeanBloodPressure{}, err
	}
	mean, _, err := meanOf(app, patientID, from, to, zone)
	return mean, err
}

func meanOf(app core.App, patientID, from, to string, zone *time.Location) (mean fhir.MeanBloodPressure, days int, err error) {
	mean = fhir.MeanBloodPressure{PatientID: patientID, From: collections.ParseDay(from, zone), To: collections.StartOfNextDay(collections.ParseDay(to, zone))}
	if mean.From.IsZero() || !mean.To.After(mean.From) {
		return mean, 0, fmt.Errorf("no period of a mean")
	}
	t := newPeriodCounter(from, alerts.Thresholds{})
	err = eachMeasurement(app, patientID, string(vitals.BloodPressure), mean.From, mean.To, func(m measurement) {
		m.at = m.at.In(zone)
		if m.reading.Value(vitals.Systolic) != nil && m.reading.Value(vitals.Diastolic) != nil {
			t.add(m)
		}
	})
	for _, g := range t.groups() {
		if g.Name == vitals.Systolic.Group && g.Readings > 0 {
			mean.Readings, days = g.Readings, g.Days
			mean.Systolic, mean.Diastolic = *g.All.Mean(vitals.Systolic), *g.All.Mean(vitals.Diastolic)
		}
	}
	return mean, days, err
}

// Values summarizes the values of some readings.
type Values struct {
	Readings int
	sums     []sum
}

// sum adds the values of one parameter in whole hundredths, the stored precision.
type sum struct{ n, total, min, max, first, last int64 }

func hundredths(value float64) int64 { return int64(math.Round(value * 100)) }

func (v *Values) add(i int, value float64) {
	s, h := &v.sums[i], hundredths(value)
	if s.n == 0 {
		s.first, s.min, s.max = h, h, h
	}
	s.n, s.total, s.last, s.min, s.max = s.n+1, s.total+h, h, min(s.min, h), max(s.max, h)
}

// sumOf returns the sum of a parameter; nil if it was not measured.
func (v Values) sumOf(p *vitals.Parameter) *sum {
	if s := v.sums[p.Index()]; s.n > 0 {
		return &s
	}
	return nil
}

// Mean returns the mean of a parameter to one decimal, half up; nil if it was not measured.
func (v Values) Mean(p *vitals.Parameter) *float64 {
	s := v.sumOf(p)
	if s == nil {
		return nil
	}
	return new(tenths(s.total, 10*s.n))
}

// Min and Max return the extremes of a parameter, Change the last value minus the first; nil if it was not measured.
func (v Values) Min(p *vitals.Parameter) *float64 {
	return v.pick(p, func(s *sum) int64 { return s.min })
}

func (v Values) Max(p *vitals.Parameter) *float64 {
	return v.pick(p, func(s *sum) int64 { return s.max })
}

func (v Values) Change(p *vitals.Parameter) *float64 {
	return v.pick(p, func(s *sum) int64 { return s.last - s.first })
}

func (v Values) pick(p *vitals.Parameter, which func(*sum) int64) *float64 {
	s := v.sumOf(p)
	if s == nil {
		return nil
	}
	return new(float64(which(s)) / 100)
}

// tenths divides non-negative whole numbers and rounds half up to tenths: 1225 by 10 is 12.3 for tenths.
func tenths(of, by int64) float64 { return float64((2*of+by)/(2*by)) / 10 }

// The minimum of readings and days for a meaningful weekly mean. Source: docs/decisions/fhir.md, "Mean blood pressure"; Shimbo et al.,
// Circulation 142:e42 (2020).
const (
	minReadings = 12
	minDays     = 3
	daysOfWeek  = 7
	// weeksToCheck is how many past weeks are checked, because readings may be late.
	weeksToCheck = 2
)

// Week is a patient's blood pressure of a past week, Monday to Sunday in the patient's time zone.
type Week struct {
	PatientID string
	From, To  string // dates
	// HasEnough: there are enough readings for a mean.
	HasEnough bool
}

// EachWeek calls do for the past weeks of all patients with an EMR record.
func (r *Reader) EachWeek(ctx context.Context, app core.App, now time.Time, do func(Week) error) error {
	patients, err := collections.LinkedPatientsWithReadings(app, string(vitals.BloodPressure), now.AddDate(0, 0, -daysOfWeek*(weeksToCheck+1)))
	if err != nil {
		return err
	}
	for _, p := range patients {
		zone := collections.Zone(p.TimeZone, r.practice)
		for back := 1; back <= weeksToCheck; back++ {
			if err := ctx.Err(); err != nil {
				return err
			}
			week := Week{PatientID: p.PatientID}
			week.From, week.To = weekDates(now.In(zone), back)
			mean, days, err := meanOf(app, p.PatientID, week.From, week.To, zone)
			if err != nil {
				return err
			}
			week.HasEnough = mean.Readings >= minReadings && days >= minDays
			if err := do(week); err != nil {
				return err
			}
		}
	}
	return nil
}

// weekDates returns the Monday and Sunday of a week before the current one.
func weekDates(now time.Time, back int) (monday, sunday string) {
	year, month, day := now.Date()
	today := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // dates: no zone may move them
	sinceMonday := (int(today.Weekday()) + daysOfWeek - int(time.Monday)) % daysOfWeek
	from := today.AddDate(0, 0, -sinceMonday-daysOfWeek*back)
	return from.Format(time.DateOnly), from.AddDate(0, 0, daysOfWeek-1).Format(time.DateOnly)
}
