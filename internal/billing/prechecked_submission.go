package billing

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// PrecheckedSubmission is a submission whose entry was recounted before the transaction that makes it, so that readings do not wait while hundreds are.
// Source: docs/decisions/claims.md, "Batches".
type PrecheckedSubmission struct {
	transition Transition
	recheck    func() Transition // the same, recounted in the transaction
	entry      *collections.BillingEntry
	fromState  string
	batch      string // in which the entry stood last
	updatedAt  string // when it was last changed
	before     claimAmounts
}

// EntryID is whose submission it is.
func (d PrecheckedSubmission) EntryID() string { return d.entry.Id }

// PrecheckSubmission recounts an entry that a batch is about to submit, outside of a transaction, once preflight has found nothing against it; a refusal is that of
// the submission.
func (e *Engine) PrecheckSubmission(app core.App, entry *collections.BillingEntry, frequency, reference string, now time.Time) (PrecheckedSubmission, error) {
	d := PrecheckedSubmission{
		transition: e.submitInBatch(frequency, reference, now, true), recheck: func() Transition { return e.submitInBatch(frequency, reference, now, false) },
		entry: entry, fromState: entry.Status(), batch: entry.BatchID(), updatedAt: entry.GetString(collections.ColumnUpdatedAt), before: amountsOf(entry),
	}
	return d, d.transition.check(app, entry)
}

// SubmitPrechecked makes submissions that were decided after the audit trail ended with some row, in the transaction. What an entry rests on never changes without
// a trace that names the patient: where there is one since, or the entry is another, it is recounted here, and may be refused.
func (e *Engine) SubmitPrechecked(tx core.App, list []PrecheckedSubmission, since string, by audit.Actor, now time.Time) (refused map[string]error, err error) {
	touched, err := collections.PatientsAuditedSince(tx, since)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, d := range list {
		ids[i] = d.entry.Id
	}
	seen, err := collections.EntriesSeen(tx, ids)
	if err != nil {
		return nil, err
	}
	refused = map[string]error{}
	stands := func(d PrecheckedSubmission) bool {
		return !touched[d.entry.PatientID()] && seen[d.entry.Id] == collections.SeenEntry{ID: d.entry.Id, Status: d.fromState, Batch: d.batch, UpdatedAt: d.updatedAt}
	}
	for _, d := range list {
		if stands(d) {
			continue
		}
		if is := seen[d.entry.Id]; is.Status != d.fromState || is.Batch != d.batch { // somebody else has sent it, or undone it
			refused[d.entry.Id] = fault.State("invalid_transition", "The entry has changed meanwhile: it is "+strings.ReplaceAll(is.Status, "_", " ")+".")
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
