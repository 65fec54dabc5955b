package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// setupRecord is a training of the patient with a device.
type setupRecord struct {
	at, day, by, device string // the stored instant, the practice's day, who taught, and with which device
}

// careEpisodeGapYears is how many years without a device end an episode of care. Source: docs/decisions/billing.md, "99453".
const careEpisodeGapYears = 1

// careEpisode returns the episode of care that contains a day. An episode ends whenever the patient is archived, or has had no device for twelve months;
// the next begins when the patient is restored, or gets a device.
func (f *patientFacts) careEpisode(day string) Span {
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
	episode := f.careEpisode(day)
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
	return slices.ContainsFunc(supplied, f.careEpisode(day).contains)
}

// maxSetupPeriods is how many supply periods from the first reading of the episode on may have the days that a set-up needs: a year.
const maxSetupPeriods = 13

// countMonitoring sets, for the set-ups of a list at the given indexes, the days with data of the supply period that supports each in its episode of care:
// the first with the days of a device code on its last day, else the one with the most. Source: docs/decisions/billing.md, "99453".
func (e *Engine) countMonitoring(app core.App, patients map[string]*patientFacts, list []claimedEntry, found []countedFacts, setups []int) error {
	taught := map[string]*patientFacts{}
	for _, i := range setups {
		taught[list[i].patient] = patients[list[i].patient]
	}
	anchors, err := e.periodAnchors(app, taught)
	if err != nil {
		return err
	}
	var windows []supplyPeriod
	var places []int // indexes into list, by window
	for _, i := range setups {
		x := list[i]
		episode := taught[x.patient].careEpisode(x.service)
		for _, anchor := range anchors[x.patient] {
			first := max(anchor, episode.Start)
			for _, p := range periodsFromAnchor(anchor, Span{first, AddDays(first, maxSetupPeriods*periodDays)}) {
				if p.Start <= episode.End {
					windows, places = append(windows, supplyPeriod{Patient: x.patient, Start: p.Start, End: p.End}), append(places, i)
				}
			}
		}
	}
	if err := e.loadDataDays(app, taught, windows); err != nil {
		return err
	}
	for k, w := range windows {
		c := &found[places[k]]
		payer := list[places[k]].payer
		if slices.Contains(sentStates, list[places[k]].status) {
			payer = "" // what was sent is the payer's to decide
		}
		isEnough := len(w.days) >= baseRule(e.firstSupplyCode(taught[w.Patient], payer, w.End), w.End).MinDays
		if !c.isMonitored && (isEnough || len(w.days) > len(c.days)) {
			c.days, c.isMonitored = w.days, isEnough
		}
	}
	return nil
}
