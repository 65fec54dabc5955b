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
	// trendDays is how far back the small line of a row goes, trendPoints how many values it has at most: the newest.
	trendDays   = 14
	trendPoints = 60
	// acknowledgedFor is how long an acknowledged alert that nobody has ended says who takes care.
	acknowledgedFor = 14 * 24 * time.Hour
)

// Point is one value of a trend.
type Point struct {
	At    time.Time
	Value float64
}

// Holding says what somebody does about a patient.
type Holding string

// What is being done: nobody has answered, somebody was told, works on it, has acknowledged it, or put it off.
const (
	HeldByNobody     Holding = "nobody"
	HeldAssigned     Holding = "assigned"
	HeldInProgress   Holding = "in_progress"
	HeldAcknowledged Holding = "acknowledged"
	HeldSnoozed      Holding = "snoozed"
)

// Holder is who takes care of what is open about a patient: by e-mail address, "" for nobody.
type Holder struct {
	State Holding
	By    string
	// Since is when they took it, Until when a snooze ends, and Priority that of the escalation; zero where there is none.
	Since, Until time.Time
	Priority     string
}

// Beside is what stands on a row beside the score: what to look at, how it went, and who takes care. Trend may be nil where no line was asked for.
type Beside struct {
	Concern Concern
	Trend   []Point
	Holder  Holder
}

// ReadBeside reads what stands beside the scores of the given patients: the pictures by which alerts are judged, and what happened since. It
// takes the same few statements however many they are. Where no line is to be drawn, values are read only of those whose reasons go by them.
// Source: docs/decisions/triage.md, "Row details".
func ReadBeside(ctx context.Context, app core.App, patientIDs []string, lines bool, now time.Time) (map[string]Beside, error) {
	list, err := json.Marshal(patientIDs)
	if err != nil {
		return nil, fmt.Errorf("list patients of a page: %w", err)
	}
	pictures, err := readPictures(app, "t.patient IN (SELECT value FROM json_each({:patients}))", dbx.Params{"patients": string(list)}, now)
	if err != nil {
		return nil, err
	}
	if err := loadWeighings(app, pictures, nil, now); err != nil {
		return nil, err
	}
	rows := make(map[string]Beside, len(pictures))
	asked := make([][3]string, 0, len(pictures))
	for _, picture := range pictures {
		concern := picture.Concern(now)
		rows[picture.PatientID] = Beside{Concern: concern}
		asked = append(asked, followed(picture.PatientID, concern, lines))
	}
	return rows, readFollowed(ctx, app, asked, pictures, rows, now)
}

// followed is whose values are read, of which kind and parameter; no kind for none: neither a line nor a reason goes by them.
func followed(patientID string, c Concern, lines bool) [3]string {
	of := c.Of()
	if of == nil && c.Change != nil {
		for _, p := range vitals.Changing {
			if p.Group == c.Type {
				of = p
			}
		}
	}
	if of == nil || !lines && !c.goesByDays() {
		return [3]string{patientID, "", ""}
	}
	return [3]string{patientID, string(of.Kinds[0]), of.Column}
}

// watchedColumns chooses the column of a watched parameter by its name.
var watchedColumns = func() (columns string) {
	for _, p := range vitals.Watched {
		columns += fmt.Sprintf(" WHEN '%s' THEN o.%s", p.Column, p.Column)
	}
	return columns
}()

// readFollowed reads, in one statement, the values of the last fortnight and who takes care: each along the index of its patient.
func readFollowed(ctx context.Context, app core.App, asked [][3]string, pictures []Picture, rows map[string]Beside, now time.Time) error {
	list, err := json.Marshal(asked)
	if err != nil {
		return fmt.Errorf("list what is followed: %w", err)
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
		FROM json_each({:asked}) p`).WithContext(ctx).Bind(dbx.Params{
		"asked": string(list), "most": trendPoints, "from": collections.Instant(now.AddDate(0, 0, -trendDays)),
		"held": collections.Instant(now.Add(-acknowledgedFor)), "now": collections.Instant(now),
	}).Rows()
	if err != nil {
		return fmt.Errorf("read what stands beside the scores: %w", err)
	}
	defer found.Close() //nolint:errcheck // Err below tells what went wrong
	for found.Next() {
		var id, acknowledged, snoozed string
		var trend, open []byte
		if err := found.Scan(&id, &trend, &open, &acknowledged, &snoozed); err != nil {
			return fmt.Errorf("read what stands beside a score: %w", err)
		}
		picture := pictures[slices.IndexFunc(pictures, func(p Picture) bool { return p.PatientID == id })]
		row := rows[id]
		if row.Trend, err = parseList(trend, "a trend", readPoint); err != nil {
			return err
		}
		slices.Reverse(row.Trend)
		row.Concern.Follow(row.Trend, picture.zone(), now)
		if row.Holder, err = readHolder(picture, open, acknowledged, snoozed); err != nil {
			return err
		}
		rows[id] = row
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("read what stands beside the scores: %w", err)
	}
	return nil
}

func readPoint(row [2]any) Point {
	at, _ := row[0].(string)
	value, _ := row[1].(float64)
	return Point{collections.ParseInstant(at), value}
}

// zone is where the patient's days begin.
func (p Picture) zone() *time.Location {
	return collections.Zone(p.Thresholds.Change(vitals.WeightKg).Zone, time.UTC)
}

// readHolder says who takes care: who was told of an escalation or works on it; nobody of what came since somebody acknowledged the rest.
func readHolder(p Picture, open []byte, acknowledged, snoozed string) (h Holder, err error) {
	list, err := parseList(open, "open escalations", func(row [4]string) Holder {
		h := Holder{State: HeldByNobody, Priority: row[1], By: row[2]}
		switch {
		case row[0] == string(escalations.StatusInProgress):
			h.State, h.Since = HeldInProgress, collections.ParseInstant(row[3])
		case h.By != "":
			h.State, h.Since = HeldAssigned, collections.ParseInstant(row[3])
		}
		return h
	})
	if err != nil {
		return h, err
	}
	if len(list) > 0 {
		return slices.MinFunc(list, func(a, b Holder) int { return a.rank() - b.rank() }), nil
	}
	unanswered := func(level alerts.Level) bool {
		return slices.ContainsFunc(p.Open, func(a alerts.Open) bool { return a.Level == level && alerts.AboutReading(a.Type) })
	}
	var words [3]string
	switch {
	case unanswered(alerts.Critical) || unanswered(alerts.Warning) && snoozed == "":
		return Holder{State: HeldByNobody}, nil
	case snoozed != "":
		err = json.Unmarshal([]byte(snoozed), &words)
		return Holder{State: HeldSnoozed, By: words[0], Since: collections.ParseInstant(words[1]), Until: collections.ParseInstant(words[2])}, err
	case acknowledged != "":
		err = json.Unmarshal([]byte(acknowledged), &words)
		return Holder{State: HeldAcknowledged, By: words[0], Since: collections.ParseInstant(words[1])}, err
	case len(p.Open) > 0:
		return Holder{State: HeldByNobody}, nil
	}
	return h, nil
}

// rank puts the more urgent escalation first, of equal ones that on which nobody works.
func (h Holder) rank() int {
	rank := map[string]int{string(escalations.Stat): 0, string(escalations.Urgent): 3}[h.Priority]
	if h.Priority == string(escalations.Routine) {
		rank = 6
	}
	return rank + map[Holding]int{HeldByNobody: 0, HeldAssigned: 1, HeldInProgress: 2}[h.State]
}
