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

// Review approves an entry for submission. It is refused if the facts do not support the entry, if escalation time is not attested, and for a
// possible duplicate without a reason.
func (e *Engine) Review(by audit.Actor, notes, override string, attested bool, now time.Time) Transition {
	m := Transition{Name: "review", From: []string{PendingReview}, To: Reviewed, event: audit.BillingReview, detail: notes}
	m.set = map[string]any{collections.EntryReviewedBy: by.Email, collections.EntryReviewedAt: collections.FormatInstant(now)}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if e.needsSecondReviewer(entry, by) {
			return fault.State("invalid_state", "Another user must review an entry that you created.")
		}
		return e.recountForReview(tx, entry, by, override, attested, now)
	}
	return m
}

// needsSecondReviewer reports whether another user must review an entry.
func (e *Engine) needsSecondReviewer(entry *collections.BillingEntry, by audit.Actor) bool {
	return e.RequireSecondReviewer && entry.Source() == SourceManual && strings.EqualFold(entry.CreatedBy(), by.Email)
}

// recountForReview recounts an entry and stores the result.
func (e *Engine) recountForReview(tx core.App, entry *collections.BillingEntry, by audit.Actor, override string, attested bool, now time.Time) error {
	r, err := e.newRecount(tx, entry, now)
	if err != nil {
		return err
	}
	if err := r.realignManualPeriod(); err != nil {
		return err
	}
	if err := r.recountFacts(); err != nil {
		return err
	}
	if err := r.upgradeWithAudit(by); err != nil {
		return err
	}
	twice, reasons, err := r.reviewBlockingReasons(override, r.loadReasons)
	if err != nil {
		return err
	}
	waits, err := e.attestInReview(tx, entry, by, attested, now)
	if err != nil {
		return err
	}
	warnings := keptWarnings(entry)
	if waits {
		reasons = append(reasons, AttestInteraction)
	} else if i := slices.Index(warnings, AttestInteraction); i >= 0 {
		warnings = slices.Delete(warnings, i, i+1)
		entry.Set(collections.EntryAttested, true)
	}
	if twice {
		if warnings = append(warnings, PossibleDuplicate); override == "" {
			reasons = append(reasons, PossibleDuplicate)
		}
	}
	if err := reasonsFault(reasons); err != nil {
		return err
	}
	if r.lacksOrder {
		warnings = append(warnings, MissingOrder)
	}
	if r.hasCompetingService {
		warnings = append(warnings, CompetingService)
	}
	entry.Set(collections.EntryOverrideReason, override)
	entry.Set(collections.EntryWarnings, warnings)
	if r.claim.source == SourceManual && baseRule(r.claim.code, r.claim.service).Category == collections.Interactive {
		if _, err := r.recordTime(); err != nil {
			return err
		}
	}
	return r.storeCounts()
}

// reviewBlockingReasons reports whether an entry is a duplicate, and the reasons against its review other than that and unattested minutes.
func (r *recount) reviewBlockingReasons(override string, reasons func() ([]string, error)) (twice bool, against []string, err error) {
	if err = r.compareWithOthers(slices.Contains(r.entry.Warnings(), PossibleDuplicate)); err != nil {
		return false, nil, err
	}
	r.overrideReason, r.isUnexplainedDuplicate = override, r.isDuplicate && override == ""
	against, err = reasons()
	return r.isDuplicate, against, err
}

// ReturnToReview sends a reviewed entry back for review; one without a payer gets the patient's.
func (e *Engine) ReturnToReview(reason string) Transition {
	return Transition{
		Name: "return", From: []string{Reviewed}, To: PendingReview, event: audit.BillingReturn, detail: reason,
		set:   map[string]any{collections.EntryReviewedBy: "", collections.EntryReviewedAt: ""},
		check: e.adoptPayer,
	}
}
