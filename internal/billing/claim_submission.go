package billing

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
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
	set := map[string]any{collections.EntrySubmissionReference: reference, collections.EntryOriginalReference: reference, collections.EntrySubmittedAt: collections.FormatInstant(at)}
	return Transition{
		Name: "submit", From: []string{Reviewed}, To: Submitted, event: audit.BillingSubmit, detail: reference, set: set,
		check: func(tx core.App, entry *collections.BillingEntry) error {
			if code, said := set[collections.EntryClaimFrequencyCode]; entry.ClaimFrequencyCode() == "7" && (!said || code == "7") {
				delete(set, collections.EntryOriginalReference) // a rejected replacement still replaces the first claim
			}
			return e.recountForSubmission(tx, entry, preflighted, now)
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

// recountForSubmission recounts an entry before submission.
func (e *Engine) recountForSubmission(tx core.App, entry *collections.BillingEntry, preflighted bool, now time.Time) error {
	r, err := e.newRecount(tx, entry, now)
	if err != nil {
		return err
	}
	r.isSubmitting, r.overrideReason = true, overrideFor(entry, CompetingService)
	if err := r.compareWithOthers(false); err != nil {
		return err
	}
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
	if err := keepCoverage(tx, entry); err != nil {
		return err
	}
	return r.storeCounts()
}

// keepCoverage keeps the patient's insurance with a claim that is sent, unless the patient cannot be decrypted.
func keepCoverage(tx core.App, entry *collections.BillingEntry) error {
	patient, err := collections.FindPatientAnyState(tx, entry.PatientID())
	if err != nil || collections.Readable(patient.ProxyRecord()) != nil {
		return err
	}
	return entry.KeepCoverage(patient)
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
func (e *Engine) preflightErrors(tx core.App, entry *collections.BillingEntry, now time.Time) ([]claims.Issue, error) {
	if e.Claims.Submitter.ID == "" {
		return nil, nil
	}
	list, err := e.Claims.Load(tx, []*collections.BillingEntry{entry})
	if err != nil {
		return nil, err
	}
	return claims.Preflight(list[0], e.Day(now)).Errors, nil
}

// PrecheckedSubmission is a submission of an entry that was recounted before its transaction, so that ingestion does not wait while hundreds of
// entries are recounted. Source: docs/decisions/claims.md, "Batches".
type PrecheckedSubmission struct {
	transition Transition
	recheck    func() Transition // the same, recounted in the transaction
	entry      *collections.BillingEntry
	fromState  string
	batch      string // of the entry's last submission
	updatedAt  string // when the entry was last changed
	before     claimAmounts
}

// EntryID returns the id of the submitted entry.
func (s PrecheckedSubmission) EntryID() string { return s.entry.Id }

// PrecheckSubmission recounts an entry for a batch, outside a transaction, after its preflight
// found no errors. It returns the error that the submission would return.
func (e *Engine) PrecheckSubmission(app core.App, entry *collections.BillingEntry, frequency, reference string, now time.Time) (PrecheckedSubmission, error) {
	d := PrecheckedSubmission{
		transition: e.submitInBatch(frequency, reference, now, true), recheck: func() Transition { return e.submitInBatch(frequency, reference, now, false) },
		entry: entry, fromState: entry.Status(), batch: entry.BatchID(), updatedAt: entry.GetString(collections.ColumnUpdatedAt), before: amountsOf(entry),
	}
	return d, d.transition.check(app, entry)
}

// SubmitPrechecked applies prechecked submissions in the transaction; since is the last audit row
// before the precheck. A patient's facts never change without an audit entry that names the
// patient. An entry of a patient with one since, or that changed itself, is recounted here and may
// be rejected.
func (e *Engine) SubmitPrechecked(tx core.App, list []PrecheckedSubmission, since string, by audit.Actor, now time.Time) (refused map[string]error, err error) {
	touched, err := collections.PatientsAuditedSince(tx, since)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.entry.Id
	}
	seen, err := collections.EntryVersions(tx, ids)
	if err != nil {
		return nil, err
	}
	refused = map[string]error{}
	stands := func(d PrecheckedSubmission) bool {
		return !touched[d.entry.PatientID()] && seen[d.entry.Id] == collections.EntryVersion{ID: d.entry.Id, Status: d.fromState, Batch: d.batch, UpdatedAt: d.updatedAt}
	}
	for _, d := range list {
		if stands(d) {
			continue
		}
		if is := seen[d.entry.Id]; is.Status != d.fromState || is.Batch != d.batch { // another user sent or undid it
			refused[d.entry.Id] = fault.State("invalid_transition", "The entry was changed by another request: it is "+strings.ReplaceAll(is.Status, "_", " ")+".")
			continue
		}
		if _, err := e.ApplyTransition(tx, d.entry.Id, d.recheck(), by, now); err != nil {
			refused[d.entry.Id] = err
		}
	}
	chain, err := audit.NewChain(tx)
	if err != nil {
		return nil, err
	}
	for _, d := range slices.DeleteFunc(slices.Clone(list), func(d PrecheckedSubmission) bool { return !stands(d) }) {
		if err := d.transition.store(tx, d.entry, d.fromState, d.transition.To, d.before, by, now, chain.Add); err != nil {
			return nil, err
		}
	}
	return refused, chain.Store()
}
