package collections

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Search tables, by FHIR resource.
var (
	ReadingSearch = &SearchTable{table: Observations, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByKind: "observation_type", ByStatus: "status", ByMeasured: "measured_at", ByCreated: "created_at",
		ByUpdated: "updated_at", ByDeviceID: "device_id",
	}}
	PatientSearch = &SearchTable{table: Patients, only: "deleted_at = ''", columns: map[string]string{
		ByID: "id", ByPatient: "id", ByGender: "gender", ByUpdated: "updated_at", ByMRN: "mrn", ByExternalID: "external_id",
	}}
	AlertSearch = &SearchTable{table: Alerts, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByStatus: "status", ByCreated: "created_at", ByUpdated: "updated_at", ByType: "type",
	}}
	DeviceSearch = &SearchTable{table: Devices, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByType: "kind", ByDeviceID: "device_id", ByUpdated: "MAX(" + strings.Join(deviceUpdateColumns, ", ") + ", " + deviceReassignedAt + ")",
	}}
	StaffSearch = &SearchTable{table: Users, only: "role != 'patient'", columns: map[string]string{
		ByID: "id", ByUser: "id", ByNPI: "npi", ByUpdated: "updated_at",
	}}
	TeamSearch = &SearchTable{
		table: Patients, columns: map[string]string{ByID: "id", ByPatient: "id", ByUpdated: "MAX(p.updated_at, COALESCE(changed.at, ''))"},
		only: "deleted_at = '' AND (primary_provider != '' OR EXISTS (SELECT 1 FROM care_team_members m WHERE m.patient = patients.id))",
		within: map[string]string{ByUpdated: `id IN (WITH changed AS MATERIALIZED (SELECT patient, MAX(recorded_at) AS at FROM audit_log
			WHERE event = 'care_team.update' GROUP BY patient) SELECT p.id FROM patients p LEFT JOIN changed ON changed.patient = p.id WHERE %s)`},
	}
	QuestionnaireResponseSearch = &SearchTable{table: QuestionnaireResponses, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByType: "questionnaire", ByCreated: "authored_at", ByUpdated: "authored_at",
	}}
	CaregiverSearch = &SearchTable{table: Caregivers, patient: "patient", columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByUser: "user", ByUpdated: "MAX(created_at, ended_at)",
	}}
	AuditSearch = &SearchTable{table: AuditLog, columns: map[string]string{
		ByID: "id", ByPatient: "patient", ByCreated: "recorded_at", ByUpdated: "recorded_at", ByAction: "action", ByOutcome: "outcome",
	}}
)

// deviceUpdateColumns are the columns with times of a device's updates.
var deviceUpdateColumns = []string{"created_at", "assigned_at", "state_at", "last_seen_at"}

// deviceReassignedAt is when a device was last registered, assigned or returned, from the audit trail: the times in its row are cleared when
// it is returned.
const deviceReassignedAt = `COALESCE((SELECT MAX(h.recorded_at) FROM audit_log h WHERE h.resource_id = devices.device_id AND h.resource_type = 'Device'
	AND +h.event IN ('device.create', 'device.assign', 'device.unassign', 'device.replace')), '')`

// DeviceUpdateTimes returns when devices were last updated, by record id.
func DeviceUpdateTimes(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find when devices changed", app.DB().NewQuery(`SELECT id, `+DeviceSearch.columns[ByUpdated]+` FROM devices
		WHERE id IN (SELECT value FROM json_each({:ids}))`).Bind(dbx.Params{"ids": jsonList(ids)}))
}

// CareTeamUpdateTimes returns when the care teams of patients were last changed, by patient; patients without a change are omitted.
func CareTeamUpdateTimes(app core.App, patientIDs []string) (map[string]string, error) {
	return readMap[string]("find changes of care teams", app.DB().NewQuery(`SELECT patient, MAX(recorded_at) FROM audit_log
		WHERE event = 'care_team.update' AND +patient IN (SELECT value FROM json_each({:patients})) GROUP BY patient`).
		Bind(dbx.Params{"patients": jsonList(patientIDs)}))
}

// ValueRange is a range of values; a nil end is open, and an end is inclusive if marked so. Outside selects all other values.
type ValueRange struct {
	From, To                 *float64
	FromIncluded, ToIncluded bool
	Outside                  bool
}

// ValueIn keeps readings of some kinds with a column value in the range, rounded to the decimals that are shown. The column is that of a
// parameter of internal/vitals.
func (s *SearchTable) ValueIn(kinds []string, column string, decimals int, bounds ValueRange) dbx.Expression {
	return expression(func(bind func(any) string) string {
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
		return "(" + column + " IS NOT NULL AND " + s.AnyOf(ByKind, kinds).(expression)(bind) + " AND " + within + ")"
	})
}

// NotFinal keeps readings that are not final. It is the condition of a partial index.
func NotFinal() dbx.Expression { return dbx.NewExp("status != '" + StatusFinal + "'") }

// AnyCondition matches rows for which one of the conditions holds.
func AnyCondition(conditions []dbx.Expression) dbx.Expression { return dbx.Or(conditions...) }

// PatientTimeZones returns the names of patients' time zones, by patient; "" is the practice's.
func PatientTimeZones(app core.App, ids []string) (map[string]string, error) {
	return readMap[string]("find time zones of patients", app.DB().Select("id", "time_zone").From(Patients).Where(idIn(ids)))
}

// DeviceRecordIDs returns the record ids of devices, by the gateway's identifier; unregistered devices are omitted.
func DeviceRecordIDs(app core.App, deviceIDs []string) (map[string]string, error) {
	return readMap[string]("find devices", app.DB().Select("device_id", "id").From(Devices).Where(DeviceSearch.AnyOf(ByDeviceID, deviceIDs)))
}

// AuditRowOf converts a record of the audit trail, without its sealed columns.
func AuditRowOf(r *core.Record) AuditRow {
	return AuditRow{
		ID: r.Id, RecordedAt: r.GetString("recorded_at"), Event: r.GetString("event"), Action: r.GetString("action"), Outcome: r.GetString("outcome"),
		ActorType: r.GetString("actor_type"), ActorID: r.GetString("actor_id"), ActorEmail: r.GetString("actor_email"),
		ActorRole: r.GetString("actor_role"), ActorName: r.GetString("actor_name"), ResourceType: r.GetString("resource_type"),
		ResourceID: r.GetString("resource_id"), Patient: r.GetString("patient"), SourceIP: r.GetString("source_ip"), Client: r.GetString("client"),
		RequestID: r.GetString("request_id"),
	}
}

// ObservationCreator is the actor that created an observation, from the audit trail.
type ObservationCreator struct {
	ActorType string `db:"actor_type"`
	ActorID   string `db:"actor_id"`
	ActorName string `db:"actor_name"`
	Resource  string `db:"resource_id"`
}

// CreatorsOfObservations returns the creators of observations, by observation.
func CreatorsOfObservations(app core.App, observationIDs []string) (map[string]ObservationCreator, error) {
	return actorsOfObservations(app, observationIDs, "observation.create")
}

// ConfirmersOfObservations returns who confirmed observations, by observation. A measurement that was confirmed before it became an observation
// has its creator.
func ConfirmersOfObservations(app core.App, observationIDs []string) (map[string]ObservationCreator, error) {
	if len(observationIDs) == 0 {
		return nil, nil
	}
	created, err := CreatorsOfObservations(app, observationIDs)
	if err != nil {
		return nil, err
	}
	confirmed, err := actorsOfObservations(app, observationIDs, "observation.confirm")
	maps.Copy(created, confirmed)
	return created, err
}

func actorsOfObservations(app core.App, observationIDs []string, event string) (map[string]ObservationCreator, error) {
	found, err := queryAll[ObservationCreator](app, "find actors of observations", `SELECT a.resource_id, a.actor_type, a.actor_id, a.actor_name
		FROM json_each({:ids}) o CROSS JOIN audit_log a ON a.resource_id = o.value
		WHERE a.resource_type = 'Observation' AND a.event = {:event}`,
		dbx.Params{"ids": jsonList(observationIDs), "event": event})
	creators := make(map[string]ObservationCreator, len(found))
	for _, c := range found {
		creators[c.Resource] = c
	}
	return creators, err
}

// States of an alert as a FHIR Flag. An alert of a retracted reading is neither active nor closed.
const (
	FlagActive    = "active"
	FlagClosed    = "over"
	FlagWithdrawn = "withdrawn"
)

// FlagState returns the state of the alert as a Flag.
func (a *Alert) FlagState() string {
	switch status := a.Status(); {
	case a.ResolutionReason() == "withdrawn":
		return FlagWithdrawn
	case status == "resolved", status == "auto_resolved":
		return FlagClosed
	}
	return FlagActive
}

// FlagStateIn keeps alerts in one of the states.
func FlagStateIn(states []string) dbx.Expression {
	return expression(func(func(any) string) string {
		terms := []string{"FALSE"}
		for _, state := range states {
			terms = append(terms, map[string]string{
				FlagActive:    "(resolution_reason != 'withdrawn' AND status NOT IN ('resolved', 'auto_resolved'))",
				FlagClosed:    "(resolution_reason != 'withdrawn' AND status IN ('resolved', 'auto_resolved'))",
				FlagWithdrawn: "resolution_reason = 'withdrawn'",
			}[state])
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// ChangedAt returns when the alert last changed.
func (a *Alert) ChangedAt() time.Time {
	return firstNonZero(instantOf(a, ColumnUpdatedAt), a.CreatedAt())
}

// AsDevice converts a record of the devices.
func AsDevice(record *core.Record) *Device { return as[Device](record) }

// TeamMembership is a user's membership in a patient's care team.
type TeamMembership struct {
	Patient string `db:"patient"`
	User    string `db:"user"` // record id
	Role    string `db:"role"`
}

// CareTeamMemberships returns the memberships of patients' care teams, the primary provider first.
func CareTeamMemberships(app core.App, patientIDs []string) ([]TeamMembership, error) {
	return queryAll[TeamMembership](app, "find care teams", `SELECT patient, user, role FROM (
			SELECT t.id AS patient, t.primary_provider AS user, 'primary provider' AS role, '' AS joined
				FROM json_each({:patients}) p CROSS JOIN patients t WHERE t.id = p.value AND t.primary_provider != ''
			UNION ALL SELECT m.patient, m.user, m.role, m.created_at FROM json_each({:patients}) p CROSS JOIN care_team_members m WHERE m.patient = p.value)
		ORDER BY patient, joined, user`, dbx.Params{"patients": jsonList(patientIDs)})
}

// EachPatientIdentity calls each with the family name, given name and birth date of undeleted patients, all of them for nil ids. Unreadable
// patients are skipped.
func EachPatientIdentity(app core.App, ids []string, each func(id, family, given, birth string)) error {
	query := app.DB().Select("id", "last_name", "first_name", "date_of_birth").From(Patients).Where(dbx.NewExp("deleted_at = ''"))
	if ids != nil {
		query.AndWhere(idIn(ids))
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

// DateComparison compares a period with a date range by one of FHIR's prefixes.
type DateComparison struct {
	Prefix      string
	From, Until time.Time // half-open range
}

// FlagPeriod keeps alerts with a flag period that satisfies one of the comparisons. It starts when the alert is created and ends when it is
// resolved; the period of an open alert has no end. Source: FHIR R4, search, "prefix", on values with a start and an end.
func FlagPeriod(wanted []DateComparison) dbx.Expression {
	return expression(func(bind func(any) string) string {
		terms := make([]string, len(wanted))
		for i, c := range wanted {
			terms[i] = c.flagCondition(bind(FormatInstant(c.From)), bind(FormatInstant(c.Until)))
		}
		return "(" + strings.Join(terms, " OR ") + ")"
	})
}

// flagCondition also bounds the start where the end implies it, because alerts are indexed by their start.
func (c DateComparison) flagCondition(from, until string) string {
	within := "(created_at >= " + from + " AND created_at < " + until + " AND resolved_at != '' AND resolved_at < " + until + ")"
	continues, before := "(resolved_at = '' OR resolved_at >= "+until+")", "created_at < "+from
	switch c.Prefix {
	case "ne":
		return "NOT " + within
	case "gt":
		return continues
	case "lt":
		return before
	case "ge":
		return "(" + continues + " OR " + within + ")"
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
