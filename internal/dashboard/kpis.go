package dashboard

import (
	"math"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// KPIs are the six figures of the contract, whoever may see them. Rates are percentages to one decimal.
type KPIs struct {
	PatientsMonitored   int
	VitalAlerts         int
	TransmissionRate    float64
	ReceivedToday       int
	ExpectedToday       int
	ComplianceRate      float64
	AvgProcessingTimeMS int64
	MonthlyRevenue      billing.Cents
	At                  time.Time
}

// The billing requirement of the compliance rate. Source: specification, KPI definitions.
const (
	complianceDays   = 16
	complianceWindow = 30
)

// vitalTypes are the alerts that count: about readings, and about readings that did not come. Source: docs/decisions/dashboard.md, "KPI details".
var vitalTypes = append(slices.Clone(alerts.ReadingTypes), alerts.TypeMissedReading, alerts.TypeNoReading24h)

// KPIs works the figures out, or answers from memory; careTeamOf confines them to the patients of a user's care teams, "" does not.
func (b *Board) KPIs(app core.App, careTeamOf string, now time.Time) (KPIs, error) {
	return remembered(b, "kpis "+careTeamOf, now, func() (KPIs, error) { return b.count(app, careTeamOf, now) })
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
	if k.AvgProcessingTimeMS, err = averageProcessing(app, careTeamOf, now); err != nil {
		return k, err
	}
	k.MonthlyRevenue, err = b.revenue(app, now)
	return k, err
}

// compliance is the share of the active patients with readings of their devices on enough of the last days, as the days are where they live.
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

// percent is part of whole in percent to one decimal, at most 100; 0 of nothing.
func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return min(100, vitals.RoundHalfUp(100*float64(part)/float64(whole), 1))
}

// averageProcessing is the mean of the last hour, from the readings themselves: an hour holds few.
func averageProcessing(app core.App, careTeamOf string, now time.Time) (int64, error) {
	mean, err := collections.AverageProcessing(app, careTeamOf, now.Add(-time.Hour))
	return int64(math.Round(mean)), err
}

// revenue is what the entries of the current month come to, voided ones left out. It is nobody's own.
func (b *Board) revenue(app core.App, now time.Time) (billing.Cents, error) {
	today := b.today(now)
	first := today.AddDate(0, 0, 1-today.Day())
	sums, err := billing.Sums(app, billing.SumFilter{From: first.Format(time.DateOnly), To: first.AddDate(0, 1, -1).Format(time.DateOnly)})
	if err != nil || len(sums) == 0 {
		return 0, err
	}
	return sums[0].Amount, nil
}
