package billing

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Corrections are the changes of a resubmission; nil and "" leave a value as it is.
type Corrections struct {
	ICD10Codes  []string
	ServiceDate string
	Minutes     *int
	Notes       *string
	Override    string // reason to bill despite another entry or another practice's service
	// PayerControlNumber is the payer's number of the claim, from another source such as the payer's portal.
	PayerControlNumber string
	AsNewClaim         bool // the payer has no claim to replace
}

// resubmit is the name of the transition that sends a claim again.
const resubmit = "resubmit"

// Resubmit queues a denied or paid claim to be sent again, as a replacement or as a new claim. A
// resubmission that is not sent yet may be changed. Source: docs/decisions/claims.md, "Corrected
// claims".
func (e *Engine) Resubmit(c Corrections, reference string, now time.Time) Transition {
	m := e.Submit(reference, time.Time{}, now)
	m.Name, m.From, m.event = resubmit, []string{Denied, Paid, Submitted}, audit.BillingResubmit
	delete(m.set, collections.EntryOriginalReference)
	m.set[collections.EntryBatch] = "" // until its own batch
	if c.Notes != nil {
		m.set[collections.EntryNotes] = *c.Notes
	}
	m.check = func(tx core.App, entry *collections.BillingEntry) error {
		if c.PayerControlNumber != "" {
			entry.Set(collections.EntryPayerControlNumber, c.PayerControlNumber)
		}
		payer, err := payerOfEntry(tx, entry)
		if err != nil {
			return err
		}
		rows, err := collections.PaymentsOf(tx, entry.Id)
		if err != nil {
			return err
		}
		frequency, err := resubmissionFrequency(payer, entry, standingOf(entry.ChargeCents(), rows), c.AsNewClaim)
		if err != nil {
			return err
		}
		if m.set[collections.EntryClaimFrequencyCode] = frequency; frequency == claims.Original {
			m.set[collections.EntryPayerControlNumber] = "" // the payer numbers the new claim
		}
		return e.recountForResubmission(tx, entry, c, now)
	}
	return m
}

// recountForResubmission recounts a denied claim with its corrections; its period moves with the service date. Source: docs/decisions/billing.md,
// "Corrections move the period".
func (e *Engine) recountForResubmission(tx core.App, entry *collections.BillingEntry, c Corrections, now time.Time) error {
	if c.ICD10Codes != nil {
		entry.Set(collections.EntryICD10Codes, c.ICD10Codes)
	}
	r, err := e.newRecount(tx, entry, now)
	if err != nil {
		return err
	}
	r.isSubmitting, r.overrideReason = true, cmp.Or(c.Override, overrideFor(entry, CompetingService))
	moved, err := r.applyCorrections(c)
	if err != nil {
		return err
	}
	if moved && entry.Source() != SourceManual {
		if err := r.attachTime(); err != nil {
			return err
		}
	}
	if err := r.compareWithOthers(true); err != nil {
		return err
	}
	r.isUnexplainedDuplicate = r.isDuplicate && c.Override == "" && (moved || overrideFor(entry, PossibleDuplicate) == "")
	reasons, err := r.submitBlockingReasons()
	if err != nil {
		return err
	}
	if r.isUnexplainedDuplicate {
		reasons = append(reasons, PossibleDuplicate)
	}
	if err := reasonsFault(reasons); err != nil {
		return err
	}
	if err := r.storeCounts(); err != nil {
		return err
	}
	warnings := slices.DeleteFunc(keptWarnings(entry), func(w string) bool { return w == EvidenceChanged })
	if r.isDuplicate || !moved && slices.Contains(entry.Warnings(), PossibleDuplicate) {
		warnings = append(warnings, PossibleDuplicate)
	}
	if r.hasCompetingService {
		warnings = append(warnings, CompetingService)
	}
	if c.Override != "" {
		entry.Set(collections.EntryOverrideReason, c.Override)
	}
	entry.Set(collections.EntryWarnings, warnings)
	entry.Set(collections.EntryEvidenceChangedAt, "")
	entry.Set(collections.EntryRepayBy, "")
	if entry.Status() != Submitted {
		entry.Set(collections.EntryResubmissionCount, entry.ResubmissionCount()+1)
	}
	return keepCoverage(tx, entry)
}

// applyCorrections applies a user's corrections and reports whether they move the claim into another period.
func (r *recount) applyCorrections(c Corrections) (moved bool, err error) {
	before, draft := r.claim.period, ManualDraft{CPTCode: r.claim.code, ServiceDate: r.claim.service}
	if c.Minutes != nil {
		r.claim.minutes = *c.Minutes
		if rule := baseRule(r.claim.code, r.claim.service); rule.Block > 0 {
			r.claim.units = max(1, min(r.claim.minutes/rule.Block, r.MaxUnits99458))
		}
	}
	if c.ServiceDate == "" || c.ServiceDate == r.claim.service {
		return false, nil
	}
	if _, ok := r.Rule(r.claim.code, c.ServiceDate); !ok {
		return false, fault.Field("corrections.service_date", "The code is not in force on this service date.")
	}
	draft.ServiceDate, r.claim.service = c.ServiceDate, c.ServiceDate
	if r.claim.source != SourceManual && before.contains(c.ServiceDate) {
		return false, nil // another day of the same period
	}
	r.claim.period, err = r.manualPeriod(r.tx, r.facts, draft)
	if moved = r.claim.period != before; moved {
		r.claim.rule = r.timeRule(r.ruleNameOf(monthOf(r.claim.period.Start), r.payersRule())) // it claims other time
	}
	return moved, err
}

// attachTime attaches a moved claim to the time of its new period and releases that of the old one.
func (r *recount) attachTime() error {
	if err := collections.ReleaseBilledTime(r.tx, r.claim.id, r.now); err != nil {
		return err
	}
	if baseRule(r.claim.code, r.claim.service).Category == "" {
		return nil
	}
	ids, err := r.recordTime()
	if err != nil {
		return err
	}
	return markTimeBilled(r.tx, r.claim.id, ids, r.now)
}

// recordTime stores in the entry's evidence which time its minutes consist of, and by which rule, and returns that time.
func (r *recount) recordTime() ([]string, error) {
	from, month := baseRule(r.claim.code, r.claim.service).minutesBefore(), monthOf(r.claim.period.Start)
	times, err := r.loggedTimeByRule(r.tx, []string{r.claim.patient}, month, r.claim.rule)
	if err != nil {
		return nil, err
	}
	counting := r.dropUncountedTime(r.facts, times[r.claim.patient], month)
	setCounted(counting)
	block := r.newBlock(counting, from*60, (from+r.claim.minutes)*60)
	evidence, err := json.Marshal(TimeEvidence{timeEntryNumbers(block.TimeEntryIDs), month.Start[:7], ruleName(r.claim.rule)})
	if err != nil {
		return nil, err
	}
	r.entry.SetEvidence(string(evidence))
	return block.TimeEntryIDs, nil
}
