package billing

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// supplyPeriod is a 30-day device-supply period of one patient, with its days that have data.
type supplyPeriod struct {
	Patient         string `json:"p"`
	Start           string `json:"s"`
	End             string `json:"e"`
	days            []string
	unconsentedDays int // days with data that do not count for lack of consent
}

// periodAnchors returns, by patient, the first day of the supply periods of each episode.
func (e *Engine) periodAnchors(app core.App, patients map[string]*patientFacts) (map[string][]string, error) {
	var asked []string // day and patient
	for id, f := range patients {
		for _, start := range supplyRunStarts(f.assignments) {
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
		if f.lastSupply >= row.From { // the latest billed period is in this episode, or in a later one with its own anchor
			anchor = billedAnchor(anchor, f.lastSupply)
		}
		list := found[row.Patient]
		if last := len(list) - 1; last >= 0 && (anchor == "" || anchor == list[last]) { // the previous episode has no reading
			list = list[:last]
		}
		if anchor != "" {
			found[row.Patient] = append(list, anchor)
		}
	}
	return found, nil
}

// periodsEndingIn returns the periods of a patient's episodes that end in a span; a period that the next episode cuts short is not one.
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

// periodsOfMonth returns a patient's periods that end in a month, and the current one if today is in the month.
func periodsOfMonth(anchors []string, month Span, today string) []Span {
	periods := periodsEndingIn(anchors, month)
	if len(anchors) > 0 && month.contains(today) {
		if p, ok := periodContaining(anchors[len(anchors)-1], today); ok && p.End > month.End {
			periods = append(periods, p)
		}
	}
	return periods
}

// periodOfDay returns the supply period that contains a day, of the episode that contains it.
func periodOfDay(anchors []string, day string) (period Span, found bool) {
	for i, anchor := range anchors {
		p, ok := periodContaining(anchor, day)
		if ok && (i+1 == len(anchors) || day < anchors[i+1]) {
			return p, true
		}
	}
	return Span{}, false
}

// unbilledPeriods returns the supply periods that end in a span and are not billed, with their days, by patient.
func (e *Engine) unbilledPeriods(app core.App, patients map[string]*patientFacts, span Span) (map[string][]supplyPeriod, error) {
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return nil, err
	}
	var open []supplyPeriod
	for id, f := range patients {
		for _, p := range periodsEndingIn(anchors[id], span) {
			if f.activeOn(f.serviceDayOf(p)) {
				open = append(open, supplyPeriod{Patient: id, Start: p.Start, End: p.End})
			}
		}
	}
	open = slices.DeleteFunc(open, func(w supplyPeriod) bool {
		x := patients[w.Patient].entryFor(DeviceSupply, Span{w.Start, w.End})
		return x != nil && x.Source != SourceManual && !IsUndone(x.Status)
	})
	if err := e.loadDataDays(app, patients, open); err != nil {
		return nil, err
	}
	byPatient := map[string][]supplyPeriod{}
	for _, w := range open {
		byPatient[w.Patient] = append(byPatient[w.Patient], w)
	}
	return byPatient, nil
}

// DeviceAssignment is the time during which a patient held a device, as days in the patient's time zone; Until is "" while the patient holds it.
type DeviceAssignment struct {
	Device      string
	From, Until string
}

// supplyRunStarts returns the first days of a patient's episodes: a new one begins with the first device after 90 days without one.
func supplyRunStarts(holdings []DeviceAssignment) (starts []string) {
	slices.SortFunc(holdings, func(a, b DeviceAssignment) int { return cmp.Compare(a.From, b.From) })
	held, open := "", false
	for _, h := range holdings {
		if len(starts) == 0 || !open && DaysBetween(held, h.From) >= supplyGapDays {
			starts = append(starts, h.From)
		}
		open = open || h.Until == ""
		held = max(held, h.Until)
	}
	return starts
}

// billedAnchor keeps the periods of an episode in place after one was billed: a late reading from before the first does not shift them. billed
// is the first day of a billed period, "" for none.
func billedAnchor(firstReading, billed string) string {
	switch {
	case billed == "":
		return firstReading
	case firstReading == "" || billed < firstReading:
		return billed
	}
	return AddDays(firstReading, DaysBetween(firstReading, billed)%periodDays)
}

// periodsFromAnchor returns the back-to-back 30-day periods from an anchor that end in a span. Source: docs/decisions/billing.md, "30-day period
// and the 16 days (99454)".
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

// periodContaining returns the period from an anchor that contains a day; false if the day is before the anchor.
func periodContaining(anchor, day string) (Span, bool) {
	if anchor == "" || day < anchor {
		return Span{}, false
	}
	start := AddDays(anchor, DaysBetween(anchor, day)/periodDays*periodDays)
	return Span{start, AddDays(start, periodDays-1)}, true
}

const (
	periodDays = 30
	// supplyGapDays is how many days without a device end an episode. Source: docs/decisions/billing.md, "30-day period and the 16 days (99454)".
	supplyGapDays = 90
)
