package billing

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
)

// countInterpretation counts a month's interpretation time on days that count, without time with another patient. Time that other codes counted is
// excluded only for the same patient.
func (e *Engine) countInterpretation(app core.App, f *patientFacts, month Span, rule collections.TimeRule, c *countedFacts) error {
	from, to := e.instants(month)
	patientID, counts := f.id, e.countedDays(f, month)
	rows, err := collections.InterpretationOf(app, patientID, from, to)
	if err != nil {
		return err
	}
	away, err := collections.InterpretationElsewhere(app, patientID, from, to)
	if err != nil {
		return err
	}
	times, err := e.loggedTimeByRule(app, []string{patientID}, month, rule)
	if err != nil {
		return err
	}
	var all, spans, taken []interval
	for _, row := range rows {
		s := newLoggedTime(row)
		if !counts(e.Day(s.StartedAt)) {
			continue
		}
		own := []interval{{s.StartedAt, s.EndedAt()}}
		all, spans = append(all, own...), append(spans, subtractIntervals(own, intervalsElsewhere(s.ID, away))...)
	}
	for _, s := range times[patientID] {
		taken = append(taken, interval{s.StartedAt, s.EndedAt()})
	}
	if spans = subtractIntervals(spans, taken); len(spans) > 0 {
		c.firstDay = e.Day(spans[0].from)
	}
	c.minutesWithOverlap = int(unionLength(all)/time.Second) / 60
	c.minutes = int(unionLength(spans)/time.Second) / 60
	return nil
}

// interpretationsWithin30Days returns the 99091 entries less than thirty days of service from a day.
func interpretationsWithin30Days(app core.App, patientID, except, day string) ([]collections.NearbyEntry, error) {
	return collections.EntriesNear(app, patientID, Interpretation, except, AddDays(day, 1-periodDays), AddDays(day, periodDays-1), []string{Voided, Refunded})
}

// renderingInterpreter returns who rendered the interpretation of a period: the author if a provider, else the patient's primary provider, else who recorded
// the time as a provider and has another role now; no one else may bill it.
func (e *Engine) renderingInterpreter(tx core.App, f *patientFacts, period Span, by audit.Actor) (string, error) {
	primary := f.provider
	if by.Role == string(authz.Provider) {
		if user, err := collections.FindUserByEmail(tx, by.Email); err == nil {
			return user.Id, nil
		} else if !collections.IsNotFound(err) {
			return "", err
		}
	}
	if primary != "" {
		user, err := collections.FindUser(tx, primary)
		if err == nil && user.Role() == string(authz.Provider) {
			return primary, nil
		} else if err != nil && !collections.IsNotFound(err) {
			return "", err
		}
	}
	from, to := e.instants(period)
	if then, err := collections.InterpreterOf(tx, f.id, from, to); err != nil || then != "" {
		return then, err
	}
	return "", fault.Field("cpt_code", "99091 needs a rendering provider: the patient's primary provider is none.")
}
