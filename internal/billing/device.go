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

// window is a 30-day period of one patient, with the days that have data.
type window struct {
	Patient string `json:"p"`
	Start   string `json:"s"`
	End     string `json:"e"`
	days    []string
	beside  int // days with data that do not count, because there was no consent
}

// anchors finds the first day of the periods of every episode of every patient.
func (e *Engine) anchors(app core.App, patients map[string]*facts) (map[string][]string, error) {
	var asked []string // day and patient
	for id, f := range patients {
		for _, start := range episodes(f.holdings) {
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

// periodsOf are the periods of a patient's episodes that end in a span; one that the next episode cuts short does not.
func periodsOf(anchors []string, in Span) (periods []Span) {
	for i, anchor := range anchors {
		for _, p := range periodsEnding(anchor, in) {
			if i+1 == len(anchors) || p.End < anchors[i+1] {
				periods = append(periods, p)
			}
		}
	}
	return periods
}

// fill reads the days with data of each window that count, from the days alone.
func (e *Engine) fill(app core.App, patients map[string]*facts, windows []window) error {
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
			e.underConsentOnly(patients[windows[row.Key].Patient], &windows[row.Key])
		}
	}
	return nil
}

// underConsentOnly leaves out the days of a window without consent.
func (e *Engine) underConsentOnly(f *facts, w *window) {
	period := Span{w.Start, w.End}
	if f == nil || f.alwaysConsented(period) {
		return
	}
	counts := e.underConsent(f, period)
	w.beside = len(w.days)
	w.days = slices.DeleteFunc(w.days, func(day string) bool { return !counts(day) })
	w.beside -= len(w.days)
}

// DeviceEvidence is what a device entry rests on.
type DeviceEvidence struct {
	Days    []string `json:"days,omitempty"`
	Devices []string `json:"devices,omitempty"`
	Setup   string   `json:"setup_date,omitempty"`
	SetupBy string   `json:"setup_by,omitempty"`
}

// devicesIn are the devices a patient held during a period.
func (f *facts) devicesIn(p Span) (devices []string) {
	for _, h := range f.holdings {
		if h.From <= p.End && (h.Until == "" || h.Until >= p.Start) && !slices.Contains(devices, h.Device) {
			devices = append(devices, h.Device)
		}
	}
	return devices
}

// planDevice says what the days of the windows come to: one supply entry for each period, and the set-up with the first.
// A lenient run makes the entry with a warning where something is missing; a strict one leaves it out.
func (e *Engine) planDevice(f *facts, windows []window, lenient bool) (due []draft, skipped []Skip) {
	supplied := f.lastSupply != ""
	for _, w := range windows {
		period := Span{w.Start, w.End}
		code := e.supplyCode(len(w.days), w.End)
		if code == "" {
			if lost := e.supplyCode(len(w.days)+w.beside, w.End); lost != "" && f.entryFor(lost, period) == nil {
				skipped = append(skipped, Skip{f.id, lost, MissingConsent})
			}
			continue
		}
		supply := draft{
			patient: f, code: code, period: period, service: w.End, units: 1, days: new(len(w.days)), source: FromDevice,
			evidence: DeviceEvidence{Days: w.days, Devices: f.devicesIn(period)},
		}
		if other := f.entryFor(code, period); other != nil {
			supplied = supplied || !Undone(other.Status)
			skipped = appendManual(skipped, f, code, other)
			continue
		}
		if instead, _ := e.Rule(code, w.End); f.stands(instead.Instead, period) {
			if supply.raises = e.growing(f, instead.Instead, period, len(w.days), 0); supply.raises == nil {
				skipped, supplied = append(skipped, Skip{f.id, code, "billed_as_" + instead.Instead}), true
				continue
			}
		}
		if skip := e.admit(f, &supply, lenient); skip != nil {
			skipped = append(skipped, *skip)
			continue
		}
		due, supplied = append(due, supply), true
	}
	if supplied && f.educated != "" && f.entryFor(Setup, Span{}) == nil {
		setup := draft{
			patient: f, code: Setup, period: Span{f.educated, f.educated}, service: f.educated, units: 1, source: FromSetup,
			evidence: DeviceEvidence{Devices: []string{f.trained}, Setup: f.educated, SetupBy: f.educatedBy},
		}
		if skip := e.admit(f, &setup, lenient); skip == nil {
			due = append(due, setup)
		} else {
			skipped = append(skipped, *skip)
		}
	}
	return due, skipped
}

// appendManual notes that a person's entry stands where the engine's would.
func appendManual(skipped []Skip, f *facts, code string, x *existing) []Skip {
	switch {
	case Undone(x.Status):
		return append(skipped, Skip{f.id, code, x.Status + "_before"})
	case x.Source == ByHand:
		return append(skipped, Skip{f.id, code, "manual_entry_exists"})
	}
	return skipped
}

// admit puts warnings on a draft, or says why it is left out.
func (e *Engine) admit(f *facts, d *draft, lenient bool) *Skip {
	missing := e.missing(f, d.service)
	for _, item := range missing {
		if item == NotActive || !lenient {
			return &Skip{f.id, d.code, item}
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

// Holding is a stretch during which a patient held a device, as days in the patient's time zone; Until is "" while held.
type Holding struct {
	Device      string
	From, Until string
}

// Span is a stretch of days, both included.
type Span struct{ Start, End string }

// episodes are the first days of a patient's episodes: a new one begins with the first device after 90 days without one.
func episodes(holdings []Holding) (starts []string) {
	slices.SortFunc(holdings, func(a, b Holding) int { return cmp.Compare(a.From, b.From) })
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

// periodsEnding are the back-to-back 30-day periods from an anchor whose last day lies in a span.
// Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
func periodsEnding(anchor string, in Span) (periods []Span) {
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

// periodWith is the period from an anchor that holds a day; false when the day is before the anchor.
func periodWith(anchor, day string) (Span, bool) {
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
