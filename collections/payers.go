package collections

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Payer is an insurer that receives claims.
type Payer struct {
	ID     string `db:"id"`
	Name   string `db:"name"`
	Code   string `db:"payer_code"`
	Active bool   `db:"is_active"`

	EDI     string       `db:"edi_payer_id"`      // the clearinghouse's id of the payer; "" if unknown
	Filing  string       `db:"claim_filing_code"` // X12 SBR09
	Address PayerAddress `db:"address"`

	CorrectedClaims      string         `db:"corrected_claims"`  // "" for the default of the filing code
	MinutesRule          string         `db:"minutes_rule"`      // "" for the practice's
	DeviceDays           int            `db:"device_days"`       // 0 for the rule of the date
	FilingLimitDays      int            `db:"filing_limit_days"` // after the service; 0 for the default of the filing code
	AppealLimitDays      int            `db:"appeal_limit_days"` // after the denial; 0 for the default of the filing code
	ReceiverIDs          PayerTexts     `db:"receiver_ids"`
	SendOrderingProvider bool           `db:"send_ordering_provider"`
	Modifiers            PayerModifiers `db:"modifiers"`
}

// How a payer takes corrected claims.
const (
	CorrectedByReplacement = "replacement"
	CorrectedByNewClaim    = "new_claim"
)

// MedicarePartB is the filing code of Medicare Part B. Source: ASC X12N 005010X222A1 (837P), SBR09.
const MedicarePartB = "MB"

// TakesReplacements reports whether the payer takes replacements and voids of claims. Medicare Part B takes none unless set otherwise. Source:
// docs/decisions/claims.md, "Corrected claims".
func (p Payer) TakesReplacements() bool {
	return p.CorrectedClaims == CorrectedByReplacement || p.CorrectedClaims == "" && p.Filing != MedicarePartB
}

// IsMedicare reports whether the payer is Medicare, Part A or B.
func (p Payer) IsMedicare() bool { return p.Filing == MedicarePartB || p.Filing == "MA" }

// ModifiersOf returns the modifiers that the payer requires on a code.
func (p Payer) ModifiersOf(code string) []string {
	for _, m := range p.Modifiers {
		if m.CPTCode == code {
			return m.Modifiers
		}
	}
	return nil
}

// PayerTexts is a list of texts of a payer.
type PayerTexts []string

// Scan implements sql.Scanner. Damaged JSON gives an empty list.
func (t *PayerTexts) Scan(stored any) error { scanJSON(stored, t); return nil }

// PayerModifiers are the modifiers of codes.
type PayerModifiers []CodeModifiers

// CodeModifiers are the modifiers that a payer requires on a code.
type CodeModifiers struct {
	CPTCode   string   `json:"cpt_code"`
	Modifiers []string `json:"modifiers"`
}

// Scan implements sql.Scanner. Damaged JSON gives an empty list.
func (m *PayerModifiers) Scan(stored any) error { scanJSON(stored, m); return nil }

// scanJSON decodes a stored JSON value; damaged JSON leaves the zero value.
func scanJSON[T any](stored any, to *T) {
	var zero T
	*to = zero
	text, _ := stored.(string)
	if raw, ok := stored.([]byte); ok {
		text = string(raw)
	}
	_ = json.Unmarshal([]byte(text), to)
}

// PayerAddress is a payer's address for claims; the zero value means unknown.
type PayerAddress struct {
	Line1      string `json:"line1,omitempty"`
	Line2      string `json:"line2,omitempty"`
	City       string `json:"city,omitempty"`
	State      string `json:"state,omitempty"`
	PostalCode string `json:"postal_code,omitempty"`
}

// Scan implements sql.Scanner. Damaged JSON gives the zero value.
func (a *PayerAddress) Scan(stored any) error { scanJSON(stored, a); return nil }

var payerColumns = []string{
	"id", "name", "payer_code", "is_active", "edi_payer_id", "claim_filing_code", "address", "corrected_claims", "minutes_rule", "device_days", "receiver_ids",
	"send_ordering_provider", "modifiers", "filing_limit_days", "appeal_limit_days",
}

func (p Payer) Number() int64 { return Number(p.ID) } // public id

// ListPayers lists all payers by name.
func ListPayers(app core.App) (list []Payer, err error) {
	err = app.DB().Select(payerColumns...).From(Payers).OrderBy("name", "id").All(&list)
	return list, wrap(err, "list payers")
}

// FindPayer finds a payer by number.
func FindPayer(app core.App, number int64) (p Payer, err error) {
	err = app.DB().Select(payerColumns...).From(Payers).Where(dbx.HashExp{"id": NumberID(number)}).One(&p)
	return p, wrap(err, "find payer")
}

// AddPayer stores a payer with the next number; taken if another has the code.
func AddPayer(tx core.App, p Payer, now time.Time) (added Payer, taken bool, err error) {
	if taken, err = payerTaken(tx, p); err != nil || taken {
		return p, taken, err
	}
	values := p.columns()
	values["created_at"] = FormatInstant(now)
	record, err := store(tx, "store payer", Payers, values)
	if err != nil {
		return p, false, err
	}
	p.ID = record.Id
	return p, false, nil
}

// ChangePayer stores a changed payer; taken if another has the code.
func ChangePayer(tx core.App, p Payer) (taken bool, err error) {
	if taken, err = payerTaken(tx, p); err != nil || taken {
		return taken, err
	}
	record, err := tx.FindRecordById(Payers, p.ID)
	if err != nil {
		return false, wrap(err, "find payer")
	}
	record.Load(p.columns())
	return false, wrap(tx.Save(record), "store payer")
}

func payerTaken(app core.App, p Payer) (bool, error) {
	return queryValue[bool](app, "look for a payer's code", "SELECT EXISTS (SELECT 1 FROM payers WHERE payer_code = {:code} COLLATE NOCASE AND id != {:id})",
		dbx.Params{"code": p.Code, "id": p.ID})
}

func (p Payer) columns() map[string]any {
	columns := map[string]any{
		"name": p.Name, "payer_code": p.Code, "is_active": p.Active, "edi_payer_id": p.EDI, "claim_filing_code": p.Filing, "address": nil,
		"corrected_claims": p.CorrectedClaims, "minutes_rule": p.MinutesRule, "device_days": p.DeviceDays, "receiver_ids": p.ReceiverIDs,
		"send_ordering_provider": p.SendOrderingProvider, "modifiers": p.Modifiers,
		"filing_limit_days": p.FilingLimitDays, "appeal_limit_days": p.AppealLimitDays,
	}
	if p.Address != (PayerAddress{}) {
		columns["address"] = p.Address
	}
	return columns
}

// MinutesRuleOfPayer returns a payer's own rule of minutes; "" for the practice's, or without a payer.
func MinutesRuleOfPayer(app core.App, payerID string) (string, error) {
	return queryValue[string](app, "find a payer's rule of minutes", "SELECT COALESCE((SELECT minutes_rule FROM payers WHERE id = {:payer}), '')",
		dbx.Params{"payer": payerID})
}

// MinutesRuleOfPatient returns the rule of minutes of a patient's payer; "" for the practice's.
func MinutesRuleOfPatient(app core.App, patientID string) (string, error) {
	return queryValue[string](app, "find the rule of minutes of a patient's payer", `SELECT COALESCE((SELECT y.minutes_rule FROM patients p
		CROSS JOIN payers y ON y.id = printf('%015d', p.insurance_payer) WHERE p.id = {:patient}), '')`, dbx.Params{"patient": patientID})
}

// PayerNameOfEntries returns the payer name stored on the payer's entries, or "".
func PayerNameOfEntries(app core.App, payerID string) (string, error) {
	return queryValue[string](app, "find the name of a payer", "SELECT COALESCE((SELECT payer_name FROM billing_entries WHERE payer = {:payer} LIMIT 1), '')",
		dbx.Params{"payer": payerID})
}

// PayerRate is a payer's rate for a code from a day on.
type PayerRate struct {
	PayerID       string `db:"payer"`
	PayerName     string `db:"payer_name"`
	CPTCode       string `db:"cpt_code"`
	RateCents     int64  `db:"rate_cents"`
	EffectiveDate string `db:"effective_date"`
}

// RateOf returns code, cents and first day of a record of the payer rates, unchecked.
func RateOf(record *core.Record) (code string, cents float64, effective string) {
	return record.GetString("cpt_code"), record.GetFloat("rate_cents"), record.GetString("effective_date")
}

// ListPayerRates lists all rates by payer, code and day, latest first.
func ListPayerRates(app core.App) (list []PayerRate, err error) {
	err = app.DB().NewQuery(`SELECT r.payer, COALESCE(p.name, '') AS payer_name, r.cpt_code, r.rate_cents, r.effective_date
		FROM payer_rates r LEFT JOIN payers p ON p.id = r.payer ORDER BY payer_name, r.payer, r.cpt_code, r.effective_date DESC`).All(&list)
	return list, wrap(err, "list payer rates")
}

// AddPayerRate stores a rate; taken if the payer has one for the code and day.
func AddPayerRate(tx core.App, r PayerRate, now time.Time) (taken bool, err error) {
	taken, err = queryValue[bool](tx, "look for a rate",
		"SELECT EXISTS (SELECT 1 FROM payer_rates WHERE payer = {:payer} AND cpt_code = {:code} AND effective_date = {:day})",
		dbx.Params{"payer": r.PayerID, "code": r.CPTCode, "day": r.EffectiveDate})
	if err != nil || taken {
		return taken, err
	}
	_, err = store(tx, "store payer rate", PayerRates, map[string]any{
		"payer": r.PayerID, "cpt_code": r.CPTCode, "rate_cents": r.RateCents, "effective_date": r.EffectiveDate, "created_at": FormatInstant(now),
	})
	return false, err
}
