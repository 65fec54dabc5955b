package billing

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// What sent a claim back, as its warning.
const (
	RejectedSyntax = "rejected_999"
	RejectedStatus = "rejected_277ca"
)

// Reject takes in that a claim was sent back before anybody decided about it: it waits, reviewed, to be put right and sent anew; one that was to be
// voided waits to be sent so again. Source: docs/decisions/claims.md, "Responses".
func (e *Engine) Reject(source string, codes []string, now time.Time) Transition {
	warning := RejectedStatus
	if source == "999" {
		warning = RejectedSyntax
	}
	return Transition{
		Name: "reject", From: []string{Submitted, VoidRequested}, event: audit.BillingReject, detail: source + " " + strings.Join(codes, " "),
		target: func(entry *collections.BillingEntry) string {
			if entry.Status() == VoidRequested {
				return VoidRequested
			}
			return Reviewed
		},
		check: func(_ core.App, entry *collections.BillingEntry) error {
			entry.Set(collections.EntryRejection, collections.Rejection{Source: source, Codes: codes, At: collections.Instant(now)})
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

// withoutRejections are warnings but for those of a claim that is sent anew.
func withoutRejections(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool { return w == RejectedSyntax || w == RejectedStatus })
}
