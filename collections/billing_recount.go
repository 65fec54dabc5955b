package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Recounted is what a recount from the facts finds an entry to be.
type Recounted struct {
	CPTCode, ServiceDate, PeriodStart, PeriodEnd, Provider string
	Minutes, Units                                         int
	AmountCents, ChargeCents                               int64 // expected, and asked for
	TransmissionDays                                       *int  // nil for a code without days
	Evidence                                               any   // nil leaves what is there
	ICD10Codes                                             []string
}

// Recount makes an entry say what was recounted, and when.
func (e *BillingEntry) Recount(r Recounted, now time.Time) {
	values := map[string]any{
		"cpt_code": r.CPTCode, EntryServiceDate: r.ServiceDate, "billing_period_start": r.PeriodStart, "billing_period_end": r.PeriodEnd,
		"rendering_provider": r.Provider, EntryMinutes: r.Minutes, "units": r.Units, EntryICD10Codes: r.ICD10Codes,
		EntryFactsCheckedAt: Instant(now),
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

// SetEvidence notes what the entry rests on, as JSON.
func (e *BillingEntry) SetEvidence(text string) { e.Set("evidence", text) }

func (e *BillingEntry) OverrideReason() string { return e.GetString(EntryOverrideReason) }

// Claimed is what an entry claims, as a recount reads it.
type Claimed struct {
	ID          string `db:"id"`
	Patient     string `db:"patient"`
	CPTCode     string `db:"cpt_code"`
	ServiceDate string `db:"service_date"`
	PeriodStart string `db:"billing_period_start"`
	PeriodEnd   string `db:"billing_period_end"`
	Source      string `db:"source"`
	Minutes     int    `db:"minutes"`
	Units       int    `db:"units"`
	Evidence    string `db:"evidence"` // JSON
	Flagged     bool   `db:"flagged"`  // its evidence changed already
}

const claimedColumns = `SELECT id, patient, cpt_code, service_date, billing_period_start, billing_period_end, source,
	CAST(duration_minutes AS INTEGER) AS minutes, CAST(units AS INTEGER) AS units, evidence, evidence_changed_at != '' AS flagged FROM billing_entries`

// ClaimedOf are the entries of a patient in some states whose period shares a day with a span.
func ClaimedOf(app core.App, patientID string, states []string, from, to string) ([]Claimed, error) {
	return queryAll[Claimed](app, "read what is claimed", claimedColumns+` WHERE patient = {:patient} AND billing_period_start <= {:to}
		AND billing_period_end >= {:from} AND +lifecycle_status IN (SELECT value FROM json_each({:states})) ORDER BY id`,
		dbx.Params{"patient": patientID, "from": from, "to": to, "states": jsonList(states)})
}

// ClaimedAfter are the next entries in some states whose service is of a day or later, by id.
func ClaimedAfter(app core.App, states []string, since, after string, limit int) ([]Claimed, error) {
	return queryAll[Claimed](app, "read what is claimed", claimedColumns+` WHERE id > {:after} AND service_date >= {:since}
		AND +lifecycle_status IN (SELECT value FROM json_each({:states})) ORDER BY id LIMIT +{:limit}`,
		dbx.Params{"after": after, "since": since, "states": jsonList(states), "limit": limit})
}

// SeenEntry is how an entry was when it was looked at.
type SeenEntry struct {
	ID        string `db:"id"`
	Status    string `db:"lifecycle_status"`
	Batch     string `db:"claim_batch"`
	UpdatedAt string `db:"updated_at"`
}

// EntriesSeen are some entries as they are now, by id.
func EntriesSeen(app core.App, ids []string) (map[string]SeenEntry, error) {
	list, err := queryAll[SeenEntry](app, "look at entries", "SELECT id, lifecycle_status, claim_batch, updated_at FROM billing_entries WHERE id"+those, idsOf(ids))
	seen := make(map[string]SeenEntry, len(list))
	for _, x := range list {
		seen[x.ID] = x
	}
	return seen, err
}

// PatientsAuditedSince are the patients of whom the audit trail has a row behind another one.
func PatientsAuditedSince(tx core.App, id string) (map[string]bool, error) {
	found, err := queryColumn[string](tx, "look at the audit trail", "SELECT DISTINCT patient FROM audit_log WHERE id > {:id} AND patient != ''", dbx.Params{"id": id})
	return setOf(found), err
}

// MarkEvidence notes on an entry since when its facts do not hold, and by when what was paid must go back; a zero moment takes that away.
func MarkEvidence(tx core.App, entryID string, warnings []string, since time.Time, repayBy string, now time.Time) error {
	return update(tx, "mark changed evidence", BillingEntries, dbx.Params{
		EntryEvidenceChangedAt: Instant(since), EntryRepayBy: repayBy, EntryWarnings: jsonList(warnings), ColumnUpdatedAt: Instant(now),
	}, dbx.HashExp{"id": entryID})
}
