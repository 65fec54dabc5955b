package triage

import (
	"database/sql"
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

// Picture is everything about a patient that ranking and alerting depend on, read in one transaction.
type Picture struct {
	PatientID      string
	Thresholds     alerts.Thresholds
	Latest         Latest
	Weighings      []alerts.Weighing
	Doubted        []Doubted
	Open           []alerts.Open
	Recent         []Raised // the last seven days, as of when it was looked at
	Escalations    []escalations.Active
	Snoozes        []alerts.Snooze
	LastReviewedAt time.Time
	EnrolledAt     time.Time
	Minor          *Minor // nil for an adult
	// stored is what the triage list shows now.
	stored shown
}

// Raised is an alert as far as the score is concerned.
type Raised struct {
	Level     alerts.Level
	CreatedAt time.Time
	// Undecided is one that somebody has acknowledged and whose values are neither confirmed nor discarded; nil for all others.
	Undecided *alerts.Open
}

// shown is what of a row on the list decides whether it has to be written again. The words of its reasons may age.
type shown struct {
	score       int
	level       string
	needsReview bool
	needsBounds bool
}

// Weigh reads again which weights a reading, and the latest weight, are compared with; all else of the picture stands.
func (p *Picture) Weigh(app core.App, reading *vitals.Reading, now time.Time) error {
	p.Weighings, p.Doubted = nil, nil
	one := []Picture{*p}
	err := loadWeighings(app, one, reading, now)
	p.Weighings, p.Doubted = one[0].Weighings, one[0].Doubted
	return err
}

// ReadPicture reads the picture of a patient. reading is the one about to be judged, or nil.
func ReadPicture(app core.App, patientID string, reading *vitals.Reading, now time.Time) (Picture, error) {
	pictures, err := readPictures(app, "t.patient = {:patient}", dbx.Params{"patient": patientID}, now)
	if err != nil {
		return Picture{}, err
	}
	if len(pictures) == 0 {
		return Picture{}, fmt.Errorf("patient is not on the triage list: %w", sql.ErrNoRows)
	}
	return pictures[0], loadWeighings(app, pictures, reading, now)
}

// readPictures reads, in one statement, all but the weighings of the patients that the condition picks, in order of their ids. It
// runs for every reading: each list a picture needs is one text in its row, empty for most.
func readPictures(app core.App, where string, params dbx.Params, now time.Time) (pictures []Picture, err error) {
	params["since"] = collections.Instant(now.Add(-vitalsWindow))
	rows, err := app.DB().NewQuery(`SELECT t.patient, COALESCE(t.latest_vitals, ''), t.last_reviewed_at, t.enrolled_at,
			t.risk_score, t.risk_level, t.needs_review, t.needs_thresholds,
			COALESCE((SELECT time_zone FROM patients WHERE id = t.patient), ''),
			CASE WHEN t.age_group = 'minor' THEN (SELECT json_group_array(kind) FROM (SELECT kind FROM devices WHERE patient = t.patient AND kind != ''
				UNION SELECT key FROM patients c, json_each(c.monitoring_schedule) WHERE c.id = t.patient AND key IS NOT NULL)) END,
			(SELECT COALESCE(bounds, '') FROM thresholds WHERE patient = ''),
			(SELECT COALESCE(bounds, '') FROM thresholds WHERE patient = t.patient),
			(SELECT json_group_array(json_array(a.id, a.type, a.level, a.device_id, a.measured_at, a.created_at, a.normal_readings, a.parameter, a.value, a.origin,
					CASE a.level WHEN 'critical' THEN a.reported_values END` + reportedColumns + `) ORDER BY a.created_at)
				FROM alerts a LEFT JOIN observations o ON o.id = a.observation AND a.level = 'critical'
				WHERE a.patient = t.patient AND a.acknowledged = FALSE),
			(SELECT json_group_array(json_array(level, created_at, ` + undecided + `)) FROM alerts a WHERE a.patient = t.patient AND a.created_at > {:since}
				AND a.resolution_reason = '' AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error')),
			(SELECT json_group_array(json_array(id, priority, created_by, notified_at))
				FROM escalations WHERE patient = t.patient AND status IN ('open', 'in_progress')),
			(SELECT json_group_array(json_array(type, include_critical, ends_at, known)) FROM snoozes WHERE patient = t.patient AND ended_at = '')
		FROM triage_scores t WHERE ` + where).Bind(params).Rows()
	if err != nil {
		return nil, fmt.Errorf("read pictures of patients: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below tells what went wrong
	inForce, practice := alerts.NewInForce(), collections.PracticeZone(app)
	for rows.Next() {
		var row pictureRow
		if err := row.scan(rows); err != nil {
			return nil, fmt.Errorf("read a picture: %w", err)
		}
		picture, err := row.picture(inForce)
		if err != nil {
			return nil, err
		}
		picture.Thresholds = picture.Thresholds.In(collections.Zone(row.zone, practice))
		pictures = append(pictures, picture)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read pictures of patients: %w", err)
	}
	return pictures, nil
}

// reportedColumns are the values of the reading behind an alert, in the order of the parameters that are watched.
var reportedColumns = func() (columns string) {
	for _, p := range vitals.Watched {
		columns += ", o." + p.Column
	}
	return columns
}()

// undecided is, in SQL, an acknowledged alert about values that are no reading yet, and empty for all others.
const undecided = `CASE WHEN a.type = '` + alerts.TypeImplausibleReading + `' AND a.level = 'critical' AND a.status = '` + string(alerts.StatusAcknowledged) +
	`' THEN a.id || ' ' || a.measured_at || ' ' || a.origin || ' ' || a.parameter || ' ' || COALESCE(a.value, 0) || ' ' || a.reported_values ELSE '' END`

// undecidedWords is how many words such an alert has.
const undecidedWords = 6

// pictureRow is a picture as the database gives it; lists are JSON.
type pictureRow struct {
	patient, latest, reviewedAt, enrolledAt string
	zone                                    string
	shown                                   shown
	expected                                []byte // nil for an adult
	defaults, bounds                        *string
	open, recent, escalations, snoozes      []byte
}

func (r *pictureRow) scan(rows *dbx.Rows) error {
	return rows.Scan(&r.patient, &r.latest, &r.reviewedAt, &r.enrolledAt, &r.shown.score, &r.shown.level, &r.shown.needsReview, &r.shown.needsBounds,
		&r.zone, &r.expected, &r.defaults, &r.bounds, &r.open, &r.recent, &r.escalations, &r.snoozes)
}

func (r *pictureRow) picture(inForce alerts.InForceMemory) (p Picture, err error) {
	p = Picture{
		PatientID: r.patient, stored: r.shown,
		LastReviewedAt: collections.ParseInstant(r.reviewedAt), EnrolledAt: collections.ParseInstant(r.enrolledAt),
	}
	if p.Latest, err = ParseLatest(r.latest); err != nil {
		return p, err
	}
	if p.Minor, err = readMinor(r.bounds, r.expected); err != nil {
		return p, err
	}
	if p.Thresholds, err = inForce.Of(alerts.Defaults(r.defaults, p.Minor != nil), r.bounds); err != nil {
		return p, err
	}
	if p.Open, err = parseList(r.open, "open alerts", readOpenAlert); err != nil {
		return p, err
	}
	if p.Recent, err = parseList(r.recent, "recent alerts", readRaised); err != nil {
		return p, err
	}
	if p.Escalations, err = parseList(r.escalations, "open escalations", readEscalation); err != nil {
		return p, err
	}
	p.Snoozes, err = parseList(r.snoozes, "snoozes", readSnooze)
	return p, err
}

// parseList reads a JSON list, which most often is empty, row by row.
func parseList[R, T any](stored []byte, what string, read func(R) T) (list []T, err error) {
	if string(stored) == "[]" {
		return nil, nil
	}
	var rows []R
	if err := json.Unmarshal(stored, &rows); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	for _, row := range rows {
		list = append(list, read(row))
	}
	return list, nil
}

func readOpenAlert(row []any) alerts.Open {
	text := func(i int) string { s, _ := row[i].(string); return s }
	readings, _ := row[6].(float64)
	value, _ := row[8].(float64)
	open := alerts.Open{
		ID: text(0), Type: text(1), Level: alerts.Level(text(2)), DeviceID: text(3), NormalReadings: int(readings),
		MeasuredAt: collections.ParseInstant(text(4)), CreatedAt: collections.ParseInstant(text(5)),
		Parameter: text(7), Value: value, Origin: vitals.Origin(text(9)),
	}
	if open.Level == alerts.Critical {
		open.Reported = readReported(open, text(10), row[11:])
	}
	return open
}

func readRaised(row [3]string) Raised {
	return Raised{Level: alerts.Level(row[0]), CreatedAt: collections.ParseInstant(row[1]), Undecided: readUndecided(row[2])}
}

func readEscalation(row [4]string) escalations.Active {
	return escalations.Active{
		ID: row[0], Priority: escalations.Priority(row[1]), BySystem: row[2] == alerts.System, NotifiedAt: collections.ParseInstant(row[3]),
	}
}

func readSnooze(row [4]any) alerts.Snooze {
	kind, _ := row[0].(string)
	critical, _ := row[1].(float64)
	endsAt, _ := row[2].(string)
	known, _ := row[3].(string)
	return alerts.Snooze{Type: kind, IncludeCritical: critical != 0, EndsAt: collections.ParseInstant(endsAt), Known: alerts.ParseKnown(known)}
}

// Snoozed reports whether nobody is to be told of an alert.
func (p Picture) Snoozed(alertType string, level alerts.Level, at time.Time) bool {
	return slices.ContainsFunc(p.Snoozes, func(s alerts.Snooze) bool { return s.Covers(alertType, level, at) })
}

// Counts reports whether an alert is recent enough to count for the score.
func Counts(alert Raised, now time.Time) bool { return alert.CreatedAt.After(now.Add(-vitalsWindow)) }

// countRecent counts the alerts that still lie in the window.
func countRecent(recent []Raised, now time.Time) (counts AlertCounts) {
	for _, alert := range recent {
		if !Counts(alert, now) {
			continue
		}
		switch alert.Level {
		case alerts.Critical:
			counts.Critical++
		case alerts.Warning:
			counts.Warning++
		case alerts.NoData:
			counts.NoData++
		}
	}
	return counts
}
