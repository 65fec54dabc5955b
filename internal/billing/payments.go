package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Undone reports whether a state is that of an entry which counts no more: voided, or all of it paid back. The engine does not bill the same again by
// itself; a person may.
func Undone(state string) bool { return state == Voided || state == Refunded }

// PaymentDraft is a payment that a person records.
type PaymentDraft struct {
	Amount            Cents
	Date, Reference   string
	Payer             string // one of [PayerWords]
	OverpaymentReason string
}

// PayerWords are who may pay.
var PayerWords = []string{collections.PrimaryPayer, collections.SecondaryPayer, collections.PatientPays}

// Pay records a payment under its check or EFT number. Several add up. One for what was to be voided is due back.
// Source: docs/decisions/billing.md, "Payments and adjustments".
func (e *Engine) Pay(d PaymentDraft, by audit.Actor, now time.Time) Move {
	m := Move{
		Name: "pay", From: []string{Submitted, Appealed, Paid, VoidRequested, RefundDue}, event: audit.BillingPay,
		detail: d.Amount.String() + " " + d.Reference, next: afterPayment,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.PaidTotalCents()+int64(d.Amount) > entry.ChargeCents() && d.OverpaymentReason == "" {
			return fault.Field("overpayment_reason", "The payments come to more than the charge of "+Cents(entry.ChargeCents()).String()+": say why.")
		}
		if d.OverpaymentReason != "" {
			entry.Set(collections.EntryOverpaymentReason, d.OverpaymentReason)
		}
		return post(tx, entry, collections.Payment{
			Kind: collections.PaymentKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.ByHandSource,
			Adjustments: coveredShare(entry, int64(d.Amount), d.Payer), Reason: phi.Text(d.OverpaymentReason), CreatedBy: by.Email,
		}, now)
	}
	m.after = announceRefundDue(now)
	return m
}

// afterPayment is the state of an entry that something was paid for.
func afterPayment(entry *collections.BillingEntry) string {
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

// coveredShare takes from the patient's share what a payment pays of it: all that a patient or a secondary payer paid, and of anybody else's payment what
// goes beyond the part that is open.
func coveredShare(entry *collections.BillingEntry, amount int64, payer string) (taken []collections.Adjustment) {
	if payer == collections.PrimaryPayer {
		amount -= max(0, entry.OpenCents())
	}
	return covered(entry.Adjustments(), amount)
}

// covered takes from the patient's share among adjustments what was paid of it.
func covered(list []collections.Adjustment, amount int64) (taken []collections.Adjustment) {
	for _, a := range list {
		if part := min(amount, a.AmountCents); a.Group == PatientGroup && part > 0 {
			a.AmountCents = -part
			taken = append(taken, a)
			amount -= part
		}
	}
	return taken
}

// AdjustmentDraft is an adjustment that a person records, such as a write-off.
type AdjustmentDraft struct {
	Amount      Cents // less than nothing takes back
	Group, CARC string
	RARC        []string
	Reason      string
}

// Adjust takes something off what is open, or takes such an adjustment back.
func (e *Engine) Adjust(d AdjustmentDraft, by audit.Actor, now time.Time) Move {
	m := Move{
		Name: "adjust", From: []string{Paid, Denied}, event: audit.BillingAdjust, detail: d.Group + " " + d.Amount.String(),
		next: (*collections.BillingEntry).Status,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		a := collections.Adjustment{Group: d.Group, CARC: d.CARC, RARC: d.RARC, AmountCents: int64(d.Amount)}
		if left := max(0, entry.OpenCents()); a.AmountCents > left { // what is taken back is more to be paid
			return fault.Field("amount", "Only "+Cents(left).String()+" is open.")
		}
		if a.AmountCents < 0 && takenOff(entry.Adjustments(), a)+a.AmountCents < 0 {
			return fault.Field("amount", "Not so much was taken off under this group and these codes.")
		}
		return post(tx, entry, collections.Payment{
			Kind: collections.AdjustmentKind, Date: e.Day(now), Source: collections.ByHandSource, Adjustments: []collections.Adjustment{a},
			Reason: phi.Text(d.Reason), CreatedBy: by.Email,
		}, now)
	}
	return m
}

// RequestVoid undoes what was sent or paid: the payer is asked to void the claim, or is owed what it paid, within sixty days.
// Source: docs/decisions/billing.md, "Voids and refunds"; 42 CFR 401.305(b).
func (e *Engine) RequestVoid(reason string, by audit.Actor, now time.Time) Move {
	m := Move{
		Name: "request-void", From: []string{Submitted, Paid}, event: audit.BillingRequestVoid, detail: reason,
		set: map[string]any{collections.EntryVoidReason: reason, collections.EntryBatch: ""},
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.PaidTotalCents() > 0 {
			if entry.RepayBy() == "" {
				entry.Set(collections.EntryRepayBy, AddDays(e.Day(now), repayDays))
			}
			return nil
		}
		entry.Set(collections.EntryClaimFrequencyCode, "8") // X12 837P: void of a prior claim
		return lift(tx, entry, by, now)
	}
	m.next = func(entry *collections.BillingEntry) string {
		if entry.PaidTotalCents() > 0 {
			return RefundDue
		}
		return VoidRequested
	}
	m.after = announceRefundDue(now)
	return m
}

// announceRefundDue tells billing, once, that something must be paid back.
func announceRefundDue(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != RefundDue {
			return nil
		}
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.RefundIsDue, Severity: "warning", PatientID: entry.PatientID(), EntryID: entry.Id,
			Body: "Claim " + entry.ClaimID() + ": " + Cents(entry.PaidTotalCents()-entry.RefundedCents()).String() + " is to be paid back.",
			Key:  "refund-due:" + entry.Id,
		}, now)
	}
}

// RefundDraft is what a person records as paid back.
type RefundDraft struct {
	Amount          Cents
	Date, Reference string
	Payer           string // to whom a credit went, one of [PayerWords]; "" for whoever paid as much
}

// Refund records what was paid back. Several add up; an entry that is undone is refunded when all that was paid is back. Of a claim that stands only
// what was paid too much goes back.
func (e *Engine) Refund(d RefundDraft, by audit.Actor, now time.Time) Move {
	m := Move{
		Name: "refund", From: []string{RefundDue, Paid, Denied}, event: audit.BillingRefund, detail: d.Amount.String() + " " + d.Reference, next: afterRefund,
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if d.Amount <= 0 {
			return fault.Field("amount", "Must be more than nothing.")
		}
		if entry.Status() != RefundDue {
			return giveBack(tx, entry, d, by, now)
		}
		if due := entry.PaidTotalCents() - entry.RefundedCents(); int64(d.Amount) > due {
			return fault.Field("amount", "Only "+Cents(due).String()+" is due back.")
		}
		return post(tx, entry, collections.Payment{
			Kind: collections.RefundKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.ByHandSource,
			CreatedBy: by.Email,
		}, now)
	}
	m.after = freeWhenRefunded(now)
	return m
}

func afterRefund(entry *collections.BillingEntry) string {
	if entry.Status() != RefundDue { // what was too much is back, and the claim stands
		return entry.Status()
	}
	if entry.RefundedCents() >= entry.PaidTotalCents() {
		return Refunded
	}
	return RefundDue
}

// freeWhenRefunded lets the time of an entry be corrected again, as voiding does.
func freeWhenRefunded(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != Refunded {
			return nil
		}
		return collections.FreeTime(tx, entry.Id, now)
	}
}

// reopen takes the adjustments off a denied claim that is disputed or sent anew: all of its charge is open again.
func reopen(tx core.App, entry *collections.BillingEntry, to string, by audit.Actor, now time.Time) error {
	if entry.Status() != Denied || !slices.Contains([]string{Submitted, Appealed}, to) {
		return nil
	}
	return lift(tx, entry, by, now)
}
