package billing

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Evidence is everything that stands behind an entry: what an auditor asks for.
type Evidence struct {
	Days        []EvidenceDay
	Time        []EvidenceTime
	Consents    []EvidenceConsent
	Assignments []EvidenceAssignment
	Alerts      []EvidenceAlert
	Trail       []audit.Stored // of the entry itself, the oldest first
	// HeadID and HeadHash are the end of the audit chain that seals the trail.
	HeadID   int64
	HeadHash string
}

// EvidenceDay is a day that counted, with the readings of it.
type EvidenceDay struct {
	Day      string
	Readings []EvidenceReading
}

// EvidenceReading is one reading of an assigned device.
type EvidenceReading struct {
	ID         string `db:"id"`
	Kind       string `db:"observation_type"`
	MeasuredAt string `db:"measured_at"`
	DeviceID   string `db:"device_id"`
	Source     string `db:"source"`
}

// EvidenceTime is time that the entry bills.
type EvidenceTime struct {
	ID          string   `db:"id"`
	StartedAt   string   `db:"started_at"`
	EndedAt     string   `db:"ended_at"`
	Seconds     int      `db:"seconds"`
	Category    string   `db:"category"`
	Activity    string   `db:"activity"`
	Contact     string   `db:"contact_method"`
	Source      string   `db:"source"`
	AutoStopped bool     `db:"auto_stopped"`
	Author      string   `db:"author"`
	Sealed      string   `db:"notes"`
	Notes       phi.Text `db:"-"`
}

// EvidenceConsent is a consent to monitoring.
type EvidenceConsent struct {
	ID        string `db:"id"`
	Method    string `db:"method"`
	GrantedAt string `db:"granted_at"`
	ExpiresAt string `db:"expires_at"`
	RevokedAt string `db:"revoked_at"`
	By        string `db:"recorded_by"`
}

// EvidenceAssignment is a stretch in which the patient held a device.
type EvidenceAssignment struct {
	DeviceID     string `db:"device_id"`
	AssignedAt   string `db:"assigned_at"`
	UnassignedAt string `db:"unassigned_at"`
	AssignedBy   string `db:"assigned_by"`
	SetupAt      string `db:"setup_completed_at"`
	SetupBy      string `db:"setup_completed_by"`
}

// EvidenceAlert is an alert of the period, and what was decided about it.
type EvidenceAlert struct {
	ID             string `db:"id"`
	Kind           string `db:"type"`
	Level          string `db:"level"`
	Status         string `db:"status"`
	CreatedAt      string `db:"created_at"`
	AcknowledgedBy string `db:"acknowledged_by"`
	AcknowledgedAt string `db:"acknowledged_at"`
	ResolvedBy     string `db:"resolved_by"`
	ResolvedAt     string `db:"resolved_at"`
	Outcome        string `db:"outcome"`
}

// Gather collects the evidence of an entry: the days are those it was billed for, the readings of each day those that stand now.
func (e *Engine) Gather(app core.App, entry *collections.BillingEntry) (v Evidence, err error) {
	g := gatherer{Engine: e, app: app, entry: entry, into: &v}
	from, to := e.instants(entry.PeriodStart(), entry.PeriodEnd())
	g.params = dbx.Params{"patient": entry.PatientID(), "from": from, "to": to, "entry": entry.Id}
	for _, step := range []func() error{g.days, g.time, g.papers, g.alerts, g.trail} {
		if err := step(); err != nil {
			return v, err
		}
	}
	return v, nil
}

type gatherer struct {
	*Engine
	app    core.App
	entry  *collections.BillingEntry
	into   *Evidence
	params dbx.Params
}

func (g *gatherer) all(what, sql string, rows any) error {
	if err := g.app.DB().NewQuery(sql).Bind(g.params).All(rows); err != nil {
		return fmt.Errorf("read %s of the evidence: %w", what, err)
	}
	return nil
}

func (g *gatherer) days() error {
	var stored DeviceEvidence
	if text := g.entry.GetString("evidence"); text != "" && text != "null" {
		if err := json.Unmarshal([]byte(text), &stored); err != nil {
			return fmt.Errorf("read the stored evidence: %w", err)
		}
	}
	if len(stored.Days) == 0 {
		return nil // an entry without days, or one made by hand
	}
	patient, err := collections.FindPatientAnyState(g.app, g.entry.PatientID())
	if err != nil {
		return err
	}
	zone := collections.Zone(patient.TimeZone(), g.Zone)
	g.params["first"] = collections.Instant(collections.ParseDay(stored.Days[0], zone))
	g.params["last"] = collections.Instant(collections.ParseDay(AddDays(stored.Days[len(stored.Days)-1], 1), zone))
	var rows []EvidenceReading
	err = g.all("readings", `SELECT o.id, o.observation_type, o.measured_at, o.device_id, o.source FROM observations o
		WHERE o.patient = {:patient} AND o.measured_at >= {:first} AND o.measured_at < {:last} AND o.status != 'entered_in_error' AND o.source != 'patient_portal'
			AND EXISTS (SELECT 1 FROM device_assignments a WHERE a.patient = o.patient AND a.device_id = o.device_id AND a.assigned_at <= o.measured_at
				AND (a.unassigned_at = '' OR a.unassigned_at > o.measured_at)) ORDER BY o.measured_at, o.id`, &rows)
	if err != nil {
		return err
	}
	byDay := map[string][]EvidenceReading{}
	for _, row := range rows {
		day := collections.ParseInstant(row.MeasuredAt).In(zone).Format(time.DateOnly)
		byDay[day] = append(byDay[day], row)
	}
	for _, day := range stored.Days {
		g.into.Days = append(g.into.Days, EvidenceDay{day, byDay[day]})
	}
	return nil
}

// time is what the entry fixed; for one made by hand, the period's time of the code's category.
func (g *gatherer) time() error {
	rule, _ := g.Rule(g.entry.CPTCode(), g.entry.ServiceDate())
	g.params["category"], g.params["list"] = rule.Category, "[]"
	var stored TimeEvidence
	byHand := g.entry.Source() == ByHand
	if json.Unmarshal([]byte(g.entry.GetString("evidence")), &stored) == nil && len(stored.TimeEntries) > 0 {
		ids := make([]string, len(stored.TimeEntries))
		for i, n := range stored.TimeEntries {
			ids[i] = collections.NumberID(n)
		}
		list, err := json.Marshal(ids)
		if err != nil {
			return fmt.Errorf("encode time entries: %w", err)
		}
		g.params["list"] = string(list)
	}
	g.params["byhand"] = byHand && rule.Category != ""
	err := g.all("time", `SELECT t.id, t.started_at, t.ended_at, CAST(t.duration_seconds AS INTEGER) AS seconds, t.category, t.activity, t.contact_method,
			t.source, t.auto_stopped, t.notes, COALESCE(u.email, '') AS author
		FROM time_entries t LEFT JOIN users u ON u.id = t.user
		WHERE t.patient = {:patient} AND t.ended_at != '' AND (t.billing_entry = {:entry} OR t.id IN (SELECT value FROM json_each({:list}))
			OR {:byhand} AND t.category = {:category} AND t.started_at >= {:from} AND t.started_at < {:to})
		ORDER BY t.started_at, t.id`, &g.into.Time)
	for i, row := range g.into.Time {
		notes, err := collections.OpenValue(row.Sealed, collections.TimeEntries, "notes", row.ID)
		if err != nil {
			notes = collections.UnreadableText // one note must not hide the rest
		}
		g.into.Time[i].Notes = phi.Text(notes)
	}
	return err
}

func (g *gatherer) papers() error {
	err := g.all("consents", `SELECT id, method, granted_at, expires_at, revoked_at, recorded_by FROM consents
		WHERE patient = {:patient} AND type = 'rpm' ORDER BY granted_at, id`, &g.into.Consents)
	if err != nil {
		return err
	}
	return g.all("assignments", `SELECT a.device_id, a.assigned_at, a.unassigned_at, a.assigned_by,
			COALESCE(CASE WHEN d.patient = a.patient THEN d.setup_completed_at END, '') AS setup_completed_at,
			COALESCE(CASE WHEN d.patient = a.patient THEN d.setup_completed_by END, '') AS setup_completed_by
		FROM device_assignments a LEFT JOIN devices d ON d.device_id = a.device_id
		WHERE a.patient = {:patient} AND a.assigned_at < {:to} AND (a.unassigned_at = '' OR a.unassigned_at >= {:from}) ORDER BY a.assigned_at, a.id`,
		&g.into.Assignments)
}

func (g *gatherer) alerts() error {
	return g.all("alerts", `SELECT id, type, level, status, created_at, acknowledged_by, acknowledged_at, resolved_by, resolved_at, outcome FROM alerts
		WHERE patient = {:patient} AND created_at >= {:from} AND created_at < {:to} ORDER BY created_at, id`, &g.into.Alerts)
}

func (g *gatherer) trail() (err error) {
	if g.into.Trail, err = History(g.app, g.entry); err != nil {
		return err
	}
	id, hash, err := collections.AuditHead(g.app)
	g.into.HeadID, g.into.HeadHash = collections.Number(id), hash
	return err
}

// History is what was recorded about an entry, the oldest first; that it was read does not count.
func History(app core.App, entry *collections.BillingEntry) (list []audit.Stored, err error) {
	err = audit.Each(app, audit.Filter{PatientID: entry.PatientID(), ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id}, func(s audit.Stored) error {
		if !strings.HasSuffix(s.Event, ".read") && !strings.HasSuffix(s.Event, ".export") {
			list = append(list, s)
		}
		return nil
	})
	return list, err
}
