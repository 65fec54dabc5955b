package billing

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// rejectManualDuplicate rejects a payment that a user has probably recorded: the same payer's, of the same amount or under the same number, or one with
// which the recorded ones exceed the charge. A person decides. Source: docs/decisions/billing.md, "Payments recorded twice".
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
	if slices.ContainsFunc(byHandOf(rows, r.payerKind()), func(p collections.Payment) bool {
		return exceeds || p.AmountCents == int64(r.Paid) || isSameNumber(p.Reference, r.Reference)
	}) {
		return fault.State("already_recorded", "The payment was recorded manually.")
	}
	return nil
}

// rejectPosted rejects a payment by hand that a remittance of the same payer and number has posted.
func rejectPosted(rows []collections.Payment, d PaymentDraft) error {
	left := 0 // of such payments, those that were not reversed
	for _, p := range rows {
		if p.Source != collections.Source835 || p.Payer != d.Payer {
			continue
		}
		switch {
		case p.Kind == collections.PaymentKind && p.AmountCents == int64(d.Amount) && isSameNumber(p.Reference, d.Reference):
			left++
		case p.Kind == collections.ReversalKind && p.AmountCents == -int64(d.Amount):
			left--
		}
	}
	if left > 0 {
		return fault.Field("reference", "The remittance of this number has posted the payment already.")
	}
	return nil
}

// byHandOf returns the payments of a payer that users recorded, unless all of their money went back.
func byHandOf(rows []collections.Payment, payer string) (list []collections.Payment) {
	left := int64(0)
	for _, p := range rows {
		if p.Source != collections.SourceByHand || p.Payer != payer {
			continue
		}
		switch p.Kind {
		case collections.PaymentKind:
			list = append(list, p)
			left += p.AmountCents
		case collections.ReversalKind:
			left += p.AmountCents
		}
	}
	if left <= 0 {
		return nil
	}
	return list
}

// leastDigits is how many digits two numbers must share to be the same with other letters around them.
const leastDigits = 5

// isSameNumber reports whether two numbers of a check or EFT are the same as people type them: in any case, with other punctuation, leading zeros or
// words such as CHECK around them.
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
