package clearinghouse

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// SendSecondary creates a batch of claims to the secondary payers. Each claim goes with all of its
// lines, as the primary payer decided it, because the payment that it states (AMT*D) is for the
// whole claim. It is all or nothing: an error in any line is an invalid_state fault with the errors
// of each line. isResend repeats claims without an answer. Source: docs/decisions/claims.md,
// "Secondary claims".
func (h Engine) SendSecondary(app core.App, entryIDs []string, isResend bool, by audit.Actor, now time.Time) (row collections.BatchRow, err error) {
	entries, err := collections.BillingEntriesByID(app, entryIDs)
	if err != nil {
		return row, err
	}
	p := &planner{Engine: h, app: app, today: h.Billing.Day(now), isResend: isResend, groups: map[string]*batchClaim{}, plan: batchPlan{sequence: collections.SecondarySequence}}
	for _, id := range entryIDs {
		if !slices.ContainsFunc(entries, func(e *collections.BillingEntry) bool { return e.Id == id }) {
			p.addErrors(id, claims.Issue{Code: "not_found", Field: "entry_ids", Message: "There is no such entry."})
		}
	}
	for _, entry := range entries {
		if p.groups[claimOf(entry)] == nil {
			if err := p.addSecondary(entry, entryIDs); err != nil {
				return row, err
			}
		}
	}
	if len(p.refusals) > 0 {
		return row, fault.State("invalid_state", "Some of these lines cannot go to the second payer.").
			With("warnings", []string{billing.PreflightErrors}).With("lines", p.refusals)
	}
	return h.sendPlan(app, p.plan, "", by, now)
}

// claimOf returns the first payer's claim of an entry; the entry's id if it was sent by other means.
func claimOf(entry *collections.BillingEntry) string {
	return cmp.Or(entry.ClaimControlNumber(), entry.Id)
}

// addSecondary adds the claim of a selected entry with all of its lines.
func (p *planner) addSecondary(selected *collections.BillingEntry, selectedIDs []string) error {
	lines, err := p.linesOf(selected)
	if err != nil {
		return err
	}
	loaded, err := p.Billing.Claims.Load(p.app, lines)
	if err != nil {
		return err
	}
	group := &batchClaim{frequency: claims.Original}
	p.groups[claimOf(selected)] = group
	for i, entry := range lines {
		isSelected := slices.Contains(selectedIDs, entry.Id)
		problems, err := p.secondaryErrors(entry, &loaded[i], isSelected)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			id := entry.Id
			if !isSelected {
				id = selected.Id
			}
			p.addErrors(id, problems...)
		}
		group.lines = append(group.lines, batchLine{Claim: loaded[i], entry: entry, isCarried: !isSelected})
	}
	p.plan.claims = append(p.plan.claims, group)
	return nil
}

// linesOf returns the entries on the claim of an entry, in the order of its lines.
func (p *planner) linesOf(entry *collections.BillingEntry) ([]*collections.BillingEntry, error) {
	if entry.ClaimControlNumber() == "" {
		return []*collections.BillingEntry{entry}, nil
	}
	sent, err := collections.LinesOfClaim(p.app, entry.ClaimControlNumber())
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(sent))
	for i, l := range sent {
		ids[i] = l.EntryID
	}
	lines, err := collections.BillingEntriesByID(p.app, ids)
	return slices.DeleteFunc(lines, func(e *collections.BillingEntry) bool {
		return e.ClaimControlNumber() != entry.ClaimControlNumber() || billing.IsUndone(e.Status())
	}), err
}

// secondaryErrors completes a line with the first payer's decision, and returns the errors that keep it out of a claim to the second payer.
func (p *planner) secondaryErrors(entry *collections.BillingEntry, c *claims.Claim, isSelected bool) ([]claims.Issue, error) {
	code, words, err := billing.CheckSecondary(p.app, entry, isSelected, p.isResend, c.Submitter.Usage)
	if err != nil {
		return nil, err
	}
	if code != "" {
		return []claims.Issue{{Code: code, Field: "secondary", Message: words}}, nil
	}
	first, err := billing.PrimaryDecision(p.app, entry)
	if err != nil {
		return nil, err
	}
	c.PrimaryDecision, c.Frequency, c.PayerControl, c.NeedsReopening = &first, claims.Original, "", false
	if c.Submitter.ID == "" {
		return []claims.Issue{{Code: claims.MissingSubmitter, Field: "VIGIL_CLAIMS_SUBMITTER_ID", Message: "The submitter's id is not set."}}, nil
	}
	return claims.Preflight(*c, p.today).Errors, nil
}

// submitSecondary marks the lines as sent to the second payer, unless one was changed since planning.
func (h Engine) submitSecondary(tx core.App, p batchPlan, number int64, by audit.Actor, now time.Time) error {
	var refusals []LineErrors
	for _, c := range p.claims {
		for _, l := range c.lines {
			_, err := h.Billing.ApplyTransition(tx, l.EntryID, h.Billing.BillSecondary(fmt.Sprintf("%09d", number), l.entry.UpdatedAt()), by, now)
			if refusals, err = addLineErrors(refusals, l.EntryID, err); err != nil {
				return err
			}
		}
	}
	return lineErrorsFault(refusals)
}
