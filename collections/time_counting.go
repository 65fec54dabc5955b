package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Contact methods of time entries.
const (
	ByPhone   = "phone"
	ByVideo   = "video"
	InPerson  = "in_person"
	ByMessage = "message"
)

// live selects interactive time with live contact: by phone, by video, in person, of an escalation (a user attests its minutes), or without a
// contact method from before one was required at {:live}; "" means never required. Source: docs/decisions/billing.md, "Live contact".
const live = `(contact_method IN ('phone', 'video', 'in_person')
	OR contact_method = '' AND (source = 'escalation' OR {:live} = '' OR started_at < {:live}))`

// interactiveLive is finished interactive time that counts.
const interactiveLive = "category = 'interactive' AND ended_at != '' AND " + live

// careCounts reports whether care management of the patient of a row counts: by the rule of the patient's payer if {:by_payer}, else if {:care}.
const careCounts = `COALESCE((SELECT y.minutes_rule = 'care_management' FROM patients q CROSS JOIN payers y ON y.id = printf('%015d', q.insurance_payer)
	WHERE {:by_payer} AND q.id = patient AND y.minutes_rule != ''), {:care})`

// countable is finished time that may count; care management counts if [careCounts].
const countable = `category IN ('interactive', 'care_management') AND ended_at != '' AND (category = 'interactive' AND ` + live +
	` OR category = 'care_management' AND ` + careCounts + `)`

// TimeRule defines the time that counts toward the CPT codes for time.
type TimeRule struct {
	LiveFrom string // from this instant interactive time counts only with a live contact method; "" for never
	Care     bool   // care management counts
	ByPayer  bool   // the own rule of a patient's payer, if there is one, decides
}

func (r TimeRule) params(more dbx.Params) dbx.Params {
	more["live"], more["care"], more["by_payer"] = r.LiveFrom, r.Care, r.ByPayer
	return more
}

// uncoveredSeconds is the seconds of a row that no earlier row of its group covers. Most rows do not overlap, so times are parsed only for
// those that do.
const uncoveredSeconds = `CASE WHEN covered > started_at THEN MAX(0, CAST(ROUND((julianday(ended_at) - julianday(MAX(covered, started_at))) * 86400) AS INTEGER))
	ELSE duration_seconds END`

// coveredBefore is the end of the latest time of a patient before this row.
const coveredBefore = `MAX(ended_at) OVER (PARTITION BY patient ORDER BY started_at, ended_at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered`

// dayBefore returns the instant a day earlier: no time entry that started before it reaches the given instant.
func dayBefore(instant string) string {
	return FormatInstant(ParseInstant(instant).Add(-maxEntryLength))
}

// OverlappingTime is a time entry that may overlap another.
type OverlappingTime struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	User    string `db:"user"`
	Started string `db:"started_at"`
	Ended   string `db:"ended_at"` // "" while the timer runs
}

// StartedAt returns the start.
func (o OverlappingTime) StartedAt() time.Time { return ParseInstant(o.Started) }

// EndedAt returns the end; for a running timer the latest possible one.
func (o OverlappingTime) EndedAt(longest time.Duration) time.Time {
	if o.Ended == "" {
		return o.StartedAt().Add(longest)
	}
	return ParseInstant(o.Ended)
}

// maxEntryLength is longer than any time entry.
const maxEntryLength = 24 * time.Hour

// OverlappingTimes returns the time of a user or of a patient that may overlap a span, by start, without the entry except. Running timers that
// started before the end of the span are included.
func OverlappingTimes(app core.App, userID, patientID, except string, from, to time.Time, rule TimeRule) ([]OverlappingTime, error) {
	return queryAll[OverlappingTime](app, "look for overlapping time", `SELECT id, patient, user, started_at, ended_at FROM (
			SELECT id, patient, user, started_at, ended_at, category FROM time_entries
				WHERE user = {:user} AND started_at < {:to} AND started_at > {:earliest}
			UNION SELECT id, patient, user, started_at, ended_at, category FROM time_entries
				WHERE patient = {:patient} AND category IN ('interactive', 'care_management') AND started_at < {:to} AND started_at > {:earliest})
		WHERE id != {:except} AND (category = 'interactive' OR category = 'care_management' AND `+careCounts+`) AND (ended_at = '' OR ended_at > {:from})
		ORDER BY started_at, id`, rule.params(dbx.Params{
		"user": userID, "patient": patientID, "except": except, "from": FormatInstant(from), "to": FormatInstant(to),
		"earliest": FormatInstant(from.Add(-maxEntryLength)),
	}))
}

// OverlapElsewhere is a span in which the user of a patient's time entry was with another patient, in time that started earlier.
type OverlapElsewhere struct {
	ID    string `db:"id"` // of the patient's entry
	From  string `db:"started_at"`
	Until string `db:"ended_at"`
}

// InterpretationOf returns a patient's finished interpretation time, by users who were providers then, in a span.
func InterpretationOf(app core.App, patientID, from, to string) ([]BillableTime, error) {
	return queryAll[BillableTime](app, "read time of interpretation",
		`SELECT t.id, t.patient, t.source, t.category, t.started_at, CAST(t.duration_seconds AS INTEGER) AS seconds, t.notes != '' AS noted FROM time_entries t
		LEFT JOIN users u ON u.id = t.user
		WHERE t.patient = {:patient} AND COALESCE(NULLIF(t.user_role, ''), u.role) = 'provider' AND t.category = 'interpretation' AND t.ended_at != '' AND t.started_at >= {:from} AND t.started_at < {:to}`,
		dbx.Params{"patient": patientID, "from": from, "to": to})
}

// InterpreterOf returns who last recorded interpretation of a patient in a span as a provider; "" for no one.
func InterpreterOf(app core.App, patientID, from, to string) (userID string, err error) {
	userID, err = queryValue[string](app, "find who interpreted", `SELECT user FROM time_entries WHERE patient = {:patient} AND category = 'interpretation'
		AND user_role = 'provider' AND ended_at != '' AND started_at >= {:from} AND started_at < {:to} ORDER BY started_at DESC, id DESC LIMIT 1`,
		dbx.Params{"patient": patientID, "from": from, "to": to})
	return userID, IgnoreNotFound(err)
}

// InterpretationElsewhere returns the time in which providers who interpreted for a patient were with another one: in live contact at any
// time, or interpreting if that started first.
func InterpretationElsewhere(app core.App, patientID, from, to string) ([]OverlapElsewhere, error) {
	return queryAll[OverlapElsewhere](app, "find overlapping time with other patients", `SELECT a.id, b.started_at, b.ended_at FROM time_entries a
		CROSS JOIN time_entries b ON b.user = a.user AND b.started_at > {:earliest} AND b.started_at < a.ended_at AND b.patient != a.patient
			AND b.ended_at > a.started_at AND (b.category = 'interactive' OR b.category = 'interpretation' AND (b.started_at, b.id) < (a.started_at, a.id))
		WHERE a.patient = {:patient} AND a.category = 'interpretation' AND a.started_at >= {:from} AND a.started_at < {:to}
			AND a.ended_at != '' ORDER BY a.id, b.started_at`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "earliest": dayBefore(from)})
}

// UnattestedTime is escalation time that is not attested.
type UnattestedTime struct {
	ID   string `db:"id"`
	User string `db:"user"`
}

// UnattestedTimes returns those that an entry bills or names.
func UnattestedTimes(app core.App, patientID, entryID string, named []string) ([]UnattestedTime, error) {
	return queryAll[UnattestedTime](app, "look for time to be attested", `SELECT id, user FROM time_entries
		WHERE patient = {:patient} AND category = 'interactive' AND source = 'escalation' AND attested_at = ''
			AND (billing_entry = {:entry} OR id`+inIDs+`)`,
		dbx.Params{"patient": patientID, "entry": entryID, "ids": jsonList(named)})
}

// NearbyEntry is another entry of a code near the same days.
type NearbyEntry struct {
	ID        string `db:"id"`
	Status    string `db:"lifecycle_status"`
	CreatedAt string `db:"created_at"`
}

// EntriesNear returns a patient's other entries of a code with a service date in a range, both inclusive, except those in some states.
func EntriesNear(app core.App, patientID, code, except, from, to string, without []string) ([]NearbyEntry, error) {
	return queryAll[NearbyEntry](app, "look for entries near a day", `SELECT id, lifecycle_status, created_at FROM billing_entries
		WHERE patient = {:patient} AND service_date BETWEEN {:from} AND {:to} AND cpt_code = {:code} AND id != {:except}
			AND lifecycle_status NOT IN (SELECT value FROM json_each({:without})) ORDER BY created_at, id`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "code": code, "except": except, "without": jsonList(without)})
}
