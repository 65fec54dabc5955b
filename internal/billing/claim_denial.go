package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Deny records the payer's reason for a denial and notifies billing.
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
