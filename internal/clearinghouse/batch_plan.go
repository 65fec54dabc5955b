package clearinghouse

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// planner puts the lines of a batch together into claims.
type planner struct {
	Engine
	app      core.App
	today    string
	chains   *claimChains
	groups   map[string]*batchClaim
	plan     batchPlan
	refusals []Refusal
}

// plan puts lines together into claims and refuses the batch when anything stands against a line.
func (h Engine) plan(app core.App, ids []string, entries []*collections.BillingEntry, now time.Time) (batchPlan, error) {
	loaded, err := h.Billing.Claims.Load(app, entries)
	if err != nil {
		return batchPlan{}, err
	}
	related, err := loadClaimChains(app, ids, h.Billing.Claims.Submitter.Usage)
	if err != nil {
		return batchPlan{}, err
	}
	p := &planner{Engine: h, app: app, today: h.Billing.Day(now), chains: related, groups: map[string]*batchClaim{}}
	tested, err := h.testBatches(app, ids)
	if err != nil {
		return batchPlan{}, err
	}
	found := map[string]bool{}
	for i, entry := range entries {
		found[entry.Id] = true
		p.add(entry, loaded[i], tested[entry.Id])
	}
	for _, id := range ids {
		if !found[id] {
			p.refuse(id, claims.Finding{Code: "not_found", Field: "entry_ids", Message: "There is no such entry."})
		}
	}
	if len(p.refusals) == 0 {
		for _, c := range p.plan.claims {
			if err := p.addCarriedLines(c); err != nil {
				return batchPlan{}, err
			}
		}
		if err := p.checkPrimaries(); err != nil {
			return batchPlan{}, err
		}
	}
	if len(p.refusals) > 0 {
		return batchPlan{}, fault.State("invalid_state", "A payer would refuse some of these lines.").With("warnings", []string{billing.PreflightErrors}).With("lines", p.refusals)
	}
	return p.plan, nil
}

func (p *planner) refuse(entryID string, found ...claims.Finding) {
	if i := slices.IndexFunc(p.refusals, func(r Refusal) bool { return r.EntryID == entryID }); i >= 0 {
		p.refusals[i].Errors = append(p.refusals[i].Errors, found...)
		return
	}
	p.refusals = append(p.refusals, Refusal{entryID, found})
}

// add puts a line on its claim. The batches are those in which it was sent as a test.
func (p *planner) add(entry *collections.BillingEntry, c claims.Claim, batches []string) {
	family, tested := p.chains.chainOf(entry.Id), slices.Contains(batches, entry.BatchID())
	unseen := family == "" && len(batches) > 0
	if unseen && c.Frequency == claims.Replacement {
		c.Frequency = claims.Original // what was sent as a test alone the payer has never seen
	}
	if wrong := p.lineErrors(entry, c, tested, unseen); len(wrong) > 0 {
		p.refuse(entry.Id, wrong...)
		return
	}
	key := strings.Join([]string{c.PatientID, c.Payer.ID, c.Provider.ID, entry.PeriodStart(), entry.PeriodEnd()}, "|")
	if c.Frequency != claims.Original {
		key = cmp.Or(family, entry.Id)
	}
	group := p.groups[key]
	if group == nil {
		group = &batchClaim{frequency: c.Frequency, payerControl: c.PayerControl, chain: family}
		p.groups[key] = group
		p.plan.claims = append(p.plan.claims, group)
	}
	if c.Frequency == claims.Replacement {
		group.frequency = claims.Replacement // of lines that are sent anew beside some that are voided
	}
	group.lines = append(group.lines, batchLine{Claim: c, entry: entry, isResend: tested || unseen})
}

// lineErrors is what keeps an entry out of a batch.
func (p *planner) lineErrors(entry *collections.BillingEntry, c claims.Claim, tested, unseen bool) []claims.Finding {
	asked := entry.Status() == billing.Submitted || entry.Status() == billing.VoidRequested
	if entry.Status() != billing.Reviewed && (!asked || entry.BatchID() != "" && !tested) {
		return []claims.Finding{{Code: WrongState, Field: "lifecycle_status", Message: "The entry is " + strings.ReplaceAll(entry.Status(), "_", " ") + ", and was sent or is not reviewed."}}
	}
	if unseen && c.Frequency == claims.VoidOfClaim {
		return []claims.Finding{{Code: claims.TestUsage, Field: "lifecycle_status", Message: "It was sent as a test alone: there is nothing that a payer could void."}}
	}
	if !entry.EvidenceChangedAt().IsZero() && c.Frequency != claims.VoidOfClaim {
		return []claims.Finding{{Code: billing.EvidenceChanged, Field: "lifecycle_status", Message: "What it was billed for does not hold any more."}}
	}
	if c.SelfPay() {
		return []claims.Finding{{Code: NotForEDI, Field: "insurance.payer_id", Message: "The patient pays: no claim is made."}}
	}
	if c.Submitter.ID == "" {
		return []claims.Finding{{Code: claims.MissingSubmitter, Field: "VIGIL_CLAIMS_SUBMITTER_ID", Message: "The submitter's id is not set."}}
	}
	return claims.Preflight(c, p.today).Errors
}

// activeStates are the states of a line that a replacement of its claim tells anew.
var activeStates = []string{billing.Submitted, billing.Paid, billing.Appealed}

// addCarriedLines completes a claim that is sent again: a replacement or a void is of the whole claim as it is known now, so that lines of it which stand are
// told anew, wherever they were sent last, and what is voided beside lines that stand is a replacement without it. What stands against a line that
// is carried stands against those that ask for the replacement. Source: ASC X12N 005010X222A1 (837P), CLM05-3.
func (p *planner) addCarriedLines(c *batchClaim) error {
	if c.frequency == claims.Original || c.chain == "" {
		return nil // it is new, or left by other ways: what stood beside it nobody here knows
	}
	members := p.chains.members(c.chain)
	chosen := len(c.lines)
	latest := c.lines[0]
	for _, l := range c.lines {
		if p.chains.compare(l.EntryID, latest.EntryID) > 0 {
			latest = l
		}
	}
	entries, err := collections.BillingEntriesByID(p.app, slices.DeleteFunc(members, func(id string) bool {
		return slices.ContainsFunc(c.lines, func(l batchLine) bool { return l.EntryID == id })
	}))
	if err != nil {
		return err
	}
	loaded, err := p.Billing.Claims.Load(p.app, entries)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if p.chains.compare(entry.Id, latest.EntryID) > 0 {
			latest = batchLine{Claim: loaded[i]}
		}
		if !slices.Contains(activeStates, entry.Status()) {
			continue
		}
		loaded[i].Frequency = claims.Replacement
		c.lines = append(c.lines, batchLine{Claim: loaded[i], entry: entry, isCarried: true})
		c.frequency = claims.Replacement
	}
	c.payerControl = cmp.Or(latest.PayerControl, c.payerControl) // the claim is known by where its lines stood last
	for _, l := range c.lines[chosen:] {
		p.checkCarriedLine(c, l)
	}
	return nil
}

// checkCarriedLine refuses a replacement that would tell anew what does not hold, or what cannot be told.
func (p *planner) checkCarriedLine(c *batchClaim, l batchLine) {
	wrong := claims.Preflight(l.Claim, p.today).Errors
	if !l.entry.EvidenceChangedAt().IsZero() {
		wrong = append(wrong, claims.Finding{Code: billing.EvidenceChanged, Field: "lifecycle_status", Message: "What it was billed for does not hold any more."})
	}
	for i := range wrong {
		wrong[i].Message = "Beside it on the claim stands " + l.ClaimID + ": " + wrong[i].Message
	}
	if len(wrong) > 0 {
		p.refuseClaim(c, wrong...)
	}
}

// refuseClaim refuses the lines that somebody chose of a claim.
func (p *planner) refuseClaim(c *batchClaim, found ...claims.Finding) {
	for _, l := range c.lines {
		if !l.isCarried {
			p.refuse(l.EntryID, found...)
		}
	}
}

// checkPrimaries refuses a line whose code stands on another one which is neither on the same claim nor on one that was sent and stands.
// Source: docs/decisions/claims.md, "Batches".
func (p *planner) checkPrimaries() error {
	var told []*collections.BillingEntry
	for _, c := range p.plan.claims {
		for _, l := range c.serviceLines() {
			told = append(told, l.entry)
		}
	}
	of, err := p.Billing.PrimaryEntries(p.app, told)
	if err != nil {
		return err
	}
	for _, c := range p.plan.claims {
		for _, l := range c.serviceLines() {
			if primary, asked := of[l.EntryID]; asked && l.Frequency != claims.VoidOfClaim && !slices.ContainsFunc(primary, func(x billing.PrimaryEntry) bool {
				return slices.Contains(activeStates, x.Status) && !p.isVoided(x.ID) || slices.ContainsFunc(c.serviceLines(), func(t batchLine) bool { return t.EntryID == x.ID })
			}) {
				p.refusePrimary(c, l)
			}
		}
	}
	return nil
}

func (p *planner) refusePrimary(c *batchClaim, l batchLine) {
	found := claims.Finding{Code: billing.MissingPrimary, Field: "lifecycle_status", Message: "The code that " + l.CPTCode + " stands on is neither on the claim nor on one that was sent."}
	if l.isCarried {
		p.refuseClaim(c, found)
		return
	}
	p.refuse(l.EntryID, found)
}

// isVoided reports whether the batch takes an entry back.
func (p *planner) isVoided(entryID string) bool {
	return slices.ContainsFunc(p.plan.claims, func(c *batchClaim) bool {
		return slices.ContainsFunc(c.lines, func(l batchLine) bool { return l.EntryID == entryID && l.Frequency == claims.VoidOfClaim })
	})
}

// testBatches are the batches in which some entries were sent as tests, where claims are sent for production now: such lines may be sent again, as what they
// are. Source: docs/decisions/claims.md, "Tests".
func (h Engine) testBatches(app core.App, entryIDs []string) (map[string][]string, error) {
	if h.Billing.Claims.Submitter.Usage != "P" {
		return map[string][]string{}, nil
	}
	lines, err := collections.LinesOfEntries(app, entryIDs, "T")
	batches := map[string][]string{}
	for _, l := range lines {
		batches[l.EntryID] = append(batches[l.EntryID], l.BatchID)
	}
	return batches, err
}
