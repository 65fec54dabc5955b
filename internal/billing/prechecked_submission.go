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
func (d PrecheckedSubmission) EntryID() string { return d.entry.Id }

// PrecheckSubmission recounts an entry for a batch, outside a transaction, after its preflight found no errors. It returns the refusal that the
// submission would return.
func (e *Engine) PrecheckSubmission(app core.App, entry *collections.BillingEntry, frequency, reference string, now time.Time) (PrecheckedSubmission, error) {
	d := PrecheckedSubmission{
		transition: e.submitInBatch(frequency, reference, now, true), recheck: func() Transition { return e.submitInBatch(frequency, reference, now, false) },
		entry: entry, fromState: entry.Status(), batch: entry.BatchID(), updatedAt: entry.GetString(collections.ColumnUpdatedAt), before: amountsOf(entry),
	}
	return d, d.transition.check(app, entry)
}

// SubmitPrechecked applies prechecked submissions in the transaction; since is the last audit row before their precheck. The facts behind an
// entry never change without an audit entry that names the patient: if there is one since, or the entry itself changed, the entry is recounted
// here and may be refused.
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
