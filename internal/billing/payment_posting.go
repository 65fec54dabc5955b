package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// The adjustment group codes. Source: ASC X12N 005010X221A1 (835), CAS01.
const (
	GroupContractual    = "CO"
	GroupCorrection     = "CR"
	GroupOther          = "OA"
	GroupPayerInitiated = "PI"
	GroupPatient        = "PR"
)

// AdjustmentGroups are the groups that a user may record.
var AdjustmentGroups = []string{GroupContractual, GroupOther, GroupPayerInitiated, GroupPatient}

// postPayment stores a payment and updates the totals of its entry.
func postPayment(tx core.App, entry *collections.BillingEntry, p collections.Payment, now time.Time) error {
	p.EntryID = entry.Id
	switch p.Kind {
	case collections.RefundKind:
		entry.Set(collections.EntryRefundedCents, entry.RefundedCents()+p.AmountCents)
		entry.Set(collections.EntryRefundDate, p.Date)
		entry.Set(collections.EntryRefundReference, p.Reference)
	case collections.PaymentKind, collections.ReversalKind:
		addToPaid(entry, p)
	}
	if len(p.Adjustments) > 0 {
		setAdjustments(entry, mergeAdjustments(entry.Adjustments(), p.Adjustments))
	}
	return collections.AddPayment(tx, p, now)
}

// addToPaid adds a payment to the paid total. Date and reference are those of the last payment, and are cleared when nothing is left.
func addToPaid(entry *collections.BillingEntry, p collections.Payment) {
	total := entry.PaidTotalCents() + p.AmountCents
	entry.Set(collections.EntryPaidTotalCents, total)
	entry.Set(collections.EntryPaymentCents, float64(total))
	switch {
	case p.Kind == collections.PaymentKind:
		entry.Set(collections.EntryPaymentDate, p.Date)
		entry.Set(collections.EntryPaymentReference, p.Reference)
	case total == 0:
		entry.Set(collections.EntryPaymentCents, nil)
		entry.Set(collections.EntryPaymentDate, "")
		entry.Set(collections.EntryPaymentReference, "")
		entry.Set(collections.EntryOverpaymentReason, "")
	}
}

func setAdjustments(entry *collections.BillingEntry, list []collections.Adjustment) {
	adjusted, share := int64(0), int64(0)
	for _, a := range list {
		if a.Group == GroupPatient {
			share += a.AmountCents
		} else {
			adjusted += a.AmountCents
		}
	}
	entry.Set(collections.EntryAdjustments, list)
	entry.Set(collections.EntryAdjustedCents, adjusted)
	entry.Set(collections.EntryPatientShareCents, share)
}

// mergeAdjustments adds adjustments to a list: one for each group and code, none with a zero amount.
func mergeAdjustments(list, more []collections.Adjustment) []collections.Adjustment {
	list = slices.Clone(list)
	for _, a := range more {
		if i := slices.IndexFunc(list, func(b collections.Adjustment) bool { return sameReason(a, b) }); i >= 0 {
			list[i].AmountCents += a.AmountCents
		} else {
			list = append(list, a)
		}
	}
	list = slices.DeleteFunc(list, func(a collections.Adjustment) bool { return a.AmountCents == 0 })
	for i := range list {
		list[i].RARC = append([]string{}, list[i].RARC...)
	}
	return append([]collections.Adjustment{}, list...)
}

func sameReason(a, b collections.Adjustment) bool {
	return a.Group == b.Group && a.CARC == b.CARC && slices.Equal(a.RARC, b.RARC)
}

// adjustedAmount returns the amount adjusted for a reason.
func adjustedAmount(list []collections.Adjustment, reason collections.Adjustment) int64 {
	for _, a := range list {
		if sameReason(a, reason) {
			return a.AmountCents
		}
	}
	return 0
}

// negateAdjustments returns the adjustments that reverse a list.
func negateAdjustments(list []collections.Adjustment) []collections.Adjustment {
	list = slices.Clone(list)
	for i := range list {
		list[i].AmountCents = -list[i].AmountCents
	}
	return list
}

// reverseAdjustments reverses all adjustments of an entry, manual ones too: its charge is undecided again.
func reverseAdjustments(tx core.App, entry *collections.BillingEntry, by audit.Actor, now time.Time) error {
	list := entry.Adjustments()
	if len(list) == 0 {
		return nil
	}
	return postPayment(tx, entry, collections.Payment{
		Kind: collections.ReopeningKind, Source: collections.SourceByHand, Adjustments: negateAdjustments(list), CreatedBy: by.Email,
	}, now)
}

// claimAmounts are the amounts posted against a charge.
type claimAmounts struct{ paid, adjusted, share, refunded int64 }

func amountsOf(entry *collections.BillingEntry) claimAmounts {
	return claimAmounts{entry.PaidTotalCents(), entry.AdjustedCents(), entry.PatientShareCents(), entry.RefundedCents()}
}

// addChanges adds the changed amounts to an audit entry.
func (a claimAmounts) addChanges(changes audit.Changes, now claimAmounts) {
	for _, c := range []struct {
		name     string
		old, new int64
	}{
		{"paid_total", a.paid, now.paid},
		{"adjusted", a.adjusted, now.adjusted},
		{"patient_responsibility", a.share, now.share},
		{"refunded", a.refunded, now.refunded},
	} {
		if c.old != c.new {
			changes[c.name] = audit.Change{Old: Cents(c.old).String(), New: Cents(c.new).String()}
		}
	}
}
