package billing

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// rejectManualDuplicate rejects a remitted payment that a user has probably recorded: same payer
// with the same amount or number, or together above the charge. A person resolves it. Source:
// docs/decisions/billing.md, "Payments recorded twice".
func rejectManualDuplicate(tx core.App, entryID string, r Remittance) error {
	if r.Kind != RemittedPayment || r.Paid == 0 {
		return nil
	}
	rows, err := collections.PaymentsOf(tx, entryID)
	if err != nil {
		return err
	}
	entry, err := collections.FindBillingEntry(tx, entryID)
	if err != nil {
		return fault.OrMissing(err)
	}
	exceeds := entry.PaidTotalCents()+int64(r.Paid) > entry.ChargeCents()
	standing, _ := replayStanding(entry.ChargeCents(), rows)
	if slices.ContainsFunc(leftOf(standing, collections.SourceByHand, r.payerKind()), func(p collections.Payment) bool {
		return exceeds || p.AmountCents == int64(r.Paid) || isSameNumber(p.Reference, r.Reference)
	}) {
		return fault.State("already_recorded", "The payment was recorded manually.")
	}
	return nil
}

// rejectPosted rejects a manual payment that a remittance of the same payer has posted: with the
// same amount and number, or with the same amount near its date unless the user confirms another
// payment. Source: docs/decisions/billing.md, "Payments recorded twice".
func rejectPosted(charge int64, rows []collections.Payment, d PaymentDraft) error {
	standing, _ := replayStanding(charge, rows)
	for _, p := range leftOf(standing, collections.Source835, d.Payer) {
		switch days := DaysBetween(p.Date, d.Date); {
		case p.AmountCents != int64(d.Amount):
		case isSameNumber(p.Reference, d.Reference):
			return fault.Field("reference", "The remittance of this number has posted the payment already.")
		case !d.IsConfirmed && -nearDays <= days && days <= nearDays:
			return fault.State("duplicate_payment", "The remittance "+p.Reference+" of "+p.Date+" has posted the same amount of this payer. Send confirm true if this is another payment.")
		}
	}
	return nil
}

// nearDays is the longest time between a payment and its manual record, in days.
const nearDays = 30

// rejectOverpayment rejects payments above the charge, and a first payer's beyond what its adjustments leave to it and the patient: probably it
// replaces some of these, and its money is no credit.
func rejectOverpayment(entry *collections.BillingEntry, d PaymentDraft) error {
	charge := Cents(entry.ChargeCents()).String()
	switch beyond := int64(d.Amount) - max(0, entry.OpenCents()) - entry.PatientShareCents(); {
	case entry.PaidTotalCents()+int64(d.Amount) > entry.ChargeCents():
		return fault.Field("overpayment_reason", "The payments come to more than the charge of "+charge+": give a reason.")
	case d.Payer == collections.PrimaryPayer && beyond > 0:
		return fault.Field("overpayment_reason", "With the adjustments the payments come to "+Cents(beyond).String()+" more than the charge of "+charge+
			": reverse adjustments that this payment replaces, or give a reason.")
	}
	return nil
}

// leftOf returns a payer's payments from a source that still count: without those refunded or
// reversed by the same amount, and none if all of the money was returned.
func leftOf(standing []collections.Payment, source, payer string) (list []collections.Payment) {
	left := int64(0)
	for _, p := range standing {
		back := p.AmountCents
		switch {
		case p.Kind == collections.PaymentKind && p.Payer == payer && p.Source == source:
			list = append(list, p)
			left += p.AmountCents
			continue
		case p.Kind == collections.ReversalKind && p.Payer == payer:
			back = -back
		case p.Kind == collections.RefundKind && (p.Payer == payer || p.Payer == ""):
		default:
			continue
		}
		at := slices.IndexFunc(list, func(x collections.Payment) bool { return x.AmountCents == back })
		if at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
		if at >= 0 || p.Source == source {
			left -= back
		}
	}
	if left <= 0 {
		return nil
	}
	return list
}

// leastDigits is how many digits two numbers must share to be the same with other letters around them.
const leastDigits = 5

// isSameNumber reports whether two check or EFT numbers are equal apart from case, punctuation,
// leading zeros and words such as CHECK.
func isSameNumber(a, b string) bool {
	if a = bareNumber(a); a != "" && a == bareNumber(b) {
		return true
	}
	one, other := strings.TrimLeft(validate.Digits(a), "0"), strings.TrimLeft(validate.Digits(b), "0")
	return len(one) >= leastDigits && one == other
}

func bareNumber(text string) string {
	return strings.TrimLeft(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(text)), "0")
}
