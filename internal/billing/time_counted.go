package billing

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// madeBy is the rule that an entry of a month was made under, by its evidence: today's for one made by hand, all interactive time for one from before
// ways of contact were asked for.
func (e *Engine) madeBy(evidence string, month Span) collections.TimeRule {
	var stored TimeEvidence
	if json.Unmarshal([]byte(evidence), &stored) != nil || len(stored.TimeEntries) == 0 {
		return e.countsOf(month)
	}
	if stored.Rule == "" {
		return collections.TimeRule{}
	}
	return e.counts(stored.Rule)
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
		spans = append(spans, without(own, awayFrom(s.ID, elsewhere))...)
	}
	return without(spans, before)
}

// awayFrom are the moments in which the person behind a stretch was elsewhere.
func awayFrom(id string, elsewhere []collections.Elsewhere) (away []moments) {
	for _, x := range elsewhere {
		if x.ID == id {
			away = append(away, moments{collections.ParseInstant(x.From), collections.ParseInstant(x.Until)})
		}
	}
	return away
}

// interpreted counts a month's time of interpretation, without the moments in which its people were with another patient; what other codes counted
// is the patient's alone.
func (e *Engine) interpreted(app core.App, patientID string, month Span, rule collections.TimeRule, c *counted) error {
	from, to := e.instants(month)
	rows, err := collections.InterpretationOf(app, patientID, from, to)
	if err != nil {
		return err
	}
	away, err := collections.InterpretationElsewhere(app, patientID, from, to)
	if err != nil {
		return err
	}
	stretches, err := e.stretchesBy(app, []string{patientID}, month, rule)
	if err != nil {
		return err
	}
	var all, spans, taken []moments
	for _, row := range rows {
		s := stretchOf(row)
		own := []moments{{s.StartedAt, s.EndedAt()}}
		all, spans = append(all, own...), append(spans, without(own, awayFrom(s.ID, away))...)
	}
	for _, s := range stretches[patientID] {
		taken = append(taken, moments{s.StartedAt, s.EndedAt()})
	}
	c.ofPatient = int(measure(all)/time.Second) / 60
	c.minutes = int(measure(without(spans, taken))/time.Second) / 60
	return nil
}

// NeededMinutes are how many a code asks for in the month, with so many units of it; 0 for a code that is not about time.
func NeededMinutes(code string, units int) int {
	rule := ruleOf(code)
	if rule.Block > 0 {
		return rule.MinMinutes + (max(units, 1)-1)*rule.Block
	}
	return rule.MinMinutes
}

// interpretedBefore reports whether another 99091 stands within thirty days of service; of two that wait, the later one is the duplicate.
func interpretedBefore(tx core.App, entry *collections.BillingEntry, day string) (bool, error) {
	near, err := interpretedNear(tx, entry.PatientID(), entry.Id, day)
	return slices.ContainsFunc(near, func(x collections.NearEntry) bool {
		made := collections.Instant(entry.CreatedAt())
		return x.Status != PendingReview || x.CreatedAt < made || x.CreatedAt == made && x.ID < entry.Id
	}), err
}

// interpretedNear are the entries of 99091 less than thirty days of service from a day.
func interpretedNear(app core.App, patientID, except, day string) ([]collections.NearEntry, error) {
	return collections.EntriesNear(app, patientID, Interpretation, except, AddDays(day, 1-periodDays), AddDays(day, periodDays-1), []string{Voided, Refunded})
}
