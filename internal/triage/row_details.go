package triage

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	// A row's trend line covers trendDays and at most the newest trendPoints values.
	trendDays   = 14
	trendPoints = 60
	// acknowledgedFor is how long an acknowledged, unresolved alert counts as a response.
	acknowledgedFor = 14 * 24 * time.Hour
)

// Point is one value of a trend.
type Point struct {
	At    time.Time
	Value float64
}

// ResponseState is what is being done about a patient.
type ResponseState string

// The response states: none, escalation assigned, in progress, alert acknowledged, or alerts snoozed.
const (
	ResponseNone         ResponseState = "nobody"
	ResponseAssigned     ResponseState = "assigned"
	ResponseInProgress   ResponseState = "in_progress"
	ResponseAcknowledged ResponseState = "acknowledged"
	ResponseSnoozed      ResponseState = "snoozed"
)

// Response is who handles the patient's open alerts and escalations: an e-mail address, "" for no one.
type Response struct {
	State ResponseState
	By    string
	// Since is when it began, Until when a snooze ends, and Priority that of the escalation; zero for none.
	Since, Until time.Time
	Priority     string
}

// RowDetails holds the columns shown next to the score. Trend may be nil if no line was requested.
type RowDetails struct {
	Concern  Concern
	Trend    []Point
	Response Response
}

// ReadRowDetails reads the details of the given patients with a fixed number of statements. Without lines it reads values only where the
// reasons need them. Source: docs/decisions/triage.md, "Row details".
func ReadRowDetails(ctx context.Context, app core.App, patientIDs []string, lines bool, now time.Time) (map[string]RowDetails, error) {
	list, err := json.Marshal(patientIDs)
	if err != nil {
		return nil, fmt.Errorf("list patients of a page: %w", err)
	}
	snapshots, err := readSnapshots(app, "t.patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": string(list)}, now)
	if err != nil {
		return nil, err
	}
	if err := loadBaseline(app, snapshots, nil, now); err != nil {
		return nil, err
	}
	rows := make(map[string]RowDetails, len(snapshots))
	asked := make([][3]string, 0, len(snapshots))
	for _, snapshot := range snapshots {
		concern := snapshot.Concern(now)
		rows[snapshot.PatientID] = RowDetails{Concern: concern}
		asked = append(asked, trendRequest(snapshot.PatientID, concern, lines))
	}
	return rows, readTrendsAndResponses(ctx, app, asked, snapshots, rows, now)
}

// trendRequest names the patient, kind and parameter of a trend; no kind if neither a line nor a reason needs it.
func trendRequest(patientID string, c Concern, lines bool) [3]string {
	of := c.Parameter()
	if of == nil && c.Change != nil {
		for _, p := range vitals.ChangeParameters {
			if p.Group == c.Type {
				of = p
			}
		}
	}
	if of == nil || !lines && !c.usesTrend() {
		return [3]string{patientID, "", ""}
	}
	return [3]string{patientID, string(of.Kinds[0]), of.Column}
}

// watchedColumns selects the column of a watched parameter by its name.
var watchedColumns = func() (columns string) {
	for _, p := range vitals.ThresholdParameters {
		columns += fmt.Sprintf(" WHEN '%s' THEN o.%s", p.Column, p.Column)
	}
	return columns
}()

// readTrendsAndResponses reads the values of the last 14 days and the responses in one statement, each along the index of its patient.
func readTrendsAndResponses(ctx context.Context, app core.App, asked [][3]string, snapshots []PatientSnapshot, rows map[string]RowDetails, now time.Time) error {
	list, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("list trend requests: %w", err)
	}
	found, err := app.DB().NewQuery(`SELECT p.value ->> 0, (
			SELECT json_group_array(json_array(measured_at, v)) FROM (
				SELECT o.measured_at, CASE p.value ->> 2 ` + watchedColumns + ` END AS v FROM observations o
				WHERE p.value ->> 1 != '' AND o.patient = p.value ->> 0 AND o.observation_type = p.value ->> 1 AND o.measured_at >= {:from}
					AND o.status = 'final' ORDER BY o.measured_at DESC LIMIT +{:most}
			) WHERE v IS NOT NULL),
			(SELECT json_group_array(json_array(status, priority, assigned_to, assigned_at)) FROM escalations
				WHERE patient = p.value ->> 0 AND status IN ('open', 'in_progress')),
			COALESCE((SELECT json_array(acknowledged_by, acknowledged_at) FROM alerts
				WHERE patient = p.value ->> 0 AND created_at > {:held} AND status = 'acknowledged' ORDER BY acknowledged_at DESC LIMIT 1), ''),
			COALESCE((SELECT json_array(created_by, created_at, ends_at) FROM snoozes
				WHERE patient = p.value ->> 0 AND ended_at = '' AND ends_at > {:now} ORDER BY ends_at DESC LIMIT 1), '')
		FROM json_each({:ids}) p`).WithContext(ctx).Bind(dbx.Params{
		"ids": string(list), "most": trendPoints, "from": collections.FormatInstant(now.AddDate(0, 0, -trendDays)),
		"held": collections.FormatInstant(now.Add(-acknowledgedFor)), "now": collections.FormatInstant(now),
	}).Rows()
	if err != nil {
		return fmt.Errorf("read row details: %w", err)
	}
	defer found.Close() //nolint:errcheck // Err below reports failures
	for found.Next() {
		var id, acknowledged, snoozed string
		var trend, open []byte
		if err := found.Scan(&id, &trend, &open, &acknowledged, &snoozed); err != nil {
			return fmt.Errorf("read row details of a patient: %w", err)
		}
		snapshot := snapshots[slices.IndexFunc(snapshots, func(p PatientSnapshot) bool { return p.PatientID == id })]
		row := rows[id]
		if row.Trend, err = parseList(trend, "a trend", readPoint); err != nil {
			return err
		}
		slices.Reverse(row.Trend)
		row.Concern.AddTrendReason(row.Trend, snapshot.zone(), now)
		if row.Response, err = readResponse(snapshot, open, acknowledged, snoozed); err != nil {
			return err
		}
		rows[id] = row
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read row details: %w", err)
	}
	return nil
}

func readPoint(row [2]any) Point {
	at, _ := row[0].(string)
	value, _ := row[1].(float64)
	return Point{collections.ParseInstant(at), value}
}

// zone is the patient's time zone.
func (p PatientSnapshot) zone() *time.Location {
	return collections.Zone(p.Thresholds.Change(vitals.WeightKg).Zone, time.UTC)
}

// readResponse returns the response to a patient's open alerts: of an escalation its assignee or worker; none if an alert arrived after the
// others were acknowledged.
func readResponse(p PatientSnapshot, open []byte, acknowledged, snoozed string) (h Response, err error) {
	list, err := parseList(open, "open escalations", func(row [4]string) Response {
		h := Response{State: ResponseNone, Priority: row[1], By: row[2]}
		switch {
		case row[0] == string(escalations.StatusInProgress):
			h.State, h.Since = ResponseInProgress, collections.ParseInstant(row[3])
		case h.By != "":
			h.State, h.Since = ResponseAssigned, collections.ParseInstant(row[3])
		}
		return h
	})
	if err != nil {
		return h, err
	}
	if len(list) > 0 {
		return slices.MinFunc(list, func(a, b Response) int { return a.rank() - b.rank() }), nil
	}
	unanswered := func(level alerts.Level) bool {
		return slices.ContainsFunc(p.Open, func(a alerts.OpenAlert) bool { return a.Level == level && alerts.AboutReading(a.Type) })
	}
	var words [3]string
	switch {
	case unanswered(alerts.Critical) || unanswered(alerts.Warning) && snoozed == "":
		return Response{State: ResponseNone}, nil
	case snoozed != "":
		err = json.Unmarshal([]byte(snoozed), &words)
		return Response{State: ResponseSnoozed, By: words[0], Since: collections.ParseInstant(words[1]), Until: collections.ParseInstant(words[2])}, err
	case acknowledged != "":
		err = json.Unmarshal([]byte(acknowledged), &words)
		return Response{State: ResponseAcknowledged, By: words[0], Since: collections.ParseInstant(words[1])}, err
	case len(p.Open) > 0:
		return Response{State: ResponseNone}, nil
	}
	return h, nil
}

// rank orders by priority, then unassigned before assigned before in progress.
func (r Response) rank() int {
	rank := map[string]int{string(escalations.Stat): 0, string(escalations.Urgent): 3}[r.Priority]
	if r.Priority == string(escalations.Routine) {
		rank = 6
	}
	return rank + map[ResponseState]int{ResponseNone: 0, ResponseAssigned: 1, ResponseInProgress: 2}[r.State]
}
