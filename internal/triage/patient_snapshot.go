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

// PatientSnapshot is everything about a patient that scoring and alerting depend on, read in one transaction.
type PatientSnapshot struct {
	PatientID   string
	Thresholds  alerts.Thresholds
	Latest      Latest
	Baseline    []alerts.BaselineValue
	Suspects    []StoredSuspect
	Open        []alerts.OpenAlert
	Recent      []RecentAlert // of the last seven days
	Escalations []escalations.ActiveEscalation
	Snoozes     []alerts.Snooze
	// Schedule is what the patient is expected to measure; nil for one reading a day of each device.
	Schedule       collections.Schedule
	LastReviewedAt time.Time
	// BoundsSetAt is when a bound of the patient or the practice was last set, or the first of a proposed template taken over; zero for never.
	BoundsSetAt time.Time
	EnrolledAt  time.Time
	Minor       *Minor // nil for an adult
	// stored is what the triage list holds now.
	stored storedRank
}

// RecentAlert is an alert of the score's window.
type RecentAlert struct {
	Type      string
	Level     alerts.Level
	CreatedAt time.Time
	// Undecided is set for an acknowledged alert with values that are neither confirmed nor discarded, and for an early warning.
	Undecided *alerts.OpenAlert
}

// storedRank holds the columns that decide whether a stored row is outdated. The text of its reasons may age.
type storedRank struct {
	score       int
	level       string
	needsReview bool
	needsBounds bool
	provisional string
}

// ReloadBaseline reads the baseline of a reading and of the latest weight again; the rest of the snapshot stays.
func (p *PatientSnapshot) ReloadBaseline(app core.App, reading *vitals.Reading, now time.Time) error {
	p.Baseline, p.Suspects = nil, nil
	one := []PatientSnapshot{*p}
	err := loadBaseline(app, one, reading, now)
	p.Baseline, p.Suspects = one[0].Baseline, one[0].Suspects
	return err
}

// ReadSnapshot reads the snapshot of a patient. reading is the one to be evaluated, or nil.
func ReadSnapshot(app core.App, patientID string, reading *vitals.Reading, now time.Time) (PatientSnapshot, error) {
	snapshots, err := readSnapshots(app, "t.patient = {:patient}", dbx.Params{"patient": patientID}, now)
	if err != nil {
		return PatientSnapshot{}, err
	}
	if len(snapshots) == 0 {
		return PatientSnapshot{}, fmt.Errorf("patient is not on the triage list: %w", sql.ErrNoRows)
	}
	return snapshots[0], loadBaseline(app, snapshots, reading, now)
}

// readSnapshots reads, in one statement, everything but the baselines of the matching patients, in order of their ids. It runs for every
// reading: each list is one JSON text in its row, empty for most.
func readSnapshots(app core.App, where string, params dbx.Params, now time.Time) (snapshots []PatientSnapshot, err error) {
	params["since"] = collections.FormatInstant(now.Add(-vitalsWindow))
	rows, err := app.DB().NewQuery(`SELECT t.patient, COALESCE(t.latest_vitals, ''), t.last_reviewed_at, t.enrolled_at,
			MAX(t.provisional_since, COALESCE((SELECT MAX(updated_at) FROM thresholds WHERE patient IN ('', t.patient)), '')),
			t.risk_score, t.risk_level, t.needs_review, t.needs_thresholds, t.provisional, t.age_group, ` + collections.ProposedTemplates("t") + `,
			COALESCE((SELECT time_zone FROM patients WHERE id = t.patient), ''), (SELECT monitoring_schedule FROM patients WHERE id = t.patient),
			CASE WHEN t.age_group IN ('minor', 'infant') THEN (SELECT json_group_array(kind) FROM (SELECT kind FROM devices WHERE patient = t.patient AND kind != ''
				UNION SELECT key FROM patients c, json_each(c.monitoring_schedule) WHERE c.id = t.patient AND key IS NOT NULL)) END,
			(SELECT COALESCE(bounds, '') FROM thresholds WHERE patient = ''),
			(SELECT COALESCE(bounds, '') FROM thresholds WHERE patient = t.patient),
			(SELECT json_group_array(json_array(a.id, a.type, a.level, a.device_id, a.measured_at, a.created_at, a.normal_readings, a.parameter, a.value, a.origin, a.time_in_doubt,
					CASE WHEN a.escalates_late THEN ` + collections.MeasuringDevice + ` END, a.late, CASE a.level WHEN 'critical' THEN a.reported_values END` + reportedColumns + `) ORDER BY a.created_at)
				FROM alerts a LEFT JOIN observations o ON o.id = a.observation AND a.level = 'critical'
				WHERE a.patient = t.patient AND a.acknowledged = FALSE),
			(SELECT json_group_array(json_array(level, created_at, ` + undecidedColumn + `, a.type)) FROM alerts a WHERE a.patient = t.patient AND a.created_at > {:since}
				AND a.resolution_reason = '' AND NOT EXISTS (SELECT 1 FROM observations WHERE id = a.observation AND status = 'entered_in_error')),
			(SELECT json_group_array(json_array(id, priority, created_by, notified_at))
				FROM escalations WHERE patient = t.patient AND status IN ('open', 'in_progress')),
			(SELECT json_group_array(json_array(type, include_critical, ends_at, known)) FROM snoozes WHERE patient = t.patient AND ended_at = '')
		FROM triage_scores t WHERE ` + where).Bind(params).Rows()
	if err != nil {
		return nil, fmt.Errorf("read patient snapshots: %w", err)
	}
	defer rows.Close() //nolint:errcheck // Err below reports failures
	inForce, practice := alerts.NewInForceCache(), collections.PracticeZone(app)
	for rows.Next() {
		var row snapshotRow
		if err := row.scan(rows); err != nil {
			return nil, fmt.Errorf("read a patient snapshot: %w", err)
		}
		snapshot, err := row.snapshot(inForce)
		if err != nil {
			return nil, err
		}
		snapshot.Thresholds = snapshot.Thresholds.In(collections.Zone(row.zone, practice))
		snapshots = append(snapshots, snapshot)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read patient snapshots: %w", err)
	}
	return snapshots, nil
}

// reportedColumns are the values of the reading behind an alert, in the order of the watched parameters.
var reportedColumns = func() (columns string) {
	for _, p := range vitals.ThresholdParameters {
		columns += ", o." + p.Column
	}
	return columns
}()

// undecidedColumn is, in SQL, an acknowledged alert about values that are not yet a reading, or about several readings, and empty for all
// others.
const undecidedColumn = `CASE WHEN a.type IN ('` + alerts.TypeImplausibleReading + `', '` + alerts.TypeEarlyWarning + `') AND a.level = 'critical' AND a.status = '` + string(alerts.StatusAcknowledged) +
	`' THEN a.id || ' ' || a.measured_at || ' ' || a.origin || ' ' || a.parameter || ' ' || COALESCE(a.value, 0) || ' ' || a.reported_values ELSE '' END`

// undecidedFields is the number of space-separated fields in that column.
const undecidedFields = 6

// snapshotRow is a snapshot as queried; lists are JSON.
type snapshotRow struct {
	patient, latest, reviewedAt, enrolledAt string
	boundsSetAt                             string
	zone                                    string
	schedule                                []byte
	shown                                   storedRank
	expected                                []byte // nil for an adult
	ageGroup                                string
	proposed, defaults, bounds              *string
	open, recent, escalations, snoozes      []byte
}

func (r *snapshotRow) scan(rows *dbx.Rows) error {
	return rows.Scan(&r.patient, &r.latest, &r.reviewedAt, &r.enrolledAt, &r.boundsSetAt, &r.shown.score, &r.shown.level, &r.shown.needsReview, &r.shown.needsBounds,
		&r.shown.provisional, &r.ageGroup, &r.proposed, &r.zone, &r.schedule, &r.expected, &r.defaults, &r.bounds, &r.open, &r.recent, &r.escalations, &r.snoozes)
}

func (r *snapshotRow) snapshot(inForce alerts.InForceCache) (p PatientSnapshot, err error) {
	p = PatientSnapshot{
		PatientID: r.patient, stored: r.shown,
		LastReviewedAt: collections.ParseInstant(r.reviewedAt), EnrolledAt: collections.ParseInstant(r.enrolledAt),
		BoundsSetAt: collections.ParseInstant(r.boundsSetAt),
	}
	if p.Latest, err = ParseLatest(r.latest); err != nil {
		return p, err
	}
	if p.Minor, err = readMinor(r.bounds, r.expected); err != nil {
		return p, err
	}
	if p.Thresholds, err = inForce.Thresholds(alerts.Defaults(r.defaults, r.ageGroup), r.bounds, r.proposed); err != nil {
		return p, err
	}
	if json.Unmarshal(r.schedule, &p.Schedule) != nil {
		p.Schedule = nil // none, or damaged: as without one
	}
	if p.Open, err = parseList(r.open, "open alerts", readOpenAlert); err != nil {
		return p, err
	}
	for i := range p.Open {
		p.Open[i].ResolvesWithin = alerts.ResolveWindow(p.Schedule, p.Open[i].Type)
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

// parseList reads a JSON list, most often empty, row by row.
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

func readOpenAlert(row []any) alerts.OpenAlert {
	text := func(i int) string { s, _ := row[i].(string); return s }
	readings, _ := row[6].(float64)
	value, _ := row[8].(float64)
	open := alerts.OpenAlert{
		ID: text(0), Type: text(1), Level: alerts.Level(text(2)), DeviceID: text(3), NormalReadings: int(readings),
		MeasuredAt: collections.ParseInstant(text(4)), CreatedAt: collections.ParseInstant(text(5)),
		Parameter: text(7), Value: value, Origin: vitals.Origin(text(9)), TimeInDoubt: row[10] == 1.0,
	}
	if device, unproven := row[11].(string); unproven {
		open.UnprovenDevice = &device
	}
	if open.Late = row[12] == 1.0; open.Level == alerts.Critical {
		open.Reported = readReported(open, text(13), row[14:])
	}
	return open
}

func readRaised(row [4]string) RecentAlert {
	return RecentAlert{Type: row[3], Level: alerts.Level(row[0]), CreatedAt: collections.ParseInstant(row[1]), Undecided: readUndecided(row[2])}
}

func readEscalation(row [4]string) escalations.ActiveEscalation {
	return escalations.ActiveEscalation{
		ID: row[0], Priority: escalations.Priority(row[1]), BySystem: row[2] == alerts.System, NotifiedAt: collections.ParseInstant(row[3]),
	}
}

func readSnooze(row [4]any) alerts.Snooze {
	kind, _ := row[0].(string)
	critical, _ := row[1].(float64)
	endsAt, _ := row[2].(string)
	found, _ := row[3].(string)
	return alerts.Snooze{Type: kind, IncludeCritical: critical != 0, EndsAt: collections.ParseInstant(endsAt), Baseline: alerts.ParseWorstValues(found)}
}

// IsSnoozed reports whether a snooze suppresses an alert.
func (p PatientSnapshot) IsSnoozed(alertType string, level alerts.Level, at time.Time) bool {
	return slices.ContainsFunc(p.Snoozes, func(s alerts.Snooze) bool { return s.Covers(alertType, level, at) })
}

// CountsForScore reports whether an alert is recent enough for the score.
func CountsForScore(alert RecentAlert, now time.Time) bool {
	return alert.CreatedAt.After(now.Add(-vitalsWindow))
}

// countRecent counts the alerts in the window.
func countRecent(recent []RecentAlert, now time.Time) (counts AlertCounts) {
	for _, alert := range recent {
		if !CountsForScore(alert, now) {
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

// IsMonitored reports whether a patient is neither archived nor deleted.
func IsMonitored(app core.App, patientID string) (bool, error) {
	patient, err := collections.FindPatient(app, patientID)
	if collections.IsNotFound(err) {
		return false, nil
	}
	return err == nil && patient.Active(), err
}
