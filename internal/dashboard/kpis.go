package dashboard

import (
	"encoding/json"
	"encoding/json/jsontext"
	"math"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// KPIs are the six figures of the contract. Rates are percentages to one decimal.
type KPIs struct {
	PatientsMonitored int
	VitalAlerts       int
	TransmissionRate  float64
	ReceivedToday     int
	ExpectedToday     int
	ComplianceRate    float64
	NeedThresholds    int // minors measured without bounds
	// UndecidedTemplates are patients with provisional bounds, and OverdueTemplates those with an overdue decision.
	UndecidedTemplates  int
	OverdueTemplates    int
	AvgProcessingTimeMS int64
	MonthlyRevenue      billing.Cents
	At                  time.Time
}

// The billing requirement of the compliance rate. Source: specification, KPI definitions.
const (
	complianceDays   = 16
	complianceWindow = 30
)

// vitalTypes are the counted alerts: about readings and missing readings. Source: docs/decisions/dashboard.md, "KPI details".
var vitalTypes = append(slices.Clone(alerts.ReadingTypes), alerts.TypeEarlyWarning, alerts.TypeImplausibleReading, alerts.TypeMissedReading, alerts.TypeNoReading24h)

// KPIs returns the figures; careTeamOf limits them to the patients of a user's care teams, "" does not.
func (b *Board) KPIs(app core.App, careTeamOf string, now time.Time) (KPIs, error) {
	return cached(b, "kpis "+careTeamOf, now, func() (KPIs, error) { return b.count(app, careTeamOf, now) })
}

func (b *Board) count(app core.App, careTeamOf string, now time.Time) (k KPIs, err error) {
	k.At = now
	if k.PatientsMonitored, err = collections.CountMonitored(app, careTeamOf); err != nil {
		return k, err
	}
	if k.VitalAlerts, err = collections.CountUnacknowledged(app, careTeamOf, vitalTypes); err != nil {
		return k, err
	}
	today := b.today(now).Format(time.DateOnly)
	days, err := b.dayRates(app, careTeamOf, []string{today})
	if err != nil {
		return k, err
	}
	k.ReceivedToday, k.ExpectedToday, k.TransmissionRate = days[0].Received, days[0].Expected, days[0].Rate
	if k.ComplianceRate, err = b.compliance(app, careTeamOf, now); err != nil {
		return k, err
	}
	if k.NeedThresholds, err = collections.CountWithoutThresholds(app, careTeamOf); err != nil {
		return k, err
	}
	if k.UndecidedTemplates, k.OverdueTemplates, err = collections.UndecidedTemplates(app, careTeamOf, triage.UndecidedSince(now)); err != nil {
		return k, err
	}
	mean, err := collections.AverageProcessing(app, careTeamOf, now.Add(-time.Hour)) // an hour has few readings to scan
	if err != nil {
		return k, err
	}
	k.AvgProcessingTimeMS = int64(math.Round(mean))
	k.MonthlyRevenue, err = b.revenue(app, now)
	return k, err
}

// compliance is the share of active patients with device readings on enough of the last days, in the patients' time zones.
func (b *Board) compliance(app core.App, careTeamOf string, now time.Time) (float64, error) {
	zones, err := collections.PatientZones(app)
	if err != nil {
		return 0, err
	}
	active, compliant := 0, 0
	for _, name := range zones {
		since := now.In(collections.Zone(name, b.Zone)).AddDate(0, 0, 1-complianceWindow).Format(time.DateOnly)
		all, enough, err := collections.CountCompliant(app, careTeamOf, name, since, complianceDays)
		if err != nil {
			return 0, err
		}
		active, compliant = active+all, compliant+enough
	}
	return percent(compliant, active), nil
}

// percent returns part of whole in percent to one decimal, at most 100; 0 if whole is 0.
func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return min(100, vitals.RoundHalfUp(100*float64(part)/float64(whole), 1))
}

// revenue is the sum of the current month's entries, except voided ones, for the whole practice.
func (b *Board) revenue(app core.App, now time.Time) (billing.Cents, error) {
	today := b.today(now)
	first := today.AddDate(0, 0, 1-today.Day())
	sums, err := billing.LoadTotals(app, billing.TotalsFilter{From: first.Format(time.DateOnly), To: first.AddDate(0, 1, -1).Format(time.DateOnly)})
	if err != nil || len(sums) == 0 {
		return 0, err
	}
	return sums[0].Amount, nil
}

// DayRate compares the readings received on a day with those expected.
type DayRate struct {
	Date     string  `json:"date"`
	Received int     `json:"received"`
	Expected int     `json:"expected"`
	Rate     float64 `json:"rate"`
}

// expectedPatient is a patient with expected readings.
type expectedPatient struct {
	schedule collections.Schedule
	enrolled string // the day before the first that counts
	// holdFirst and holdLast are the days of the latest patient hold.
	holdFirst, holdLast string
	devices             []holding
}

// holding is a device that a patient had; days are dates in the patient's zone.
type holding struct {
	kind        vitals.Kind
	after, last string // expected from the day after the first to the last; "" is open-ended
}

// dayRates counts expected and received readings of the active patients for ascending days; a patient's readings count up to the expected
// number. Past days use today's schedule and the devices of that time. Source: docs/decisions/dashboard.md, "KPI details".
func (b *Board) dayRates(app core.App, careTeamOf string, days []string) ([]DayRate, error) {
	first, last := days[0], days[len(days)-1]
	patients, err := b.expectedPatients(app, careTeamOf, first)
	if err != nil {
		return nil, err
	}
	received, err := collections.ReadingsByDay(app, careTeamOf, first, last)
	if err != nil {
		return nil, err
	}
	rates := make([]DayRate, len(days))
	for i, day := range days {
		rates[i].Date = day
		for id, patient := range patients {
			wanted := patient.expectedOn(day)
			rates[i].Expected += wanted
			rates[i].Received += min(wanted, received[collections.PatientDay{Patient: id, Day: day}])
		}
		rates[i].Rate = percent(rates[i].Received, rates[i].Expected)
	}
	return rates, nil
}

func (p *expectedPatient) expectedOn(day string) int {
	m := devices.Monitoring{Schedule: p.schedule, Enrolled: p.enrolled, HoldFirst: p.holdFirst, HoldLast: p.holdLast}
	for _, h := range p.devices {
		if h.last == "" || day <= h.last {
			m.Devices = append(m.Devices, devices.Expected{Kind: h.kind, After: h.after})
		}
	}
	return m.ExpectedCount(day)
}

// expectedPatients reads the active patients with a schedule or a device, and the devices they had since the first day.
func (b *Board) expectedPatients(app core.App, careTeamOf, first string) (map[string]*expectedPatient, error) {
	rows, err := collections.ScheduledPatients(app, careTeamOf)
	if err != nil {
		return nil, err
	}
	patients := make(map[string]*expectedPatient, len(rows))
	zoneOf := make(map[string]*time.Location, len(rows))
	for _, row := range rows {
		zoneOf[row.ID] = collections.Zone(row.Zone, b.Zone)
		patient := &expectedPatient{enrolled: dayBefore(row.CreatedAt, zoneOf[row.ID])}
		patient.holdFirst, patient.holdLast = row.Hold().Days(zoneOf[row.ID])
		if json.Unmarshal([]byte(row.Schedule), &patient.schedule) != nil {
			patient.schedule = nil // nothing stored
		}
		patients[row.ID] = patient
	}
	return patients, addHoldings(app, patients, zoneOf, first)
}

// addHoldings adds the devices that the patients had since the first day. A shipped device is expected from the day after its delivery,
// unless it measured earlier; any other from the day of its assignment.
func addHoldings(app core.App, patients map[string]*expectedPatient, zoneOf map[string]*time.Location, first string) error {
	rows, err := collections.AssignmentsSince(app, first)
	if err != nil {
		return err
	}
	for _, row := range rows {
		patient := patients[row.Patient]
		if patient == nil {
			continue
		}
		zone, from := zoneOf[row.Patient], collections.ParseInstant(row.From)
		h := holding{kind: vitals.Kind(row.Kind), after: dayBefore(row.From, zone)}
		ordered := collections.ParseInstant(row.OrderedAt)
		if !row.Read && row.Delivery > h.after && ordered.Sub(from) < 24*time.Hour {
			h.after = row.Delivery
		}
		if to := collections.ParseInstant(row.To); !to.IsZero() {
			h.last = to.In(zone).Format(time.DateOnly)
		}
		patient.devices = append(patient.devices, h)
	}
	return nil
}

func dayBefore(instant string, zone *time.Location) string {
	year, month, day := collections.ParseInstant(instant).In(zone).Date()
	return time.Date(year, month, day-1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

// The spans of the series; the last row is the current bucket. Source: docs/decisions/dashboard.md, "Series shapes".
const (
	transmissionDays  = 30
	volumeDays        = 90
	processingBuckets = 96
)

// Transmissions returns expected and received readings by day, oldest first.
func (b *Board) Transmissions(app core.App, now time.Time) ([]DayRate, error) {
	return cached(b, "transmissions", now, func() ([]DayRate, error) { return b.dayRates(app, "", b.days(transmissionDays, now)) })
}

// days returns the practice's last dates, oldest first, ending today.
func (b *Board) days(count int, now time.Time) []string {
	days, today := make([]string, count), b.today(now)
	for i := range days {
		days[i] = today.AddDate(0, 0, i+1-count).Format(time.DateOnly)
	}
	return days
}

// DayVolume counts the readings measured on a day, without retracted ones.
type DayVolume struct {
	Date   string
	Total  int
	ByKind map[vitals.Kind]int
}

// MarshalJSONTo writes the total and all kinds, including those without readings.
func (v DayVolume) MarshalJSONTo(enc *jsontext.Encoder) error {
	var shown validate.OrderedObject
	shown.Add("date", v.Date)
	shown.Add("total", v.Total)
	for _, kind := range vitals.Kinds {
		shown.Add(string(kind), v.ByKind[kind])
	}
	return shown.MarshalJSONTo(enc)
}

// Volume returns the number of readings by the practice's day of measurement, oldest first.
func (b *Board) Volume(app core.App, now time.Time) ([]DayVolume, error) {
	return cached(b, "volume", now, func() ([]DayVolume, error) {
		days := b.days(volumeDays, now)
		rows, err := collections.DailyCounts(app, days[0], days[len(days)-1])
		if err != nil {
			return nil, err
		}
		at, results := map[string]*DayVolume{}, make([]DayVolume, len(days))
		for i, day := range days {
			results[i], at[day] = DayVolume{Date: day, ByKind: map[vitals.Kind]int{}}, &results[i]
		}
		for _, row := range rows {
			day := at[row.Day]
			day.Total += row.Readings
			day.ByKind[vitals.Kind(row.Kind)] += row.Readings
		}
		return results, nil
	})
}

// Processing is the time from receipt to storage of the readings stored in 15 minutes; nil without readings.
type Processing struct {
	At    time.Time
	AvgMS *float64
	P95MS *float64
	Count int
}

// Processing returns the last day in 15-minute buckets, oldest first.
func (b *Board) Processing(app core.App, now time.Time) ([]Processing, error) {
	return cached(b, "processing", now, func() ([]Processing, error) {
		last := now.UTC().Truncate(ingest.LatencyBucket)
		first := last.Add(-(processingBuckets - 1) * ingest.LatencyBucket)
		rows, err := collections.ProcessingTimes(app, first, last)
		if err != nil {
			return nil, err
		}
		byBucket := map[string][]collections.ProcessingTime{}
		for _, row := range rows {
			byBucket[row.Bucket] = append(byBucket[row.Bucket], row)
		}
		results := make([]Processing, processingBuckets)
		for i := range results {
			at := first.Add(time.Duration(i) * ingest.LatencyBucket)
			results[i] = summarize(at, byBucket[collections.FormatInstant(at)])
		}
		return results, nil
	})
}

// summarize combines the rows of one bucket, sorted by milliseconds. The 95th percentile is the nearest rank: the least time within which
// 95 % of the readings were stored.
func summarize(at time.Time, rows []collections.ProcessingTime) Processing {
	p := Processing{At: at}
	total := int64(0)
	for _, row := range rows {
		p.Count += row.Readings
		total += row.TotalUS
	}
	if p.Count == 0 {
		return p
	}
	mean := vitals.RoundHalfUp(float64(total)/float64(p.Count)/1000, 1)
	p.AvgMS = &mean
	rank, seen := int(math.Ceil(0.95*float64(p.Count))), 0
	for _, row := range rows {
		if seen += row.Readings; seen >= rank {
			value := float64(row.MS)
			p.P95MS = &value
			break
		}
	}
	return p
}
