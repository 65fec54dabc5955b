package billing

import (
	"cmp"
	"slices"
	"time"
)

// setupRecord is a training of the patient with a device.
type setupRecord struct {
	day, by, device string // the practice's day, who taught, and with which device
}

// careEpisodeGapYears is how many years without a device end an episode of care. Source: docs/decisions/billing.md, "99453".
const careEpisodeGapYears = 1

// episodeOf returns the episode of care that contains a day. An episode ends whenever the patient is archived, or has had no device for twelve months;
// the next begins when the patient is restored, or gets a device.
func (f *patientFacts) episodeOf(day string) Span {
	episode := Span{"0000-01-01", "9999-12-31"}
	for _, start := range f.laterEpisodeStarts() {
		if start <= day {
			episode.Start = max(episode.Start, start)
		} else {
			episode.End = min(episode.End, AddDays(start, -1))
		}
	}
	return episode
}

// laterEpisodeStarts returns the first days of the episodes after the first.
func (f *patientFacts) laterEpisodeStarts() (starts []string) {
	for _, pause := range f.interruptions {
		starts = append(starts, pause.End)
	}
	if f.archived != "" && f.restored >= f.archived {
		starts = append(starts, f.restored)
	}
	holdings := slices.Clone(f.assignments)
	slices.SortFunc(holdings, func(a, b DeviceAssignment) int { return cmp.Compare(a.From, b.From) })
	held := ""
	for _, h := range holdings {
		if held != "" && ParseDay(held).AddDate(careEpisodeGapYears, 0, 0).Format(time.DateOnly) <= h.From {
			starts = append(starts, h.From)
		}
		if h.Until == "" {
			break // held until today
		}
		held = max(held, h.Until)
	}
	return starts
}

// setupOf returns the first training in the episode of a day; false for none.
func (f *patientFacts) setupOf(day string) (setupRecord, bool) {
	episode := f.episodeOf(day)
	for _, s := range f.setups {
		if episode.contains(s.day) {
			return s, true
		}
	}
	return setupRecord{}, false
}

// firstSetups returns the first training of each episode.
func (f *patientFacts) firstSetups() (list []setupRecord) {
	for _, s := range f.setups {
		if first, _ := f.setupOf(s.day); first == s {
			list = append(list, s)
		}
	}
	return list
}

// wasSuppliedIn reports whether one of the days of supply is in the episode of a day.
func (f *patientFacts) wasSuppliedIn(day string, supplied []string) bool {
	return slices.ContainsFunc(supplied, f.episodeOf(day).contains)
}
