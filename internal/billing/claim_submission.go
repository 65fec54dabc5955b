package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
)

// Submit marks a reviewed entry as sent to the payer, under a reference.
func (e *Engine) Submit(reference string, at, now time.Time) Transition {
	return e.submit(reference, at, now, false)
}

func (e *Engine) submit(reference string, at, now time.Time, preflighted bool) Transition {
	if reference == "" {
		reference = "SUB-" + now.In(e.Zone).Format("20060102-150405")
	}
	if at.IsZero() {
		at = now
	}
	set := map[string]any{collections.EntrySubmissionReference: reference, collections.EntryOriginalReference: reference, collections.EntrySubmittedAt: collections.Instant(at)}
	return Transition{
		Name: "submit", From: []string{Reviewed}, To: Submitted, event: audit.BillingSubmit, detail: reference, set: set,
		check: func(tx core.App, entry *collections.BillingEntry) error {
			if code, said := set[collections.EntryClaimFrequencyCode]; entry.ClaimFrequencyCode() == "7" && (!said || code == "7") {
				delete(set, collections.EntryOriginalReference) // a rejected replacement still replaces the first claim
			}
			return e.checkSubmit(tx, entry, preflighted, now)
		},
	}
}

// submitInBatch is [Engine.Submit] by a batch, with the frequency code of its claim. An entry that was sent only as a test may be submitted
// again.
func (e *Engine) submitInBatch(frequency, reference string, now time.Time, preflighted bool) Transition {
	m := e.submit(reference, time.Time{}, now, preflighted)
	m.From = []string{Reviewed, Submitted}
	if m.set[collections.EntryClaimFrequencyCode] = frequency; frequency == "1" {
		m.set[collections.EntryClaimFrequencyCode] = "" // stored as "" for original claims
	}
	return m
}

// checkSubmit recounts an entry before submission.
func (e *Engine) checkSubmit(tx core.App, entry *collections.BillingEntry, preflighted bool, now time.Time) error {
	r, err := e.newRecount(tx, entry, now)
	if err != nil {
		return err
	}
	r.isSubmitting, r.overrideReason = true, overrideFor(entry, CompetingService)
	reasons, err := r.submitBlockingReasons()
	if err != nil {
		return err
	}
	if !preflighted {
		unfit, err := e.preflightErrors(tx, entry, now)
		if err != nil {
			return err
		}
		if len(unfit) > 0 {
			return unsupportedFault(append(reasons, PreflightErrors)).With("preflight", unfit)
		}
	}
	if err := reasonsFault(reasons); err != nil {
		return err
	}
	entry.Set(collections.EntryWarnings, slices.DeleteFunc(withoutRejections(entry.Warnings()), func(w string) bool { // an overridden duplicate keeps its warning
		return w == EvidenceChanged || w != PossibleDuplicate && w != MissingOrder && w != CompetingService && slices.Contains(recountedWarnings, w)
	}))
	entry.Set(collections.EntryEvidenceChangedAt, "")
	entry.Set(collections.EntryRepayBy, "")
	return r.storeCounts()
}

// submitBlockingReasons returns the reasons against submission: those of the recount, and unattested time.
func (r *recount) submitBlockingReasons() ([]string, error) {
	reasons, err := r.loadReasons()
	if err != nil {
		return nil, err
	}
	return r.addUnattested(reasons)
}

// PreflightErrors is the reason of a refusal for preflight errors.
const PreflightErrors = "preflight_errors"

// preflightErrors returns the preflight errors of an entry if the practice sends claims from here. Source: docs/decisions/claims.md,
// "Preflight".
func (e *Engine) preflightErrors(tx core.App, entry *collections.BillingEntry, now time.Time) ([]claims.Finding, error) {
	if e.Claims.Submitter.ID == "" {
		return nil, nil
	}
	list, err := e.Claims.Load(tx, []*collections.BillingEntry{entry})
	if err != nil {
		return nil, err
	}
	return claims.Preflight(list[0], e.Day(now)).Errors, nil
}
