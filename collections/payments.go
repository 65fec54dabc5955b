package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Kinds of payments. Reversals have negative amounts.
const (
	PaymentKind    = "payment"
	AdjustmentKind = "adjustment"
	DenialKind     = "denial"
	ReversalKind   = "reversal"
	ReopeningKind  = "reopening" // a denial is disputed, or the claim is sent again
	RefundKind     = "refund"
)

// Payers and sources of a payment.
const (
	PrimaryPayer   = "primary"
	SecondaryPayer = "secondary"
	PatientPays    = "patient"

	SourceByHand = "hand"
	Source835    = "835"
)

// Payment is one change of an entry's money: a payment, adjustment, denial, reversal, reopening or refund.
type Payment struct {
	ID, EntryID, Kind string
	AmountCents       int64
	Date, Reference   string
	Payer, Source     string
	Key               string // of the remittance and its line; "" if entered by hand
	Adjustments       []Adjustment
	ShareOffsets      []Adjustment // of Adjustments: by which payments lessened the patient's share that the payer states
	Stated            []Adjustment // what the payer states in its 835, of which Adjustments is the change; nil by hand, and of older payments
	Remarks           []string     // RARC of the whole decision
	PayerNumber       string       // CLP07; "" by hand, and of older payments
	PaidCode          string       // the code that the payer decided on instead of ours; "" for ours
	RemittanceID      string       // the 835 that it came with; "" for none on record
	Reason            phi.Text
	CreatedBy         string
	CreatedAt         time.Time
}

// AddPayment stores a payment. It is never changed.
func AddPayment(tx core.App, p Payment, now time.Time) error {
	if p.Adjustments == nil {
		p.Adjustments = []Adjustment{}
	}
	_, err := store(tx, "store payment", Payments, map[string]any{
		"share_offsets": append([]Adjustment{}, p.ShareOffsets...), "stated": p.Stated,
		"remarks": append([]string{}, p.Remarks...), "remittance": p.RemittanceID, "paid_code": p.PaidCode, "payer_control_number": p.PayerNumber,
		"id": NewUUID(), "billing_entry": p.EntryID, "kind": p.Kind, "amount_cents": p.AmountCents, "date": p.Date, "reference": p.Reference, "payer": p.Payer,
		"source": p.Source, "source_key": p.Key, "adjustments": p.Adjustments, "reason": p.Reason.Reveal(), "created_by": p.CreatedBy, "created_at": FormatInstant(now),
	})
	return err
}

// PaymentsOf returns the payments of an entry, oldest first.
func PaymentsOf(app core.App, entryID string) ([]Payment, error) {
	var records []*core.Record
	if err := app.RecordQuery(Payments).AndWhere(dbx.HashExp{"billing_entry": entryID}).OrderBy("id").All(&records); err != nil {
		return nil, wrap(err, "read payments")
	}
	list := make([]Payment, len(records))
	for i, r := range records {
		p := Payment{
			ID: r.Id, EntryID: entryID, Kind: r.GetString("kind"), AmountCents: int64(r.GetInt("amount_cents")), Date: r.GetString("date"),
			Reference: r.GetString("reference"), Payer: r.GetString("payer"), Source: r.GetString("source"), Key: r.GetString("source_key"),
			Remarks: r.GetStringSlice("remarks"), RemittanceID: r.GetString("remittance"), PayerNumber: r.GetString("payer_control_number"), PaidCode: r.GetString("paid_code"), Reason: phi.Text(r.GetString("reason")), CreatedBy: r.GetString("created_by"), CreatedAt: ParseInstant(r.GetString(ColumnCreatedAt)),
		}
		for column, list := range map[string]*[]Adjustment{"adjustments": &p.Adjustments, "share_offsets": &p.ShareOffsets, "stated": &p.Stated} {
			text := r.GetString(column)
			if text == "" && column != "adjustments" { // before this column
				continue
			}
			if err := json.Unmarshal([]byte(text), list); err != nil {
				return nil, wrap(err, "read the "+column+" of a payment")
			}
		}
		list[i] = p
	}
	return list, nil
}

// PatientPaid returns what patients paid toward entries, by id, less what went back.
func PatientPaid(app core.App, entryIDs []string) (map[string]int64, error) {
	rows, err := queryAll[struct {
		ID    string `db:"billing_entry"`
		Cents int64  `db:"cents"`
	}](app, "sum payments of patients", `SELECT billing_entry, CAST(SUM(CASE kind WHEN 'refund' THEN -amount_cents ELSE amount_cents END) AS INTEGER) AS cents
		FROM payments WHERE payer = 'patient' AND billing_entry`+inIDs+` GROUP BY billing_entry`, idParams(entryIDs))
	paid := make(map[string]int64, len(rows))
	for _, row := range rows {
		paid[row.ID] = row.Cents
	}
	return paid, err
}

// IsPosted reports whether a remittance line was applied.
func IsPosted(app core.App, key string) (bool, error) {
	return queryValue[bool](app, "look for a payment", "SELECT EXISTS (SELECT 1 FROM payments WHERE source_key = {:key})", dbx.Params{"key": key})
}

// PostedKeys returns the keys of the lines of a remittance that were posted to an entry.
func PostedKeys(app core.App, remittanceID, entryID string) ([]string, error) {
	return queryColumn[string](app, "find posted lines", "SELECT source_key FROM payments WHERE remittance = {:remittance} AND billing_entry = {:entry} AND source_key != ''",
		dbx.Params{"remittance": remittanceID, "entry": entryID})
}

// AppliedPayment is what [AdoptPayment] found.
type AppliedPayment struct {
	Found        bool   `db:"found"`
	RemittanceID string `db:"remittance"`
}

// AdoptPayment looks for a remittance line that has already been applied. One without a remittance on record becomes part of this one: it came in a
// file from before remittances were stored.
func AdoptPayment(tx core.App, key, remittanceID string) (found AppliedPayment, err error) {
	list, err := queryAll[AppliedPayment](tx, "look for a payment", "SELECT TRUE AS found, remittance FROM payments WHERE source_key = {:key}", dbx.Params{"key": key})
	if err != nil || len(list) == 0 {
		return found, err
	}
	if found = list[0]; found.RemittanceID == "" && remittanceID != "" {
		found.RemittanceID = remittanceID
		err = update(tx, "adopt payment", Payments, dbx.Params{"remittance": remittanceID}, dbx.HashExp{"source_key": key})
	}
	return found, err
}
