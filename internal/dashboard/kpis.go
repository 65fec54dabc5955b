package dashboard

import (
	"fmt"
	"math"
	"time"

	"github.com/pocketbase/dbx"
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
var vitalTypes = []any{
	alerts.TypeBloodPressure, alerts.TypePulse, alerts.TypeWeight, alerts.TypePulseOximetry, alerts.TypeBloodGlucose,
	alerts.TypeMissedReading, alerts.TypeNoReading24h,
}

// KPIs works the figures out, or answers from memory; careTeamOf confines them to the patients of a user's care teams, "" does not.
func (b *Board) KPIs(app core.App, careTeamOf string, now time.Time) (KPIs, error) {
	return remembered(b, "kpis "+careTeamOf, now, func() (KPIs, error) { return b.count(app, careTeamOf, now) })
}

func (b *Board) count(app core.App, careTeamOf string, now time.Time) (k KPIs, err error) {
	k.At = now
	if k.PatientsMonitored, err = monitored(app, careTeamOf); err != nil {
		return k, err
	}
	unacknowledged := false
	where := collections.Conditions{dbx.In("type", vitalTypes...)}.Is("acknowledged", &unacknowledged).OnCareTeamOf(careTeamOf)
	if err := app.DB().Select("COUNT(*)").From(collections.Alerts).Where(collections.Every(where)).Row(&k.VitalAlerts); err != nil {
		return k, fmt.Errorf("count alerts: %w", err)
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

// monitored counts the active patients with at least one device.
func monitored(app core.App, careTeamOf string) (n int, err error) {
	where := collections.Conditions{dbx.NewExp(`active = TRUE AND deleted_at = '' AND
		EXISTS (SELECT 1 FROM devices d WHERE d.patient = patients.id AND d.patient != '')`)}
	if careTeamOf != "" {
		where = append(where, collections.OnCareTeam("id", careTeamOf))
	}
	if err := app.DB().Select("COUNT(*)").From(collections.Patients).Where(collections.Every(where)).Row(&n); err != nil {
		return 0, fmt.Errorf("count monitored patients: %w", err)
	}
	return n, nil
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
		where := collections.Conditions{dbx.NewExp("active = TRUE AND deleted_at = '' AND time_zone = {:zone}", dbx.Params{"zone": name})}
		if careTeamOf != "" {
			where = append(where, collections.OnCareTeam("id", careTeamOf))
		}
		var all, enough int
		err = app.DB().Select("COUNT(*)", `COALESCE(SUM((SELECT COUNT(DISTINCT r.day) FROM reading_days r
				WHERE r.patient = patients.id AND r.day >= {:since} AND r.device_readings > 0) >= {:days}), 0)`).
			From(collections.Patients).Where(collections.Every(where)).
			AndBind(dbx.Params{"since": since, "days": complianceDays}).Row(&all, &enough)
		if err != nil {
			return 0, fmt.Errorf("count compliant patients: %w", err)
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
	where := collections.Conditions{dbx.NewExp("created_at > {:since}", dbx.Params{"since": collections.Instant(now.Add(-time.Hour))})}.
		OnCareTeamOf(careTeamOf)
	var mean float64
	err := app.DB().Select("COALESCE(AVG(processing_ms), 0)").From(collections.Observations).Where(collections.Every(where)).Row(&mean)
	if err != nil {
		return 0, fmt.Errorf("average processing time: %w", err)
	}
	return int64(math.Round(mean)), nil
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
