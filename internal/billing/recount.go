package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// recount recounts an entry from its facts, in the transaction of a transition.
type recount struct {
	*Engine
	tx     core.App
	entry  *collections.BillingEntry
	facts  *patientFacts
	claim  claimedEntry
	actual countedFacts
	// countedCode is the code for which it was counted; "" before.
	countedCode            string
	now                    time.Time
	isSubmitting           bool     // the entry is about to be submitted
	overrideReason         string   // reason to bill despite another entry or another practice's service
	isDuplicate            bool     // another entry is possibly the same service
	isUnexplainedDuplicate bool     // a duplicate without an override reason
	limits                 []string // set by other entries; they cannot be overridden
	// hasCompetingService: another practice bills remote monitoring for the patient in the period.
	hasCompetingService bool
	// lacksOrder: monitoring was not ordered on or before the first billed day.
	lacksOrder bool
}

// newRecount loads the facts of an entry's patient.
func (e *Engine) newRecount(tx core.App, entry *collections.BillingEntry, now time.Time) (*recount, error) {
	patients, err := e.loadFacts(tx, []string{entry.PatientID()}, "1900-01-01")
	if err != nil {
		return nil, err
	}
	if patients[entry.PatientID()] == nil {
		return nil, fault.Missing()
	}
	return e.recountWithFacts(tx, entry, patients[entry.PatientID()], now), nil
}

// recountWithFacts returns the recount of an entry with loaded facts.
func (e *Engine) recountWithFacts(tx core.App, entry *collections.BillingEntry, f *patientFacts, now time.Time) *recount {
	r := &recount{Engine: e, tx: tx, entry: entry, facts: f, now: now}
	evidence := entry.Evidence()
	if entry.Source() == SourceManual && entry.Status() == PendingReview {
		evidence = "" // a review takes the current rule
	}
	r.claim = claimedEntry{
		id: entry.Id, status: entry.Status(), patient: entry.PatientID(), payer: entry.PayerID(), code: entry.CPTCode(), service: entry.ServiceDate(), source: entry.Source(),
		provider: entry.ProviderID(), period: Span{entry.PeriodStart(), entry.PeriodEnd()}, minutes: entry.Minutes(), units: entry.Units(),
		rule: e.ruleOfEvidence(evidence, monthOf(entry.PeriodStart()), f.minutesRules[entry.PayerID()]), hasDiagnoses: len(entry.ICD10Codes()) > 0,
	}
	if r.claim.provider == "" && r.claim.code != Interpretation {
		r.claim.provider = r.facts.provider // may have been recorded after the entry
	}
	return r
}

// payersRule returns the rule of minutes of the entry's payer; "" for the practice's.
func (r *recount) payersRule() string { return r.facts.minutesRules[r.entry.PayerID()] }

// loadReasons counts the facts and returns all reasons against the entry.
func (r *recount) loadReasons() ([]string, error) {
	read, err := loadDocumentation(r.tx, []*collections.BillingEntry{r.entry})
	if err != nil {
		return nil, err
	}
	return r.reasonsGiven(read[0])
}

// reasonsGiven returns all reasons against the entry, given its documentation.
func (r *recount) reasonsGiven(p documentation) ([]string, error) {
	if r.countedCode != r.claim.code { // a review has counted already
		if err := r.recountFacts(); err != nil {
			return nil, err
		}
	}
	found := r.actual
	if !r.isUnexplainedDuplicate && len(r.limits) == 0 {
		found.minutes = max(0, found.minutes-r.minutesOfOtherEntries())
	}
	reasons := append(slices.Clone(r.limits), r.blockingReasons(r.facts, r.claim, found)...)
	if r.lacksPrimary() && !slices.Contains(reasons, MissingPrimary) {
		reasons = append(reasons, MissingPrimary)
	}
	if p.hasUndocumentedTime {
		reasons = append(reasons, MissingNote)
	}
	if r.hasCompetingService = p.hasCompetingService(r.claim.period); r.hasCompetingService && r.overrideReason == "" {
		reasons = append(reasons, CompetingService)
	}
	if r.lacksOrder = p.firstOrder == "" || p.firstOrder > cmp.Or(r.actual.firstDay, r.claim.service); r.lacksOrder && r.RequireOrder {
		reasons = append(reasons, MissingOrder)
	}
	return reasons, nil
}

func (r *recount) recountFacts() error {
	found, err := r.countForDecision(r.tx, map[string]*patientFacts{r.claim.patient: r.facts}, []claimedEntry{r.claim})
	if err != nil {
		return err
	}
	r.actual, r.countedCode = found[0], r.claim.code
	return nil
}

// minutesOfOtherEntries returns the month's minutes claimed by other reviewed or submitted entries of the code or its alternative. A reason for
// a second entry does not double the minutes.
func (r *recount) minutesOfOtherEntries() (minutes int) {
	rule := baseRule(r.claim.code, r.claim.service)
	if rule.Category == "" {
		return 0
	}
	for _, code := range []string{r.claim.code, rule.Instead} {
		for _, x := range r.facts.entries[code] {
			if of := baseRule(x.Code, r.claim.service); x.ID != r.claim.id && x.overlaps(r.claim.period) && x.isActive() && x.Status != PendingReview {
				minutes += cmp.Or(of.Block, of.MinMinutes) * max(x.Units, 1)
			}
		}
	}
	return minutes
}

// upgradeCode changes a pending entry of the engine to the code for its days or minutes if these
// exceed those of its own code. It returns the previous code, or "" if unchanged. A manual entry
// keeps the code that a user chose; blockingReasons rejects it.
func (r *recount) upgradeCode() (old string) {
	if r.claim.source == SourceManual {
		return ""
	}
	next := r.upgradedCode(r.facts, r.claim.code, r.claim.period, len(r.actual.days), r.actual.minutes)
	if next == "" {
		return ""
	}
	old = r.claim.code
	if r.claim.code = next; r.claim.minutes > 0 {
		r.claim.minutes = max(r.claim.minutes, baseRule(next, r.claim.service).MinMinutes)
	}
	return old
}

// upgradeWithAudit upgrades the code of an entry and audits the change.
func (r *recount) upgradeWithAudit(by audit.Actor) error {
	old := r.upgradeCode()
	if old == "" {
		return nil
	}
	return audit.Append(r.tx, audit.Entry{
		Event: audit.BillingUpdate, Actor: by, ResourceType: audit.ResourceBillingEntry, ResourceID: r.claim.id, PatientID: r.claim.patient,
		Changes: audit.Changes{"cpt_code": {Old: old, New: r.claim.code}},
	}, r.now)
}

// upgradedCode returns the code that the days or minutes of a period support beyond another one; "" if there is none or it is billed. Source:
// docs/decisions/billing.md, "Upgrades of pending entries".
func (e *Engine) upgradedCode(f *patientFacts, code string, period Span, days, minutes int) string {
	next := map[string]string{ShortSupply: DeviceSupply, FirstTen: FirstTwenty}[code]
	if next == "" || f.hasActiveEntry(next, period) {
		return ""
	}
	if rule := baseRule(next, period.End); rule.MinDays > 0 && days >= rule.MinDays || rule.MinMinutes > 0 && minutes >= rule.MinMinutes {
		return next
	}
	return ""
}

// storeCounts writes the counts to the entry.
func (r *recount) storeCounts() error {
	w := collections.RecountedEntry{
		CPTCode: r.claim.code, ServiceDate: r.claim.service, PeriodStart: r.claim.period.Start, PeriodEnd: r.claim.period.End,
		Provider: r.claim.provider, Minutes: r.claim.minutes, Units: r.claim.units, AmountCents: r.entry.AmountCents(), ChargeCents: r.entry.ChargeCents(), ICD10Codes: r.entry.ICD10Codes(),
	}
	if len(w.ICD10Codes) == 0 {
		w.ICD10Codes = firstDiagnoses(r.facts.diagnoses)
	}
	if r.claim.code != r.entry.CPTCode() || r.claim.units != r.entry.Units() || r.claim.service != r.entry.ServiceDate() {
		t, err := r.loadPriceList(r.tx)
		if err != nil {
			return err
		}
		payer, units := collections.Number(r.entry.PayerID()), int64(r.claim.units)
		w.AmountCents, w.ChargeCents = int64(t.expectedRate(payer, r.claim.code, r.claim.service))*units, int64(t.charge(payer, r.claim.code, r.claim.service))*units
	}
	if baseRule(r.claim.code, r.claim.service).Period == ThirtyDays {
		w.TransmissionDays = new(len(r.actual.days))
		w.Evidence = DeviceEvidence{Days: r.actual.days, Devices: r.facts.devicesDuring(r.claim.period)}
	}
	r.entry.Recount(w, r.now)
	return nil
}

// realignManualPeriod moves a manual device entry to the period that contains its service date; there may have been no reading when it was
// created.
func (r *recount) realignManualPeriod() (err error) {
	if r.claim.source == SourceManual && baseRule(r.claim.code, r.claim.service).Period == ThirtyDays {
		r.claim.period, err = r.manualPeriod(r.tx, r.facts, ManualDraft{CPTCode: r.claim.code, ServiceDate: r.claim.service})
	}
	return err
}

// upgradableEntry returns the pending entry of a code that grows into another code in the same period; nil for none.
func (e *Engine) upgradableEntry(f *patientFacts, code string, period Span, days, minutes int) *existingEntry {
	x := f.entryFor(code, period)
	if x == nil || x.Status != PendingReview || x.Start != period.Start || e.upgradedCode(f, code, period, days, minutes) == "" {
		return nil
	}
	return x
}

// submittableStates are the states of a primary code with or after which its add-on code may be submitted: a pending entry may never be
// submitted, and a denied one does not exist for the payer. Source: docs/decisions/billing.md, "Recount before submission".
var submittableStates = []string{Reviewed, Submitted, Paid, Appealed}

// lacksPrimary reports whether the entry is an add-on code without its primary code in the submission.
func (r *recount) lacksPrimary() bool {
	return r.isSubmitting && r.claim.code == NextTwenty && !r.facts.hasPrimaryOf([]string{FirstTwenty}, r.claim.period, r.claim.payer, submittableStates...)
}

// PrimaryEntry is an entry that an add-on code requires.
type PrimaryEntry struct{ ID, Status, Payer string }

// PrimaryEntries returns, for each entry of an add-on code, the entries of its primary code in the same period.
func (e *Engine) PrimaryEntries(app core.App, entries []*collections.BillingEntry) (map[string][]PrimaryEntry, error) {
	found, since := map[string][]PrimaryEntry{}, "9999-12-31"
	var patients []string
	for _, entry := range entries {
		if entry.CPTCode() == NextTwenty {
			found[entry.Id], since = nil, min(since, entry.PeriodStart())
			patients = append(patients, entry.PatientID())
		}
	}
	if len(patients) == 0 {
		return found, nil
	}
	slices.Sort(patients)
	l := &factsLoader{Engine: e, app: app, ids: slices.Compact(patients), since: since, facts: map[string]*patientFacts{}}
	for _, id := range l.ids {
		l.facts[id] = &patientFacts{entries: map[string][]existingEntry{}}
	}
	if err := l.loadEntries(); err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if entry.CPTCode() != NextTwenty {
			continue
		}
		for _, x := range l.facts[entry.PatientID()].entries[FirstTwenty] {
			if x.overlaps(Span{entry.PeriodStart(), entry.PeriodEnd()}) {
				found[entry.Id] = append(found[entry.Id], PrimaryEntry{x.ID, x.Status, x.Payer})
			}
		}
	}
	return found, nil
}
