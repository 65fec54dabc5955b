package routes

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// groupView is one patient's open alerts with the same cause.
type groupView struct {
	PatientID    string `json:"patient_id"`
	PatientName  string `json:"patient_name"`
	MRN          string `json:"mrn"`
	Type         string `json:"type"`
	Level        string `json:"level"`
	Count        int    `json:"count"`
	Critical     int    `json:"critical_count"`
	Acknowledged int    `json:"acknowledged_count"`
	FirstAt      string `json:"first_at"`
	LastAt       string `json:"last_at"`
	// AlertIDs are in order of measurement, newest first, limited to the number that one bulk action accepts.
	AlertIDs         []int64         `json:"alert_ids"`
	Latest           *alertView      `json:"latest"` // null if it cannot be decrypted
	AcknowledgedName *string         `json:"acknowledged_name"`
	Escalation       *escalationView `json:"escalation"`
	Trend            []float64       `json:"trend"`
}

// levelTotals counts the groups of a level and the alerts in them.
type levelTotals struct {
	Groups   int `json:"groups"`
	Alerts   int `json:"alerts"`
	Critical int `json:"critical_alerts"`
}

// groupsView is a page of groups. Levels holds the totals of all levels, also if the query filters by one.
type groupsView struct {
	web.Page[groupView]
	Levels map[string]levelTotals `json:"levels"`
	// Counts includes alerts of every status.
	Counts collections.AlertCounts `json:"counts"`
}

// listAlertGroups lists open alerts, grouped by patient and cause. Source: docs/decisions/alerts.md, "By patient and
// cause".
func (a *api) listAlertGroups(c *web.Call) (err error) {
	q, p := c.Listing()
	between, mine := q.Between(), q.IsTrue("mine")
	filter := collections.AlertGroupFilter{
		PatientID: q.PatientID(), Type: q.OneOf("type", alerts.Types...), Severity: q.OneOf("level", collections.AlertSeverities...),
		Status:         q.OneOf("status", string(alerts.StatusActive), string(alerts.StatusAcknowledged)),
		AcknowledgedBy: strings.ToLower(q.Text("acknowledged_by", 254)), Snoozed: q.Boolean("snoozed"), From: between.From, To: between.To,
	}
	if filter.CareTeamOf, err = a.careTeamFilterAfter(c, q, filter.PatientID); err != nil {
		return err
	}
	if mine {
		filter.CareTeamOf = c.Caller.RecordID
	}
	groups, totals, err := collections.PageOfAlertGroups(c.App, filter, p.Offset(), p.Size)
	if err != nil {
		return err
	}
	counts, err := collections.CountOpenAlerts(c.App, filter, c.Caller.Email)
	if err != nil {
		return err
	}
	views, unreadable, err := a.viewGroups(c, filter, groups)
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceAlert, "", groups, func(g collections.AlertGroup) string { return g.PatientID }); err != nil {
		return err
	}
	count, levels := 0, map[string]levelTotals{}
	for severity, level := range collections.AlertSeverities {
		levels[level] = levelTotals{}
		for _, total := range totals {
			if total.Severity == severity {
				levels[level] = levelTotals{total.Groups, total.Alerts, total.Critical}
			}
		}
		if filter.Severity == "" || filter.Severity == level {
			count += levels[level].Groups
		}
	}
	page, err := web.PageOf(c, p, count, views)
	page.Unreadable = unreadable
	return c.Respond(groupsView{page, levels, counts}, err)
}

// viewGroups renders groups and counts those with an unreadable latest alert.
func (a *api) viewGroups(c *web.Call, filter collections.AlertGroupFilter, groups []collections.AlertGroup) (views []groupView, unreadable int, err error) {
	if len(groups) == 0 {
		return []groupView{}, 0, nil
	}
	members, err := membersOf(c.App, filter, groups)
	if err != nil {
		return nil, 0, err
	}
	latest, err := collections.AlertsByID(c.App, distinct(members, func(m groupMembers) string { return m.latest }))
	if err != nil {
		return nil, 0, err
	}
	latest, unreadable = collections.ReadableOnly(latest)
	shown, err := viewReadings(c, latest)
	if err != nil {
		return nil, 0, err
	}
	open, err := openEscalations(c.App, members)
	if err != nil {
		return nil, 0, err
	}
	ids := distinct(groups, func(g collections.AlertGroup) string { return g.PatientID })
	names, err := patients.Names(c.App, ids)
	if err != nil {
		return nil, 0, err
	}
	trends, err := triage.ReadTrends(c.App, ids)
	if err != nil {
		return nil, 0, err
	}
	staff, err := collections.StaffNames(c.App, distinct(latest, (*collections.Alert).AcknowledgedBy))
	if err != nil {
		return nil, 0, err
	}
	views = []groupView{}
	for i, group := range groups {
		view := groupView{
			PatientID: group.PatientID, PatientName: names[group.PatientID].FullName(), MRN: names[group.PatientID].MRN, Type: group.Type,
			Level: collections.AlertSeverities[group.Severity], Count: group.Alerts, Critical: group.Critical, Acknowledged: group.Acknowledged,
			FirstAt: validate.FormatInstant(group.First()), LastAt: validate.FormatInstant(group.Last()), AlertIDs: members[i].numbers,
			Escalation: open[members[i].escalation], Trend: append([]float64{}, trends[group.PatientID][group.Type]...),
		}
		if at := slices.IndexFunc(latest, func(alert *collections.Alert) bool { return alert.Id == members[i].latest }); at >= 0 {
			view.Latest, view.AcknowledgedName = &shown[at], orNull(staff[latest[at].AcknowledgedBy()].Reveal())
		}
		views = append(views, view)
	}
	return views, unreadable, nil
}

// groupMembers holds the alert numbers of a group, its newest alert by measurement time, and that alert's escalation.
type groupMembers struct {
	numbers            []int64
	latest, escalation string
}

// membersOf returns the members of each group, in the order of the groups.
func membersOf(app core.App, filter collections.AlertGroupFilter, groups []collections.AlertGroup) ([]groupMembers, error) {
	list, err := collections.AlertsOfGroups(app, filter, groups)
	if err != nil {
		return nil, err
	}
	type cause struct{ patient, kind string }
	at := make(map[cause]int, len(groups))
	for i, group := range groups {
		at[cause{group.PatientID, group.Type}] = i
	}
	members := make([]groupMembers, len(groups))
	for _, alert := range list {
		i, there := at[cause{alert.PatientID, alert.Type}]
		if !there {
			continue
		}
		m := &members[i]
		if m.latest == "" {
			m.latest = alert.ID
		}
		if m.escalation == "" {
			m.escalation = alert.Escalation
		}
		if len(m.numbers) < alerts.MaxBulk {
			m.numbers = append(m.numbers, collections.Number(alert.ID))
		}
	}
	return members, nil
}

// openEscalations returns the open escalations of groups, by record id.
func openEscalations(app core.App, members []groupMembers) (map[string]*escalationView, error) {
	open := map[string]*escalationView{}
	found, err := collections.EscalationsByID(app, distinct(members, func(m groupMembers) string { return m.escalation }))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, isClosed)
	found, _ = collections.ReadableOnly(found)
	views, err := viewEscalations(app, found)
	for i, e := range found {
		open[e.Id] = &views[i]
	}
	return open, err
}

// viewReadings renders alerts with the observations that caused them.
func viewReadings(c *web.Call, page []*collections.Alert) ([]alertView, error) {
	views, err := viewAlerts(c.Caller.Role)(c.App, page)
	if err != nil {
		return nil, err
	}
	records, err := collections.ObservationsByID(c.App, distinct(page, (*collections.Alert).ObservationID))
	if err != nil {
		return nil, err
	}
	behind := make(map[string]ingest.Observation, len(records))
	for _, record := range records {
		behind[record.Id] = ingest.ObservationFromRecord(record)
	}
	for i, alert := range page {
		if o, there := behind[alert.ObservationID()]; there {
			views[i].Reading = viewReading(o)
		}
	}
	return views, nil
}

// viewReading renders the values, measurement time and device of an observation.
func viewReading(o ingest.Observation) *observationView {
	var v observationView
	v.Add("observation_type", o.Reading.Kind)
	showValues(&v, o.Reading)
	v.Add("device_id", orNull(o.Reading.DeviceID))
	v.Add("measured_at", validate.FormatInstant(o.Reading.MeasuredAt))
	v.Add("origin", o.Origin)
	v.Add("review_state", o.Review)
	return &v
}
