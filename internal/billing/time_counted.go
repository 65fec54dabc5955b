package billing

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// ruleOfEvidence is the rule that an entry of a month was made under, by its evidence: today's for one made by hand, all interactive time for one from before
// ways of contact were asked for.
func (e *Engine) ruleOfEvidence(evidence string, month Span) collections.TimeRule {
	var stored TimeEvidence
	if json.Unmarshal([]byte(evidence), &stored) != nil || len(stored.TimeEntries) == 0 {
		return e.timeRuleOf(month)
	}
	if stored.Rule == "" {
		return collections.TimeRule{}
	}
	return e.timeRule(stored.Rule)
}

// exclusiveIntervals are the moments of stretches in which their people were with nobody else, without what counted in the month before.
func exclusiveIntervals(list []LoggedTime, elsewhere []collections.Elsewhere) (spans []interval) {
	var before []interval
	for _, s := range list {
		own := []interval{{s.StartedAt, s.EndedAt()}}
		if s.BeganBefore {
			before = append(before, own...)
			continue
		}
		spans = append(spans, subtractIntervals(own, intervalsElsewhere(s.ID, elsewhere))...)
	}
	return subtractIntervals(spans, before)
}

// intervalsElsewhere are the moments in which the person behind a stretch was elsewhere.
func intervalsElsewhere(id string, elsewhere []collections.Elsewhere) (away []interval) {
	for _, x := range elsewhere {
		if x.ID == id {
			away = append(away, interval{collections.ParseInstant(x.From), collections.ParseInstant(x.Until)})
		}
	}
	return away
}

// countInterpretation counts a month's time of interpretation, without the moments in which its people were with another patient; what other codes counted
// is the patient's alone.
func (e *Engine) countInterpretation(app core.App, patientID string, month Span, rule collections.TimeRule, c *countedFacts) error {
	from, to := e.instants(month)
	rows, err := collections.InterpretationOf(app, patientID, from, to)
	if err != nil {
		return err
	}
	away, err := collections.InterpretationElsewhere(app, patientID, from, to)
	if err != nil {
		return err
	}
	stretches, err := e.loggedTimeByRule(app, []string{patientID}, month, rule)
	if err != nil {
		return err
	}
	var all, spans, taken []interval
	for _, row := range rows {
		s := newLoggedTime(row)
		own := []interval{{s.StartedAt, s.EndedAt()}}
		all, spans = append(all, own...), append(spans, subtractIntervals(own, intervalsElsewhere(s.ID, away))...)
	}
	for _, s := range stretches[patientID] {
		taken = append(taken, interval{s.StartedAt, s.EndedAt()})
	}
	c.minutesWithOverlap = int(unionLength(all)/time.Second) / 60
	c.minutes = int(unionLength(subtractIntervals(spans, taken))/time.Second) / 60
	return nil
}

// NeededMinutes are how many a code asks for in the month, with so many units of it; 0 for a code that is not about time.
func NeededMinutes(code string, units int) int {
	rule := baseRule(code)
	if rule.Block > 0 {
		return rule.MinMinutes + (max(units, 1)-1)*rule.Block
	}
	return rule.MinMinutes
}

// hasEarlierInterpretation reports whether another 99091 stands within thirty days of service; of two that wait, the later one is the duplicate.
func hasEarlierInterpretation(tx core.App, entry *collections.BillingEntry, day string) (bool, error) {
	near, err := interpretationsWithin30Days(tx, entry.PatientID(), entry.Id, day)
	return slices.ContainsFunc(near, func(x collections.NearEntry) bool {
		made := collections.Instant(entry.CreatedAt())
		return x.Status != PendingReview || x.CreatedAt < made || x.CreatedAt == made && x.ID < entry.Id
	}), err
}

// interpretationsWithin30Days are the entries of 99091 less than thirty days of service from a day.
func interpretationsWithin30Days(app core.App, patientID, except, day string) ([]collections.NearEntry, error) {
	return collections.EntriesNear(app, patientID, Interpretation, except, AddDays(day, 1-periodDays), AddDays(day, periodDays-1), []string{Voided, Refunded})
}
