package collections

import (
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// PatientFacts is the part of a patient that billing needs.
type PatientFacts struct {
	ID           string        `db:"id"`
	Active       bool          `db:"active"`
	Deleted      string        `db:"deleted_at"`
	Archived     string        `db:"archived_at"`
	Restored     string        `db:"unarchived_at"`
	Ended        string        `db:"effective_at"`
	Deceased     string        `db:"deceased_at"`   // the date, opened; "" for none
	Pauses       Interruptions `db:"interruptions"` // before the latest archiving
	Zone         string        `db:"time_zone"`
	EarlierZones EarlierZones  `db:"earlier_zones"`
	Payer        int64         `db:"insurance_payer"`
	Provider     string        `db:"primary_provider"`
	Codes        string        `db:"codes"`
	Supply       string        `db:"supply"` // first day of the latest billed device-supply period
}

// PatientFactsByID returns the facts of patients.
func PatientFactsByID(app core.App, ids []string) ([]PatientFacts, error) {
	rows, err := queryAll[PatientFacts](app, "read patients", `SELECT id, active, deleted_at, archived_at, unarchived_at, effective_at, deceased_at, COALESCE(interruptions, '') AS interruptions, time_zone, COALESCE(earlier_zones, '') AS earlier_zones, CAST(insurance_payer AS INTEGER) AS insurance_payer,
		primary_provider, COALESCE(icd10_codes, '[]') AS codes, COALESCE((SELECT b.billing_period_start FROM billing_entries b
			WHERE b.patient = p.id AND b.source = 'automatic_device' ORDER BY b.service_date DESC LIMIT 1), '') AS supply
		FROM patients p WHERE id`+inIDs, idParams(ids))
	for i, row := range rows {
		if row.Deceased == "" {
			continue
		}
		if rows[i].Deceased, err = OpenValue(row.Deceased, Patients, PatientDeceasedAt, row.ID); err != nil {
			return nil, wrap(err, "open the date of death")
		}
	}
	return rows, err
}

// ConsentTimes are the times of a consent to monitoring.
type ConsentTimes struct {
	Patient string `db:"patient"`
	Granted string `db:"granted_at"`
	Expires string `db:"expires_at"`
	Revoked string `db:"revoked_at"` // when it took effect
}

// MonitoringConsents returns the consents of patients to monitoring.
func MonitoringConsents(app core.App, ids []string) ([]ConsentTimes, error) {
	return queryAll[ConsentTimes](app, "read consents",
		`SELECT patient, granted_at, expires_at, COALESCE(NULLIF(effective_at, ''), revoked_at) AS revoked_at FROM consents WHERE type = 'rpm' AND patient`+inIDs, idParams(ids))
}

// PatientLines are rows of a patient in one text: members separated by commas, rows by semicolons.
type PatientLines struct {
	Patient string `db:"patient"`
	List    string `db:"list"`
}

// EntryLines returns the entries of patients for periods that end on or after a day, and all set-up entries (99453): id, code, status, source,
// first and last day of the period, units, payer. One line per patient, because a row per entry would take as long as the rest of the run. Entries
// are in index order: an ORDER BY inside group_concat would sort each line again, and cost a third more time.
func EntryLines(app core.App, ids []string, since string) ([]PatientLines, error) {
	params := idParams(ids)
	params["since"] = since
	return queryAll[PatientLines](app, "read billing entries", `SELECT patient, group_concat(entry, ';') AS list FROM (SELECT patient,
			concat_ws(',', id, cpt_code, lifecycle_status, source, billing_period_start, billing_period_end, CAST(units AS INTEGER), payer) AS entry
		FROM billing_entries WHERE (billing_period_end >= {:since} OR cpt_code = '99453') AND patient`+inIDs+` ORDER BY patient, service_date, id)
		GROUP BY patient`, params)
}

// TrainedAssignment is a device assignment, with the time and user of the patient's latest training on the device, and earlier ones.
type TrainedAssignment struct {
	Patient   string       `db:"patient"`
	Device    string       `db:"device_id"`
	From      string       `db:"assigned_at"`
	Until     string       `db:"unassigned_at"`
	TrainedAt string       `db:"setup_completed_at"`
	TrainedBy string       `db:"setup_completed_by"`
	Earlier   SetUpRecords `db:"earlier_setups"`
}

// setUpOf is a column of the set-up record of an assignment. The record stays with the assignment
// when the device is returned or replaced. An older record is on the device, for its current or
// last holder.
func setUpOf(column string) string {
	return `COALESCE(NULLIF(a.` + column + `, ''), CASE WHEN (a.unassigned_at = '' OR d.setup_completed_at <= a.unassigned_at)
			AND (d.patient = a.patient OR d.setup_completed_at >= a.assigned_at) THEN d.` + column + ` END, '') AS ` + column
}

// TrainedAssignments returns the past and current assignments of patients.
func TrainedAssignments(app core.App, ids []string) ([]TrainedAssignment, error) {
	return queryAll[TrainedAssignment](app, "read device assignments", `SELECT a.patient, a.device_id, a.assigned_at, a.unassigned_at,
			`+setUpOf(DeviceSetupAt)+`, `+setUpOf(DeviceSetupBy)+`, COALESCE(a.earlier_setups, '') AS earlier_setups FROM device_assignments a LEFT JOIN devices d ON d.device_id = a.device_id
		WHERE a.patient`+inIDs, idParams(ids))
}

// FirstReading is the first day with device data since a day; "" if there is none.
type FirstReading struct {
	Patient string `db:"patient"`
	From    string `db:"from_day"`
	Day     string `db:"day"`
}

// FirstReadings finds the first days. Each request is a day, YYYY-MM-DD, followed by a patient id.
func FirstReadings(app core.App, asked []string) ([]FirstReading, error) {
	return queryAll[FirstReading](app, "find first readings",
		`WITH q AS MATERIALIZED (SELECT substr(value, 11) AS patient, substr(value, 1, 10) AS from_day FROM json_each({:ids}))
		SELECT patient, from_day, COALESCE((SELECT r.day FROM reading_days r
			WHERE r.patient = q.patient AND r.day >= q.from_day AND r.device_readings > 0 ORDER BY r.day LIMIT 1), '') AS day
		FROM q ORDER BY patient, from_day`, idParams(asked))
}

// DaysInWindow lists the days with device data in a numbered window, separated by commas.
type DaysInWindow struct {
	Key  int    `db:"k"`
	Days string `db:"days"`
}

// DaysInWindows reads the days of windows, a JSON list of p (patient), s (first day) and e (last day).
func DaysInWindows(app core.App, windows string) ([]DaysInWindow, error) {
	return queryAll[DaysInWindow](app, "count days with data",
		`WITH w AS MATERIALIZED (SELECT key AS k, value ->> 'p' AS patient, value ->> 's' AS first, value ->> 'e' AS last FROM json_each({:list}))
		SELECT k, COALESCE((SELECT group_concat(DISTINCT r.day) FROM reading_days r
			WHERE r.patient = w.patient AND r.day BETWEEN w.first AND w.last AND r.device_readings > 0), '') AS days FROM w`,
		dbx.Params{"list": windows})
}

// PatientsWithDevices returns the next patients who have had a device, or have one now if holding.
func PatientsWithDevices(app core.App, holding bool, after string, limit int) ([]string, error) {
	where := ""
	if holding {
		where = "unassigned_at = '' AND "
	}
	return queryColumn[string](app, "list patients with devices",
		`SELECT DISTINCT patient FROM device_assignments WHERE `+where+`patient > {:after} ORDER BY patient LIMIT +{:limit}`,
		dbx.Params{"after": after, "limit": limit})
}

// PatientsWithLateReadings returns the patients with readings stored since a time and measured before another. The plus signs make SQLite use
// the index by storage time.
func PatientsWithLateReadings(app core.App, stored, measuredBefore time.Time) ([]string, error) {
	return queryColumn[string](app, "list patients with late readings",
		`SELECT DISTINCT +patient FROM observations WHERE created_at >= {:stored} AND +measured_at < {:before} AND +status = 'final' ORDER BY 1`,
		dbx.Params{"stored": FormatInstant(stored), "before": FormatInstant(measuredBefore)})
}

// PatientsWithActivity returns the next patients who have had a device or interactive time; only narrows to one patient.
func PatientsWithActivity(app core.App, only, after string, limit int) ([]string, error) {
	return queryColumn[string](app, "list patients with activity", `SELECT id FROM patients p WHERE id > {:after} AND deleted_at = '' AND ({:one} = '' OR id = {:one})
			AND (EXISTS (SELECT 1 FROM device_assignments d WHERE d.patient = p.id)
				OR EXISTS (SELECT 1 FROM time_entries t WHERE t.patient = p.id AND t.category = 'interactive'))
		ORDER BY id LIMIT +{:limit}`, dbx.Params{"after": after, "one": only, "limit": limit})
}

// LastRunWithCount returns the start of a job's last successful run that reported a count, or zero.
func LastRunWithCount(app core.App, job, count string) (time.Time, error) {
	at, err := queryValue[string](app, "find the last run of "+job, `SELECT COALESCE(MAX(started_at), '') FROM job_runs
		WHERE job = {:job} AND status = 'succeeded' AND json_extract(counts, '$.' || {:count}) IS NOT NULL`, dbx.Params{"job": job, "count": count})
	return ParseInstant(at), err
}

// ClaimRow is the part of an entry that claims processing needs.
type ClaimRow struct {
	ID              string `db:"id"`
	ClaimID         string `db:"claim_id"`
	PatientID       string `db:"patient"`
	CPTCode         string `db:"cpt_code"`
	ServiceDate     string `db:"service_date"`
	AmountCents     int64  `db:"amount_cents"`
	Payer           string `db:"payer_name"`
	PayerCode       string `db:"payer_code"` // "" for self-pay
	ICD10           string `db:"icd10_codes"`
	ProviderID      string `db:"rendering_provider"`
	LifecycleStatus string `db:"lifecycle_status"`
}

// ClaimRows returns the next entries in some states, by creation; payerID "" selects every payer.
func ClaimRows(app core.App, states []string, payerID, after string, limit int) ([]ClaimRow, error) {
	return queryAll[ClaimRow](app, "read claims", `SELECT b.id, b.claim_id, b.patient, b.cpt_code, b.service_date, CAST(b.amount_cents AS INTEGER) AS amount_cents, b.payer_name,
			COALESCE(p.payer_code, '') AS payer_code, COALESCE(b.icd10_codes, '[]') AS icd10_codes, b.rendering_provider, b.lifecycle_status
		FROM billing_entries b LEFT JOIN payers p ON p.id = b.payer AND b.payer != ''
		WHERE b.id > {:after} AND +b.lifecycle_status IN (SELECT value FROM json_each({:states})) AND ({:payer} = '' OR +b.payer = {:payer})
		ORDER BY b.id LIMIT +{:limit}`, dbx.Params{"after": after, "states": jsonList(states), "payer": payerID, "limit": limit})
}

// EntryFilter selects entries; zero members do not narrow. From and To are service dates, both inclusive.
type EntryFilter struct {
	States                                      []string
	IDs                                         []string // nil for any
	From, To, CPTCode, PatientID, Source, Payer string
	AutoGenerated                               *bool
	// Provider (record id) and ProviderEmail select what a provider may see: entries that they render or created, and those of their care
	// teams.
	Provider, ProviderEmail string
	CareTeamOf              string
	Search                  *ClaimSearch // nil for any
}

// ClaimSearch selects claims of some patients, and those with a number: our claim number, the control number of any claim that the entry was sent
// in, or the payer's number.
type ClaimSearch struct {
	Number   string
	Patients []string
}

// where reads each part from an index, which SQLite does not for alternatives.
func (s ClaimSearch) where() dbx.Expression {
	return dbx.NewExp(`id IN (SELECT id FROM billing_entries WHERE patient IN (SELECT value FROM json_each({:patients}))
		UNION SELECT id FROM billing_entries WHERE claim_id = {:upper}
		UNION SELECT id FROM billing_entries WHERE claim_control_number != '' AND claim_control_number = {:upper}
		UNION SELECT id FROM billing_entries WHERE payer_control_number != '' AND payer_control_number IN ({:number}, {:upper})
		UNION SELECT billing_entry FROM claim_lines WHERE claim_control_number = {:upper})`,
		dbx.Params{"patients": jsonList(s.Patients), "number": s.Number, "upper": strings.ToUpper(s.Number)})
}

func (f EntryFilter) where() dbx.Expression {
	where := Conditions{}
	if f.States != nil {
		where = append(where, AnyOf(EntryStatus, f.States))
	}
	if f.IDs != nil {
		where = append(where, AnyOf("id", f.IDs))
	}
	where = where.Equal("cpt_code", f.CPTCode).Equal("patient", f.PatientID).Equal("source", f.Source).Equal("payer", f.Payer)
	if f.From != "" {
		where = append(where, dbx.NewExp("service_date >= {:from}", dbx.Params{"from": f.From}))
	}
	if f.To != "" {
		where = append(where, dbx.NewExp("service_date <= {:to}", dbx.Params{"to": f.To}))
	}
	if f.AutoGenerated != nil {
		compare := "source = 'manual'"
		if *f.AutoGenerated {
			compare = "source != 'manual'"
		}
		where = where.And(compare)
	}
	if f.Provider != "" {
		where = append(where, dbx.Or(dbx.HashExp{"rendering_provider": f.Provider}, dbx.HashExp{"created_by": f.ProviderEmail},
			OnCareTeam("billing_entries.patient", f.Provider)))
	}
	if f.CareTeamOf != "" {
		where = append(where, OnCareTeam("billing_entries.patient", f.CareTeamOf))
	}
	if f.Search != nil {
		where = append(where, f.Search.where())
	}
	return AllOf(where)
}
