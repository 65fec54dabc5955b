package billing

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// supplyPeriod is a 30-day period of one patient, with the days that have data.
type supplyPeriod struct {
	Patient         string `json:"p"`
	Start           string `json:"s"`
	End             string `json:"e"`
	days            []string
	unconsentedDays int // days with data that do not count, because there was no consent
}

// periodAnchors finds the first day of the periods of every episode of every patient.
func (e *Engine) periodAnchors(app core.App, patients map[string]*patientFacts) (map[string][]string, error) {
	var asked []string // day and patient
	for id, f := range patients {
		for _, start := range episodeStarts(f.assignments) {
			asked = append(asked, start+id)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	rows, err := collections.FirstReadings(app, asked)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, row := range rows {
		f, anchor := patients[row.Patient], row.Day
		if f.lastSupply >= row.From { // the latest billed period lies in this episode, or in a later one that sets its own
			anchor = billedAnchor(anchor, f.lastSupply)
		}
		list := found[row.Patient]
		if last := len(list) - 1; last >= 0 && (anchor == "" || anchor == list[last]) { // nothing was read in the episode before
			list = list[:last]
		}
		if anchor != "" {
			found[row.Patient] = append(list, anchor)
		}
	}
	return found, nil
}

// periodsEndingIn are the periods of a patient's episodes that end in a span; one that the next episode cuts short does not.
func periodsEndingIn(anchors []string, in Span) (periods []Span) {
	for i, anchor := range anchors {
		for _, p := range periodsFromAnchor(anchor, in) {
			if i+1 == len(anchors) || p.End < anchors[i+1] {
				periods = append(periods, p)
			}
		}
	}
	return periods
}

// loadDataDays reads the days with data of each window that count, from the days alone.
func (e *Engine) loadDataDays(app core.App, patients map[string]*patientFacts, windows []supplyPeriod) error {
	if len(windows) == 0 {
		return nil
	}
	list, err := json.Marshal(windows)
	if err != nil {
		return fmt.Errorf("encode periods: %w", err)
	}
	rows, err := collections.DaysInWindows(app, string(list))
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.Days != "" {
			windows[row.Key].days = strings.Split(row.Days, ",")
			slices.Sort(windows[row.Key].days) // as a rule they come so
			e.dropUnconsentedDays(patients[windows[row.Key].Patient], &windows[row.Key])
		}
	}
	return nil
}

// dropUnconsentedDays leaves out the days of a window without consent.
func (e *Engine) dropUnconsentedDays(f *patientFacts, w *supplyPeriod) {
	period := Span{w.Start, w.End}
	if f == nil || f.hasConsentThroughout(period) {
		return
	}
	counts := e.consentedDays(f, period)
	w.unconsentedDays = len(w.days)
	w.days = slices.DeleteFunc(w.days, func(day string) bool { return !counts(day) })
	w.unconsentedDays -= len(w.days)
}

// DeviceEvidence is what a device entry rests on.
type DeviceEvidence struct {
	Days    []string `json:"days,omitempty"`
	Devices []string `json:"devices,omitempty"`
	Setup   string   `json:"setup_date,omitempty"`
	SetupBy string   `json:"setup_by,omitempty"`
}

// devicesDuring are the devices a patient held during a period.
func (f *patientFacts) devicesDuring(p Span) (devices []string) {
	for _, h := range f.assignments {
		if h.From <= p.End && (h.Until == "" || h.Until >= p.Start) && !slices.Contains(devices, h.Device) {
			devices = append(devices, h.Device)
		}
	}
	return devices
}

// draftDeviceEntries says what the days of the windows come to: one supply entry for each period, and the set-up with the first.
// A lenient run makes the entry with a warning where something is missing; a strict one leaves it out.
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

// appendBlockedBy notes that a person's entry stands where the engine's would.
func appendBlockedBy(skipped []SkippedEntry, f *patientFacts, code string, x *existingEntry) []SkippedEntry {
	switch {
	case IsUndone(x.Status):
		return append(skipped, SkippedEntry{f.id, code, x.Status + "_before"})
	case x.Source == SourceManual:
		return append(skipped, SkippedEntry{f.id, code, "manual_entry_exists"})
	}
	return skipped
}

// applyEligibility puts warnings on a draft, or says why it is left out.
func (e *Engine) applyEligibility(f *patientFacts, d *entryDraft, lenient bool) *SkippedEntry {
	missing := e.missingItems(f, d.service)
	for _, item := range missing {
		if item == NotActive || !lenient {
			return &SkippedEntry{f.id, d.code, item}
		}
	}
	d.warnings = append(d.warnings, missing...)
	return nil
}

const (
	periodDays = 30
	// episodeGap is how many days without a device end an episode. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
	episodeGap = 90
)

// DeviceAssignment is a stretch during which a patient held a device, as days in the patient's time zone; Until is "" while held.
type DeviceAssignment struct {
	Device      string
	From, Until string
}

// Span is a stretch of days, both included.
type Span struct{ Start, End string }

// episodeStarts are the first days of a patient's episodes: a new one begins with the first device after 90 days without one.
func episodeStarts(holdings []DeviceAssignment) (starts []string) {
	slices.SortFunc(holdings, func(a, b DeviceAssignment) int { return cmp.Compare(a.From, b.From) })
	held, open := "", false
	for _, h := range holdings {
		if len(starts) == 0 || !open && DaysBetween(held, h.From) >= episodeGap {
			starts = append(starts, h.From)
		}
		open = open || h.Until == ""
		held = max(held, h.Until)
	}
	return starts
}

// billedAnchor keeps the periods of an episode where they are once one was billed: a late reading from before the first does not move them.
// billed is the first day of a billed period, "" for none.
func billedAnchor(firstReading, billed string) string {
	switch {
	case billed == "":
		return firstReading
	case firstReading == "" || billed < firstReading:
		return billed
	}
	return AddDays(firstReading, DaysBetween(firstReading, billed)%periodDays)
}

// periodsFromAnchor are the back-to-back 30-day periods from an anchor whose last day lies in a span.
// Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func periodsFromAnchor(anchor string, in Span) (periods []Span) {
	if anchor == "" {
		return nil
	}
	n := max(0, (DaysBetween(anchor, in.Start)-periodDays+1)/periodDays)
	for start := AddDays(anchor, n*periodDays); ; start = AddDays(start, periodDays) {
		end := AddDays(start, periodDays-1)
		if end > in.End {
			return periods
		}
		if end >= in.Start {
			periods = append(periods, Span{start, end})
		}
	}
}

// periodContaining is the period from an anchor that holds a day; false when the day is before the anchor.
func periodContaining(anchor, day string) (Span, bool) {
	if anchor == "" || day < anchor {
		return Span{}, false
	}
	start := AddDays(anchor, DaysBetween(anchor, day)/periodDays*periodDays)
	return Span{start, AddDays(start, periodDays-1)}, true
}

// supplyCode is the device code that a number of days earns; "" for none. Source: docs/decisions/billing.md, "CPT catalogue and the eight codes".
func (e *Engine) supplyCode(days int, serviceDate string) string {
	for _, code := range []string{DeviceSupply, ShortSupply} {
		if r, ok := e.Rule(code, serviceDate); ok && r.MinDays <= days && days <= r.MaxDays {
			return code
		}
	}
	return ""
}
