package billing

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// States of the claim to the second payer. Source: docs/decisions/claims.md, "Secondary claims".
const (
	SecondaryDue       = "due"
	SecondarySubmitted = "submitted"
	SecondaryPaid      = "paid"
	SecondaryDenied    = "denied"
)

// secondaryStatuses are the CLP02 codes of a payer that decides after another: processed as secondary or tertiary, and the same and forwarded. Source:
// ASC X12N 005010X221A1 (835), CLP02.
var secondaryStatuses = []string{"2", "3", "20", "21"}

// The first payer's answer states with a status or a remark that it forwarded the claim to the second payer. Source: ASC X12N 005010X221A1 (835), CLP02
// 19; X12 code source 411: MA07 and MA18, forwarded to Medicaid and to the supplemental insurer; N89, to several payers.
const forwardedStatus = "19"

var forwardedRemarks = []string{"MA07", "MA18", "N89"}

// notCoveredReasons are denials of a service that the payer's plan does not cover, or no longer, which another plan may. Source: X12 code source 139.
var notCoveredReasons = []string{"35", "49", "96", "119", "149", "167", "204"}

// shareReasons are shares of a covered service; with any other the payer left all to the patient. Source: X12 code source 139: deductible, coinsurance,
// copayment, blood deductible.
var shareReasons = []string{"1", "2", "3", "66"}

// IsSecondaryAnswer reports whether a decision is the second payer's: it is about the claim to the second payer, states that it came after another, or
// is of another payer than the one that decided a claim which was forwarded.
func (e *Engine) IsSecondaryAnswer(tx core.App, entry *collections.BillingEntry, payer, status string, onSecondClaim bool) (bool, error) {
	if onSecondClaim || slices.Contains(secondaryStatuses, status) {
		return true, nil
	}
	if state := entry.SecondaryStatus(); state == "" || state == SecondaryDue {
		return false, nil
	}
	rows, err := collections.PaymentsOf(tx, entry.Id)
	isDecided, isFirst := false, false
	for _, p := range rows {
		if p.Source == collections.Source835 && p.Payer == collections.PrimaryPayer {
			isDecided, isFirst = true, isFirst || strings.HasPrefix(p.Key, RemittanceKey(payer))
		}
	}
	return isDecided && !isFirst, err
}

// isForwarded reports whether the payer forwarded the claim to the second payer.
func (r Remittance) isForwarded() bool {
	return !r.Secondary && r.Kind != RemittedReversal && (r.Status == forwardedStatus || slices.ContainsFunc(forwardedRemarks, func(remark string) bool {
		return slices.Contains(r.Remarks, remark) || slices.ContainsFunc(r.Adjustments, func(a collections.Adjustment) bool { return slices.Contains(a.RARC, remark) })
	}))
}

// noteSecondary stores what a remittance states about the claim to the second payer.
func (r Remittance) noteSecondary(tx core.App, entry *collections.BillingEntry) error {
	switch {
	case r.Secondary && r.Kind == RemittedReversal:
		return setSecondary(tx, entry, SecondarySubmitted)
	case r.Secondary && entry.SecondaryStatus() == SecondaryPaid: // a later answer, such as to a copy of the claim, takes no payment back
		return nil
	case r.Secondary && (r.Kind == RemittedDenial || r.Paid == 0 && slices.ContainsFunc(patientShare(r.Adjustments), func(a collections.Adjustment) bool {
		return a.AmountCents > 0 && !slices.Contains(shareReasons, a.CARC)
	})):
		return setSecondary(tx, entry, SecondaryDenied)
	case r.Secondary:
		return setSecondary(tx, entry, SecondaryPaid)
	case r.isForwarded() && (entry.SecondaryStatus() == "" || entry.SecondaryStatus() == SecondaryDue):
		return setSecondary(tx, entry, SecondarySubmitted)
	case r.isForwarded() && entry.SecondaryStatus() != SecondarySubmitted:
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err == nil && leavesMore(entry, rows) {
			err = setSecondary(tx, entry, SecondarySubmitted)
		}
		return err
	}
	return nil
}

// setSecondary sets the state of the claim to the second payer, which is the one on record when there was no such claim before.
func setSecondary(tx core.App, entry *collections.BillingEntry, state string) error {
	if entry.SecondaryPayerID() == "" {
		payer, err := secondaryPayerID(tx, entry)
		if err != nil {
			return err
		}
		entry.Set(collections.EntrySecondaryPayer, payer)
	}
	setSecondaryState(entry, state)
	return nil
}

func setSecondaryState(entry *collections.BillingEntry, state string) {
	entry.Set(collections.EntrySecondaryStatus, state)
	entry.Set(collections.EntrySecondaryRejection, "")
}

// secondaryPayerID returns the second payer beside the payer of the entry, which may be a former first one; "" for none, or where the patient cannot be decrypted.
func secondaryPayerID(app core.App, entry *collections.BillingEntry) (string, error) {
	p, err := collections.FindPatientAnyState(app, entry.PatientID())
	if err != nil || collections.Readable(p.ProxyRecord()) != nil {
		return "", err
	}
	covered, _ := entry.CoverageOf(p) // none that is damaged
	if s := covered.Secondary; s != nil && s.Payer != 0 && collections.NumberID(s.Payer) != entry.PayerID() {
		return collections.NumberID(s.Payer), nil
	}
	return "", nil
}

// recheckSecondary sets whether a claim to the second payer is due in a state of the entry, unless that payer has it. A reopened claim has none. After
// the second payer's answer one is due again if the first payer leaves more than it decided on.
func recheckSecondary(tx core.App, entry *collections.BillingEntry, state string) error {
	status, isDecided := entry.SecondaryStatus(), state == Paid || state == Denied
	if entry.PayerID() == "" || status == SecondarySubmitted || !isDecided && status != SecondaryDue {
		return nil
	}
	payer, err := secondaryPayerID(tx, entry)
	if err != nil || payer == "" && status == "" {
		return err
	}
	rows, err := collections.PaymentsOf(tx, entry.Id)
	if err != nil {
		return err
	}
	is, isMore := standingOf(entry.ChargeCents(), rows), leavesMore(entry, rows)
	isAnswered := status == SecondaryPaid || status == SecondaryDenied
	isPaid := is.paid[collections.SecondaryPayer] > 0
	switch {
	case isDecided && payer != "" && leavesToSecond(entry, state, is) && (isMore || !isAnswered && !isPaid):
		if status != SecondaryDue || entry.SecondaryPayerID() != payer { // else with the reason of its rejection
			setSecondaryState(entry, SecondaryDue)
		}
		entry.Set(collections.EntrySecondaryPayer, payer)
	case isAnswered:
	case isPaid:
		setSecondaryState(entry, SecondaryPaid)
	default:
		entry.Set(collections.EntrySecondaryPayer, "")
		setSecondaryState(entry, "")
	}
	return nil
}

// RecheckInsurance applies a change of the insurance to the entries of a patient: those without a payer that were not reviewed get the patient's, and claims
// to the second payer are due or not. An entry that cannot be decrypted keeps its state.
func (e *Engine) RecheckInsurance(tx core.App, patientID string, now time.Time) error {
	if err := e.takePayer(tx, patientID, now); err != nil {
		return err
	}
	ids, err := collections.EntriesWithoutSecondaryClaim(tx, patientID, []string{Paid, Denied})
	if err != nil {
		return err
	}
	for _, id := range ids {
		entry, err := collections.FindBillingEntry(tx, id)
		if _, isUnreadable := errors.AsType[*collections.UnreadableError](err); isUnreadable {
			continue
		}
		if err == nil {
			err = e.recheckInsuranceOf(tx, entry, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recheckInsuranceOf is [Engine.RecheckInsurance] of one entry. A claim is not new to a payer after its limit for filing.
func (e *Engine) recheckInsuranceOf(tx core.App, entry *collections.BillingEntry, now time.Time) error {
	payer, before := entry.SecondaryPayerID(), amountsOf(entry)
	if err := recheckSecondary(tx, entry, entry.Status()); err != nil || payer == entry.SecondaryPayerID() && before.secondary == entry.SecondaryStatus() {
		return err
	}
	if entry.SecondaryStatus() == SecondaryDue {
		second, err := collections.FindPayer(tx, collections.Number(entry.SecondaryPayerID()))
		if err != nil {
			return err
		}
		if last := DenialDeadlines(second, entry.ServiceDate(), "").RefileBy; last != "" && last < e.Day(now) && before.secondary == "" {
			return nil
		}
	}
	m := Transition{event: audit.BillingUpdate, detail: "insurance"}
	return m.store(tx, entry, entry.Status(), entry.Status(), before, audit.System(), now, func(a audit.Entry, now time.Time) error { return audit.Append(tx, a, now) })
}

// leavesMore reports whether the first payer leaves a larger share to the patient than when the second payer last decided, and some of it is not paid.
func leavesMore(entry *collections.BillingEntry, rows []collections.Payment) bool {
	answered := -1
	for i, p := range rows {
		if p.Payer == collections.SecondaryPayer && (p.Kind == collections.PaymentKind || p.Kind == collections.DenialKind) {
			answered = i
		}
	}
	if answered < 0 || entry.PatientShareCents() <= 0 {
		return false
	}
	stood, _ := replayStanding(entry.ChargeCents(), rows[:answered])
	then, now := amountsAfter(entry.ChargeCents(), "", stood), amountsWith(entry, rows)
	return then.primaryDecided && sumOf(patientShare(now.adjustmentsByPrimary(now.adjustments))) > sumOf(patientShare(then.adjustmentsByPrimary(then.adjustments)))
}

// leavesToSecond reports whether the first payer left a share to the patient, paid or not, or denied the claim as not covered.
func leavesToSecond(entry *collections.BillingEntry, state string, is paymentState) bool {
	if state == Denied && slices.Contains(notCoveredReasons, carcOf(entry.DenialCode())) {
		return true
	}
	return sumOf(patientShare(is.adjustmentsByPrimary(entry.Adjustments()))) > 0
}

// adjustmentsByPrimary returns what the first payer adjusted, with the share of the patient that it did not pay itself, and what users adjusted.
func (s paymentState) adjustmentsByPrimary(booked []collections.Adjustment) []collections.Adjustment {
	others := mergeAdjustments(s.shareOffsets, negateAdjustments(s.primaryOffsets))
	return mergeAdjustments(mergeAdjustments(booked, others), negateAdjustments(s.decided[collections.SecondaryPayer]))
}

// PrimaryDecision returns the first payer's decision on an entry as a claim to the second payer states it. A denial by hand without amounts is of the
// whole charge.
func PrimaryDecision(app core.App, entry *collections.BillingEntry) (d claims.Decision, err error) {
	rows, err := collections.PaymentsOf(app, entry.Id)
	if err != nil {
		return d, err
	}
	is := standingOf(entry.ChargeCents(), rows)
	d = claims.Decision{PaidCents: is.paid[collections.PrimaryPayer], Adjustments: is.adjustmentsByPrimary(entry.Adjustments()), PayerControl: entry.PayerControlNumber(), Date: entry.DenialDate()}
	for _, p := range is.rows {
		if p.Payer == collections.PrimaryPayer && (p.Kind == collections.PaymentKind || p.Kind == collections.DenialKind) {
			d.Date, d.Remarks = p.Date, p.Remarks
		}
	}
	if entry.Status() == Denied && len(d.Adjustments) == 0 && d.PaidCents == 0 {
		group, _, found := strings.Cut(entry.DenialCode(), "-")
		if !found {
			group = GroupContractual
		}
		d.Adjustments = []collections.Adjustment{{Group: group, CARC: carcOf(entry.DenialCode()), AmountCents: entry.ChargeCents()}}
	}
	return d, nil
}

// Codes of refused claims to the second payer.
const (
	NoSecondaryPayer     = "no_secondary_payer"
	PrimaryUndecided     = "primary_undecided"
	NothingLeftByPrimary = "nothing_left_by_primary"
	SecondaryAnswered    = "secondary_answered"
)

// CheckSecondary returns why an entry cannot go to the second payer, as a code and in words; "" if it can. isSelected is false for the other lines of a
// claim, which go along. With usage P, claims that were sent as tests do not count; isResend sends one again that the second payer has not answered.
func CheckSecondary(app core.App, entry *collections.BillingEntry, isSelected, isResend bool, usage string) (code, words string, err error) {
	if entry.Status() != Paid && entry.Status() != Denied {
		return PrimaryUndecided, "The first payer has not decided " + entry.ClaimID() + ".", nil
	}
	if !entry.EvidenceChangedAt().IsZero() {
		return EvidenceChanged, "The facts no longer support " + entry.ClaimID() + ".", nil
	}
	if !isSelected {
		return "", "", nil
	}
	payer, err := secondaryPayerID(app, entry)
	if err != nil || payer == "" {
		return NoSecondaryPayer, "The patient has no second payer beside the payer of the entry.", err
	}
	switch entry.SecondaryStatus() {
	case SecondaryPaid:
		return SecondaryAnswered, "The second payer has answered.", nil
	case SecondarySubmitted:
		sent, err := collections.WasSentToSecondary(app, entry.Id, usage)
		if err != nil || sent && !isResend {
			return SecondaryAlreadySubmitted, "The claim was sent to the second payer: send it again with resend.", err
		}
	}
	rows, err := collections.PaymentsOf(app, entry.Id)
	if err != nil {
		return "", "", err
	}
	if !leavesToSecond(entry, entry.Status(), standingOf(entry.ChargeCents(), rows)) {
		return NothingLeftByPrimary, "The first payer left nothing to the patient and did not deny the service as not covered.", nil
	}
	return "", "", nil
}

// SecondaryAlreadySubmitted is the code of a claim that the second payer has.
const SecondaryAlreadySubmitted = "secondary_submitted"

// BillSecondary records that an entry was sent to the second payer with a file.
func (e *Engine) BillSecondary(reference string, updatedAt time.Time) Transition {
	m := Transition{Name: "bill-secondary", From: []string{Paid, Denied}, target: (*collections.BillingEntry).Status, event: audit.BillingSecondary, detail: reference}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if !entry.UpdatedAt().Equal(updatedAt) {
			return fault.State("invalid_transition", "The entry was changed by another request.")
		}
		if entry.SecondaryStatus() == SecondaryPaid { // a line that goes along
			return nil
		}
		entry.Set(collections.EntrySecondaryPayer, "")
		return setSecondary(tx, entry, SecondarySubmitted)
	}
	return m
}

// RejectSecondary records that a claim to the second payer was rejected before its decision: it is due again.
func (e *Engine) RejectSecondary(why collections.Rejection) Transition {
	return Transition{
		Name: "reject", From: []string{Submitted, Paid, Denied, Appealed, RefundDue}, target: (*collections.BillingEntry).Status, event: audit.BillingReject,
		detail: "secondary " + why.Source + " " + strings.Join(why.Codes, " "),
		check: func(_ core.App, entry *collections.BillingEntry) error {
			if entry.SecondaryStatus() != SecondarySubmitted {
				return fault.State("invalid_transition", "The second payer has answered.")
			}
			entry.Set(collections.EntrySecondaryStatus, SecondaryDue)
			return entry.SetSecondaryRejection(why)
		},
	}
}
