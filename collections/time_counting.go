package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// The ways of contact of time entries.
const (
	ByPhone   = "phone"
	ByVideo   = "video"
	InPerson  = "in_person"
	ByMessage = "message"
)

// live holds for interactive time in live contact: by phone, by video or in person; of an escalation, whose minutes somebody attests; and time
// without a way of contact from before one was asked for, which is {:live}, "" for always.
// Source: docs/decisions/billing.md, "Live contact".
const live = `(contact_method IN ('phone', 'video', 'in_person')
	OR contact_method = '' AND (source = 'escalation' OR {:live} = '' OR started_at < {:live}))`

// interactiveLive is finished interactive time that counts.
const interactiveLive = "category = 'interactive' AND ended_at != '' AND " + live

// counting is finished time that may count: care management may, too, where {:care} holds.
const counting = `category IN ('interactive', 'care_management') AND ended_at != '' AND (category = 'interactive' AND ` + live +
	` OR category = 'care_management' AND {:care})`

// TimeRule is which time counts towards the codes for time.
type TimeRule struct {
	LiveFrom string // instant from which interactive time counts only with a live way of contact; "" for never
	Care     bool   // care management counts, too
}

func (r TimeRule) params(more dbx.Params) dbx.Params {
	more["live"], more["care"] = r.LiveFrom, r.Care
	return more
}

// uncovered are the seconds of a row of span_rows that no earlier one of its group covers. Rows that touch nothing are the rule: only for others are
// texts turned into moments.
const uncovered = `CASE WHEN covered > started_at THEN MAX(0, CAST(ROUND((julianday(ended_at) - julianday(MAX(covered, started_at))) * 86400) AS INTEGER))
	ELSE duration_seconds END`

// coveredBefore is up to when the rows of a patient before this one reach.
const coveredBefore = `MAX(ended_at) OVER (PARTITION BY patient ORDER BY started_at, ended_at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS covered`

// dayBefore is the instant a day before another: nothing that began earlier reaches beyond that.
func dayBefore(instant string) string { return Instant(ParseInstant(instant).Add(-longestStretch)) }

// OtherTime is time that another stretch may overlap.
type OtherTime struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	User    string `db:"user"`
	Started string `db:"started_at"`
	Ended   string `db:"ended_at"` // "" while it runs
}

// StartedAt is when it began.
func (o OtherTime) StartedAt() time.Time { return ParseInstant(o.Started) }

// EndedAt is when it ended; while it runs, the latest it can.
func (o OtherTime) EndedAt(longest time.Duration) time.Time {
	if o.Ended == "" {
		return o.StartedAt().Add(longest)
	}
	return ParseInstant(o.Ended)
}

// longestStretch is more than any time entry lasts.
const longestStretch = 24 * time.Hour

// TimeAround is the time with a patient, of a user or of a patient, that may share a moment with a span, in the order in which it began; the
// entry except aside. Time that still runs is among it whenever it began before the span's end.
func TimeAround(app core.App, userID, patientID, except string, from, to time.Time, care bool) ([]OtherTime, error) {
	return queryAll[OtherTime](app, "look for overlapping time", `SELECT id, patient, user, started_at, ended_at FROM (
			SELECT id, patient, user, started_at, ended_at, category FROM time_entries
				WHERE user = {:user} AND started_at < {:to} AND started_at > {:earliest}
			UNION SELECT id, patient, user, started_at, ended_at, category FROM time_entries
				WHERE patient = {:patient} AND category IN ('interactive', 'care_management') AND started_at < {:to} AND started_at > {:earliest})
		WHERE id != {:except} AND (category = 'interactive' OR category = 'care_management' AND {:care}) AND (ended_at = '' OR ended_at > {:from})
		ORDER BY started_at, id`, dbx.Params{
		"user": userID, "patient": patientID, "except": except, "from": Instant(from), "to": Instant(to), "care": care,
		"earliest": Instant(from.Add(-longestStretch)),
	})
}

// Elsewhere is a span in which the person behind a time entry of a patient was with another patient, in time that began earlier.
type Elsewhere struct {
	ID    string `db:"id"` // of the patient's entry
	From  string `db:"started_at"`
	Until string `db:"ended_at"`
}

// InterpretationOf reads a patient's finished time of interpretation by providers in a span.
func InterpretationOf(app core.App, patientID, from, to string) ([]TimeStretch, error) {
	return queryAll[TimeStretch](app, "read time of interpretation",
		`SELECT t.id, t.patient, t.source, t.category, t.started_at, CAST(t.duration_seconds AS INTEGER) AS seconds, t.notes != '' AS noted FROM time_entries t
		CROSS JOIN users u ON u.id = t.user AND u.role = 'provider'
		WHERE t.patient = {:patient} AND t.category = 'interpretation' AND t.ended_at != '' AND t.started_at >= {:from} AND t.started_at < {:to}`,
		dbx.Params{"patient": patientID, "from": from, "to": to})
}

// InterpretationElsewhere is the time in which providers who interpreted for a patient in a span were with another one: in live contact, whichever
// began first, or interpreting, where that began first.
func InterpretationElsewhere(app core.App, patientID, from, to string) ([]Elsewhere, error) {
	return queryAll[Elsewhere](app, "look for time with somebody else", `SELECT a.id, b.started_at, b.ended_at FROM time_entries a
		CROSS JOIN time_entries b ON b.user = a.user AND b.started_at > {:earliest} AND b.started_at < a.ended_at AND b.patient != a.patient
			AND b.ended_at > a.started_at AND (b.category = 'interactive' OR b.category = 'interpretation' AND (b.started_at, b.id) < (a.started_at, a.id))
		WHERE a.patient = {:patient} AND a.category = 'interpretation' AND a.started_at >= {:from} AND a.started_at < {:to}
			AND a.ended_at != '' ORDER BY a.id, b.started_at`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "earliest": dayBefore(from)})
}

// UnattestedTime is time of an escalation that nobody has attested.
type UnattestedTime struct {
	ID   string `db:"id"`
	User string `db:"user"`
}

// UnattestedTimes are those that an entry bills or names.
func UnattestedTimes(app core.App, patientID, entryID string, named []string) ([]UnattestedTime, error) {
	return queryAll[UnattestedTime](app, "look for time to be attested", `SELECT id, user FROM time_entries
		WHERE patient = {:patient} AND category = 'interactive' AND source = 'escalation' AND attested_at = ''
			AND (billing_entry = {:entry} OR id`+those+`)`,
		dbx.Params{"patient": patientID, "entry": entryID, "ids": jsonList(named)})
}

// NearEntry is another entry of a code about the same days.
type NearEntry struct {
	ID        string `db:"id"`
	Status    string `db:"lifecycle_status"`
	CreatedAt string `db:"created_at"`
}

// EntriesNear are a patient's entries of a code with a service date from one day to another, both included, apart from one and from some states.
func EntriesNear(app core.App, patientID, code, except, from, to string, without []string) ([]NearEntry, error) {
	return queryAll[NearEntry](app, "look for entries near a day", `SELECT id, lifecycle_status, created_at FROM billing_entries
		WHERE patient = {:patient} AND service_date BETWEEN {:from} AND {:to} AND cpt_code = {:code} AND id != {:except}
			AND lifecycle_status NOT IN (SELECT value FROM json_each({:without})) ORDER BY created_at, id`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "code": code, "except": except, "without": jsonList(without)})
}
