package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AlertGroup is the alerts of one patient about one cause.
type AlertGroup struct {
	PatientID string `db:"patient"`
	Type      string `db:"type"`
	// Severity is that of the worst of them: 0 critical, 1 warning, 2 no data, 3 normal.
	Severity     int    `db:"severity"`
	Alerts       int    `db:"alerts"`
	Critical     int    `db:"critical"`
	Acknowledged int    `db:"answered"`
	FirstText    string `db:"first_at"`
	LastText     string `db:"last_at"`
}

// First and Last are when the oldest and the newest of them were measured, or raised where nothing was.
func (g AlertGroup) First() time.Time { return ParseInstant(g.FirstText) }
func (g AlertGroup) Last() time.Time  { return ParseInstant(g.LastText) }

// AlertSeverities are the levels in the order of their severity.
var AlertSeverities = []string{"critical", "warning", "no_data", "normal"}

// AlertGroupTotal is how many groups have a severity, and the alerts in them.
type AlertGroupTotal struct {
	Severity int `db:"severity"`
	Groups   int `db:"groups"`
	Alerts   int `db:"alerts"`
	Critical int `db:"critical"`
}

// AlertGroupFilter narrows groups of alerts that are not over; zero values do not. It narrows the alerts and then groups what is left, but for the
// severity, which is the group's.
type AlertGroupFilter struct {
	PatientID, Type, Severity string
	// Status is active or acknowledged; both when empty.
	Status string
	// AcknowledgedBy keeps those that somebody with this address acknowledged first.
	AcknowledgedBy string
	Snoozed        *bool
	From, To       time.Time
	CareTeamOf     string
}

// severityOf orders levels.
const severityOf = `CASE level WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 WHEN 'no_data' THEN 2 ELSE 3 END`

// momentOf is when what an alert is about was measured, or when it was raised.
const momentOf = `COALESCE(NULLIF(measured_at, ''), created_at)`

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
	return app.DB().Select("patient", "type", "MIN("+severityOf+") AS severity", "COUNT(*) AS alerts", "SUM(level = 'critical') AS critical",
		"SUM(status = 'acknowledged') AS answered", "MIN("+momentOf+") AS first_at", "MAX("+momentOf+") AS last_at").
		From(Alerts).Where(Every(f.where())).GroupBy("patient", "type")
}

// PageOfAlertGroups returns a page of groups: the most severe first, then those that somebody still has to answer, then what was measured last; and how
// many there are of each severity, whichever is asked for.
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
			chosen = chosen.Having(dbx.NewExp("MIN("+severityOf+") = {:severity}", dbx.Params{"severity": severity}))
		}
	}
	err = chosen.OrderBy("severity", "(answered = alerts)", "last_at DESC", "patient", "type").Offset(int64(offset)).Limit(int64(limit)).All(&page)
	return page, totals, wrap(err, "list groups of alerts")
}

// AlertCounts is how many alerts are not over, by what is done about them: those that nobody has answered, of them critical ones, warnings and those
// that rest, and those that somebody is at.
type AlertCounts struct {
	Active     int `db:"active" json:"active"`
	Critical   int `db:"critical" json:"critical"`
	Warning    int `db:"warning" json:"warning"`
	Snoozed    int `db:"resting" json:"snoozed"`
	InProgress int `db:"progress" json:"in_progress"`
	Mine       int `db:"mine" json:"mine"`
}

// CountOpenAlerts counts the alerts of a filter, whatever is done about them; mine are those that the user with this address acknowledged.
func CountOpenAlerts(app core.App, f AlertGroupFilter, user string) (counts AlertCounts, err error) {
	f.Status, f.Severity, f.AcknowledgedBy, f.Snoozed = "", "", "", nil
	err = app.DB().Select("COALESCE(SUM(status = 'active'), 0) AS active", "COALESCE(SUM(status = 'active' AND level = 'critical'), 0) AS critical",
		"COALESCE(SUM(status = 'active' AND level = 'warning'), 0) AS warning", "COALESCE(SUM(status = 'active' AND snoozed), 0) AS resting",
		"COALESCE(SUM(status = 'acknowledged'), 0) AS progress", "COALESCE(SUM(status = 'acknowledged' AND acknowledged_by = {:user}), 0) AS mine").
		From(Alerts).Where(Every(f.where())).Bind(dbx.Params{"user": user}).One(&counts)
	return counts, wrap(err, "count alerts that are not over")
}

// GroupedAlert is one alert of a group, as far as choosing among them needs it.
type GroupedAlert struct {
	ID         string `db:"id"`
	PatientID  string `db:"patient"`
	Type       string `db:"type"`
	Level      string `db:"level"`
	Escalation string `db:"escalation"`
}

// AlertsOfGroups are the alerts of the groups of a page, those measured last first. Of the patients' other causes there may be some among them.
func AlertsOfGroups(app core.App, f AlertGroupFilter, page []AlertGroup) (list []GroupedAlert, err error) {
	patients := make([]string, len(page))
	for i, group := range page {
		patients[i] = group.PatientID
	}
	where := append(f.where(), dbx.NewExp("patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": jsonList(patients)}))
	err = app.DB().Select("id", "patient", "type", "level", "escalation").From(Alerts).Where(Every(where)).OrderBy(momentOf+" DESC", "id DESC").All(&list)
	return list, wrap(err, "list alerts of groups")
}
