package billing

import (
	"maps"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// documentation are what is asked of an entry beside the facts of its patient and what they come to.
type documentation struct {
	hasUndocumentedTime bool // it bills time without a note
	competingServices   []collections.CompetingSpan
	firstOrder          string // the first day on which monitoring was ordered; "" for never
}

// loadDocumentation reads those of some entries, in their order, with as many questions for a thousand as for one.
func loadDocumentation(app core.App, entries []*collections.BillingEntry) ([]documentation, error) {
	ids, people := make([]string, len(entries)), map[string]bool{}
	for i, entry := range entries {
		ids[i], people[entry.PatientID()] = entry.Id, true
	}
	patients := slices.Sorted(maps.Keys(people))
	unnoted, err := collections.UnnotedTimes(app, patients, ids)
	if err != nil {
		return nil, err
	}
	known, err := collections.CompetingServices(app, patients)
	if err != nil {
		return nil, err
	}
	first, err := collections.FirstOrders(app, patients)
	if err != nil {
		return nil, err
	}
	competing, ordered := map[string][]collections.CompetingSpan{}, map[string]string{}
	for _, s := range known {
		competing[s.Patient] = append(competing[s.Patient], s)
	}
	for _, o := range first {
		if o.Kind == collections.OrderOfMonitoring {
			ordered[o.Patient] = o.Dated
		}
	}
	list := make([]documentation, len(entries))
	for i, entry := range entries {
		list[i] = documentation{unnoted[entry.Id], competing[entry.PatientID()], ordered[entry.PatientID()]}
	}
	return list, nil
}

// countForDecision is [Engine.count] with what only an entry that is decided on is asked: minutes that count elsewhere already, and those without live
// contact.
func (e *Engine) countForDecision(app core.App, patients map[string]*patientFacts, list []claimedEntry) ([]countedFacts, error) {
	found, err := e.countFacts(app, patients, list)
	if err != nil {
		return nil, err
	}
	months := map[timeMonth][]int{}
	for i, x := range list {
		if e.ruleFor(x.code, x.service).Category == collections.Interactive {
			month := timeMonth{collections.Interactive, monthOf(x.period.Start), x.rule}
			months[month] = append(months[month], i)
		}
	}
	for month, of := range months {
		if err := e.subtractElsewhere(app, list, found, month, of); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// subtractElsewhere takes from the minutes of a month, for those entries of a list that are named by their places, those in which its people were with
// somebody whose time began earlier, and adds how many more there are without live contact, or of review.
func (e *Engine) subtractElsewhere(app core.App, list []claimedEntry, found []countedFacts, m timeMonth, of []int) error {
	people := map[string]bool{}
	for _, i := range of {
		people[list[i].patient] = true
	}
	ids := slices.Sorted(maps.Keys(people))
	from, to := e.monthWithLead(m.month)
	rows, err := collections.TimesElsewhere(app, ids, from, to)
	if err != nil {
		return err
	}
	away := map[string][]collections.Elsewhere{}
	for _, row := range rows {
		away[row.Patient] = append(away[row.Patient], row.Elsewhere)
	}
	stretches := map[string][]LoggedTime{}
	if len(away) > 0 {
		if stretches, err = e.loggedTimeByRule(app, slices.Sorted(maps.Keys(away)), m.month, m.rule); err != nil {
			return err
		}
	}
	aside, err := e.uncountedMinutes(app, ids, m)
	if err != nil {
		return err
	}
	for _, i := range of {
		c, id := &found[i], list[i].patient
		if with := away[id]; len(with) > 0 && c.minutes > 0 {
			mine := stretches[id]
			c.minutes = max(0, c.minutes-CountedSeconds(mine)/60+int(unionLength(exclusiveIntervals(mine, with))/time.Second)/60)
		}
		c.uncountedMinutes = aside[id]
	}
	return nil
}

// uncountedMinutes are the minutes of a month that were spent and count for nothing: without live contact, or of review.
func (e *Engine) uncountedMinutes(app core.App, ids []string, m timeMonth) (map[string]int, error) {
	first, last := e.instants(m.month)
	rows, err := collections.NotLive(app, ids, first, last, m.rule)
	if err != nil {
		return nil, err
	}
	minutes := map[string]int{}
	for _, row := range rows {
		minutes[row.Patient] = row.Seconds / 60
	}
	one := ""
	if len(ids) == 1 {
		one = ids[0]
	}
	sums, err := e.TimeSummary(app, m.month, "", one, "")
	for _, sum := range sums {
		minutes[sum.PatientID] += sum.Review
	}
	return minutes, err
}
