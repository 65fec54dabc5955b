package collections

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// FirstInteractiveTime is when the first interactive time began; "" when there is none.
func FirstInteractiveTime(app core.App) (string, error) {
	return queryValue[string](app, "find the first interactive time",
		"SELECT COALESCE(MIN(started_at), '') FROM time_entries WHERE category = 'interactive'", nil)
}

// PatientsWithTime are those with so many seconds of interactive time in a span; from is included, to is not. Instants.
func PatientsWithTime(app core.App, from, to string, least int) ([]string, error) {
	return queryColumn[string](app, "list patients with interactive time",
		`SELECT patient FROM time_entries WHERE category = 'interactive' AND ended_at != '' AND started_at >= {:from} AND started_at < {:to}
		GROUP BY patient HAVING SUM(duration_seconds) >= {:least} ORDER BY patient`, dbx.Params{"from": from, "to": to, "least": least})
}

// PatientMinutes is how much interactive time an active patient has.
type PatientMinutes struct {
	Patient string `db:"patient"`
	Minutes int    `db:"minutes"`
}

// InteractiveMinutes sums the interactive time of the active patients in a span.
func InteractiveMinutes(app core.App, from, to string) ([]PatientMinutes, error) {
	return queryAll[PatientMinutes](app, "sum interactive time", `SELECT t.patient, CAST(SUM(t.duration_seconds) AS INTEGER) / 60 AS minutes FROM time_entries t
		CROSS JOIN patients p ON p.id = t.patient AND p.active AND p.deleted_at = ''
		WHERE t.category = 'interactive' AND t.ended_at != '' AND t.started_at >= {:from} AND t.started_at < {:to} GROUP BY t.patient`,
		dbx.Params{"from": from, "to": to})
}

// TimeStretch is finished interactive time.
type TimeStretch struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Source  string `db:"source"`
	Started string `db:"started_at"`
	Seconds int    `db:"seconds"`
	Noted   bool   `db:"noted"`
}

// StretchesOf reads the finished interactive time of some patients in a span.
func StretchesOf(app core.App, ids []string, from, to string) ([]TimeStretch, error) {
	return queryAll[TimeStretch](app, "read interactive time",
		`SELECT id, patient, source, started_at, CAST(duration_seconds AS INTEGER) AS seconds, notes != '' AS noted FROM time_entries
		WHERE category = 'interactive' AND ended_at != '' AND started_at >= {:from} AND started_at < {:to}
			AND patient`+those, dbx.Params{"ids": jsonList(ids), "from": from, "to": to})
}

// StretchLines are [StretchesOf] as one line for each patient: id, source, start, seconds, and 1 for noted.
func StretchLines(app core.App, ids []string, from, to string) ([]PatientLines, error) {
	return queryAll[PatientLines](app, "read interactive time",
		`SELECT patient, group_concat(concat_ws(',', id, source, started_at, CAST(duration_seconds AS INTEGER), notes != ''), ';') AS list
		FROM time_entries
		WHERE patient`+those+` AND category = 'interactive' AND started_at >= {:from} AND started_at < {:to} AND ended_at != ''
		GROUP BY patient`, dbx.Params{"ids": jsonList(ids), "from": from, "to": to})
}

// MinutesByCategory is a patient's finished time, in whole minutes.
type MinutesByCategory struct {
	PatientID      string `db:"patient" json:"patient_id"`
	Interactive    int    `db:"interactive" json:"interactive_minutes"`
	Review         int    `db:"review" json:"review_minutes"`
	Interpretation int    `db:"interpretation" json:"interpretation_minutes"`
}

// SumTime sums finished time by patient; userID, patientID and teamOf ("" for all) narrow it.
func SumTime(app core.App, from, to, userID, patientID, teamOf string) (sums []MinutesByCategory, err error) {
	where := Conditions{dbx.NewExp("ended_at != '' AND started_at >= {:from} AND started_at < {:to}", dbx.Params{"from": from, "to": to})}.
		Equal("user", userID).Equal("patient", patientID)
	if teamOf != "" {
		where = append(where, OnCareTeam("time_entries.patient", teamOf))
	}
	sum := func(category string) string {
		return fmt.Sprintf("CAST(SUM(CASE WHEN category = '%s' THEN duration_seconds ELSE 0 END) AS INTEGER) / 60 AS %s", category, category)
	}
	err = app.DB().Select("patient", sum(Interactive), sum(ReviewTime), sum(Interpretation)).From(TimeEntries).
		Where(Every(where)).GroupBy("patient").OrderBy("patient").All(&sums)
	return sums, wrap(err, "sum time of a month")
}

// UnnotedTime reports whether an entry bills time without notes.
func UnnotedTime(app core.App, entryID string) (bool, error) {
	return queryValue[bool](app, "look for time without notes",
		"SELECT EXISTS (SELECT 1 FROM time_entries WHERE billing_entry = {:id} AND notes = '')", dbx.Params{"id": entryID})
}

// FreeTime takes the time of a voided entry from it: it can be changed again.
func FreeTime(tx core.App, entryID string, now time.Time) error {
	return exec(tx, "free time of a voided entry", "UPDATE time_entries SET billing_entry = '', updated_at = {:now} WHERE billing_entry = {:id}",
		dbx.Params{"id": entryID, "now": Instant(now)})
}

// BillTime marks time as billed by an entry: it can no longer be changed.
func BillTime(tx core.App, entryID, timeID string, now time.Time) error {
	return exec(tx, "mark billed time", `UPDATE time_entries SET billing_entry = {:entry}, updated_at = {:now}
		WHERE id = {:id} AND billing_entry = ''`, dbx.Params{"id": timeID, "entry": entryID, "now": Instant(now)})
}

// RaisedEntry is what an entry that still waits for review becomes when there is more to bill.
type RaisedEntry struct {
	ID, ServiceDate string
	CPTCode         string // "" stays
	Days            *int   // with data; nil for a code without days
	Minutes, Units  int
	AmountCents     int64 // expected
	ChargeCents     int64 // asked for; 0 for what is expected
	Evidence        any
	Warnings        []string
}

// RaiseBillingEntry stores it.
func RaiseBillingEntry(tx core.App, r RaisedEntry, now time.Time) error {
	evidence, err := json.Marshal(r.Evidence)
	if err != nil {
		return wrap(err, "encode evidence")
	}
	return exec(tx, "raise billing entry", `UPDATE billing_entries SET cpt_code = COALESCE(NULLIF({:code}, ''), cpt_code), transmission_days = COALESCE({:days}, transmission_days),
		units = {:units}, duration_minutes = {:minutes}, service_date = {:service},
		amount_cents = {:amount}, charge_cents = {:charge}, evidence = {:evidence}, warnings = {:warnings}, attested = FALSE, updated_at = {:now}
		WHERE id = {:id} AND lifecycle_status = 'pending_review'`, dbx.Params{
		"id": r.ID, "code": r.CPTCode, "days": r.Days, "units": r.Units, "minutes": r.Minutes, "service": r.ServiceDate, "evidence": string(evidence), "warnings": jsonList(r.Warnings),
		"amount": r.AmountCents, "charge": cmp.Or(r.ChargeCents, r.AmountCents), "now": Instant(now),
	})
}
