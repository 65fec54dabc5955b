package collections

import (
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// RecountedEntry is an entry as recounted from its facts.
type RecountedEntry struct {
	CPTCode, ServiceDate, PeriodStart, PeriodEnd, Provider string
	Minutes, Units                                         int
	AmountCents, ChargeCents                               int64 // expected payment, and charge
	TransmissionDays                                       *int  // nil for a code without days
	Evidence                                               any   // nil keeps the stored evidence
	ICD10Codes                                             []string
}

// Recount writes the recounted values and the time of the recount into an entry.
func (e *BillingEntry) Recount(r RecountedEntry, now time.Time) {
	values := map[string]any{
		"cpt_code": r.CPTCode, EntryServiceDate: r.ServiceDate, "billing_period_start": r.PeriodStart, "billing_period_end": r.PeriodEnd,
		"rendering_provider": r.Provider, EntryMinutes: r.Minutes, "units": r.Units, EntryICD10Codes: r.ICD10Codes,
		EntryFactsCheckedAt: FormatInstant(now),
	}
	if r.AmountCents != e.AmountCents() || r.ChargeCents != e.ChargeCents() {
		values[EntryAmountCents], values[EntryChargeCents] = r.AmountCents, r.ChargeCents
	}
	if r.TransmissionDays != nil {
		values["transmission_days"] = *r.TransmissionDays
	}
	if r.Evidence != nil {
		values["evidence"] = r.Evidence
	}
	e.Load(values)
}

// EntriesWithoutPayer returns a patient's entries in a state that have no payer, without those that cannot be decrypted.
func EntriesWithoutPayer(app core.App, patientID, state string) ([]*BillingEntry, error) {
	list, err := listOf[BillingEntry](app, BillingEntries, dbx.HashExp{"patient": patientID, EntryStatus: state, "payer": ""}, "id")
	return slices.DeleteFunc(list, func(e *BillingEntry) bool { return Readable(e.ProxyRecord()) != nil }), err
}

// SetPayer sets the payer and what it is expected to pay, and the charge.
func (e *BillingEntry) SetPayer(id, name string, amountCents, chargeCents int64) {
	e.Load(map[string]any{"payer": id, "payer_name": name, EntryAmountCents: amountCents, EntryChargeCents: chargeCents})
}

// SetEvidence sets the evidence, as JSON.
func (e *BillingEntry) SetEvidence(text string) { e.Set("evidence", text) }

func (e *BillingEntry) OverrideReason() string { return e.GetString(EntryOverrideReason) }

// ClaimedEntry is the content of an entry that a recount compares.
type ClaimedEntry struct {
	ID          string `db:"id"`
	Patient     string `db:"patient"`
	CPTCode     string `db:"cpt_code"`
	ServiceDate string `db:"service_date"`
	PeriodStart string `db:"billing_period_start"`
	PeriodEnd   string `db:"billing_period_end"`
	Source      string `db:"source"`
	Status      string `db:"lifecycle_status"`
	Minutes     int    `db:"minutes"`
	Units       int    `db:"units"`
	Evidence    string `db:"evidence"` // JSON
	Payer       string `db:"payer"`    // record id; "" for none
	Flagged     bool   `db:"flagged"`  // its evidence has already changed
}

const claimedColumns = `SELECT id, patient, cpt_code, service_date, billing_period_start, billing_period_end, source, lifecycle_status,
	CAST(duration_minutes AS INTEGER) AS minutes, CAST(units AS INTEGER) AS units, evidence, payer, evidence_changed_at != '' AS flagged FROM billing_entries`

// ClaimedEntriesOf returns a patient's entries in some states for periods that overlap a span.
func ClaimedEntriesOf(app core.App, patientID string, states []string, from, to string) ([]ClaimedEntry, error) {
	return queryAll[ClaimedEntry](app, "read claimed entries", claimedColumns+` WHERE patient = {:patient} AND billing_period_start <= {:to}
		AND billing_period_end >= {:from} AND +lifecycle_status IN (SELECT value FROM json_each({:states})) ORDER BY id`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "states": jsonList(states)})
}

// ClaimedEntriesAfter returns the next entries in some states with a service date on or after a day, by id.
func ClaimedEntriesAfter(app core.App, states []string, since, after string, limit int) ([]ClaimedEntry, error) {
	return queryAll[ClaimedEntry](app, "read claimed entries", claimedColumns+` WHERE id > {:after} AND service_date >= {:since}
		AND +lifecycle_status IN (SELECT value FROM json_each({:states})) ORDER BY id LIMIT +{:limit}`,
		dbx.Params{"after": after, "since": since, "states": jsonList(states), "limit": limit})
}

// FirstBilledTimes returns when the first time began that the evidence of each entry names; an entry without time is left out.
func FirstBilledTimes(app core.App, ids []string) (map[string]string, error) {
	rows, err := queryAll[struct {
		ID      string `db:"id"`
		Started string `db:"started_at"`
	}](app, "find the first billed time", `SELECT b.id, MIN(t.started_at) AS started_at FROM billing_entries b
		CROSS JOIN json_each(iif(json_valid(b.evidence), b.evidence, '{}'), '$.time_entries') n CROSS JOIN time_entries t ON t.id = printf('%015d', n.value)
		WHERE b.id`+inIDs+` GROUP BY b.id`, idParams(ids))
	first := make(map[string]string, len(rows))
	for _, row := range rows {
		first[row.ID] = row.Started
	}
	return first, err
}

// FirstDataDay returns the first day of a span on which a device of a patient sent data; "" for none.
func FirstDataDay(app core.App, patientID, from, to string) (string, error) {
	return queryValue[string](app, "find the first day with data", `SELECT COALESCE(MIN(day), '') FROM reading_days
		WHERE patient = {:patient} AND day BETWEEN {:from} AND {:to} AND device_readings > 0`, dbx.Params{"patient": patientID, "from": from, "to": to})
}

// FirstTime returns when the first finished time of a category began for a patient, from an instant until before another; "" for none.
func FirstTime(app core.App, patientID, category, from, until string) (string, error) {
	return queryValue[string](app, "find the first time", `SELECT COALESCE(MIN(started_at), '') FROM time_entries
		WHERE patient = {:patient} AND category = {:category} AND started_at >= {:from} AND started_at < {:until} AND ended_at != ''`,
		dbx.Params{"patient": patientID, "category": category, "from": from, "until": until})
}

// EntryVersion identifies the state of an entry when it was read.
type EntryVersion struct {
	ID        string `db:"id"`
	Status    string `db:"lifecycle_status"`
	Batch     string `db:"claim_batch"`
	UpdatedAt string `db:"updated_at"`
}

// EntryVersions returns the current versions of entries, by id.
func EntryVersions(app core.App, ids []string) (map[string]EntryVersion, error) {
	list, err := queryAll[EntryVersion](app, "look at entries", "SELECT id, lifecycle_status, claim_batch, updated_at FROM billing_entries WHERE id"+inIDs, idParams(ids))
	seen := make(map[string]EntryVersion, len(list))
	for _, x := range list {
		seen[x.ID] = x
	}
	return seen, err
}

// PatientsAuditedSince returns the patients with an audit row after the given one.
func PatientsAuditedSince(tx core.App, id string) (map[string]bool, error) {
	found, err := queryColumn[string](tx, "look at the audit trail", "SELECT DISTINCT patient FROM audit_log WHERE id > {:id} AND patient != ''", dbx.Params{"id": id})
	return setOf(found), err
}

// SetEvidenceChanged stores since when an entry's facts no longer hold and the date until which a payment must be returned; a zero time clears
// both.
func SetEvidenceChanged(tx core.App, entryID string, warnings []string, since time.Time, repayBy string, now time.Time) error {
	return update(tx, "mark changed evidence", BillingEntries, dbx.Params{
		EntryEvidenceChangedAt: FormatInstant(since), EntryRepayBy: repayBy, EntryWarnings: jsonList(warnings), ColumnUpdatedAt: FormatInstant(now),
	}, dbx.HashExp{"id": entryID})
}
