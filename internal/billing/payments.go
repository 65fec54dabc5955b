package billing

import (
	"slices"
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
	IsConfirmed       bool // it is another payment than a similar one of an 835
}

// PayerKinds are the possible payers of a payment.
var PayerKinds = []string{collections.PrimaryPayer, collections.SecondaryPayer, collections.PatientPays}

// Pay records a payment under its check or EFT number; payments add up. A payment for a claim with
// a requested void must be refunded. A primary payer's payment for a denied claim requires an
// appeal or a resubmission. Source: docs/decisions/billing.md, "Payments and adjustments".
func (e *Engine) Pay(d PaymentDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "pay", From: []string{Submitted, Appealed, Denied, Paid, VoidRequested, RefundDue}, event: audit.BillingPay,
		detail: d.Amount.String() + " " + d.Reference,
		target: func(entry *collections.BillingEntry) string { return stateAfterPayment(entry, d.Payer) },
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() == Denied && d.Payer == collections.PrimaryPayer {
			return fault.State("invalid_transition", "The primary payer denied the claim: appeal or resubmit it before you record its payment.")
		}
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		if err := rejectPosted(entry.ChargeCents(), rows, d); err != nil {
			return err
		}
		if d.OverpaymentReason == "" {
			if err := rejectOverpayment(entry, d); err != nil {
				return err
			}
		}
		if d.OverpaymentReason != "" {
			entry.Set(collections.EntryOverpaymentReason, d.OverpaymentReason)
		}
		if d.Payer == collections.SecondaryPayer {
			if err := setSecondary(tx, entry, SecondaryPaid); err != nil {
				return err
			}
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.PaymentKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.SourceByHand,
			Adjustments: amountsWith(entry, rows).adjustmentsPaid(int64(d.Amount), d.Payer), Reason: phi.Text(d.OverpaymentReason), CreatedBy: by.Email,
		}, now)
	}
	m.after = announceRefundDue(now)
	return m
}

// stateAfterPayment returns the state of an entry after a payment. Until the primary payer decides,
// a payment by another payer leaves the state as it is. A patient's payment leaves a denied claim
// denied.
func stateAfterPayment(entry *collections.BillingEntry, payer string) string {
	switch state := entry.Status(); state {
	case Submitted, Appealed:
		if payer != collections.PrimaryPayer && entry.PayerID() != "" {
			return state
		}
	case Denied:
		if payer == collections.PatientPays {
			return state
		}
	case RefundDue:
		return RefundDue
	case VoidRequested:
		if owesRefund(entry) {
			return RefundDue
		}
		return VoidRequested
	}
	return Paid
}

// adjustmentsPaid returns the adjustments that reduce the patient's share by a payment: all of a payment by the patient or a secondary payer, and the
// part of a primary payer's payment beyond the open amount. A secondary payer's payment also reduces what the first payer denied.
func (a decidedAmounts) adjustmentsPaid(amount int64, payer string) (taken []collections.Adjustment) {
	open := max(0, a.charge-a.paidTotal-sumOf(a.adjustments))
	if payer == collections.PrimaryPayer {
		amount -= open
	}
	taken = reducePatientShare(a.adjustments, amount)
	if a.status == Denied && payer == collections.SecondaryPayer {
		denied := slices.DeleteFunc(slices.Clone(a.adjustments), func(a collections.Adjustment) bool { return a.Group == GroupPatient })
		taken = append(taken, negateAdjustments(firstOf(denied, amount+sumOf(taken)-open))...)
	}
	return append(taken, a.yieldWriteOffs(taken, amount, payer)...)
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

// reverseAdjustments reverses all adjustments of an entry, manual ones too, so that its charge is
// undecided again. source is the cause: a user, or a later decision of the payer in an 835.
func reverseAdjustments(tx core.App, entry *collections.BillingEntry, source string, by audit.Actor, now time.Time) error {
	list := entry.Adjustments()
	if len(list) == 0 {
		return nil
	}
	return postPayment(tx, entry, collections.Payment{
		Kind: collections.ReopeningKind, Source: source, Adjustments: negateAdjustments(list), CreatedBy: by.Email,
	}, now)
}

// claimAmounts are the amounts posted against a charge.
type claimAmounts struct {
	paid, adjusted, share, refunded int64
	secondary                       string // state of the claim to the second payer
}

func amountsOf(entry *collections.BillingEntry) claimAmounts {
	return claimAmounts{entry.PaidTotalCents(), entry.AdjustedCents(), entry.PatientShareCents(), entry.RefundedCents(), entry.SecondaryStatus()}
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
	if a.secondary != now.secondary {
		changes["secondary"] = audit.Change{Old: a.secondary, New: now.secondary}
	}
}

// RefundDraft is a refund that a user records.
type RefundDraft struct {
	Amount          Cents
	Date, Reference string
	Payer           string // to which a credit was returned, one of [PayerKinds]; "" for any that paid as much
}

// Refund records a refund. Refunds add up; an undone entry is refunded once all of its payments are returned. For a valid claim only a credit
// balance is returned.
func (e *Engine) Refund(d RefundDraft, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "refund", From: []string{RefundDue, Paid, Denied}, event: audit.BillingRefund, detail: d.Amount.String() + " " + d.Reference,
	}
	isUndecided := false
	m.target = func(entry *collections.BillingEntry) string { return stateAfterRefund(entry, isUndecided) }
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if d.Amount <= 0 {
			return fault.Field("amount", "Must be more than zero.")
		}
		if entry.Status() != RefundDue {
			return refundCredit(tx, entry, d, by, now)
		}
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		isUndecided = entry.PayerID() != "" && !entry.SubmittedAt().IsZero() && !standingOf(entry.ChargeCents(), rows).primaryDecided
		if due := entry.PaidTotalCents() - entry.RefundedCents(); int64(d.Amount) > due {
			return fault.Field("amount", "Only "+Cents(due).String()+" is due back.")
		}
		return postPayment(tx, entry, collections.Payment{
			Kind: collections.RefundKind, AmountCents: int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: d.Payer, Source: collections.SourceByHand,
			CreatedBy: by.Email,
		}, now)
	}
	m.after = releaseTimeWhenRefunded(now)
	return m
}

// stateAfterRefund returns the state of an entry after a refund. A claim that its payer has not decided waits for the end of its void.
func stateAfterRefund(entry *collections.BillingEntry, isUndecided bool) string {
	switch {
	case entry.Status() != RefundDue: // a credit was returned; the claim stays valid
		return entry.Status()
	case owesRefund(entry):
		return RefundDue
	case isUndecided:
		return VoidRequested
	}
	return Refunded
}

// releaseTimeWhenRefunded makes the time of a refunded entry editable again, as voiding does.
func releaseTimeWhenRefunded(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != Refunded {
			return nil
		}
		return collections.ReleaseBilledTime(tx, entry.Id, now)
	}
}

// CreditBalance returns how much was paid for a decided claim beyond what is left of its charge. The amount belongs to the payer of it, and the
// claim itself stays valid. Source: docs/decisions/billing.md, "Credits".
func CreditBalance(entry *collections.BillingEntry) Cents {
	if !slices.Contains([]string{Paid, Denied}, entry.Status()) {
		return 0
	}
	return Cents(max(0, min(-entry.OpenCents(), entry.PaidTotalCents())))
}

// refundCredit records that a credit balance, or part of it, was returned. The amount was never earned: it reduces the payments, as a payer's
// reversal does, and nothing else of the claim changes.
func refundCredit(tx core.App, entry *collections.BillingEntry, d RefundDraft, by audit.Actor, now time.Time) error {
	switch credit := CreditBalance(entry); {
	case credit == 0:
		return fault.State("invalid_transition", "There is no credit balance: undo the claim to refund its payments.")
	case d.Amount > credit:
		return fault.Field("amount", "Only "+credit.String()+" is the credit balance.")
	}
	list, err := collections.PaymentsOf(tx, entry.Id)
	if err != nil {
		return err
	}
	payer, ok := payerToRefund(list, d.Payer, int64(d.Amount))
	if !ok {
		return fault.Field("payer", "The refund exceeds what this payer paid.")
	}
	return postPayment(tx, entry, collections.Payment{
		Kind: collections.ReversalKind, AmountCents: -int64(d.Amount), Date: d.Date, Reference: d.Reference, Payer: payer, Source: collections.SourceByHand,
		CreatedBy: by.Email,
	}, now)
}

// payerToRefund returns a payer with payments that cover an amount: the named payer, else the first such payer of [PayerKinds].
func payerToRefund(list []collections.Payment, named string, amount int64) (payer string, ok bool) {
	sums := map[string]int64{}
	for _, p := range list {
		if p.Kind == collections.PaymentKind || p.Kind == collections.ReversalKind {
			sums[p.Payer] += p.AmountCents
		}
	}
	for _, payer := range PayerKinds {
		if sums[payer] >= amount && (named == "" || named == payer) {
			return payer, true
		}
	}
	return "", false
}
