package billing

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// What stands against an entry for want of minutes.
const (
	TooFewMinutes  = "minutes_below_minimum"
	NotInteractive = "not_interactive"
)

// Counted is what the time behind an entry comes to now, in whole minutes, by the rule it was made under.
type Counted struct {
	Minutes   int // each moment once, and none in which its people were with somebody whose time began earlier
	OfPatient int // the same with those
	NotLive   int // further interactive minutes, which count for nothing for want of a live way of contact
}

// Counted counts the time of an entry's month anew. For 99091 it is the interpretation that 99457, 99458 and 99470 did not count.
func (e *Engine) Counted(app core.App, entry *collections.BillingEntry) (Counted, error) {
	month, rule := monthOf(entry.PeriodStart()), e.madeBy(entry)
	if entry.CPTCode() == Interpretation {
		return e.interpreted(app, entry.PatientID(), month, rule)
	}
	return e.countedOf(app, entry.PatientID(), month, rule)
}

// madeBy is the rule that an entry was made under: today's for one made by hand, all interactive time for one from before ways of contact were asked
// for.
func (e *Engine) madeBy(entry *collections.BillingEntry) collections.TimeRule {
	var stored TimeEvidence
	if json.Unmarshal([]byte(entry.Evidence()), &stored) != nil || len(stored.TimeEntries) == 0 {
		return e.countsOf(monthOf(entry.PeriodStart()))
	}
	if stored.Rule == "" {
		return collections.TimeRule{}
	}
	return e.counts(stored.Rule)
}

func (e *Engine) countedOf(app core.App, patientID string, month Span, rule collections.TimeRule) (c Counted, err error) {
	stretches, err := e.stretchesBy(app, []string{patientID}, month, rule)
	if err != nil {
		return c, err
	}
	from, to := e.around(month)
	elsewhere, err := collections.TimeElsewhere(app, patientID, from, to)
	if err != nil {
		return c, err
	}
	list := stretches[patientID]
	c.OfPatient = CountedSeconds(list) / 60
	if c.Minutes = c.OfPatient; len(elsewhere) > 0 && c.OfPatient > 0 {
		c.Minutes = int(measure(here(list, elsewhere))/time.Second) / 60
	}
	first, last := e.instants(month)
	seconds, err := collections.NotLive(app, patientID, first, last, rule)
	c.NotLive = seconds / 60
	return c, err
}

// here are the moments of stretches in which their people were with nobody else, without what counted in the month before.
func here(list []Stretch, elsewhere []collections.Elsewhere) (spans []moments) {
	var before []moments
	for _, s := range list {
		own := []moments{{s.StartedAt, s.EndedAt()}}
		if s.Before {
			before = append(before, own...)
			continue
		}
		var away []moments
		for _, x := range elsewhere {
			if x.ID == s.ID {
				away = append(away, moments{collections.ParseInstant(x.From), collections.ParseInstant(x.Until)})
			}
		}
		spans = append(spans, without(own, away)...)
	}
	return without(spans, before)
}

// interpreted is a month's time of interpretation; what other codes counted is counted in OfPatient alone.
func (e *Engine) interpreted(app core.App, patientID string, month Span, rule collections.TimeRule) (c Counted, err error) {
	from, to := e.instants(month)
	rows, err := collections.InterpretationOf(app, patientID, from, to)
	if err != nil {
		return c, err
	}
	stretches, err := e.stretchesBy(app, []string{patientID}, month, rule)
	if err != nil {
		return c, err
	}
	var spans, counted []moments
	for _, row := range rows {
		s := stretchOf(row)
		spans = append(spans, moments{s.StartedAt, s.EndedAt()})
	}
	for _, s := range stretches[patientID] {
		counted = append(counted, moments{s.StartedAt, s.EndedAt()})
	}
	c.OfPatient = int(measure(spans)/time.Second) / 60
	c.Minutes = int(measure(without(spans, counted))/time.Second) / 60
	return c, nil
}

// NeededMinutes are how many a code asks for in the month, with so many units of it; 0 for a code that is not about time.
func NeededMinutes(code string, units int) int {
	rule := ruleOf(code)
	if rule.Block > 0 {
		return rule.MinMinutes + (max(units, 1)-1)*rule.Block
	}
	return rule.MinMinutes
}

// Against is what stands against billing a code with so many units of it by the minutes: nothing, or why they do not suffice.
func (c Counted) Against(code string, units int) (reasons []string) {
	need := NeededMinutes(code, units)
	switch {
	case c.Minutes >= need:
		return nil
	case c.OfPatient >= need:
		return []string{OverlapTime}
	}
	reasons = []string{TooFewMinutes}
	if code != Interpretation && c.OfPatient+c.NotLive >= need {
		reasons = append(reasons, NotInteractive)
	}
	return reasons
}

// timeWarnings refuses, at review, an entry whose minutes count for somebody else, or did already, and adds that interpretation was billed within thirty
// days. Source: docs/decisions/billing.md, "Overlapping time" and "99091".
func (e *Engine) timeWarnings(tx core.App, entry *collections.BillingEntry, warnings []string) ([]string, error) {
	if rule := ruleOf(entry.CPTCode()); rule.Category == "" {
		return warnings, nil
	}
	counted, err := e.Counted(tx, entry)
	if err != nil {
		return nil, err
	}
	if slices.Contains(counted.Against(entry.CPTCode(), entry.Units()), OverlapTime) {
		return nil, fault.State("invalid_state", "Minutes behind it count elsewhere already: "+OverlapTime+".").With("warnings", append(warnings, OverlapTime))
	}
	if entry.CPTCode() != Interpretation || slices.Contains(warnings, PossibleDuplicate) {
		return warnings, nil
	}
	near, err := interpretedNear(tx, entry.PatientID(), entry.Id, entry.ServiceDate())
	if slices.ContainsFunc(near, func(x collections.NearEntry) bool { // of two that wait, the later one is the duplicate
		return x.Status != PendingReview || x.CreatedAt < collections.Instant(entry.CreatedAt()) || x.CreatedAt == collections.Instant(entry.CreatedAt()) && x.ID < entry.Id
	}) {
		warnings = append(warnings, PossibleDuplicate)
	}
	return warnings, err
}

// interpretedNear are the entries of 99091 less than thirty days of service from a day.
func interpretedNear(app core.App, patientID, except, day string) ([]collections.NearEntry, error) {
	return collections.EntriesNear(app, patientID, Interpretation, except, AddDays(day, 1-periodDays), AddDays(day, periodDays-1), []string{Voided, Refunded})
}

// WorkedOver lists whose time of a day comes to more than so many minutes, of all categories and patients, by the practice's days of a month.
func (e *Engine) WorkedOver(app core.App, month Span, minutes int) ([]collections.WorkedDay, error) {
	type day struct {
		Day   string `json:"d"`
		First string `json:"f"`
		Last  string `json:"t"`
	}
	var days []day
	for d := month.Start; d <= month.End; d = AddDays(d, 1) {
		first, last := e.instants(Span{d, d})
		days = append(days, day{d, first, last})
	}
	list, err := json.Marshal(days)
	if err != nil {
		return nil, err
	}
	return collections.WorkedDays(app, string(list), minutes*60)
}
