package billing

import (
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Error codes of rejected corrections. Source: docs/decisions/claims.md, "Corrected claims".
const (
	ReopeningRequired = "reopening_required"
	NotAppealable     = "not_appealable"
)

// unprocessable is the remark of a claim that the payer could not process. It is sent as a new
// claim and cannot be appealed. Source: RARC MA130.
const unprocessable = "MA130"

// payerOfEntry returns the payer of an entry; the zero value for self-pay.
func payerOfEntry(app core.App, entry *collections.BillingEntry) (p collections.Payer, err error) {
	if entry.PayerID() == "" {
		return p, nil
	}
	p, err = collections.FindPayer(app, collections.Number(entry.PayerID()))
	if collections.IsNotFound(err) {
		return collections.Payer{}, nil
	}
	return p, err
}

// resubmissionFrequency returns the frequency code of a resubmitted claim: a replacement, or a new
// claim if the payer did not process the first one, accepts no replacements, or has no claim as the
// user states.
func resubmissionFrequency(payer collections.Payer, entry *collections.BillingEntry, is paymentState, asNew bool) (string, error) {
	isWaiting := entry.Status() == Submitted && entry.BatchID() == "" && entry.ClaimFrequencyCode() != ""
	isPaid := entry.Status() == Paid || isWaiting && is.paid[collections.PrimaryPayer] > 0
	switch {
	case entry.Status() == Submitted && !isWaiting:
		return "", fault.State("invalid_transition", "A claim that is submitted cannot be changed this way.")
	case asNew && is.paid[collections.PrimaryPayer] > 0:
		return "", fault.Field("new_claim", "A claim that was paid cannot be sent again as a new claim.")
	case isPaid && payer.ID == "":
		return "", fault.State("invalid_transition", "A claim that the patient paid is not sent again.")
	case isPaid && !payer.TakesReplacements():
		return "", reopeningFault()
	case isPaid && entry.PayerControlNumber() == "":
		return "", fault.State(claims.MissingOriginalClaim, "The payer's number of the claim is not known: give payer_control_number.")
	case !isPaid && (asNew || isUnprocessable(entry) || isWaiting && entry.ClaimFrequencyCode() == claims.Original || !payer.TakesReplacements()):
		return claims.Original, nil
	}
	return claims.Replacement, nil
}

func reopeningFault() error {
	return fault.State(ReopeningRequired, "The payer accepts no corrected file for a claim that it paid. Request a reopening from the payer.")
}

// isUnprocessable reports whether a claim was denied because the payer could not process it.
func isUnprocessable(entry *collections.BillingEntry) bool {
	return strings.Contains(entry.DenialCode(), unprocessable) || slices.Contains(entry.DenialRemarks(), unprocessable) ||
		slices.ContainsFunc(entry.Adjustments(), func(a collections.Adjustment) bool { return slices.Contains(a.RARC, unprocessable) })
}

// checkAppeal refuses the appeal of a claim that the payer did not process.
func checkAppeal(_ core.App, entry *collections.BillingEntry) error {
	if isUnprocessable(entry) {
		return fault.State(NotAppealable, "The payer did not process the claim (MA130): correct it and send it again. It cannot be appealed.")
	}
	return nil
}

// prepareVoid sets how a claim is voided: by a file (frequency code 8) while nothing was paid, or if the payer takes voids of paid claims and its
// number is known. byRefund states that the practice pays a claim back itself.
func prepareVoid(app core.App, entry *collections.BillingEntry, byRefund bool) error {
	payer, err := payerOfEntry(app, entry)
	if err != nil {
		return err
	}
	if entry.Status() == Paid && payer.ID != "" && !payer.TakesReplacements() && !byRefund {
		return reopeningFault()
	}
	if payer.ID != "" && !payer.TakesReplacements() {
		entry.Set(collections.EntryClaimFrequencyCode, "") // no file goes
		return nil
	}
	isUndecided := entry.Status() == Submitted && payer.ID != ""
	if isUndecided {
		rows, err := collections.PaymentsOf(app, entry.Id)
		if err != nil {
			return err
		}
		isUndecided = standingOf(entry.ChargeCents(), rows).paid[collections.PrimaryPayer] <= 0
	}
	if entry.PaidTotalCents() == 0 || isUndecided || payer.ID != "" && entry.PayerControlNumber() != "" && !byRefund {
		entry.Set(collections.EntryClaimFrequencyCode, claims.VoidOfClaim)
	}
	return nil
}
