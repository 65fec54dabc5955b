package billing

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// Why a claim was rejected, as a warning.
const (
	RejectedSyntax = "rejected_999"
	RejectedStatus = "rejected_277ca"
)

// Reject records that a claim was rejected before adjudication: it returns to reviewed, to be corrected and sent again. A requested void stays
// requested. Source: docs/decisions/claims.md, "Responses".
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

// withoutRejections returns the warnings without those of a rejection.
func withoutRejections(warnings []string) []string {
	return slices.DeleteFunc(warnings, func(w string) bool { return w == RejectedSyntax || w == RejectedStatus })
}
