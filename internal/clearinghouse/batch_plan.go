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

// planner groups the lines of a batch into claims.
type planner struct {
	Engine
	app      core.App
	today    string
	chains   *claimChains
	groups   map[string]*batchClaim
	plan     batchPlan
	refusals []LineErrors
	isResend bool // of claims to the second payer without an answer
}

// plan groups lines into claims, and rejects the batch if any line has an error.
func (h Engine) plan(app core.App, ids []string, entries []*collections.BillingEntry, now time.Time) (batchPlan, error) {
	loaded, err := h.Billing.Claims.Load(app, entries)
	if err != nil {
		return batchPlan{}, err
	}
	chains, err := loadClaimChains(app, ids, h.Billing.Claims.Submitter.Usage)
	if err != nil {
		return batchPlan{}, err
	}
	p := &planner{Engine: h, app: app, today: h.Billing.Day(now), chains: chains, groups: map[string]*batchClaim{}}
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
			p.addErrors(id, claims.Issue{Code: "not_found", Field: "entry_ids", Message: "There is no such entry."})
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
		return batchPlan{}, fault.State("invalid_state", "A payer would reject some of these lines.").With("warnings", []string{billing.PreflightErrors}).With("lines", p.refusals)
	}
	return p.plan, nil
}

func (p *planner) addErrors(entryID string, found ...claims.Issue) {
	if i := slices.IndexFunc(p.refusals, func(r LineErrors) bool { return r.EntryID == entryID }); i >= 0 {
		p.refusals[i].Errors = append(p.refusals[i].Errors, found...)
		return
	}
	p.refusals = append(p.refusals, LineErrors{entryID, found})
}

// add adds a line to its claim. batches are those in which it was sent as a test.
func (p *planner) add(entry *collections.BillingEntry, c claims.Claim, batches []string) {
	chain, tested := p.chains.chainOf(entry.Id), slices.Contains(batches, entry.BatchID())
	testOnly := chain == "" && len(batches) > 0
	if testOnly && c.Frequency == claims.Replacement {
		c.Frequency = claims.Original // the payer never received a test
	}
	if problems := p.lineErrors(entry, c, tested, testOnly); len(problems) > 0 {
		p.addErrors(entry.Id, problems...)
		return
	}
	key := strings.Join([]string{c.PatientID, c.Payer.ID, c.Provider.ID, entry.PeriodStart(), entry.PeriodEnd()}, "|")
	if c.Frequency != claims.Original {
		key = cmp.Or(chain, entry.Id)
	}
	group := p.groups[key]
	if group == nil {
		group = &batchClaim{frequency: c.Frequency, payerControl: c.PayerControl, chain: chain}
		p.groups[key] = group
		p.plan.claims = append(p.plan.claims, group)
	}
	if c.Frequency == claims.Replacement {
		group.frequency = claims.Replacement // some lines are resent, others voided
	}
	group.lines = append(group.lines, batchLine{Claim: c, entry: entry, isResend: tested || testOnly})
}

// lineErrors returns the errors that keep an entry out of a batch.
func (p *planner) lineErrors(entry *collections.BillingEntry, c claims.Claim, tested, testOnly bool) []claims.Issue {
	resendable := entry.Status() == billing.Submitted || entry.Status() == billing.VoidRequested || entry.Status() == billing.RefundDue && c.Frequency == claims.VoidOfClaim
	if entry.Status() != billing.Reviewed && (!resendable || entry.BatchID() != "" && !tested) {
		return []claims.Issue{{Code: WrongState, Field: "lifecycle_status", Message: "The entry is " + strings.ReplaceAll(entry.Status(), "_", " ") + ": it was sent already or is not reviewed."}}
	}
	if testOnly && c.Frequency == claims.VoidOfClaim {
		return []claims.Issue{{Code: claims.TestUsage, Field: "lifecycle_status", Message: "It was only sent as a test: the payer has no claim to void."}}
	}
	if c.Frequency == claims.VoidOfClaim && !c.SelfPay() && !c.Payer.TakesReplacements() {
		return []claims.Issue{{Code: billing.ReopeningRequired, Field: "payer.corrected_claims", Message: "The payer takes no void by file: request a reopening from the payer, and record its answer with void/ or refund/."}}
	}
	if !entry.EvidenceChangedAt().IsZero() && c.Frequency != claims.VoidOfClaim {
		return []claims.Issue{{Code: billing.EvidenceChanged, Field: "lifecycle_status", Message: "The facts no longer support it."}}
	}
	if c.SelfPay() {
		return []claims.Issue{{Code: NotForEDI, Field: "insurance.payer_id", Message: "The patient pays: no claim is sent."}}
	}
	if c.Submitter.ID == "" {
		return []claims.Issue{{Code: claims.MissingSubmitter, Field: "VIGIL_CLAIMS_SUBMITTER_ID", Message: "The submitter's id is not set."}}
	}
	return claims.Preflight(c, p.today).Errors
}

// activeStates are the states of a line that a replacement of its claim repeats.
var activeStates = []string{billing.Submitted, billing.Paid, billing.Appealed}

// addCarriedLines completes a claim that is sent again: a replacement or void covers the whole claim, so that its other active lines are
// repeated, and a void of some lines is a replacement without them. Errors of a carried line count against the lines that require the
// replacement. Source: ASC X12N 005010X222A1 (837P), CLM05-3.
func (p *planner) addCarriedLines(c *batchClaim) error {
	if c.frequency == claims.Original || c.chain == "" {
		return nil // new, or sent by other means: its other lines are not on record
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
		loaded[i].PayerControl = cmp.Or(loaded[i].PayerControl, c.payerControl)
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
	c.payerControl = cmp.Or(latest.PayerControl, c.payerControl) // the payer has the claim under its latest line
	for _, l := range c.lines[chosen:] {
		p.checkCarriedLine(c, l)
	}
	return nil
}

// checkCarriedLine rejects a replacement that would repeat an unsupported or invalid line.
func (p *planner) checkCarriedLine(c *batchClaim, l batchLine) {
	problems := claims.Preflight(l.Claim, p.today).Errors
	if !l.entry.EvidenceChangedAt().IsZero() {
		problems = append(problems, claims.Issue{Code: billing.EvidenceChanged, Field: "lifecycle_status", Message: "The facts no longer support it."})
	}
	for i := range problems {
		problems[i].Message = "The same claim contains " + l.ClaimID + ": " + problems[i].Message
	}
	if len(problems) > 0 {
		p.addClaimErrors(c, problems...)
	}
}

// addClaimErrors refuses the lines of a claim that the user selected.
func (p *planner) addClaimErrors(c *batchClaim, found ...claims.Issue) {
	for _, l := range c.lines {
		if !l.isCarried {
			p.addErrors(l.EntryID, found...)
		}
	}
}

// checkPrimaries refuses an add-on code without its primary code on the same claim or on an active claim that the payer got earlier. Source:
// docs/decisions/claims.md, "Batches".
func (p *planner) checkPrimaries() error {
	var sentEntries []*collections.BillingEntry
	for _, c := range p.plan.claims {
		for _, l := range c.serviceLines() {
			sentEntries = append(sentEntries, l.entry)
		}
	}
	of, err := p.Billing.PrimaryEntries(p.app, sentEntries)
	if err != nil {
		return err
	}
	for _, c := range p.plan.claims {
		for _, l := range c.serviceLines() {
			if primary, isAddOn := of[l.EntryID]; isAddOn && l.Frequency != claims.VoidOfClaim && !slices.ContainsFunc(primary, func(x billing.PrimaryEntry) bool {
				return x.Payer == l.Payer.ID && slices.Contains(activeStates, x.Status) && !p.isVoided(x.ID) || slices.ContainsFunc(c.serviceLines(), func(t batchLine) bool { return t.EntryID == x.ID })
			}) {
				p.refusePrimary(c, l)
			}
		}
	}
	return nil
}

func (p *planner) refusePrimary(c *batchClaim, l batchLine) {
	found := claims.Issue{Code: billing.MissingPrimary, Field: "lifecycle_status", Message: "The primary code of " + l.CPTCode + " is neither on this claim nor on one sent to this payer earlier."}
	if l.isCarried {
		p.addClaimErrors(c, found)
		return
	}
	p.addErrors(l.EntryID, found)
}

// isVoided reports whether the batch voids an entry.
func (p *planner) isVoided(entryID string) bool {
	return slices.ContainsFunc(p.plan.claims, func(c *batchClaim) bool {
		return slices.ContainsFunc(c.lines, func(l batchLine) bool { return l.EntryID == entryID && l.Frequency == claims.VoidOfClaim })
	})
}

// testBatches returns the batches in which entries were sent as tests, if claims are now sent for production: such lines may be sent again.
// Source: docs/decisions/claims.md, "Tests".
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

// claimChains groups claims that replace one another, as far as the receiver has them: a line that is sent again moves to a newer claim,
// together with the other lines of its claim. It is a union-find. Source: docs/decisions/claims.md, "Batches".
type claimChains struct {
	parent  map[string]string                // an earlier claim of the same chain; the first claim is its own parent
	current map[string]collections.ClaimLine // where each entry of the claims is now
}

// loadClaimChains follows the claims of entries to all claims that replaced them or were replaced by them. With usage P, only production claims
// count: a payer never received the others.
func loadClaimChains(app core.App, entryIDs []string, usage string) (*claimChains, error) {
	f := &claimChains{map[string]string{}, map[string]collections.ClaimLine{}}
	if usage != "P" {
		usage = ""
	}
	seen := map[string]bool{}
	for len(entryIDs) > 0 {
		lines, err := collections.LinesOfEntries(app, entryIDs, usage)
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if before, ok := f.current[l.EntryID]; ok && l.Frequency != "1" {
				f.join(before.Claim, l.Claim)
			}
			f.current[l.EntryID] = l
		}
		var claims []string
		for _, l := range lines {
			if !seen[l.Claim] {
				seen[l.Claim] = true
				claims = append(claims, l.Claim)
			}
		}
		others, err := collections.EntriesOfClaims(app, claims)
		if err != nil {
			return nil, err
		}
		entryIDs = slices.DeleteFunc(others, func(id string) bool { _, found := f.current[id]; return found })
	}
	return f, nil
}

// rootOf returns the chain of a claim, identified by its first claim.
func (c *claimChains) rootOf(claim string) string {
	for c.parent[claim] != "" && c.parent[claim] != claim {
		claim = c.parent[claim]
	}
	return claim
}

func (c *claimChains) join(a, b string) {
	a, b = c.rootOf(a), c.rootOf(b)
	c.parent[max(a, b)] = min(a, b)
}

// chainOf returns the chain of an entry; "" if the receiver has none.
func (c *claimChains) chainOf(entryID string) string {
	return c.rootOf(c.current[entryID].Claim)
}

// members returns the entries of a chain, in order of sending.
func (c *claimChains) members(chain string) (ids []string) {
	for id, l := range c.current {
		if c.rootOf(l.Claim) == chain {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, c.compare)
	return ids
}

// compare orders entries by their current line: earlier sent first.
func (c *claimChains) compare(a, b string) int {
	return strings.Compare(c.current[a].Line, c.current[b].Line)
}
