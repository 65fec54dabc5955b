package billing

import (
	"cmp"
	"slices"
)

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

// settledAnchor keeps the periods of an episode where they are once one was billed: a late reading from before the first does not move them.
// billed is the first day of a billed period, "" for none.
func settledAnchor(firstReading, billed string) string {
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
