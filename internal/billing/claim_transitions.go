package billing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Transition is a change of a claim's state with the columns it writes. Source: docs/decisions/billing.md, "Claim state machine".
type Transition struct {
	Name   string
	From   []string
	To     string
	event  audit.Event
	check  func(tx core.App, entry *collections.BillingEntry) error
	set    map[string]any
	detail string
	after  func(tx core.App, entry *collections.BillingEntry) error
	target func(entry *collections.BillingEntry) string // computes the state from the amounts; nil for To
}

// ApplyTransition applies a transition in a transaction with its audit entry. It returns an invalid_transition fault if the claim's state is not
// in From.
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
		if err := m.reopen(tx, entry, to, by, now); err != nil {
			return err
		}
		m.setColumns(entry)
		if err := recheckSecondary(tx, entry, to); err != nil {
			return err
		}
		err = m.store(tx, entry, from, to, before, by, now, func(e audit.Entry, now time.Time) error { return audit.Append(tx, e, now) })
		if err == nil && m.after != nil {
			err = m.after(tx, entry)
		}
		if err == nil && !(existingEntry{Status: to}).isActive() { // add-on codes may depend on it
			err = e.Recheck(tx, entry.PatientID(), ParseDay(entry.PeriodStart()), now)
		}
		return err
	})
	return entry, err
}

func (t Transition) setColumns(entry *collections.BillingEntry) {
	for column, value := range t.set {
		entry.Set(column, value)
	}
}

// store writes the changed entry and its audit entry.
func (t Transition) store(
	tx core.App, entry *collections.BillingEntry, from, to string, before claimAmounts, by audit.Actor, now time.Time, trace func(audit.Entry, time.Time) error,
) error {
	t.setColumns(entry)
	entry.Set(collections.EntryStatus, to)
	entry.Set(collections.ColumnUpdatedAt, collections.FormatInstant(now))
	if err := tx.Save(entry); err != nil {
		return fmt.Errorf("store billing entry: %w", err)
	}
	changes := audit.Changes{"lifecycle_status": {Old: from, New: to}}
	before.addChanges(changes, amountsOf(entry))
	if t.detail != "" {
		changes["detail"] = audit.Change{New: t.detail}
	}
	return trace(audit.Entry{
		Event: t.event, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: entry.Id, PatientID: entry.PatientID(), Changes: changes,
	}, now)
}

// reopen reverses the adjustments of a denied claim that is appealed, or of any claim that is resubmitted: what was not paid is open again.
func (t Transition) reopen(tx core.App, entry *collections.BillingEntry, to string, by audit.Actor, now time.Time) error {
	if t.Name != resubmit && (entry.Status() != Denied || !slices.Contains([]string{Submitted, Appealed}, to)) {
		return nil
	}
	return reverseAdjustments(tx, entry, collections.SourceByHand, by, now)
}

// The states of a claim, and how the API shows them. Source: docs/decisions/billing.md, "Two billing vocabularies".
const (
	PendingReview = "pending_review"
	Reviewed      = "reviewed"
	Submitted     = "submitted"
	Paid          = "paid"
	Denied        = "denied"
	Appealed      = "appealed"
	Voided        = "voided"
	VoidRequested = "void_requested" // submitted; a void is requested or will be
	RefundDue     = "refund_due"     // paid, though the facts do not support it
	Refunded      = "refunded"

	pending = "pending"
)

// States are the internal states, in the order of a claim's life cycle.
var States = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, VoidRequested, RefundDue, Refunded, Voided}

// ContractStates are the states named in the API contract; reports list the others only when a claim has them.
var ContractStates = []string{PendingReview, Reviewed, Submitted, Paid, Denied, Appealed, Voided}

// StatusFilterValues are the values of the status filter, from both vocabularies.
var StatusFilterValues = append([]string{pending}, States...)

// APIStatus returns the API's name for a state.
func APIStatus(state string) string {
	if state == PendingReview || state == Reviewed {
		return pending
	}
	return state
}

// StatesForFilter returns the states that a filter value stands for; every state except voided for "".
func StatesForFilter(word string) []string {
	switch word {
	case "":
		return States[:len(States)-1]
	case pending:
		return []string{PendingReview, Reviewed}
	}
	return []string{word}
}

// IsUndone reports whether an entry no longer counts: voided, or refunded in full. The engine does not bill the same service again; a user may.
func IsUndone(state string) bool { return state == Voided || state == Refunded }

// Deny records the payer's reason for a denial and notifies billing.
func (e *Engine) Deny(code, description, date string, now time.Time) Transition {
	return Transition{
		Name: "deny", From: []string{Submitted, Appealed}, To: Denied, event: audit.BillingDeny, detail: code + ": " + description,
		set: map[string]any{
			collections.EntryDenialCode: code, collections.EntryDenialDescription: description, collections.EntryDenialDate: date,
			collections.EntryDenialRemarks: []string{},
		},
		after: func(tx core.App, entry *collections.BillingEntry) error {
			return notifications.Announce(tx, notifications.Announcement{
				Kind: notifications.ClaimDenied, Severity: "warning", PatientID: entry.PatientID(), EntryID: entry.Id,
				Body: "Claim " + entry.ClaimID() + " was denied: " + code + ", " + description,
				Key:  "denied:" + entry.Id + ":" + collections.FormatInstant(now),
			}, now)
		},
	}
}

// Appeal disputes a denial.
func (e *Engine) Appeal(reason, reference, date string) Transition {
	return Transition{
		Name: "appeal", From: []string{Denied}, To: Appealed, event: audit.BillingAppeal, detail: reference,
		set:   map[string]any{collections.EntryAppealReason: reason, collections.EntryAppealReference: reference, collections.EntryAppealDate: date},
		check: checkAppeal,
	}
}

// Why a claim was rejected, as a warning.
const (
	RejectedSyntax = "rejected_999"
	RejectedStatus = "rejected_277ca"
)

// Reject records that a claim was rejected before adjudication: it returns to reviewed, to be corrected and sent again. A requested void stays
// requested. Source: docs/decisions/claims.md, "Responses".
func (e *Engine) Reject(r collections.Rejection) Transition {
	warning := RejectedStatus
	if r.Source == "999" {
		warning = RejectedSyntax
	}
	return Transition{
		Name: "reject", From: []string{Submitted, VoidRequested, RefundDue}, event: audit.BillingReject, detail: r.Source + " " + strings.Join(r.Codes, " "),
		target: func(entry *collections.BillingEntry) string {
			if entry.Status() != Submitted {
				return entry.Status()
			}
			return Reviewed
		},
		check: func(_ core.App, entry *collections.BillingEntry) error {
			if err := entry.SetRejection(r); err != nil {
				return err
			}
			entry.Set(collections.EntryBatch, "")
			if warnings := entry.Warnings(); !slices.Contains(warnings, warning) {
				entry.Set(collections.EntryWarnings, append(warnings, warning))
			}
			if entry.Status() == Submitted {
				entry.Set(collections.EntrySubmittedAt, "")
			}
			return nil
		},
	}
}

// withoutRejections returns the warnings without those of a rejection.
func withoutRejections(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool { return w == RejectedSyntax || w == RejectedStatus })
}

// Void removes an entry that was not submitted, or that its payer voided, from lists and totals; its time entries can be edited again. What the patient
// paid before a rejection must be refunded first.
func (e *Engine) Void(reason string, now time.Time) Transition {
	return Transition{
		Name: "void", From: []string{PendingReview, Reviewed, VoidRequested}, event: audit.BillingVoid, detail: reason, set: map[string]any{collections.EntryVoidReason: reason},
		check: func(_ core.App, entry *collections.BillingEntry) error {
			if owesRefund(entry) {
				e.setRepayBy(entry, now)
			}
			return nil
		},
		target: func(entry *collections.BillingEntry) string {
			switch {
			case owesRefund(entry) && entry.Status() != VoidRequested: // there a payment makes it refund_due at once
				return RefundDue
			case entry.PaidTotalCents() > 0 && !owesRefund(entry):
				return Refunded
			}
			return Voided
		},
		after: func(tx core.App, entry *collections.BillingEntry) error {
			if entry.Status() == RefundDue {
				return announceRefundDue(now)(tx, entry)
			}
			return collections.ReleaseBilledTime(tx, entry.Id, now)
		},
	}
}

// owesRefund reports whether payments of an undone claim were not returned yet.
func owesRefund(entry *collections.BillingEntry) bool {
	return entry.PaidTotalCents() > entry.RefundedCents()
}

// setRepayBy sets until when payments must be returned, unless a day is set.
func (e *Engine) setRepayBy(entry *collections.BillingEntry, now time.Time) {
	if entry.RepayBy() == "" {
		entry.Set(collections.EntryRepayBy, AddDays(e.Day(now), repayDays))
	}
}

// VoidRequest is why an entry is undone.
type VoidRequest struct {
	Reason             string
	PayerControlNumber string // of the claim, from another source such as the payer's portal
	ByRefund           bool   // the practice pays the claim back itself
}

// RequestVoid undoes a submitted or paid entry: the payer is requested to void the claim (frequency
// code 8), and payments must be refunded within sixty days. For a void that is not sent yet it only
// adds the payer's claim number. Source: docs/decisions/billing.md, "Voids and refunds"; 42 CFR
// 401.305(b).
func (e *Engine) RequestVoid(v VoidRequest, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "request-void", From: []string{Submitted, Paid, VoidRequested, RefundDue}, event: audit.BillingRequestVoid, detail: v.Reason,
		set: map[string]any{collections.EntryVoidReason: v.Reason, collections.EntryBatch: ""},
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() == VoidRequested || entry.Status() == RefundDue {
			if v.PayerControlNumber == "" || entry.BatchID() != "" {
				return fault.State("invalid_transition", "The void was requested: only payer_control_number can be added, until it is sent.")
			}
			delete(m.set, collections.EntryVoidReason)
		}
		if v.PayerControlNumber != "" {
			entry.Set(collections.EntryPayerControlNumber, v.PayerControlNumber)
		}
		if err := prepareVoid(tx, entry, v.ByRefund); err != nil {
			return err
		}
		if owesRefund(entry) {
			e.setRepayBy(entry, now)
			return nil
		}
		return reverseAdjustments(tx, entry, collections.SourceByHand, by, now)
	}
	m.target = func(entry *collections.BillingEntry) string {
		if owesRefund(entry) {
			return RefundDue
		}
		return VoidRequested
	}
	m.after = announceRefundDue(now)
	return m
}

// announceRefundDue notifies billing, once, that a payment must be refunded.
func announceRefundDue(now time.Time) func(core.App, *collections.BillingEntry) error {
	return func(tx core.App, entry *collections.BillingEntry) error {
		if entry.Status() != RefundDue {
			return nil
		}
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.RefundDue, Severity: "warning", PatientID: entry.PatientID(), EntryID: entry.Id,
			Body: "Claim " + entry.ClaimID() + ": " + Cents(entry.PaidTotalCents()-entry.RefundedCents()).String() + " is to be paid back.",
			Key:  "refund-due:" + entry.Id,
		}, now)
	}
}
