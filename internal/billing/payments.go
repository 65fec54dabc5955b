package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// PaymentDraft is a payment that a user records.
type PaymentDraft struct {
	Amount            Cents
	Date, Reference   string
	Payer             string // one of [PayerKinds]
	OverpaymentReason string
}

// PayerKinds are the possible payers of a payment.
var PayerKinds = []string{collections.PrimaryPayer, collections.SecondaryPayer, collections.PatientPays}

// Pay records a payment under its check or EFT number. Payments add up. A payment for a claim with a requested void must be refunded. Source:
// docs/decisions/billing.md, "Payments and adjustments".
func (e *Engine) Pay(d PaymentDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "pay", From: []string{Submitted, Appealed, Paid, VoidRequested, RefundDue}, event: audit.BillingPay,
		detail: d.Amount.String() + " " + d.Reference, target: stateAfterPayment,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.PaidTotalCents()+int64(d.Amount) > entry.ChargeCents() && d.OverpaymentReason == "" {
			return fault.Field("overpayment_reason", "The payments come to more than the charge of "+Cents(entry.ChargeCents()).String()+": give a reason.")
		}
		if d.OverpaymentReason != "" {
			entry.Set(collections.EntryOverpaymentReason, d.OverpaymentReason)
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.PaymentKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.SourceByHand,
			Adjustments: paidPatientShare(entry, int64(d.Amount), d.Payer), Reason: phi.Text(d.OverpaymentReason), CreatedBy: by.Email,
		}, now)
	}
	m.after = announceRefundDue(now)
	return m
}

// stateAfterPayment returns the state of an entry after a payment.
func stateAfterPayment(entry *collections.BillingEntry) string {
	switch entry.Status() {
	case RefundDue:
		return RefundDue
	case VoidRequested:
		if entry.PaidTotalCents() > 0 {
			return RefundDue
		}
		return VoidRequested
	}
	return Paid
}

// paidPatientShare returns the adjustments that reduce the patient's share by a payment: all of a payment by the patient or a secondary payer,
// and the part of a primary payer's payment beyond the open amount.
func paidPatientShare(entry *collections.BillingEntry, amount int64, payer string) (taken []collections.Adjustment) {
	if payer == collections.PrimaryPayer {
		amount -= max(0, entry.OpenCents())
	}
	return reducePatientShare(entry.Adjustments(), amount)
}

// reducePatientShare returns adjustments that reduce the patient's share by an amount paid.
func reducePatientShare(list []collections.Adjustment, amount int64) (taken []collections.Adjustment) {
	for _, a := range list {
		if part := min(amount, a.AmountCents); a.Group == GroupPatient && part > 0 {
			a.AmountCents = -part
			taken = append(taken, a)
			amount -= part
		}
	}
	return taken
}

// AdjustmentDraft is an adjustment that a user records, such as a write-off.
type AdjustmentDraft struct {
	Amount      Cents // negative to reverse
	Group, CARC string
	RARC        []string
	Reason      string
}

// Adjust reduces the open amount, or reverses such an adjustment.
func (e *Engine) Adjust(d AdjustmentDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "adjust", From: []string{Paid, Denied}, event: audit.BillingAdjust, detail: d.Group + " " + d.Amount.String(),
		target: (*collections.BillingEntry).Status,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		a := collections.Adjustment{Group: d.Group, CARC: d.CARC, RARC: d.RARC, AmountCents: int64(d.Amount)}
		if left := max(0, entry.OpenCents()); a.AmountCents > left { // a reversal increases the open amount
			return fault.Field("amount", "Only "+Cents(left).String()+" is open.")
		}
		if a.AmountCents < 0 && adjustedAmount(entry.Adjustments(), a)+a.AmountCents < 0 {
			return fault.Field("amount", "The reversal exceeds the adjustments with this group and these codes.")
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.AdjustmentKind, Date: e.Day(now), Source: collections.SourceByHand, Adjustments: []collections.Adjustment{a},
			Reason: phi.Text(d.Reason), CreatedBy: by.Email,
		}, now)
	}
	return m
}
