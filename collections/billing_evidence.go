package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// EvidenceReading is one reading of an assigned device.
type EvidenceReading struct {
	ID         string `db:"id"`
	Kind       string `db:"observation_type"`
	MeasuredAt string `db:"measured_at"`
	DeviceID   string `db:"device_id"`
	Source     string `db:"source"`
	Origin     string `db:"origin"`
}

// EvidenceTime is time that the entry bills.
type EvidenceTime struct {
	ID          string   `db:"id"`
	StartedAt   string   `db:"started_at"`
	EndedAt     string   `db:"ended_at"`
	RecordedAt  string   `db:"created_at"` // when it was entered
	Seconds     int      `db:"seconds"`
	Category    string   `db:"category"`
	Activity    string   `db:"activity"`
	Contact     string   `db:"contact_method"`
	Source      string   `db:"source"`
	AutoStopped bool     `db:"auto_stopped"`
	Author      string   `db:"author"`
	AttestedBy  string   `db:"attested_by"`
	AttestedAt  string   `db:"attested_at"`
	UserID      string   `db:"user"`
	Role        string   `db:"role"`       // of the user when the time was recorded
	Credential  string   `db:"credential"` // such as RN; of then, or added later
	Sealed      string   `db:"notes"`
	Notes       phi.Text `db:"-"`
}

// EvidenceConsent is a consent to monitoring.
type EvidenceConsent struct {
	ID        string `db:"id"`
	Method    string `db:"method"`
	GrantedAt string `db:"granted_at"`
	// RecordedAt is when it was entered.
	RecordedAt string `db:"created_at"`
	ExpiresAt  string `db:"expires_at"`
	RevokedAt  string `db:"revoked_at"`
	// EffectiveAt is when it ended, if that was before the revocation was recorded.
	EffectiveAt string `db:"effective_at"`
	By          string `db:"recorded_by"`
}

// EvidenceAssignment is a time with an assigned device.
type EvidenceAssignment struct {
	DeviceID     string       `db:"device_id"`
	AssignedAt   string       `db:"assigned_at"`
	UnassignedAt string       `db:"unassigned_at"`
	AssignedBy   string       `db:"assigned_by"`
	SetupAt      string       `db:"setup_completed_at"`
	SetupBy      string       `db:"setup_completed_by"`
	Earlier      SetUpRecords `db:"earlier_setups"`
	Manufacturer string       `db:"manufacturer"` // of the device, or ""
	Model        string       `db:"model"`
	SerialNumber string       `db:"serial_number"`
	UDI          string       `db:"udi"`
}

// EvidenceAlert is an alert of the period, and its handling.
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

// EvidenceReadings returns a patient's readings by devices assigned at that time; from is inclusive, to is not.
func EvidenceReadings(app core.App, patientID string, from, to time.Time) ([]EvidenceReading, error) {
	return queryAll[EvidenceReading](app, "read readings of the evidence", `SELECT o.id, o.observation_type, o.measured_at, o.device_id, o.source,
			CASE WHEN o.origin = '' THEN 'device' ELSE o.origin END AS origin FROM observations o
		WHERE o.patient = {:patient} AND o.`+anyKind(app)+` AND o.measured_at >= {:first} AND o.measured_at < {:last} AND o.status = 'final' AND `+IsTransmitted("o")+`
			AND EXISTS (SELECT 1 FROM device_assignments a WHERE a.patient = o.patient AND a.device_id = o.device_id AND a.assigned_at <= o.measured_at
				AND (a.unassigned_at = '' OR a.unassigned_at > o.measured_at)) ORDER BY o.measured_at, o.id`,
		dbx.Params{"patient": patientID, "first": FormatInstant(from), "last": FormatInstant(to)})
}

// EvidenceTimes returns the time that an entry bills or names, and the time of a category in a span; category "" adds none.
func EvidenceTimes(app core.App, patientID, entryID string, named []string, category, from, to string) ([]EvidenceTime, error) {
	list, err := queryAll[EvidenceTime](app, "read time of the evidence",
		`SELECT t.id, t.started_at, t.ended_at, CAST(t.duration_seconds AS INTEGER) AS seconds, t.category, t.activity, t.contact_method,
			t.source, t.auto_stopped, t.notes, t.user, t.created_at, t.attested_by, t.attested_at, COALESCE(u.email, '') AS author,
			COALESCE(NULLIF(t.user_role, ''), u.role, '') AS role, COALESCE(NULLIF(t.user_credential, ''), u.credential, '') AS credential
		FROM time_entries t LEFT JOIN users u ON u.id = t.user
		WHERE t.patient = {:patient} AND t.ended_at != '' AND (t.billing_entry = {:entry} OR t.id IN (SELECT value FROM json_each({:list}))
			OR {:category} != '' AND t.category = {:category} AND t.started_at >= {:from} AND t.started_at < {:to})
		ORDER BY t.started_at, t.id`, dbx.Params{
			"patient": patientID, "entry": entryID, "list": jsonList(named), "category": category, "from": from, "to": to,
		})
	for i, row := range list {
		notes, err := OpenValue(row.Sealed, TimeEntries, "notes", row.ID)
		if err != nil {
			notes = UnreadableText // an unreadable note must not hide the others
		}
		list[i].Notes = phi.Text(notes)
	}
	return list, err
}

// EvidenceConsents returns a patient's consents to monitoring.
func EvidenceConsents(app core.App, patientID string) ([]EvidenceConsent, error) {
	return queryAll[EvidenceConsent](app, "read consents of the evidence", `SELECT id, method, granted_at, created_at, expires_at, revoked_at, effective_at, recorded_by FROM consents
		WHERE patient = {:patient} AND type = 'rpm' ORDER BY granted_at, id`, dbx.Params{"patient": patientID})
}

// EvidenceAssignments returns a patient's device assignments that overlap a span, each with the latest set-up before its end; else with the first.
func EvidenceAssignments(app core.App, patientID, from, to string) ([]EvidenceAssignment, error) {
	list, err := queryAll[EvidenceAssignment](app, "read assignments of the evidence", `SELECT a.device_id, a.assigned_at, a.unassigned_at, a.assigned_by,
			`+setUpOf(DeviceSetupAt)+`, `+setUpOf(DeviceSetupBy)+`, COALESCE(a.earlier_setups, '') AS earlier_setups,
			COALESCE(d.manufacturer, '') AS manufacturer, `+modelOfDevice+` AS model, COALESCE(d.serial_number, '') AS serial_number, COALESCE(d.udi, '') AS udi
		FROM device_assignments a LEFT JOIN devices d ON d.device_id = a.device_id
		WHERE a.patient = {:patient} AND a.assigned_at < {:to} AND (a.unassigned_at = '' OR a.unassigned_at >= {:from}) ORDER BY a.assigned_at, a.id`,
		dbx.Params{"patient": patientID, "from": from, "to": to})
	for i, a := range list {
		for _, s := range a.Earlier {
			if now := list[i].SetupAt; s.At < to && (now >= to || now < s.At) {
				list[i].SetupAt, list[i].SetupBy = s.At, s.By
			}
		}
	}
	return list, err
}

// EvidenceAlerts returns a patient's alerts in a span.
func EvidenceAlerts(app core.App, patientID, from, to string) ([]EvidenceAlert, error) {
	return queryAll[EvidenceAlert](app, "read alerts of the evidence",
		`SELECT id, type, level, status, created_at, acknowledged_by, acknowledged_at, resolved_by, resolved_at, outcome FROM alerts
		WHERE patient = {:patient} AND created_at >= {:from} AND created_at < {:to} ORDER BY created_at, id`,
		dbx.Params{"patient": patientID, "from": from, "to": to})
}
