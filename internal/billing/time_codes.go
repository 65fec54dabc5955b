package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// TimeEvidence is what an entry for time rests on: numbers of time entries, and the months' minutes so far.
type TimeEvidence struct {
	TimeEntries []int64 `json:"time_entries"`
	Month       string  `json:"month"`
}

// stretchesOf reads the finished interactive time of a month, by patient.
func (e *Engine) stretchesOf(app core.App, ids []string, month Span) (map[string][]Stretch, error) {
	from, to := e.instants(month)
	rows, err := collections.StretchesOf(app, ids, from, to)
	if err != nil {
		return nil, err
	}
	found := map[string][]Stretch{}
	for _, row := range rows {
		found[row.Patient] = append(found[row.Patient], Stretch{row.ID, row.Source, collections.ParseInstant(row.Started), row.Seconds, row.Noted})
	}
	return found, nil
}

// billTime bills the interactive time of a month for some patients, in the transaction.
func (e *Engine) billTime(tx core.App, t tariff, ids []string, month Span, lenient bool, now time.Time) ([]Created, error) {
	due, _, err := e.planTimeOf(tx, ids, month, lenient, now)
	if err != nil {
		return nil, err
	}
	return e.apply(tx, t, due, now)
}

// planTimeOf says what the interactive time of a month comes to for some patients, in their order.
func (e *Engine) planTimeOf(app core.App, ids []string, month Span, lenient bool, now time.Time) (due []draft, skipped []Skip, err error) {
	patients, err := e.load(app, ids, month.Start)
	if err != nil {
		return nil, nil, err
	}
	stretches, err := e.stretchesOf(app, ids, month)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if f := patients[id]; f != nil {
			more, left := e.planTime(f, e.PlanMonth(stretches[id], e.Day(now) > month.End), month, lenient)
			due, skipped = append(due, more...), append(skipped, left...)
		}
	}
	return due, skipped, nil
}

// planTime holds the blocks of a month against what is billed already.
func (e *Engine) planTime(f *facts, blocks []Block, month Span, lenient bool) (due []draft, skipped []Skip) {
	first := false // 99457 stands, or comes with this plan
	for _, b := range blocks {
		d := draft{
			patient: f, code: b.Code, period: month, service: b.ServiceDate, minutes: b.Minutes, units: b.Units, source: FromTime, stretches: b.Stretches,
			evidence: TimeEvidence{numbers(b.Stretches), month.Start[:7]},
		}
		if b.ByEscalated {
			d.source = FromEscalation
		}
		if b.Escalated {
			d.warnings = append(d.warnings, AttestInteraction)
		}
		skip := e.placeTime(f, b, &d, first, lenient)
		switch {
		case skip != nil && skip.Reason == alreadyBilled:
			first = first || b.Code == FirstTwenty
		case skip != nil:
			skipped = append(skipped, *skip)
		default:
			due = append(due, d)
			first = first || b.Code == FirstTwenty
		}
	}
	return due, skipped
}

// alreadyBilled is no reason to tell anybody about.
const alreadyBilled = "already_billed"

// placeTime decides whether a block becomes an entry, raises one, or is left out.
func (e *Engine) placeTime(f *facts, b Block, d *draft, first, lenient bool) *Skip {
	left := func(reason string) *Skip { return &Skip{f.id, b.Code, reason} }
	rule, _ := e.Rule(b.Code, b.ServiceDate)
	switch x := f.standing(b.Code, d.period); {
	case x == nil:
	case x.Status == Voided:
		return left("voided_before")
	case x.Source == ByHand:
		if b.Code == FirstTwenty {
			return left(alreadyBilled)
		}
		return left("manual_entry_exists")
	case b.Units <= x.Units:
		return left(alreadyBilled)
	case x.Status != PendingReview:
		return left("reviewed_before_more_time")
	default:
		d.raises = x
	}
	if rule.After != "" && !first {
		return left(MissingPrimary)
	}
	if x := f.standing(rule.Instead, d.period); rule.Instead != "" && x != nil && x.Status != Voided {
		return left("billed_as_" + rule.Instead)
	}
	if b.NoNote && !lenient {
		return left(MissingNote)
	}
	if b.NoNote {
		d.warnings = append(d.warnings, MissingNote)
	}
	return e.admit(f, d, lenient)
}

func numbers(ids []string) []int64 {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = collections.Number(id)
	}
	slices.Sort(list)
	return list
}
