package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Void removes an entry that was not submitted, or that its payer voided, from lists and totals; its time entries can be edited again.
func (e *Engine) Void(reason string, now time.Time) Transition {
	return Transition{
		Name: "void", From: []string{PendingReview, Reviewed, VoidRequested}, To: Voided, event: audit.BillingVoid, detail: reason, set: map[string]any{collections.EntryVoidReason: reason},
		after: func(tx core.App, entry *collections.BillingEntry) error {
			return collections.ReleaseBilledTime(tx, entry.Id, now)
		},
	}
}

// RequestVoid undoes a submitted or paid entry: the payer is requested to void the claim (frequency code 8), or its payment must be refunded
// within sixty days. Source: docs/decisions/billing.md, "Voids and refunds"; 42 CFR 401.305(b).
func (e *Engine) RequestVoid(reason string, by audit.Actor, now time.Time) Transition {
	m := Transition{
		Name: "request-void", From: []string{Submitted, Paid}, event: audit.BillingRequestVoid, detail: reason,
		set: map[string]any{collections.EntryVoidReason: reason, collections.EntryBatch: ""},
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if entry.PaidTotalCents() > 0 {
			if entry.RepayBy() == "" {
				entry.Set(collections.EntryRepayBy, AddDays(e.Day(now), repayDays))
			}
			return nil
		}
		entry.Set(collections.EntryClaimFrequencyCode, "8") // X12 837P: void of a prior claim
		return reverseAdjustments(tx, entry, by, now)
	}
	m.target = func(entry *collections.BillingEntry) string {
		if entry.PaidTotalCents() > 0 {
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
