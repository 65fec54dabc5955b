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

// planning puts the lines of a batch together into claims.
type planning struct {
	House
	app      core.App
	today    string
	families *families
	groups   map[string]*sent
	plan     plan
	refusals []Refusal
}

// plan puts lines together into claims and refuses the batch when anything stands against a line.
func (h House) plan(app core.App, ids []string, entries []*collections.BillingEntry, now time.Time) (plan, error) {
	loaded, err := h.Billing.Claims.Load(app, entries)
	if err != nil {
		return plan{}, err
	}
	related, err := familiesOf(app, ids, h.Billing.Claims.Submitter.Usage)
	if err != nil {
		return plan{}, err
	}
	p := &planning{House: h, app: app, today: h.Billing.Day(now), families: related, groups: map[string]*sent{}}
	tested, err := h.tested(app, ids)
	if err != nil {
		return plan{}, err
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
			if err := p.carry(c); err != nil {
				return plan{}, err
			}
		}
		if err := p.primaries(); err != nil {
			return plan{}, err
		}
	}
	if len(p.refusals) > 0 {
		return plan{}, fault.State("invalid_state", "A payer would refuse some of these lines.").With("warnings", []string{billing.PreflightErrors}).With("lines", p.refusals)
	}
	return p.plan, nil
}

func (p *planning) refuse(entryID string, found ...claims.Finding) {
	if i := slices.IndexFunc(p.refusals, func(r Refusal) bool { return r.EntryID == entryID }); i >= 0 {
		p.refusals[i].Errors = append(p.refusals[i].Errors, found...)
		return
	}
	p.refusals = append(p.refusals, Refusal{entryID, found})
}

// add puts a line on its claim. The batches are those in which it was sent as a test.
func (p *planning) add(entry *collections.BillingEntry, c claims.Claim, batches []string) {
	family, tested := p.families.claim(entry.Id), slices.Contains(batches, entry.BatchID())
	unseen := family == "" && len(batches) > 0
	if unseen && c.Frequency == claims.Replacement {
		c.Frequency = claims.Original // what was sent as a test alone the payer has never seen
	}
	if wrong := p.against(entry, c, tested, unseen); len(wrong) > 0 {
		p.refuse(entry.Id, wrong...)
		return
	}
	key := strings.Join([]string{c.PatientID, c.Payer.ID, c.Provider.ID, entry.PeriodStart(), entry.PeriodEnd()}, "|")
	if c.Frequency != claims.Original {
		key = cmp.Or(family, entry.Id)
	}
	group := p.groups[key]
	if group == nil {
		group = &sent{frequency: c.Frequency, payer: c.PayerControl, family: family}
		p.groups[key] = group
		p.plan.claims = append(p.plan.claims, group)
	}
	if c.Frequency == claims.Replacement {
		group.frequency = claims.Replacement // of lines that are sent anew beside some that are voided
	}
	group.lines = append(group.lines, sentLine{Claim: c, entry: entry, again: tested || unseen})
}

// against is what keeps an entry out of a batch.
func (p *planning) against(entry *collections.BillingEntry, c claims.Claim, tested, unseen bool) []claims.Finding {
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

// stand are the states of a line that a replacement of its claim tells anew.
var stand = []string{billing.Submitted, billing.Paid, billing.Appealed}

// carry completes a claim that is sent again: a replacement or a void is of the whole claim as it is known now, so that lines of it which stand are
// told anew, wherever they were sent last, and what is voided beside lines that stand is a replacement without it. What stands against a line that
// is carried stands against those that ask for the replacement. Source: ASC X12N 005010X222A1 (837P), CLM05-3.
func (p *planning) carry(c *sent) error {
	if c.frequency == claims.Original || c.family == "" {
		return nil // it is new, or left by other ways: what stood beside it nobody here knows
	}
	members := p.families.members(c.family)
	chosen := len(c.lines)
	latest := c.lines[0]
	for _, l := range c.lines {
		if p.families.compare(l.EntryID, latest.EntryID) > 0 {
			latest = l
		}
	}
	entries, err := collections.BillingEntriesByID(p.app, slices.DeleteFunc(members, func(id string) bool {
		return slices.ContainsFunc(c.lines, func(l sentLine) bool { return l.EntryID == id })
	}))
	if err != nil {
		return err
	}
	loaded, err := p.Billing.Claims.Load(p.app, entries)
	if err != nil {
		return err
	}
	for i, entry := range entries {
		if p.families.compare(entry.Id, latest.EntryID) > 0 {
			latest = sentLine{Claim: loaded[i]}
		}
		if !slices.Contains(stand, entry.Status()) {
			continue
		}
		loaded[i].Frequency = claims.Replacement
		c.lines = append(c.lines, sentLine{Claim: loaded[i], entry: entry, carried: true})
		c.frequency = claims.Replacement
	}
	c.payer = cmp.Or(latest.PayerControl, c.payer) // the claim is known by where its lines stood last
	for _, l := range c.lines[chosen:] {
		p.carriedAgainst(c, l)
	}
	return nil
}

// carriedAgainst refuses a replacement that would tell anew what does not hold, or what cannot be told.
func (p *planning) carriedAgainst(c *sent, l sentLine) {
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
func (p *planning) refuseClaim(c *sent, found ...claims.Finding) {
	for _, l := range c.lines {
		if !l.carried {
			p.refuse(l.EntryID, found...)
		}
	}
}

// primaries refuses a line whose code stands on another one which is neither on the same claim nor on one that was sent and stands.
// Source: docs/decisions/claims.md, "Batches".
func (p *planning) primaries() error {
	var told []*collections.BillingEntry
	for _, c := range p.plan.claims {
		for _, l := range c.told() {
			told = append(told, l.entry)
		}
	}
	of, err := p.Billing.Primaries(p.app, told)
	if err != nil {
		return err
	}
	for _, c := range p.plan.claims {
		for _, l := range c.told() {
			if primary, asked := of[l.EntryID]; asked && l.Frequency != claims.VoidOfClaim && !slices.ContainsFunc(primary, func(x billing.Primary) bool {
				return slices.Contains(stand, x.Status) && !p.voided(x.ID) || slices.ContainsFunc(c.told(), func(t sentLine) bool { return t.EntryID == x.ID })
			}) {
				p.refusePrimary(c, l)
			}
		}
	}
	return nil
}

func (p *planning) refusePrimary(c *sent, l sentLine) {
	found := claims.Finding{Code: billing.MissingPrimary, Field: "lifecycle_status", Message: "The code that " + l.CPTCode + " stands on is neither on the claim nor on one that was sent."}
	if l.carried {
		p.refuseClaim(c, found)
		return
	}
	p.refuse(l.EntryID, found)
}

// voided reports whether the batch takes an entry back.
func (p *planning) voided(entryID string) bool {
	return slices.ContainsFunc(p.plan.claims, func(c *sent) bool {
		return slices.ContainsFunc(c.lines, func(l sentLine) bool { return l.EntryID == entryID && l.Frequency == claims.VoidOfClaim })
	})
}

// told are the lines that the file has: on a replacement none that is to be voided.
func (c *sent) told() []sentLine {
	if c.frequency != claims.Replacement {
		return c.lines
	}
	return slices.DeleteFunc(slices.Clone(c.lines), func(l sentLine) bool { return l.Frequency == claims.VoidOfClaim })
}

// tested are the batches in which some entries were sent as tests, where claims are sent for production now: such lines may be sent again, as what they
// are. Source: docs/decisions/claims.md, "Tests".
func (h House) tested(app core.App, entryIDs []string) (map[string][]string, error) {
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
