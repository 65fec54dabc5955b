package collections

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// What is searched, and by what.
var (
	ReadingSearch = &Searched{table: Observations, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByKind: "observation_type", ByStatus: "status", ByMeasured: "measured_at", ByCreated: "created_at",
		ByUpdated: "updated_at", ByDeviceID: "device_id",
	}}
	PatientSearch = &Searched{table: Patients, only: "deleted_at = ''", columns: map[string]string{
		ByID: "id", ByPatient: "id", ByGender: "gender", ByUpdated: "updated_at", ByMRN: "mrn", ByExternalID: "external_id",
	}}
	AlertSearch = &Searched{table: Alerts, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByStatus: "status", ByCreated: "created_at", ByUpdated: "updated_at", ByType: "type",
	}}
	DeviceSearch = &Searched{table: Devices, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByType: "kind", ByDeviceID: "device_id", ByUpdated: "MAX(" + strings.Join(deviceTold, ", ") + ", " + deviceHandedOn + ")",
	}}
	StaffSearch = &Searched{table: Users, only: "role != 'patient'", columns: map[string]string{
		ByID: "id", ByNPI: "npi", ByUpdated: "updated_at",
	}}
	TeamSearch = &Searched{
		table: Patients, columns: map[string]string{ByID: "id", ByPatient: "id", ByUpdated: "MAX(p.updated_at, COALESCE(told.at, ''))"},
		only: "deleted_at = '' AND (primary_provider != '' OR EXISTS (SELECT 1 FROM care_team_members m WHERE m.patient = patients.id))",
		within: map[string]string{ByUpdated: `id IN (WITH told AS MATERIALIZED (SELECT patient, MAX(recorded_at) AS at FROM audit_log
			WHERE event = 'care_team.update' GROUP BY patient) SELECT p.id FROM patients p LEFT JOIN told ON told.patient = p.id WHERE %s)`},
	}
	AuditSearch = &Searched{table: AuditLog, columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByCreated: "recorded_at", ByUpdated: "recorded_at", ByAction: "action", ByOutcome: "outcome",
	}}
)

// deviceTold are the columns that say when something new was said of a device.
var deviceTold = []string{"created_at", "assigned_at", "state_at", "last_seen_at"}

// deviceHandedOn is when a device was last registered, handed out or taken back: the times in its row are those that are said of it, and go when it is
// taken back.
const deviceHandedOn = `COALESCE((SELECT MAX(h.recorded_at) FROM audit_log h WHERE h.resource_id = devices.device_id AND h.resource_type = 'Device'
	AND +h.event IN ('device.create', 'device.assign', 'device.unassign', 'device.replace')), '')`

// DevicesToldAt are when something new was said of devices, by record id.
func DevicesToldAt(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find when devices changed", app.DB().NewQuery(`SELECT id, `+DeviceSearch.columns[ByUpdated]+` FROM devices
		WHERE id IN (SELECT value FROM json_each({:ids}))`).Bind(dbx.Params{"ids": jsonList(ids)}))
}

// TeamsToldAt is when the care teams of patients last changed, by patient; who never had another is left out.
func TeamsToldAt(app core.App, patientIDs []string) (map[string]string, error) {
	return readMap[string]("find changes of care teams", app.DB().NewQuery(`SELECT patient, MAX(recorded_at) FROM audit_log
		WHERE event = 'care_team.update' AND +patient IN (SELECT value FROM json_each({:patients})) GROUP BY patient`).
		Bind(dbx.Params{"patients": jsonList(patientIDs)}))
}

// Between is a range of values; a nil end is open, and a value at an end belongs to it where it says so. Outside is everything else.
// at an end belong to it only where it says so. The column is that of a parameter of [vitals].
type Between struct {
	From, To                 *float64
	FromIncluded, ToIncluded bool
	Outside                  bool
}

// ValueIn keeps readings of some kinds that have a value of a column in the bounds, as it is shown: rounded to so many decimals.
func (s *Searched) ValueIn(kinds []string, column string, decimals int, bounds Between) dbx.Expression {
	return built(func(bind func(any) string) string {
		shown := "ROUND(" + column + ", " + bind(decimals) + ")"
		terms := []string{"TRUE"}
		if bounds.From != nil {
			terms = append(terms, shown+map[bool]string{false: " > ", true: " >= "}[bounds.FromIncluded]+bind(*bounds.From))
		}
		if bounds.To != nil {
			terms = append(terms, shown+map[bool]string{false: " < ", true: " <= "}[bounds.ToIncluded]+bind(*bounds.To))
		}
		within := "(" + strings.Join(terms, " AND ") + ")"
		if bounds.Outside {
			within = "NOT " + within
		}
		return "(" + column + " IS NOT NULL AND " + s.AnyOf(ByKind, kinds).(built)(bind) + " AND " + within + ")"
	})
}

// NotFinal keeps readings that do not hold, in the words of the index of these few.
func NotFinal() dbx.Expression { return dbx.NewExp("status != '" + StatusFinal + "'") }

// AnyOfThese is true where one of the conditions is.
func AnyOfThese(conditions []dbx.Expression) dbx.Expression { return dbx.Or(conditions...) }

// PatientTimeZones are the names of patients' time zones, by patient; "" for the practice's.
func PatientTimeZones(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find time zones of patients", app.DB().Select("id", "time_zone").From(Patients).Where(among(ids)))
}

// DeviceRecordIDs are the record ids of devices, by what the gateway calls them; who is not registered is left out.
func DeviceRecordIDs(app core.App, deviceIDs []string) (map[string]string, error) {
	return readMap[string]("find devices", app.DB().Select("device_id", "id").From(Devices).Where(DeviceSearch.AnyOf(ByDeviceID, deviceIDs)))
}

// AuditRowOf reads an entry of the audit trail from its record, what is sealed apart.
func AuditRowOf(r *core.Record) AuditRow {
	return AuditRow{
		ID: r.Id, RecordedAt: r.GetString("recorded_at"), Event: r.GetString("event"), Action: r.GetString("action"), Outcome: r.GetString("outcome"),
		ActorType: r.GetString("actor_type"), ActorID: r.GetString("actor_id"), ActorEmail: r.GetString("actor_email"),
		ActorRole: r.GetString("actor_role"), ActorName: r.GetString("actor_name"), ResourceType: r.GetString("resource_type"),
		ResourceID: r.GetString("resource_id"), Patient: r.GetString("patient"), SourceIP: r.GetString("source_ip"), Client: r.GetString("client"),
		RequestID: r.GetString("request_id"),
	}
}

// Creator is who made an observation, as the audit trail has it.
type Creator struct {
	ActorType string `db:"actor_type"`
	ActorID   string `db:"actor_id"`
	ActorName string `db:"actor_name"`
	Resource  string `db:"resource_id"`
}

// CreatorsOf are those who made observations, by observation.
func CreatorsOf(app core.App, observationIDs []string) (map[string]Creator, error) {
	found, err := queryAll[Creator](app, "find who made observations", `SELECT a.resource_id, a.actor_type, a.actor_id, a.actor_name
		FROM json_each({:ids}) o CROSS JOIN audit_log a ON a.resource_id = o.value
		WHERE a.resource_type = 'Observation' AND a.event = 'observation.create'`, dbx.Params{"ids": jsonList(observationIDs)})
	creators := make(map[string]Creator, len(found))
	for _, c := range found {
		creators[c.Resource] = c
	}
	return creators, err
}

// Where an alert stands as a flag: one that came of a reading that was withdrawn is neither open nor over.
const (
	FlagActive    = "active"
	FlagOver      = "over"
	FlagWithdrawn = "withdrawn"
)

// FlagState is where the alert stands as a flag.
func (a *Alert) FlagState() string {
	switch status := a.Status(); {
	case a.ResolutionReason() == "withdrawn":
		return FlagWithdrawn
	case status == "resolved", status == "auto_resolved":
		return FlagOver
	}
	return FlagActive
}

// FlagIs keeps alerts that stand in one of the states.
func FlagIs(states []string) dbx.Expression {
	return built(func(func(any) string) string {
		terms := []string{"FALSE"}
		for _, state := range states {
			terms = append(terms, map[string]string{
				FlagActive:    "(resolution_reason != 'withdrawn' AND status NOT IN ('resolved', 'auto_resolved'))",
				FlagOver:      "(resolution_reason != 'withdrawn' AND status IN ('resolved', 'auto_resolved'))",
				FlagWithdrawn: "resolution_reason = 'withdrawn'",
			}[state])
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// ChangedAt is when the alert last changed.
func (a *Alert) ChangedAt() time.Time { return firstOf(instantOf(a, ColumnUpdatedAt), a.CreatedAt()) }

// AsDevice reads a record of the devices as one.
func AsDevice(record *core.Record) *Device { return as[Device](record) }

// TeamPlace is somebody's place on a patient's care team.
type TeamPlace struct {
	Patient string `db:"patient"`
	User    string `db:"user"` // record id
	Role    string `db:"role"`
}

// MembersOf are the places on the care teams of patients, the primary provider's first.
func MembersOf(app core.App, patientIDs []string) ([]TeamPlace, error) {
	return queryAll[TeamPlace](app, "find care teams", `SELECT patient, user, role FROM (
			SELECT t.id AS patient, t.primary_provider AS user, 'primary provider' AS role, '' AS joined
				FROM json_each({:patients}) p CROSS JOIN patients t WHERE t.id = p.value AND t.primary_provider != ''
			UNION ALL SELECT m.patient, m.user, m.role, m.created_at FROM json_each({:patients}) p CROSS JOIN care_team_members m WHERE m.patient = p.value)
		ORDER BY patient, joined, user`, dbx.Params{"patients": jsonList(patientIDs)})
}

// EachIdentity goes through the family and given names and dates of birth of patients who are not deleted, all of them for nil; who cannot be read is
// left out.
func EachIdentity(app core.App, ids []string, each func(id, family, given, birth string)) error {
	query := app.DB().Select("id", "last_name", "first_name", "date_of_birth").From(Patients).Where(dbx.NewExp("deleted_at = ''"))
	if ids != nil {
		query.AndWhere(among(ids))
	}
	return eachRow("read patients' identities", query, func(rows *dbx.Rows) error {
		var id string
		var sealed, open [3]string
		if err := rows.Scan(&id, &sealed[0], &sealed[1], &sealed[2]); err != nil {
			return err
		}
		for i, column := range []string{PatientLastName, PatientFirstName, PatientDateOfBirth} {
			if text, err := OpenValue(sealed[i], Patients, column, id); err == nil {
				open[i] = text
			}
		}
		if !slices.Contains(open[:], "") { // all three are mandatory
			each(id, open[0], open[1], open[2])
		}
		return nil
	})
}

// Comparison is a stretch of time with how a period is to stand to it: one of FHIR's prefixes.
type Comparison struct {
	Prefix      string
	From, Until time.Time // from a moment until before another
}

// FlagLasted keeps alerts whose time as a flag stands so to one of the stretches. It begins when the alert was made and ends when it was resolved; of
// what is open it has no end. Source: FHIR R4, search, "prefix", on what has a start and an end.
func FlagLasted(wanted []Comparison) dbx.Expression {
	return built(func(bind func(any) string) string {
		terms := make([]string, len(wanted))
		for i, c := range wanted {
			terms[i] = c.ofFlag(bind(Instant(c.From)), bind(Instant(c.Until)))
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// ofFlag also bounds the start where the end tells of it, since alerts are found by their start.
func (c Comparison) ofFlag(from, until string) string {
	within := "(created_at >= " + from + " AND created_at < " + until + " AND resolved_at != '' AND resolved_at < " + until + ")"
	goesOn, before := "(resolved_at = '' OR resolved_at >= "+until+")", "created_at < "+from
	switch c.Prefix {
	case "ne":
		return "NOT " + within
	case "gt":
		return goesOn
	case "lt":
		return before
	case "ge":
		return "(" + goesOn + " OR " + within + ")"
	case "le":
		return "(" + before + " OR " + within + ")"
	case "sa":
		return "created_at >= " + until
	case "eb":
		return "(" + before + " AND resolved_at != '' AND resolved_at < " + from + ")"
	case "ap":
		return "(created_at < " + until + " AND (resolved_at = '' OR resolved_at >= " + from + "))"
	}
	return within
}
