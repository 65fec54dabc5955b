package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EntriesOfMonth returns up to limit entries in some states with service dates in a span, by service date, and the total.
func EntriesOfMonth(app core.App, states []string, from, to string, limit int) (page []*BillingEntry, total int, err error) {
	return PageOfBillingEntries(app, EntryFilter{States: states, From: from, To: to}, EntryOrders["service_date"], 0, limit)
}

// EntriesWithoutNotes returns which entries bill time without notes. patientIDs are the patients of the entries.
func EntriesWithoutNotes(app core.App, patientIDs, entryIDs []string) (map[string]bool, error) {
	params := idParams(patientIDs)
	params["entries"] = jsonList(entryIDs)
	found, err := queryColumn[string](app, "look for time without notes", `SELECT DISTINCT billing_entry FROM time_entries
		WHERE patient`+inIDs+` AND billing_entry IN (SELECT value FROM json_each({:entries})) AND notes = ''`, params)
	return setOf(found), err
}

// PatientsToAttest returns which patients have escalation time that is not attested.
func PatientsToAttest(app core.App, ids []string) (map[string]bool, error) {
	found, err := queryColumn[string](app, "look for time to be attested", `SELECT DISTINCT patient FROM time_entries
		WHERE patient`+inIDs+` AND category = 'interactive' AND source = 'escalation' AND attested_at = ''`, idParams(ids))
	return setOf(found), err
}

// PatientOverlap is an [OverlapElsewhere] of a patient.
type PatientOverlap struct {
	OverlapElsewhere
	Patient string `db:"patient"`
}

// OverlapsElsewhere returns interactive time with other patients that overlaps the time of the same users with these patients in a span. An
// overlapping entry starts at most one day earlier.
func OverlapsElsewhere(app core.App, ids []string, from, to string) ([]PatientOverlap, error) {
	params := idParams(ids)
	params["from"], params["to"] = from, to
	return queryAll[PatientOverlap](app, "find overlapping time with other patients", `SELECT a.patient, a.id, b.started_at, b.ended_at FROM time_entries a
		CROSS JOIN time_entries b ON b.user = a.user AND b.started_at > strftime('%Y-%m-%dT%H:%M:%S', a.started_at, '-1 day') AND b.started_at <= a.started_at
			AND b.patient != a.patient AND b.category = 'interactive' AND b.ended_at > a.started_at AND (b.started_at, b.id) < (a.started_at, a.id)
		WHERE a.patient`+inIDs+` AND a.category IN ('interactive', 'care_management') AND a.started_at >= {:from} AND a.started_at < {:to}
			AND a.ended_at != '' AND b.started_at < a.ended_at ORDER BY a.patient, a.id, b.started_at`, params)
}

// PatientSeconds is the time of a patient.
type PatientSeconds struct {
	Patient string `db:"patient"`
	Seconds int    `db:"seconds"`
}

// SecondsNotLive sums the patients' finished interactive time in a span that does not count, because it has no live contact method.
func SecondsNotLive(app core.App, ids []string, from, to string, rule TimeRule) ([]PatientSeconds, error) {
	params := idParams(ids)
	params["from"], params["to"] = from, to
	return queryAll[PatientSeconds](app, "sum time without live contact",
		`SELECT patient, CAST(SUM(duration_seconds) AS INTEGER) AS seconds FROM time_entries WHERE patient`+inIDs+` AND category = 'interactive'
			AND started_at >= {:from} AND started_at < {:to} AND ended_at != '' AND NOT `+live+` GROUP BY patient`, rule.params(params))
}

// EnrolledSince returns the next patients who were enrolled on or after a day, by id.
func EnrolledSince(app core.App, from, after string, limit int) ([]string, error) {
	return queryColumn[string](app, "list enrolled patients", `SELECT id FROM patients WHERE id > {:after} AND deleted_at = '' AND (active OR archived_at >= {:from})
		ORDER BY id LIMIT +{:limit}`, dbx.Params{"after": after, "from": from, "limit": limit})
}
