package billing

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// The states of a claim, and how the contract shows them. Source: docs/decisions/billing.md, "Two billing vocabularies".
const (
	PendingReview = "pending_review"
	Reviewed      = "reviewed"
	Submitted     = "submitted"
	Paid          = "paid"
	Denied        = "denied"
	Appealed      = "appealed"
	Voided        = "voided"
	VoidRequested = "void_requested" // submitted, and the payer has been or will be asked to void it
	RefundDue     = "refund_due"     // paid for what does not hold
	Refunded      = "refunded"

	pending = "pending"
)

// States are the internal states, in the order of a claim's life.
var States = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, VoidRequested, RefundDue, Refunded, Voided}

// ContractStates are those that the contract names; reports show the others where there are such.
var ContractStates = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, Voided}

// StatusFilterValues are what the filter by status accepts: both vocabularies.
var StatusFilterValues = append([]string{pending}, States...)

// APIStatus is how the contract shows a state.
func APIStatus(state string) string {
	if state == PendingReview || state == Reviewed {
		return pending
	}
	return state
}

// StatesForFilter are the states a word of either vocabulary means; all that are not voided for "".
func StatesForFilter(word string) []string {
	switch word {
	case "":
		return States[:len(States)-1]
	case pending:
		return []string{PendingReview, Reviewed}
	}
	return []string{word}
}

// The warnings of entries.
const (
	AttestInteraction = "attest_interaction"
	PossibleDuplicate = "possible_duplicate"
	BeforeEnrollment  = "before_enrolment"
	MissingPrimary    = "missing_primary_code"
	Overlaps99457     = "overlaps_99457"
	UnknownICD10      = "unknown_icd10"
	EvidenceChanged   = "evidence_changed"
)

// Transition is a change of a claim's state, with what it writes. Source: docs/decisions/billing.md, "Claim state machine".
type Transition struct {
	Name   string
	From   []string
	To     string
	event  audit.Event
	check  func(tx core.App, entry *collections.BillingEntry) error
	set    map[string]any
	detail string
	after  func(tx core.App, entry *collections.BillingEntry) error
	target func(entry *collections.BillingEntry) string // the state that the amounts come to; nil for To
}

// ApplyTransition makes a move, in a transaction with its trace. A state it does not start from is an invalid_transition fault.
func (e *Engine) ApplyTransition(app core.App, entryID string, m Transition, by audit.Actor, now time.Time) (entry *collections.BillingEntry, err error) {
	err = app.RunInTransaction(func(tx core.App) (err error) {
		if entry, err = collections.FindBillingEntry(tx, entryID); err != nil {
			return fault.OrMissing(err)
		}
		from := entry.Status()
		if !slices.Contains(m.From, from) {
			return fault.State("invalid_transition", fmt.Sprintf("A claim that is %s cannot be changed this way.", strings.ReplaceAll(from, "_", " ")))
		}
		before := amountsOf(entry)
		if m.check != nil {
			if err := m.check(tx, entry); err != nil {
				return err
			}
		}
		to := m.To
		if m.target != nil {
			to = m.target(entry)
		}
		if err := reopenDenied(tx, entry, to, by, now); err != nil {
			return err
		}
		err = m.store(tx, entry, from, to, before, by, now, func(e audit.Entry, now time.Time) error { return audit.Append(tx, e, now) })
		if err == nil && m.after != nil {
			err = m.after(tx, entry)
		}
		if err == nil && !(existingEntry{Status: to}).isActive() { // others may stand on it
			err = e.Recheck(tx, entry.PatientID(), ParseDay(entry.PeriodStart()), now)
		}
		return err
	})
	return entry, err
}

// store stores an entry as the move makes it, with its trace.
func (m Transition) store(
	tx core.App, entry *collections.BillingEntry, from, to string, before claimAmounts, by audit.Actor, now time.Time, trace func(audit.Entry, time.Time) error,
) error {
	for column, value := range m.set {
		entry.Set(column, value)
	}
	entry.Set(collections.EntryStatus, to)
	entry.Set(collections.ColumnUpdatedAt, collections.Instant(now))
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store billing entry: %w", err)
	}
	changes := audit.Changes{"lifecycle_status": {Old: from, New: to}}
	before.addChanges(changes, amountsOf(entry))
	if m.detail != "" {
		changes["detail"] = audit.Change{New: m.detail}
	}
	return trace(audit.Entry{
		Event: m.event, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id, PatientID: entry.PatientID(), Changes: changes,
	}, now)
}

// Review approves an entry for submission. It is refused while the facts do not bear the entry out, while escalation time is not attested, and
// for a possible duplicate without a reason.
func (e *Engine) Review(by audit.Actor, notes, override string, attested bool, now time.Time) Transition {
	m := Transition{Name: "review", From: []string{PendingReview}, To: Reviewed, event: audit.BillingReview, detail: notes}
	m.set = map[string]any{collections.EntryReviewedBy: by.Email, collections.EntryReviewedAt: collections.Instant(now)}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if e.needsSecondReviewer(entry, by) {
			return fault.State("invalid_state", "Somebody else must review an entry that you made.")
		}
		return e.checkReview(tx, entry, by, override, attested, now)
	}
	return m
}

// needsSecondReviewer reports whether somebody else has to review an entry.
func (e *Engine) needsSecondReviewer(entry *collections.BillingEntry, by audit.Actor) bool {
	return e.RequireSecondReviewer && entry.Source() == SourceManual && strings.EqualFold(entry.CreatedBy(), by.Email)
}

// ReturnToReview sends a reviewed entry back.
func (e *Engine) ReturnToReview(reason string) Transition {
	return Transition{
		Name: "return", From: []string{Reviewed}, To: PendingReview, event: audit.BillingReturn, detail: reason,
		set: map[string]any{collections.EntryReviewedBy: "", collections.EntryReviewedAt: ""},
	}
}

// Submit sends a reviewed entry to the payer, under a reference.
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
				delete(set, collections.EntryOriginalReference) // a replacement that was sent back is about the first claim still
			}
			return e.checkSubmit(tx, entry, preflighted, now)
		},
	}
}

// submitInBatch is [Engine.Submit] by a batch, with the frequency code of its claim; of an entry, too, that was sent as a test alone.
func (e *Engine) submitInBatch(frequency, reference string, now time.Time, preflighted bool) Transition {
	m := e.submit(reference, time.Time{}, now, preflighted)
	m.From = []string{Reviewed, Submitted}
	if m.set[collections.EntryClaimFrequencyCode] = frequency; frequency == "1" {
		m.set[collections.EntryClaimFrequencyCode] = "" // as of every first claim
	}
	return m
}

// Deny records why a payer refused, and tells billing.
func (e *Engine) Deny(code, description, date string, now time.Time) Transition {
	return Transition{
		Name: "deny", From: []string{Submitted, Appealed}, To: Denied, event: audit.BillingDeny, detail: code + ": " + description,
		set: map[string]any{collections.EntryDenialCode: code, collections.EntryDenialDescription: description, collections.EntryDenialDate: date},
		after: func(tx core.App, entry *collections.BillingEntry) error {
			return notifications.Announce(tx, notifications.Announcement{
				Kind: notifications.ClaimDenied, Severity: "warning", PatientID: entry.PatientID(), EntryID: entry.Id,
				Body: "Claim " + entry.ClaimID() + " was denied: " + code + ", " + description,
				Key:  "denied:" + entry.Id + ":" + collections.Instant(now),
			}, now)
		},
	}
}

// Appeal disputes a denial.
func (e *Engine) Appeal(reason, reference, date string) Transition {
	return Transition{
		Name: "appeal", From: []string{Denied}, To: Appealed, event: audit.BillingAppeal, detail: reference,
		set: map[string]any{collections.EntryAppealReason: reason, collections.EntryAppealReference: reference, collections.EntryAppealDate: date},
	}
}

// Void takes an entry that was not submitted, or that its payer voided, out of the lists and sums; its time can be corrected again.
func (e *Engine) Void(reason string, now time.Time) Transition {
	return Transition{
		Name: "void", From: []string{PendingReview, Reviewed, VoidRequested}, To: Voided, event: audit.BillingVoid, detail: reason, set: map[string]any{collections.EntryVoidReason: reason},
		after: func(tx core.App, entry *collections.BillingEntry) error {
			return collections.FreeTime(tx, entry.Id, now)
		},
	}
}

// Corrections are what a resubmission changes; nil and "" stay.
type Corrections struct {
	ICD10Codes  []string
	ServiceDate string
	Minutes     *int
	Notes       *string
	Override    string // why it is billed beside another practice's, where that became known since
}

// Resubmit sends a denied claim again, as a replacement of the first.
func (e *Engine) Resubmit(c Corrections, reference string, now time.Time) Transition {
	m := e.Submit(reference, time.Time{}, now)
	m.Name, m.From, m.event = "resubmit", []string{Denied}, audit.BillingResubmit
	delete(m.set, collections.EntryOriginalReference)
	m.set[collections.EntryClaimFrequencyCode] = "7" // X12 837P: replacement of a prior claim
	m.set[collections.EntryBatch] = ""               // it waits for one of its own
	if c.Notes != nil {
		m.set[collections.EntryNotes] = *c.Notes
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error { return e.checkResubmit(tx, entry, c, now) }
	return m
}

// ClaimRow is an entry as claims processing takes it.
type ClaimRow struct {
	collections.ClaimRow
	Provider string // "Last, First"; "" for none
}

// ICD10Codes are the diagnoses of the claim.
func (r ClaimRow) ICD10Codes() []string {
	codes := []string{}
	if json.Unmarshal([]byte(r.ICD10), &codes) != nil {
		return []string{}
	}
	return codes
}

// Amount is what is charged.
func (r ClaimRow) Amount() Cents { return Cents(r.AmountCents) }

func lastFirst(last, first string) string {
	if last == "" || first == "" {
		return last + first
	}
	return last + ", " + first
}

// exportPage is how many claims are read together, so that no reader holds the database for long.
const exportPage = 1000

// ForEachClaim hands the claims in some states to visit, page by page, by creation. payerID is a record id; "" is every payer.
func (e *Engine) ForEachClaim(ctx context.Context, app core.App, states []string, payerID string, visit func([]ClaimRow) error) error {
	exporting := async.ThrottleWhile(e.ReadingsPending)
	for after := ""; ; {
		if err := exporting.Rest(ctx); err != nil {
			return err
		}
		found, err := collections.ClaimRows(app, states, payerID, after, exportPage)
		if err != nil {
			return err
		}
		rows, err := addProviderNames(app, found)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			if err := visit(rows); err != nil {
				return err
			}
			after = rows[len(rows)-1].ID
		}
		if len(rows) < exportPage {
			return nil
		}
	}
}

func addProviderNames(app core.App, found []collections.ClaimRow) ([]ClaimRow, error) {
	ids := map[string]bool{}
	for _, row := range found {
		ids[row.ProviderID] = true
	}
	names, err := ProviderNames(app, slices.Collect(maps.Keys(ids)))
	rows := make([]ClaimRow, len(found))
	for i, row := range found {
		rows[i] = ClaimRow{row, names[row.ProviderID]}
	}
	return rows, err
}

// ProviderNames are the names of users by record id, "Last, First".
func ProviderNames(app core.App, ids []string) (map[string]string, error) {
	names, err := collections.UserNames(app, ids)
	if err != nil {
		return nil, err
	}
	listed := make(map[string]string, len(names))
	for id, name := range names {
		listed[id] = lastFirst(name.Last.Reveal(), name.First.Reveal())
	}
	return listed, nil
}
