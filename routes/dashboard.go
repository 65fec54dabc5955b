package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// dashboardView holds the figures of the dashboard; figures that the role may not see are null.
type dashboardView struct {
	PatientsMonitored   int            `json:"patients_monitored"`
	VitalAlerts         *int           `json:"vital_alerts"`
	TransmissionRate    float64        `json:"transmission_rate"`
	ReceivedToday       int            `json:"received_today"`
	ExpectedToday       int            `json:"expected_today"`
	ComplianceRate      float64        `json:"compliance_rate"`
	NeedThresholds      int            `json:"patients_needing_thresholds"`
	UndecidedTemplates  int            `json:"undecided_templates"`
	OverdueTemplates    int            `json:"undecided_templates_overdue"`
	AvgProcessingTimeMS int64          `json:"avg_processing_time_ms"`
	MonthlyRevenue      *billing.Cents `json:"monthly_revenue"`
	LastUpdated         string         `json:"last_updated"`
	Scope               string         `json:"scope"`
	Sections            []string       `json:"sections"`
	QuickActions        []string       `json:"quick_actions"`
}

// readDashboard answers with the figures, or with the activity feed if the query has paging parameters. Source:
// docs/decisions/dashboard.md, "Two uses of dashboard/stats".
func (a *api) readDashboard(c *web.Call) error {
	q := c.Query()
	if q.Has("limit") || q.Has("cursor") {
		return a.readActivity(c)
	}
	scope := q.OneOf("scope", "mine", "all")
	if err := q.Err(); err != nil {
		return err
	}
	team, err := a.dashboardTeam(c, scope)
	if err != nil {
		return err
	}
	k, err := a.Dashboard.KPIs(c.App, team, c.Now)
	if err != nil {
		return err
	}
	view := dashboardView{
		PatientsMonitored: k.PatientsMonitored, VitalAlerts: &k.VitalAlerts, TransmissionRate: k.TransmissionRate,
		ReceivedToday: k.ReceivedToday, ExpectedToday: k.ExpectedToday, ComplianceRate: k.ComplianceRate, NeedThresholds: k.NeedThresholds,
		UndecidedTemplates: k.UndecidedTemplates, OverdueTemplates: k.OverdueTemplates,
		AvgProcessingTimeMS: k.AvgProcessingTimeMS, MonthlyRevenue: &k.MonthlyRevenue, LastUpdated: validate.FormatInstant(k.At),
		Scope: "all", Sections: dashboard.Sections(c.Caller.Role), QuickActions: dashboard.QuickActions(c.Caller.Role),
	}
	if team != "" {
		view.Scope = "mine"
	}
	switch dashboard.GroupOf(c.Caller.Role) {
	case dashboard.Clinicians, dashboard.Staff:
		view.MonthlyRevenue = nil
	case dashboard.Billing:
		view.VitalAlerts = nil
	}
	return c.OK(view)
}

// dashboardTeam returns the member of the care teams that limit the dashboard, or "" for no limit. A user who is
// restricted to care teams always gets that limit; another clinician with care teams gets it unless the query requests
// all patients. Source: docs/decisions/dashboard.md, "Role-dependent sections".
func (a *api) dashboardTeam(c *web.Call, scope string) (userRecordID string, err error) {
	switch {
	case a.confinedToTeams(c):
		return c.Caller.RecordID, nil
	case scope == "all" || !authz.IsCareTeamRole(c.Caller.Role) && c.Caller.Role != authz.ClinicalManager:
		return "", nil
	case scope == "mine":
		return c.Caller.RecordID, nil
	case dashboard.GroupOf(c.Caller.Role) != dashboard.Clinicians:
		return "", nil
	}
	own, err := collections.CountTeamPatients(c.App, c.Caller.RecordID)
	if err != nil || own == 0 {
		return "", err
	}
	return c.Caller.RecordID, nil
}

type activityView struct {
	ID        string             `json:"id"`
	Type      dashboard.FeedType `json:"type"`
	Message   string             `json:"message"`
	Severity  string             `json:"severity"`
	Timestamp string             `json:"timestamp"`
	User      *string            `json:"user"`
	PatientID *string            `json:"patient_id"`
	ObjectID  *string            `json:"object_id"`
}

type activityPage struct {
	Results    []activityView `json:"results"`
	NextCursor *string        `json:"next_cursor"`
	Next       *string        `json:"next"`
}

const (
	defaultFeedLimit = 20
	maxFeedLimit     = 100
)

// readActivity answers with one page of the feed, newest first, and records the patients shown. Source:
// docs/decisions/dashboard.md, "Feed cursor".
func (a *api) readActivity(c *web.Call) error {
	q := c.Query()
	query := dashboard.FeedQuery{
		Role: c.Caller.Role, Type: dashboard.FeedType(q.OneOf("type", dashboard.FeedTypes...)),
		Severity: q.OneOf("severity", dashboard.FeedSeverities...), Limit: q.Positive("limit", defaultFeedLimit, maxFeedLimit),
	}
	scope := q.OneOf("scope", "mine", "all")
	if err := q.Err(); err != nil {
		return err
	}
	if cursor := q.Get("cursor"); q.Has("cursor") {
		query.Cursor = &cursor
	}
	var err error
	if query.CareTeamOf, err = a.dashboardTeam(c, scope); err != nil {
		return err
	}
	page, err := a.Dashboard.Feed(c.App, query, c.Now)
	if err != nil {
		return err
	}
	if shown := page.PatientIDs(); len(shown) > 0 && dashboard.GroupOf(c.Caller.Role) != dashboard.Billing {
		if err := c.RecordRead(audit.PatientRead, audit.ResourceActivity, "", shown...); err != nil {
			return err
		}
	}
	return c.OK(viewActivity(c, page))
}

func viewActivity(c *web.Call, page dashboard.FeedPage) activityPage {
	view := activityPage{Results: web.Map(page.Entries, func(e dashboard.FeedEntry) activityView {
		return activityView{
			ID: e.ID, Type: e.Type, Message: e.Message(), Severity: e.Severity, Timestamp: validate.FormatInstant(e.At),
			User: orNull(e.User), PatientID: orNull(e.PatientID), ObjectID: orNull(e.ObjectID),
		}
	})}
	if page.Next != "" {
		view.NextCursor, view.Next = &page.Next, c.LinkTo("cursor", page.Next)
	}
	return view
}

// series is the envelope of a time series.
type series[T any] struct {
	Period   string `json:"period"`
	Interval string `json:"interval"`
	Results  []T    `json:"results"`
}

func (a *api) readTransmissionSeries(c *web.Call) error {
	days, err := a.Dashboard.Transmissions(c.App, c.Now)
	return c.Respond(series[dashboard.DayRate]{"30d", "1d", days}, err)
}

type processingView struct {
	Timestamp string   `json:"timestamp"`
	AvgMS     *float64 `json:"avg_ms"`
	P95MS     *float64 `json:"p95_ms"`
	Count     int      `json:"count"`
}

func (a *api) readProcessingSeries(c *web.Call) error {
	buckets, err := a.Dashboard.Processing(c.App, c.Now)
	if err != nil {
		return err
	}
	return c.OK(series[processingView]{"24h", "15m", web.Map(buckets, func(b dashboard.Processing) processingView {
		return processingView{validate.FormatInstant(b.At), b.AvgMS, b.P95MS, b.Count}
	})})
}

func (a *api) readVolumeSeries(c *web.Call) error {
	days, err := a.Dashboard.Volume(c.App, c.Now)
	return c.Respond(series[dashboard.DayVolume]{"90d", "1d", days}, err)
}

// live reports that the process responds. Source: docs/decisions/dashboard.md, "Health body".
func (a *api) live(c *web.Call) error {
	return c.OK(struct {
		Status string `json:"status"`
	}{"ok"})
}

// healthView is the state of the four monitored services.
type healthView struct {
	Status    dashboard.Health   `json:"status"`
	Timestamp string             `json:"timestamp"`
	Version   string             `json:"version"`
	Services  dashboard.Services `json:"services"`
}

// health answers from memory: 503 if the database is down, else 200. Source: docs/decisions/dashboard.md, "Health
// body".
func (a *api) health(c *web.Call) error {
	report := a.Monitor.Latest()
	status := http.StatusOK
	if report.Status == dashboard.Down {
		status = http.StatusServiceUnavailable
	}
	return c.JSON(status, ViewHealth(report, a.Version))
}

// ViewHealth is the body of the health check.
func ViewHealth(report dashboard.Report, version string) any {
	return healthView{report.Status, validate.FormatInstant(report.At), version, report.Services}
}
