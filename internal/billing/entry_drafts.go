package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// entryDraft is an entry that the engine will store, or a change of units of the pending entry toRaise.
type entryDraft struct {
	patient        *patientFacts
	code           string
	period         Span
	service        string
	minutes, units int
	days           *int
	source         string
	warnings       []string
	evidence       any
	timeEntryIDs   []string // marked as billed with the entry
	toRaise        *existingEntry
}

// CreatedEntry is an entry that a run created or raised.
type CreatedEntry struct {
	ID        string `json:"id"`
	PatientID string `json:"patient_id"`
	CPTCode   string `json:"cpt_code"`
}

// SkippedEntry is an entry that a run did not create, with the reason.
type SkippedEntry struct {
	PatientID string `json:"patient_id"`
	CPTCode   string `json:"cpt_code"`
	Reason    string `json:"reason"`
}

// storeDrafts stores drafts in the transaction, each once.
func (e *Engine) storeDrafts(tx core.App, t priceList, drafts []entryDraft, now time.Time) (created []CreatedEntry, err error) {
	if len(drafts) == 0 {
		return nil, nil
	}
	tx = collections.WithStatementCache(tx)
	chain, err := audit.NewChain(tx)
	if err != nil {
		return nil, err
	}
	ids, err := e.insertDrafts(tx, t, drafts, now)
	if err != nil {
		return nil, err
	}
	for i, d := range drafts {
		id, event, old := ids[i], audit.BillingCreate, any(nil)
		if d.toRaise != nil {
			id, event, old = d.toRaise.ID, audit.BillingUpdate, d.toRaise.Code
			err = addUnits(tx, t, d, now)
		}
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue // another run stored it
		}
		if err := markTimeBilled(tx, id, d.timeEntryIDs, now); err != nil {
			return nil, err
		}
		err := chain.Add(audit.Entry{
			Event: event, Actor: audit.System(), ResourceType: audit.ResourceBillingEntry, ResourceID: id, PatientID: d.patient.id,
			Changes: audit.Changes{"lifecycle_status": {New: PendingReview}, "cpt_code": {Old: old, New: d.code}, "units": {New: d.units}},
		}, now)
		if err != nil {
			return nil, err
		}
		created = append(created, CreatedEntry{id, d.patient.id, d.code})
	}
	if err := chain.Store(); err != nil {
		return nil, err
	}
	return created, announceAttestations(tx, drafts, created, now)
}

// announceAttestations notifies billing of new entries with escalation time to attest.
func announceAttestations(tx core.App, drafts []entryDraft, created []CreatedEntry, now time.Time) error {
	waiting := map[string]bool{}
	for _, d := range drafts {
		if slices.Contains(d.warnings, AttestInteraction) {
			waiting[d.patient.id+d.code] = true
		}
	}
	for _, c := range created {
		if !waiting[c.PatientID+c.CPTCode] {
			continue
		}
		err := notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.AttestationNeeded, Severity: "info", PatientID: c.PatientID, EntryID: c.ID,
			Body: "Escalation time of " + c.CPTCode + " has to be attested.", Key: "attest:" + c.ID,
		}, now)
		if err != nil {
			return err
		}
	}
	return nil
}

// insertDrafts stores the new entries among drafts and returns one id per draft: "" for a draft that raises an entry or that another run stored
// first.
func (e *Engine) insertDrafts(tx core.App, t priceList, drafts []entryDraft, now time.Time) (ids []string, err error) {
	claims, err := collections.NextClaimIDs(tx, now.In(e.Zone).Year(), countNew(drafts))
	if err != nil {
		return nil, err
	}
	ids = make([]string, len(drafts))
	entries := make([]collections.BillingDraft, 0, len(claims))
	for i, d := range drafts {
		if d.toRaise != nil {
			continue
		}
		ids[i] = collections.NewUUID()
		entries = append(entries, e.newEntry(t, d, ids[i], claims[len(entries)]))
	}
	stored, err := collections.InsertBillingEntries(tx, entries, now)
	for i, id := range ids {
		if !stored[id] {
			ids[i] = ""
		}
	}
	return ids, err
}

func countNew(drafts []entryDraft) (n int) {
	for _, d := range drafts {
		if d.toRaise == nil {
			n++
		}
	}
	return n
}

func (e *Engine) newEntry(t priceList, d entryDraft, id, claim string) collections.BillingDraft {
	payerID, payerName := t.payerOf(d.patient.payer)
	return collections.BillingDraft{
		ID: id, ClaimID: claim, PatientID: d.patient.id, CPTCode: d.code, ServiceDate: d.service, Minutes: d.minutes, Units: d.units,
		AmountCents: int64(t.expectedRate(d.patient.payer, d.code, d.service)) * int64(d.units),
		ChargeCents: int64(t.charge(d.patient.payer, d.code, d.service)) * int64(d.units), Source: d.source, CreatedBy: "system",
		PayerID: payerID, PayerName: payerName, Provider: d.patient.provider, ICD10Codes: firstDiagnoses(d.patient.diagnoses), Warnings: d.warnings,
		PeriodStart: d.period.Start, PeriodEnd: d.period.End, TransmissionDays: d.days, Evidence: d.evidence,
	}
}

// maxDiagnoses is how many diagnoses a claim form carries. Source: docs/decisions/billing.md, "ICD-10".
const maxDiagnoses = 12

func firstDiagnoses(codes []string) []string { return codes[:min(len(codes), maxDiagnoses)] }

// addUnits adds units to an entry that is pending review.
func addUnits(tx core.App, t priceList, d entryDraft, now time.Time) error {
	payer := collections.Number(d.toRaise.Payer) // the patient's may be another one now
	return collections.UpgradeBillingEntry(tx, collections.EntryUpgrade{
		ID: d.toRaise.ID, CPTCode: d.code, Days: d.days, ServiceDate: d.service, Minutes: d.minutes, Units: d.units, Evidence: d.evidence, Warnings: d.warnings,
		AmountCents: int64(t.expectedRate(payer, d.code, d.service)) * int64(d.units),
		ChargeCents: int64(t.charge(payer, d.code, d.service)) * int64(d.units),
	}, now)
}

// markTimeBilled locks the time entries that an entry bills.
func markTimeBilled(tx core.App, entryID string, times []string, now time.Time) error {
	for _, id := range times {
		if err := collections.MarkTimeBilled(tx, entryID, id, now); err != nil {
			return err
		}
	}
	return nil
}

// DeviceEvidence is the evidence of a device entry.
type DeviceEvidence struct {
	Days    []string `json:"days,omitempty"`
	Devices []string `json:"devices,omitempty"`
	Setup   string   `json:"setup_date,omitempty"`
	SetupBy string   `json:"setup_by,omitempty"`
}

// draftDeviceEntries returns the entries that the days of the periods support: one supply entry for each period, and the setup with the first. A
// lenient run drafts an entry with a warning if something is missing; a strict run skips it.
func (e *Engine) draftDeviceEntries(f *patientFacts, windows []supplyPeriod, lenient bool) (due []entryDraft, skipped []SkippedEntry) {
	supplied := []string{} // days of supply
	if f.lastSupply != "" {
		supplied = append(supplied, f.lastSupply)
	}
	for _, w := range windows {
		period := Span{w.Start, w.End}
		service := f.serviceDayOf(period)
		code := e.supplyCode(f, len(w.days), service)
		if code == "" {
			if lost := e.supplyCode(f, len(w.days)+w.unconsentedDays, w.End); lost != "" && f.entryFor(lost, period) == nil {
				skipped = append(skipped, SkippedEntry{f.id, lost, MissingConsent})
			}
			continue
		}
		supply := entryDraft{
			patient: f, code: code, period: period, service: service, units: 1, days: new(len(w.days)), source: SourceDevice,
			evidence: DeviceEvidence{Days: w.days, Devices: f.devicesDuring(period)},
		}
		if other := f.entryFor(code, period); other != nil {
			if !IsUndone(other.Status) {
				supplied = append(supplied, w.End)
			}
			skipped = appendBlockedBy(skipped, f, code, other)
			continue
		}
		if instead, _ := e.Rule(code, w.End); f.hasActiveEntry(instead.Instead, period) {
			if supply.toRaise = e.upgradableEntry(f, instead.Instead, period, len(w.days), 0); supply.toRaise == nil {
				skipped, supplied = append(skipped, SkippedEntry{f.id, code, "billed_as_" + instead.Instead}), append(supplied, w.End)
				continue
			}
		}
		if skip := e.applyEligibility(f, &supply, lenient); skip != nil {
			skipped = append(skipped, *skip)
			continue
		}
		due, supplied = append(due, supply), append(supplied, w.End)
	}
	for _, s := range f.firstSetups() {
		if !f.wasSuppliedIn(s.day, supplied) || f.entryFor(Setup, Span{s.day, s.day}) != nil {
			continue
		}
		setup := entryDraft{
			patient: f, code: Setup, period: Span{s.day, s.day}, service: s.day, units: 1, source: SourceSetup,
			evidence: DeviceEvidence{Devices: []string{s.device}, Setup: s.day, SetupBy: s.by},
		}
		if skip := e.applyEligibility(f, &setup, lenient); skip == nil {
			due = append(due, setup)
		} else {
			skipped = append(skipped, *skip)
		}
	}
	return due, skipped
}

// appendBlockedBy adds the reason if a user's entry, or an undone one, takes the place of the engine's.
func appendBlockedBy(skipped []SkippedEntry, f *patientFacts, code string, x *existingEntry) []SkippedEntry {
	switch {
	case IsUndone(x.Status):
		return append(skipped, SkippedEntry{f.id, code, x.Status + "_before"})
	case x.Source == SourceManual:
		return append(skipped, SkippedEntry{f.id, code, "manual_entry_exists"})
	}
	return skipped
}

// supplyCode returns the device code that a number of days supports; "" for none. Source: docs/decisions/billing.md, "CPT catalogue and the
// eight codes".
func (e *Engine) supplyCode(f *patientFacts, days int, serviceDate string) string {
	for _, code := range []string{DeviceSupply, ShortSupply} {
		if code == ShortSupply && !f.takesShortSupply(f.payerID(), serviceDate) {
			continue
		}
		if r, ok := e.Rule(code, serviceDate); ok && r.MinDays <= days && days <= r.MaxDays {
			return code
		}
	}
	return ""
}
