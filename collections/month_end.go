package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// EntriesOfMonth are the entries of a span of service dates in some states, in the order of their service: no more than limit, and how many there are.
func EntriesOfMonth(app core.App, states []string, from, to string, limit int) (page []*BillingEntry, total int, err error) {
	return PageOfBillingEntries(app, EntryFilter{States: states, From: from, To: to}, EntryOrders["service_date"], 0, limit)
}

// UnnotedTimes are those of some entries, which are about some patients, that bill time without notes.
func UnnotedTimes(app core.App, patientIDs, entryIDs []string) (map[string]bool, error) {
	params := idsOf(patientIDs)
	params["entries"] = jsonList(entryIDs)
	found, err := queryColumn[string](app, "look for time without notes", `SELECT DISTINCT billing_entry FROM time_entries
		WHERE patient`+those+` AND billing_entry IN (SELECT value FROM json_each({:entries})) AND notes = ''`, params)
	return setOf(found), err
}

// PatientsToAttest are those of some patients who have time of an escalation that nobody has attested.
func PatientsToAttest(app core.App, ids []string) (map[string]bool, error) {
	found, err := queryColumn[string](app, "look for time to be attested", `SELECT DISTINCT patient FROM time_entries
		WHERE patient`+those+` AND category = 'interactive' AND source = 'escalation' AND attested_at = ''`, idsOf(ids))
	return setOf(found), err
}

// ElsewhereOf is [Elsewhere] of a patient.
type ElsewhereOf struct {
	Elsewhere
	Patient string `db:"patient"`
}

// TimesElsewhere is the interactive time of the people behind the time of some patients in a span that overlaps it and was another patient's. What
// overlaps an entry began no more than a day before it.
func TimesElsewhere(app core.App, ids []string, from, to string) ([]ElsewhereOf, error) {
	params := idsOf(ids)
	params["from"], params["to"] = from, to
	return queryAll[ElsewhereOf](app, "look for time with somebody else", `SELECT a.patient, a.id, b.started_at, b.ended_at FROM time_entries a
		CROSS JOIN time_entries b ON b.user = a.user AND b.started_at > strftime('%Y-%m-%dT%H:%M:%S', a.started_at, '-1 day') AND b.started_at <= a.started_at
			AND b.patient != a.patient AND b.category = 'interactive' AND b.ended_at > a.started_at AND (b.started_at, b.id) < (a.started_at, a.id)
		WHERE a.patient`+those+` AND a.category IN ('interactive', 'care_management') AND a.started_at >= {:from} AND a.started_at < {:to}
			AND a.ended_at != '' AND b.started_at < a.ended_at ORDER BY a.patient, a.id, b.started_at`, params)
}

// PatientSeconds is time of a patient.
type PatientSeconds struct {
	Patient string `db:"patient"`
	Seconds int    `db:"seconds"`
}

// NotLive is how many seconds of finished interactive time of some patients in a span count for nothing, for want of a live way of contact.
func NotLive(app core.App, ids []string, from, to string, rule TimeRule) ([]PatientSeconds, error) {
	params := idsOf(ids)
	params["from"], params["to"] = from, to
	return queryAll[PatientSeconds](app, "sum time without live contact",
		`SELECT patient, CAST(SUM(duration_seconds) AS INTEGER) AS seconds FROM time_entries WHERE patient`+those+` AND category = 'interactive'
			AND started_at >= {:from} AND started_at < {:to} AND ended_at != '' AND NOT `+live+` GROUP BY patient`, rule.params(params))
}

// EnrolledSince are the next patients who were enrolled on some day of a span or later, by id.
func EnrolledSince(app core.App, from, after string, limit int) ([]string, error) {
	return queryColumn[string](app, "list enrolled patients", `SELECT id FROM patients WHERE id > {:after} AND deleted_at = '' AND (active OR archived_at >= {:from})
		ORDER BY id LIMIT +{:limit}`, dbx.Params{"after": after, "from": from, "limit": limit})
}
