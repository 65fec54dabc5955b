package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AlertGroup is the open alerts of one patient and type.
type AlertGroup struct {
	PatientID string `db:"patient"`
	Type      string `db:"type"`
	// Severity is the worst of the group: 0 critical, 1 warning, 2 no data, 3 normal.
	Severity     int    `db:"severity"`
	Alerts       int    `db:"alerts"`
	Critical     int    `db:"critical"`
	Acknowledged int    `db:"answered"`
	FirstText    string `db:"first_at"`
	LastText     string `db:"last_at"`
}

// First and Last return when the oldest and the newest alert was measured, or raised if nothing was measured.
func (g AlertGroup) First() time.Time { return ParseInstant(g.FirstText) }
func (g AlertGroup) Last() time.Time  { return ParseInstant(g.LastText) }

// AlertSeverities lists the levels by severity.
var AlertSeverities = []string{"critical", "warning", "no_data", "normal"}

// AlertGroupTotal counts the groups of a severity and their alerts.
type AlertGroupTotal struct {
	Severity int `db:"severity"`
	Groups   int `db:"groups"`
	Alerts   int `db:"alerts"`
	Critical int `db:"critical"`
}

// AlertGroupFilter narrows open alerts before they are grouped; zero values do not narrow. Severity narrows the groups instead.
type AlertGroupFilter struct {
	PatientID, Type, Severity string
	// Status is active, acknowledged or "" for both.
	Status string
	// AcknowledgedBy is the address of the user who acknowledged the alert first.
	AcknowledgedBy string
	Snoozed        *bool
	From, To       time.Time
	CareTeamOf     string
}

// severityRank orders levels.
const severityRank = `CASE level WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 WHEN 'no_data' THEN 2 ELSE 3 END`

// alertTime is when an alert's value was measured, or when it was raised.
const alertTime = `COALESCE(NULLIF(measured_at, ''), created_at)`

func (f AlertGroupFilter) where() Conditions {
	where := Conditions{}
	if f.Status == "" {
		where = append(where, AnyOf("status", []string{"active", "acknowledged"}))
	}
	return where.Equal("status", f.Status).Equal("type", f.Type).Equal("patient", f.PatientID).Equal("acknowledged_by", f.AcknowledgedBy).
		Is("snoozed", f.Snoozed).Between("created_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf).
		And(notDeleted)
}

func (f AlertGroupFilter) groups(app core.App) *dbx.SelectQuery {
	return app.DB().Select("patient", "type", "MIN("+severityRank+") AS severity", "COUNT(*) AS alerts", "SUM(level = 'critical') AS critical",
		"SUM(status = 'acknowledged') AS answered", "MIN("+alertTime+") AS first_at", "MAX("+alertTime+") AS last_at").
		From(Alerts).Where(AllOf(f.where())).GroupBy("patient", "type")
}

// PageOfAlertGroups returns a page of groups: the most severe first, then those with unacknowledged alerts, then the latest measured. totals
// counts the groups of every severity, ignoring the severity of the filter.
func PageOfAlertGroups(app core.App, f AlertGroupFilter, offset, limit int) (page []AlertGroup, totals []AlertGroupTotal, err error) {
	all := f.groups(app).Build()
	err = app.DB().NewQuery("SELECT severity, COUNT(*) AS groups, SUM(alerts) AS alerts, SUM(critical) AS critical FROM (" + all.SQL() + ") GROUP BY severity").
		Bind(all.Params()).All(&totals)
	if err != nil {
		return nil, nil, wrap(err, "count groups of alerts")
	}
	chosen := f.groups(app)
	for severity, level := range AlertSeverities {
		if level == f.Severity {
			chosen = chosen.Having(dbx.NewExp("MIN("+severityRank+") = {:severity}", dbx.Params{"severity": severity}))
		}
	}
	err = chosen.OrderBy("severity", "(answered = alerts)", "last_at DESC", "patient", "type").Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, totals, wrap(err, "list groups of alerts")
}

// AlertCounts counts open alerts by state: active (of these critical, warning and snoozed), in progress, and in progress by the user.
type AlertCounts struct {
	Active     int `db:"active" json:"active"`
	Critical   int `db:"critical" json:"critical"`
	Warning    int `db:"warning" json:"warning"`
	Snoozed    int `db:"resting" json:"snoozed"`
	InProgress int `db:"progress" json:"in_progress"`
	Mine       int `db:"mine" json:"mine"`
}

// CountOpenAlerts counts the alerts of a filter in every state; user is the address for the count of one's own alerts.
func CountOpenAlerts(app core.App, f AlertGroupFilter, user string) (counts AlertCounts, err error) {
	f.Status, f.Severity, f.AcknowledgedBy, f.Snoozed = "", "", "", nil
	err = app.DB().Select("COALESCE(SUM(status = 'active'), 0) AS active", "COALESCE(SUM(status = 'active' AND level = 'critical'), 0) AS critical",
		"COALESCE(SUM(status = 'active' AND level = 'warning'), 0) AS warning", "COALESCE(SUM(status = 'active' AND snoozed), 0) AS resting",
		"COALESCE(SUM(status = 'acknowledged'), 0) AS progress", "COALESCE(SUM(status = 'acknowledged' AND acknowledged_by = {:user}), 0) AS mine").
		From(Alerts).Where(AllOf(f.where())).Bind(dbx.Params{"user": user}).One(&counts)
	return counts, wrap(err, "count open alerts")
}

// GroupedAlert is the part of an alert that its group needs.
type GroupedAlert struct {
	ID         string `db:"id"`
	PatientID  string `db:"patient"`
	Type       string `db:"type"`
	Level      string `db:"level"`
	Escalation string `db:"escalation"`
}

// AlertsOfGroups returns the alerts of a page of groups, the latest measured first. It may include alerts of other types of the same patients.
func AlertsOfGroups(app core.App, f AlertGroupFilter, page []AlertGroup) (list []GroupedAlert, err error) {
	patients := make([]string, len(page))
	for i, group := range page {
		patients[i] = group.PatientID
	}
	where := append(f.where(), dbx.NewExp("patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": jsonList(patients)}))
	err = app.DB().Select("id", "patient", "type", "level", "escalation").From(Alerts).Where(AllOf(where)).OrderBy(alertTime+" DESC", "id DESC").All(&list)
	return list, wrap(err, "list alerts of groups")
}
