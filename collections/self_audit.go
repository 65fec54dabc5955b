package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// countsForBilling excludes voided and refunded entries. It is two comparisons because the partial index requires exactly the first one.
const countsForBilling = `lifecycle_status != 'voided' AND lifecycle_status != 'refunded'`

// FirstBilled is the service date of a patient's first entry that counts, the first day with data of the entries of its month, and when the first of
// their time began; "" for none.
type FirstBilled struct {
	Patient   string `db:"patient"`
	Day       string `db:"day"`
	DataDay   string `db:"data_day"`
	StartedAt string `db:"started_at"`
}

// FirstBilledDays returns it for the patients with an entry in a range of service dates, both inclusive.
func FirstBilledDays(app core.App, first, last string) ([]FirstBilled, error) {
	return queryAll[FirstBilled](app, "find first billed days", `WITH billed AS MATERIALIZED (SELECT DISTINCT patient FROM billing_entries
			WHERE service_date BETWEEN {:first} AND {:last} AND `+countsForBilling+`),
		firsts AS MATERIALIZED (SELECT patient, (SELECT e.service_date FROM billing_entries e WHERE e.patient = billed.patient AND e.`+countsForBillingIn("e")+`
			ORDER BY e.service_date LIMIT 1) AS day FROM billed)
		SELECT f.patient, f.day, COALESCE(MIN(iif(json_valid(e.evidence), e.evidence, '{}') ->> '$.days[0]'), '') AS data_day,
			COALESCE(MIN((SELECT MIN(t.started_at) FROM json_each(iif(json_valid(e.evidence), e.evidence, '{}'), '$.time_entries') n
				CROSS JOIN time_entries t ON t.id = printf('%015d', n.value))), '') AS started_at
		FROM firsts f CROSS JOIN billing_entries e ON e.patient = f.patient AND e.service_date BETWEEN f.day AND date(f.day, '+31 days')
			AND e.`+countsForBillingIn("e")+` GROUP BY f.patient, f.day`, dbx.Params{"first": first, "last": last})
}

func countsForBillingIn(alias string) string {
	return `lifecycle_status != 'voided' AND ` + alias + `.lifecycle_status != 'refunded'`
}

// auditedLine is an entry as text: id, code, service date, first and last day of the period.
const auditedLine = `concat_ws(',', id, cpt_code, service_date, billing_period_start, billing_period_end)`

// AuditedLines returns the counting entries of a range of service dates, both inclusive, one line per patient. It finds the patients by one
// index and reads the entries from the per-patient index, because reading the table itself would access a different page for each entry.
func AuditedLines(app core.App, first, last string) ([]PatientLines, error) {
	return queryAll[PatientLines](app, "read billing entries of a month", `WITH billed AS MATERIALIZED (SELECT DISTINCT patient AS who FROM billing_entries
			WHERE service_date BETWEEN {:first} AND {:last} AND `+countsForBilling+`)
		SELECT patient, group_concat(`+auditedLine+`, ';') AS list FROM billed CROSS JOIN billing_entries
			ON patient = who AND service_date BETWEEN {:first} AND {:last} AND `+countsForBilling+`
		GROUP BY patient`, dbx.Params{"first": first, "last": last})
}

// AuditedLinesOf returns the counting entries of patients with some codes, in a half-open range of service dates.
func AuditedLinesOf(app core.App, ids, codes []string, from, until string) ([]PatientLines, error) {
	return queryAll[PatientLines](app, "read billing entries around a month", `SELECT patient, group_concat(`+auditedLine+`, ';') AS list FROM billing_entries
		WHERE patient`+inIDs+` AND service_date >= {:from} AND service_date < {:until} AND `+countsForBilling+`
			AND cpt_code IN (SELECT value FROM json_each({:codes})) GROUP BY patient`,
		dbx.Params{"ids": jsonList(ids), "codes": jsonList(codes), "from": from, "until": until})
}

// AuditedTime is a finished time entry of a user.
type AuditedTime struct {
	ID         string `db:"id"`
	User       string `db:"user"`
	Entry      string `db:"entry"` // the entry that bills it, or ""
	StartedAt  string `db:"started_at"`
	EndedAt    string `db:"ended_at"`
	Seconds    int    `db:"seconds"`
	RecordedAt string `db:"created_at"`
}

// AuditedTimes returns time that started in a half-open span, except time of refunded or voided entries.
func AuditedTimes(app core.App, from, to time.Time) ([]AuditedTime, error) {
	return queryAll[AuditedTime](app, "read time of a month", `SELECT t.id, t.user, t.billing_entry AS entry, t.started_at, t.ended_at,
			CAST(t.duration_seconds AS INTEGER) AS seconds, t.created_at
		FROM time_entries t LEFT JOIN billing_entries e ON e.id = t.billing_entry
		WHERE t.started_at >= {:from} AND t.started_at < {:to} AND t.ended_at != '' AND (e.id IS NULL OR e.`+countsForBillingIn("e")+`)
		ORDER BY t.started_at, t.id`, dbx.Params{"from": FormatInstant(from), "to": FormatInstant(to)})
}

// PatientsMostlyWithoutDevice returns the patients with an entry in a range of service dates, or a device in a span, and no device reading on
// more than half of their days with data. [OriginsOfReadings] returns the origin of these readings.
func PatientsMostlyWithoutDevice(app core.App, first, last string, from, to time.Time) ([]string, error) {
	return queryColumn[string](app, "find days without devices", `WITH watched AS MATERIALIZED (
			SELECT patient FROM billing_entries WHERE service_date BETWEEN {:first} AND {:last} AND `+countsForBilling+`
			UNION SELECT patient FROM device_assignments WHERE assigned_at < {:to} AND (unassigned_at = '' OR unassigned_at >= {:from})),
		days AS (SELECT r.patient, r.day, SUM(r.device_readings) AS devices FROM watched CROSS JOIN reading_days r
			ON r.patient = watched.patient AND r.day BETWEEN {:first} AND {:last} WHERE r.readings > 0 GROUP BY r.patient, r.day)
		SELECT patient FROM days GROUP BY patient HAVING 2 * SUM(devices <= 0) > COUNT(*) ORDER BY patient`,
		dbx.Params{"first": first, "last": last, "from": FormatInstant(from), "to": FormatInstant(to)})
}

// OriginOfReading is the origin of a patient's reading.
type OriginOfReading struct {
	Patient      string       `db:"patient"`
	Zone         string       `db:"time_zone"` // "" for the practice's
	EarlierZones EarlierZones `db:"earlier_zones"`
	MeasuredAt   string       `db:"measured_at"`
	Typed        bool         `db:"typed"`
}

// OriginsOfReadings returns the origins of patients' trusted readings in a half-open span. A reading stored before origins were recorded has
// the origin of its source.
func OriginsOfReadings(app core.App, ids []string, from, to time.Time) ([]OriginOfReading, error) {
	params := idParams(ids)
	params["from"], params["to"] = FormatInstant(from), FormatInstant(to)
	return queryAll[OriginOfReading](app, "read origins of readings", `SELECT o.patient, p.time_zone, COALESCE(p.earlier_zones, '') AS earlier_zones, o.measured_at,
			(o.origin IN ('staff', 'patient') OR o.origin = '' AND o.source != 'gateway') AS typed
		FROM json_each({:ids}) j CROSS JOIN patients p ON p.id = j.value CROSS JOIN observations o ON o.patient = p.id
			AND o.`+anyKind(app)+` AND o.measured_at >= {:from} AND o.measured_at < {:to}
		WHERE o.status = 'final' AND o.review_state != 'suspect'`, params)
}
