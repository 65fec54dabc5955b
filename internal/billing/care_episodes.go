package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
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

// maxSetupPeriods is how many supply periods from the first reading of the episode on may have the days that a set-up needs: a year.
const maxSetupPeriods = 13

// monitoringOf returns the days with data of the supply period that supports the set-up in the episode of care of a day: the first with the days of a
// device code on its last day, else the one with the most. Source: docs/decisions/billing.md, "99453".
func (e *Engine) monitoringOf(app core.App, f *patientFacts, day string) (found countedFacts, err error) {
	patients, episode := map[string]*patientFacts{f.id: f}, f.episodeOf(day)
	anchors, err := e.periodAnchors(app, patients)
	if err != nil {
		return found, err
	}
	var windows []supplyPeriod
	for _, anchor := range anchors[f.id] {
		first := max(anchor, episode.Start)
		for _, p := range periodsFromAnchor(anchor, Span{first, AddDays(first, maxSetupPeriods*periodDays)}) {
			if p.Start <= episode.End {
				windows = append(windows, supplyPeriod{Patient: f.id, Start: p.Start, End: p.End})
			}
		}
	}
	if err := e.loadDataDays(app, patients, windows); err != nil {
		return found, err
	}
	for _, w := range windows {
		isEnough := len(w.days) >= baseRule(e.firstSupplyCode(f, w.End), w.End).MinDays
		if !found.isMonitored && (isEnough || len(w.days) > len(found.days)) {
			found.days, found.isMonitored = w.days, isEnough
		}
	}
	return found, nil
}
