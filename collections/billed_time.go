package collections

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// FirstInteractiveTime returns when the first interactive time started, or "".
func FirstInteractiveTime(app core.App) (string, error) {
	return queryValue[string](app, "find the first interactive time",
		"SELECT COALESCE(MIN(started_at), '') FROM time_entries WHERE category = 'interactive'", nil)
}

// PatientsWithTime returns the patients with at least that many seconds of countable time in a span; from is inclusive, to is not. Overlapping
// time is counted twice, so the result may include patients with less.
func PatientsWithTime(app core.App, from, to string, least int, rule TimeRule) ([]string, error) {
	return queryColumn[string](app, "list patients with interactive time",
		`SELECT patient FROM time_entries WHERE started_at >= {:from} AND started_at < {:to} AND `+countable+`
		GROUP BY patient HAVING SUM(duration_seconds) >= {:least} ORDER BY patient`,
		rule.params(dbx.Params{"from": from, "to": to, "least": least}))
}

// PatientMinutes is the interactive time of an active patient.
type PatientMinutes struct {
	Patient string `db:"patient"`
	Minutes int    `db:"minutes"`
}

// CountedMinutes sums the countable time of the active patients in a span, each moment once. Care management counts only for patients with
// live contact.
func CountedMinutes(app core.App, from, to string, rule TimeRule) ([]PatientMinutes, error) {
	return queryAll[PatientMinutes](app, "sum interactive time", `SELECT s.patient, CAST(SUM(`+uncoveredSeconds+`) AS INTEGER) / 60 AS minutes FROM (
			SELECT patient, category, started_at, ended_at, duration_seconds, `+coveredBefore+` FROM time_entries
			WHERE started_at >= {:earliest} AND started_at < {:to} AND `+countable+`) s
		CROSS JOIN patients p ON p.id = s.patient AND p.active AND p.deleted_at = '' AND s.started_at >= {:from}
		GROUP BY s.patient HAVING MAX(s.category = 'interactive')`, rule.params(dbx.Params{"from": from, "to": to, "earliest": dayBefore(from)}))
}

// BillableTime is a finished time entry that may count.
type BillableTime struct {
	ID       string `db:"id"`
	Patient  string `db:"patient"`
	Source   string `db:"source"`
	Category string `db:"category"`
	Started  string `db:"started_at"`
	Seconds  int    `db:"seconds"`
	Noted    bool   `db:"noted"`
}

// BillableTimes returns the time of patients in a span that counts by a rule.
func BillableTimes(app core.App, ids []string, from, to string, rule TimeRule) ([]BillableTime, error) {
	return queryAll[BillableTime](app, "read interactive time",
		`SELECT id, patient, source, category, started_at, CAST(duration_seconds AS INTEGER) AS seconds, notes != '' AS noted FROM time_entries
		WHERE patient`+inIDs+` AND started_at >= {:from} AND started_at < {:to} AND `+countable,
		rule.params(dbx.Params{"ids": jsonList(ids), "from": from, "to": to}))
}

// BillableTimeLines is [BillableTimes] as one line per patient: id, source, start, seconds, 1 if it has notes, category.
func BillableTimeLines(app core.App, ids []string, from, to string, rule TimeRule) ([]PatientLines, error) {
	return queryAll[PatientLines](app, "read interactive time",
		`SELECT patient, group_concat(concat_ws(',', id, source, started_at, CAST(duration_seconds AS INTEGER), notes != '', category), ';') AS list
		FROM time_entries WHERE patient`+inIDs+` AND started_at >= {:from} AND started_at < {:to} AND `+countable+` GROUP BY patient`,
		rule.params(dbx.Params{"ids": jsonList(ids), "from": from, "to": to}))
}

// MinutesByCategory is a patient's finished time in whole minutes.
type MinutesByCategory struct {
	PatientID      string `db:"patient" json:"patient_id"`
	Interactive    int    `db:"interactive" json:"interactive_minutes"`
	Review         int    `db:"review" json:"review_minutes"`
	Interpretation int    `db:"interpretation" json:"interpretation_minutes"`
	CareManagement int    `db:"care_management" json:"care_management_minutes"`
	NotLive        int    `db:"not_live" json:"not_live_minutes"` // interactive, without a live contact method
	// Counted counts toward 99457, 99458 and 99470, each moment once.
	Counted int `db:"counted" json:"counted_minutes"`
}

// SumTime sums finished time by patient; userID, patientID and teamOf narrow it unless "". Live contact and countable time are summed with
// each moment once.
func SumTime(app core.App, from, to, userID, patientID, teamOf string, rule TimeRule) (sums []MinutesByCategory, err error) {
	where := Conditions{dbx.NewExp("ended_at != '' AND started_at >= {:earliest} AND started_at < {:to}", dbx.Params{"earliest": dayBefore(from), "to": to})}.
		Equal("user", userID).Equal("patient", patientID)
	if teamOf != "" {
		where = append(where, OnCareTeam("time_entries.patient", teamOf))
	}
	rows := app.DB().Select("patient", "category", "started_at", "ended_at", "duration_seconds", interactiveLive+" AS live",
		"(category = 'care_management' AND "+careCounts+") AS cared").From(TimeEntries).Where(AllOf(where)).Build()
	sum := func(column, which, seconds string) string {
		return fmt.Sprintf("CAST(SUM(CASE WHEN %s THEN %s ELSE 0 END) AS INTEGER) / 60 AS %s", which, seconds, column)
	}
	beyond := func(reach string) string { return strings.ReplaceAll(uncoveredSeconds, "covered", reach) }
	const all = "duration_seconds"
	err = app.DB().NewQuery("SELECT patient, " + strings.Join([]string{
		sum("interactive", "live", beyond("live_reach")), sum("review", "category = 'review'", all), sum("interpretation", "category = 'interpretation'", all),
		sum("care_management", "category = 'care_management'", all), sum("not_live", "category = 'interactive' AND NOT live", all),
		"iif(MAX(live), " + strings.TrimSuffix(sum("", "live OR cared", beyond("any_reach")), " AS ") + ", 0) AS counted",
	}, ", ") + ` FROM (SELECT *, MAX(CASE WHEN live THEN ended_at END) OVER before AS live_reach, MAX(CASE WHEN live OR cared THEN ended_at END) OVER before AS any_reach
		FROM (` + rows.SQL() + `) WINDOW before AS (PARTITION BY patient ORDER BY started_at, ended_at DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
		WHERE started_at >= {:from} GROUP BY patient ORDER BY patient`).
		Bind(rows.Params()).Bind(rule.params(dbx.Params{"from": from})).All(&sums)
	return sums, wrap(err, "sum time of a month")
}

// ReleaseBilledTime removes the link from the time of a voided entry, so the time can be changed again.
func ReleaseBilledTime(tx core.App, entryID string, now time.Time) error {
	return exec(tx, "free time of a voided entry", "UPDATE time_entries SET billing_entry = '', updated_at = {:now} WHERE billing_entry = {:id}",
		dbx.Params{"id": entryID, "now": FormatInstant(now)})
}

// MarkTimeBilled links time to the entry that bills it. It cannot be changed any more.
func MarkTimeBilled(tx core.App, entryID, timeID string, now time.Time) error {
	return exec(tx, "mark billed time", `UPDATE time_entries SET billing_entry = {:entry}, updated_at = {:now}
		WHERE id = {:id} AND billing_entry = ''`, dbx.Params{"id": timeID, "entry": entryID, "now": FormatInstant(now)})
}

// EntryUpgrade is the new content of an entry pending review after more became billable.
type EntryUpgrade struct {
	ID, ServiceDate string
	CPTCode         string // "" keeps the code
	Days            *int   // with data; nil for a code without days
	Minutes, Units  int
	AmountCents     int64 // expected
	ChargeCents     int64 // 0 for AmountCents
	Evidence        any
	Warnings        []string
}

// UpgradeBillingEntry stores an upgrade of an entry that is still pending review.
func UpgradeBillingEntry(tx core.App, r EntryUpgrade, now time.Time) error {
	evidence, err := json.Marshal(r.Evidence)
	if err != nil {
		return wrap(err, "encode evidence")
	}
	return exec(tx, "raise billing entry", `UPDATE billing_entries SET cpt_code = COALESCE(NULLIF({:code}, ''), cpt_code), transmission_days = COALESCE({:days}, transmission_days),
		units = {:units}, duration_minutes = {:minutes}, service_date = {:service},
		amount_cents = {:amount}, charge_cents = {:charge}, evidence = {:evidence}, warnings = {:warnings}, attested = FALSE, updated_at = {:now}
		WHERE id = {:id} AND lifecycle_status = 'pending_review'`, dbx.Params{
		"id": r.ID, "code": r.CPTCode, "days": r.Days, "units": r.Units, "minutes": r.Minutes, "service": r.ServiceDate, "evidence": string(evidence), "warnings": jsonList(r.Warnings),
		"amount": r.AmountCents, "charge": cmp.Or(r.ChargeCents, r.AmountCents), "now": FormatInstant(now),
	})
}
