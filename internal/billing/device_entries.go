package billing

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
	supplied := f.lastSupply != ""
	for _, w := range windows {
		period := Span{w.Start, w.End}
		code := e.supplyCode(len(w.days), w.End)
		if code == "" {
			if lost := e.supplyCode(len(w.days)+w.unconsentedDays, w.End); lost != "" && f.entryFor(lost, period) == nil {
				skipped = append(skipped, SkippedEntry{f.id, lost, MissingConsent})
			}
			continue
		}
		supply := entryDraft{
			patient: f, code: code, period: period, service: w.End, units: 1, days: new(len(w.days)), source: SourceDevice,
			evidence: DeviceEvidence{Days: w.days, Devices: f.devicesDuring(period)},
		}
		if other := f.entryFor(code, period); other != nil {
			supplied = supplied || !IsUndone(other.Status)
			skipped = appendBlockedBy(skipped, f, code, other)
			continue
		}
		if instead, _ := e.Rule(code, w.End); f.hasActiveEntry(instead.Instead, period) {
			if supply.toRaise = e.growingEntry(f, instead.Instead, period, len(w.days), 0); supply.toRaise == nil {
				skipped, supplied = append(skipped, SkippedEntry{f.id, code, "billed_as_" + instead.Instead}), true
				continue
			}
		}
		if skip := e.applyEligibility(f, &supply, lenient); skip != nil {
			skipped = append(skipped, *skip)
			continue
		}
		due, supplied = append(due, supply), true
	}
	if supplied && f.setupDay != "" && f.entryFor(Setup, Span{}) == nil {
		setup := entryDraft{
			patient: f, code: Setup, period: Span{f.setupDay, f.setupDay}, service: f.setupDay, units: 1, source: SourceSetup,
			evidence: DeviceEvidence{Devices: []string{f.setupDevice}, Setup: f.setupDay, SetupBy: f.setupBy},
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
func (e *Engine) supplyCode(days int, serviceDate string) string {
	for _, code := range []string{DeviceSupply, ShortSupply} {
		if r, ok := e.Rule(code, serviceDate); ok && r.MinDays <= days && days <= r.MaxDays {
			return code
		}
	}
	return ""
}
