package collections

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// BillingEntry is one CPT code for one patient and period, from review to payment.
type BillingEntry struct{ patientRecord }

// FindBillingEntry finds one entry.
func FindBillingEntry(app core.App, id string) (*BillingEntry, error) {
	return findReadable[BillingEntry](app, BillingEntries, dbx.HashExp{"id": id})
}

// BillingEntriesByID returns entries in the order of ids, and skips ids without an entry.
func BillingEntriesByID(app core.App, ids []string) ([]*BillingEntry, error) {
	var found []*BillingEntry
	if err := app.RecordQuery(BillingEntries).AndWhere(idIn(ids)).All(&found); err != nil {
		return nil, wrap(err, "fetch billing entries")
	}
	place := make(map[string]int, len(ids))
	for i, id := range ids {
		place[id] = i
	}
	slices.SortFunc(found, func(a, b *BillingEntry) int { return place[a.Id] - place[b.Id] })
	return found, nil
}

// EntriesWithoutSecondaryClaim returns the ids of a patient's entries in some states that are on no claim to the second payer, or on one that is due.
func EntriesWithoutSecondaryClaim(app core.App, patientID string, states []string) ([]string, error) {
	return queryColumn[string](app, "find entries without a second claim", `SELECT id FROM billing_entries WHERE patient = {:patient} AND secondary_status IN ('', 'due')
		AND +lifecycle_status IN (SELECT value FROM json_each({:states})) ORDER BY id`, dbx.Params{"patient": patientID, "states": jsonList(states)})
}

// EntryOrders are the orders of a list of entries, by the API's name.
var EntryOrders = map[string][]string{
	"-service_date": {"service_date DESC", "id DESC"}, "service_date": {"service_date", "id"},
	"-amount": {"amount_cents DESC", "id DESC"}, "amount": {"amount_cents", "id"}, "-created_at": {"id DESC"},
}

// PageOfBillingEntries returns a page of matching entries in an order, and the total.
func PageOfBillingEntries(app core.App, f EntryFilter, order []string, offset, limit int) (page []*BillingEntry, total int, err error) {
	return pageOf[BillingEntry](app, BillingEntries, f.where(), order, offset, limit)
}

// BillingDraft is a billing entry to store. Times are instants, dates are YYYY-MM-DD.
type BillingDraft struct {
	ID, ClaimID, PatientID, CPTCode, ServiceDate string
	Minutes, Units                               int
	AmountCents                                  int64 // expected
	ChargeCents                                  int64 // 0 for AmountCents
	Source, CreatedBy                            string
	PayerID, PayerName, Provider                 string // record ids; "" for none
	ICD10Codes, Warnings                         []string
	PeriodStart, PeriodEnd                       string
	TransmissionDays                             *int
	Evidence                                     any
	Notes                                        phi.Text
}

// InsertBillingEntry stores a draft as pending_review; false if a unique index already has such an entry.
func InsertBillingEntry(tx core.App, d BillingDraft, now time.Time) (stored bool, err error) {
	ids, err := InsertBillingEntries(tx, []BillingDraft{d}, now)
	return ids[d.ID], err
}

// InsertBillingEntries stores drafts as pending_review with one statement, and returns the ids of those stored. It skips drafts that a unique
// index rejects.
func InsertBillingEntries(tx core.App, drafts []BillingDraft, now time.Time) (stored map[string]bool, err error) {
	rows := make([]map[string]any, len(drafts))
	for i, d := range drafts {
		if rows[i], err = d.columns(); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return nil, fmt.Errorf("encode billing entries: %w", err)
	}
	var ids []string
	err = tx.NonconcurrentDB().NewQuery(insertEntriesSQL).Bind(dbx.Params{"rows": string(list), "now": FormatInstant(now)}).Column(&ids)
	if err != nil {
		return nil, fmt.Errorf("store billing entries: %w", err)
	}
	return setOf(ids), nil
}

// The list is materialized, because json_each decodes a value again on every access.
const insertEntriesSQL = `WITH r AS MATERIALIZED (SELECT value FROM json_each({:rows})) INSERT INTO billing_entries (id, claim_id, patient, cpt_code, service_date, duration_minutes, units,
		amount_cents, charge_cents, lifecycle_status, source, created_by, payer, payer_name, icd10_codes, rendering_provider, billing_period_start,
		billing_period_end, transmission_days, evidence, warnings, notes, created_at, updated_at)
	SELECT value ->> 'id', value ->> 'claim', value ->> 'patient', value ->> 'code', value ->> 'service', value ->> 'minutes', value ->> 'units',
		value ->> 'amount', value ->> 'charge', 'pending_review', value ->> 'source', value ->> 'by', value ->> 'payer', value ->> 'name', value ->> 'icd',
		value ->> 'provider', value ->> 'start', value ->> 'end', value ->> 'days', value ->> 'evidence', value ->> 'warnings', value ->> 'notes',
		{:now}, {:now}
	FROM r WHERE TRUE
	ON CONFLICT DO NOTHING RETURNING id`

// columns returns the draft as the statement reads it.
func (d BillingDraft) columns() (map[string]any, error) {
	notes, err := Seal(d.Notes.Reveal(), "billing_entries.notes", d.ID)
	if err != nil {
		return nil, fmt.Errorf("seal notes: %w", err)
	}
	evidence, err := json.Marshal(d.Evidence)
	if err != nil {
		return nil, fmt.Errorf("encode evidence: %w", err)
	}
	return map[string]any{
		"id": d.ID, "claim": d.ClaimID, "patient": d.PatientID, "code": d.CPTCode, "service": d.ServiceDate, "minutes": d.Minutes,
		"units": d.Units, "amount": d.AmountCents, "charge": d.charge(), "source": d.Source, "by": d.CreatedBy, "payer": d.PayerID, "name": d.PayerName,
		"icd": jsonList(d.ICD10Codes), "provider": d.Provider, "start": d.PeriodStart, "end": d.PeriodEnd, "days": d.TransmissionDays,
		"evidence": string(evidence), "warnings": jsonList(d.Warnings), "notes": notes,
	}, nil
}

// charge is the amount to charge: the expected amount unless the practice's fee schedule has a higher charge.
func (d BillingDraft) charge() int64 { return cmp.Or(d.ChargeCents, d.AmountCents) }

// NextClaimIDs takes the next n claim ids of a year, such as CLM-2026-000001.
func NextClaimIDs(tx core.App, year, n int) ([]string, error) {
	sequence := fmt.Sprintf("claims-%04d", year)
	last, err := LastValue(tx, sequence)
	if err != nil {
		return nil, err
	}
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("CLM-%04d-%06d", year, last+int64(i)+1)
	}
	return ids, SetLastValue(tx, sequence, last+int64(n))
}

// Columns of an entry that its transitions write.
const (
	EntryAmountCents         = "amount_cents"
	EntryAppealDate          = "appeal_date"
	EntryAppealReason        = "appeal_reason"
	EntryAppealReference     = "appeal_reference"
	EntryAttested            = "attested"
	EntryClaimFrequencyCode  = "claim_frequency_code"
	EntryAdjustedCents       = "adjusted_cents"
	EntryAdjustments         = "adjustments"
	EntryBatch               = "claim_batch"
	EntryChargeCents         = "charge_cents"
	EntryClaimControlNumber  = "claim_control_number"
	EntryDenialCode          = "denial_code"
	EntryDenialDate          = "denial_date"
	EntryDenialDescription   = "denial_description"
	EntryDenialRemarks       = "denial_remarks" // RARC of the whole decision
	EntryEvidenceChangedAt   = "evidence_changed_at"
	EntryFactsCheckedAt      = "facts_checked_at"
	EntryICD10Codes          = "icd10_codes"
	EntryMinutes             = "duration_minutes"
	EntryNotes               = "notes"
	EntryOriginalReference   = "original_reference"
	EntryOverrideReason      = "override_reason"
	EntryOverpaymentReason   = "overpayment_reason"
	EntryPaidTotalCents      = "paid_total_cents"
	EntryRejection           = "rejection"
	EntryRejectionDetails    = "rejection_details"
	EntryPatientShareCents   = "patient_responsibility_cents"
	EntryPayerControlNumber  = "payer_control_number"
	EntryPaymentCents        = "payment_cents"
	EntryPaymentDate         = "payment_date"
	EntryPaymentReference    = "payment_reference"
	EntryRefundDate          = "refund_date"
	EntryRefundedCents       = "refunded_cents"
	EntryRefundReference     = "refund_reference"
	EntryRepayBy             = "repay_by"
	EntryResubmissionCount   = "resubmission_count"
	EntryReviewedAt          = "reviewed_at"
	EntryReviewedBy          = "reviewed_by"
	EntrySecondaryPayer      = "secondary_payer"
	EntrySecondaryStatus     = "secondary_status"
	EntrySecondaryRejection  = "secondary_rejection"
	EntryServiceDate         = "service_date"
	EntryStatus              = "lifecycle_status"
	EntrySubmissionReference = "submission_reference"
	EntrySubmittedAt         = "submitted_at"
	EntryVoidReason          = "void_reason"
	EntryWarnings            = "warnings"
)

func (e *BillingEntry) ClaimID() string    { return e.GetString("claim_id") }
func (e *BillingEntry) PayerID() string    { return e.GetString("payer") }
func (e *BillingEntry) PayerName() string  { return e.GetString("payer_name") }
func (e *BillingEntry) ProviderID() string { return e.GetString("rendering_provider") }
func (e *BillingEntry) Evidence() string   { return e.GetString("evidence") } // JSON
func (e *BillingEntry) TransmissionDays() *float64 {
	return Optional(e.ProxyRecord(), "transmission_days")
}
func (e *BillingEntry) Attested() bool              { return e.GetBool(EntryAttested) }
func (e *BillingEntry) ReviewedBy() string          { return e.GetString(EntryReviewedBy) }
func (e *BillingEntry) ReviewedAt() time.Time       { return instantOf(e, EntryReviewedAt) }
func (e *BillingEntry) SubmissionReference() string { return e.GetString(EntrySubmissionReference) }
func (e *BillingEntry) OriginalReference() string   { return e.GetString(EntryOriginalReference) }
func (e *BillingEntry) ClaimFrequencyCode() string  { return e.GetString(EntryClaimFrequencyCode) }
func (e *BillingEntry) SubmittedAt() time.Time      { return instantOf(e, EntrySubmittedAt) }
func (e *BillingEntry) ResubmissionCount() int      { return e.GetInt(EntryResubmissionCount) }
func (e *BillingEntry) PaymentDate() string         { return e.GetString(EntryPaymentDate) }
func (e *BillingEntry) PaymentReference() string    { return e.GetString(EntryPaymentReference) }
func (e *BillingEntry) PaymentCents() *float64      { return Optional(e.ProxyRecord(), EntryPaymentCents) }
func (e *BillingEntry) DenialCode() string          { return e.GetString(EntryDenialCode) }
func (e *BillingEntry) DenialDescription() string   { return e.GetString(EntryDenialDescription) }
func (e *BillingEntry) DenialRemarks() []string     { return e.GetStringSlice(EntryDenialRemarks) }
func (e *BillingEntry) DenialDate() string          { return e.GetString(EntryDenialDate) }
func (e *BillingEntry) AppealDate() string          { return e.GetString(EntryAppealDate) }
func (e *BillingEntry) AppealReference() string     { return e.GetString(EntryAppealReference) }

// ChargeCents is the amount charged to the payer; AmountCents is the expected payment.
func (e *BillingEntry) ChargeCents() int64           { return int64(e.GetInt(EntryChargeCents)) }
func (e *BillingEntry) PaidTotalCents() int64        { return int64(e.GetInt(EntryPaidTotalCents)) }
func (e *BillingEntry) PatientShareCents() int64     { return int64(e.GetInt(EntryPatientShareCents)) }
func (e *BillingEntry) AdjustedCents() int64         { return int64(e.GetInt(EntryAdjustedCents)) }
func (e *BillingEntry) RefundedCents() int64         { return int64(e.GetInt(EntryRefundedCents)) }
func (e *BillingEntry) RefundDate() string           { return e.GetString(EntryRefundDate) }
func (e *BillingEntry) RefundReference() string      { return e.GetString(EntryRefundReference) }
func (e *BillingEntry) ClaimControlNumber() string   { return e.GetString(EntryClaimControlNumber) }
func (e *BillingEntry) PayerControlNumber() string   { return e.GetString(EntryPayerControlNumber) }
func (e *BillingEntry) BatchID() string              { return e.GetString(EntryBatch) }
func (e *BillingEntry) FactsCheckedAt() time.Time    { return instantOf(e, EntryFactsCheckedAt) }
func (e *BillingEntry) EvidenceChangedAt() time.Time { return instantOf(e, EntryEvidenceChangedAt) }
func (e *BillingEntry) RepayBy() string              { return e.GetString(EntryRepayBy) }

// SecondaryStatus is the state of the claim to the second payer, "" for none; SecondaryPayerID is that payer, "" if unknown.
func (e *BillingEntry) SecondaryStatus() string  { return e.GetString(EntrySecondaryStatus) }
func (e *BillingEntry) SecondaryPayerID() string { return e.GetString(EntrySecondaryPayer) }

// OpenCents is the part of the charge that is still open. It is negative after an overpayment.
func (e *BillingEntry) OpenCents() int64 {
	return e.ChargeCents() - e.PaidTotalCents() - e.AdjustedCents() - e.PatientShareCents()
}

// Rejection is why a claim was rejected before adjudication; nil if it was not.
type Rejection struct {
	Source string   `json:"source"` // 999 or 277CA
	Codes  []string `json:"codes"`
	At     string   `json:"at"`
	// Details are all that the file states. They are stored apart, sealed, because they quote what was sent.
	Details []RejectionDetail `json:"-"`
}

// RejectionDetail is one statement of a 999 or 277CA; members that it lacks are empty.
type RejectionDetail struct {
	Claim     string `json:"claim,omitempty"` // our number of the claim with the error
	Line      string `json:"line,omitempty"`  // our number of the line
	Procedure string `json:"procedure,omitempty"`
	Loop      string `json:"loop,omitempty"`
	Segment   string `json:"segment,omitempty"`
	Position  int    `json:"position,omitempty"` // of the segment in the transaction set
	Element   int    `json:"element,omitempty"`
	Component int    `json:"component,omitempty"`
	Reference string `json:"reference,omitempty"` // of the element in the X12 dictionary
	Value     string `json:"value,omitempty"`     // as sent
	Category  string `json:"category,omitempty"`
	Code      string `json:"code,omitempty"`
	Entity    string `json:"entity,omitempty"`
	Message   string `json:"message,omitempty"`
}

// Rejection returns nil for damaged JSON.
func (e *BillingEntry) Rejection() *Rejection {
	var r *Rejection
	if e.UnmarshalJSONField(EntryRejection, &r) != nil || r == nil {
		return nil
	}
	_ = json.Unmarshal([]byte(e.GetString(EntryRejectionDetails)), &r.Details) // none from before they were kept
	return r
}

// SetRejection sets why the claim was rejected.
func (e *BillingEntry) SetRejection(r Rejection) error {
	details, err := json.Marshal(r.Details)
	if err != nil {
		return wrap(err, "encode a rejection")
	}
	e.Set(EntryRejection, r)
	e.Set(EntryRejectionDetails, string(details))
	return nil
}

// secondaryRejection is a [Rejection] as it is stored, sealed as a whole.
type secondaryRejection struct {
	Rejection
	Details []RejectionDetail `json:"details"`
}

// SecondaryRejection is why the claim to the second payer was rejected; nil if it was not, and for damaged JSON.
func (e *BillingEntry) SecondaryRejection() *Rejection {
	var stored secondaryRejection
	if json.Unmarshal([]byte(e.GetString(EntrySecondaryRejection)), &stored) != nil {
		return nil
	}
	stored.Rejection.Details = stored.Details
	return &stored.Rejection
}

// SetSecondaryRejection sets why the claim to the second payer was rejected.
func (e *BillingEntry) SetSecondaryRejection(r Rejection) error {
	plain, err := json.Marshal(secondaryRejection{r, r.Details})
	if err == nil {
		e.Set(EntrySecondaryRejection, string(plain))
	}
	return wrap(err, "encode a rejection")
}

// Adjustment is an amount that a payer subtracted from a charge, and its reason codes. Source: ASC X12N 005010X221A1 (835), segment CAS.
type Adjustment struct {
	Group       string   `json:"group"` // CO, PR, OA, PI, CR
	CARC        string   `json:"carc"`
	RARC        []string `json:"rarc"`
	AmountCents int64    `json:"amount_cents"`
}

// Adjustments returns nil for damaged JSON.
func (e *BillingEntry) Adjustments() (list []Adjustment) {
	if e.UnmarshalJSONField(EntryAdjustments, &list) != nil {
		return nil
	}
	return list
}

func (e *BillingEntry) CPTCode() string      { return e.GetString("cpt_code") }
func (e *BillingEntry) ServiceDate() string  { return e.GetString(EntryServiceDate) }
func (e *BillingEntry) PeriodStart() string  { return e.GetString("billing_period_start") }
func (e *BillingEntry) PeriodEnd() string    { return e.GetString("billing_period_end") }
func (e *BillingEntry) Status() string       { return e.GetString(EntryStatus) }
func (e *BillingEntry) Source() string       { return e.GetString("source") }
func (e *BillingEntry) Minutes() int         { return e.GetInt(EntryMinutes) }
func (e *BillingEntry) Units() int           { return e.GetInt("units") }
func (e *BillingEntry) AmountCents() int64   { return int64(e.GetInt(EntryAmountCents)) }
func (e *BillingEntry) Warnings() []string   { return e.GetStringSlice(EntryWarnings) }
func (e *BillingEntry) ICD10Codes() []string { return e.GetStringSlice(EntryICD10Codes) }
func (e *BillingEntry) CreatedBy() string    { return e.GetString("created_by") }
func (e *BillingEntry) Notes() phi.Text      { return phi.Text(e.GetString(EntryNotes)) }
