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
	Rule        string  `json:"rule,omitempty"` // by which the time counted; "" for all interactive time, of before ways of contact were asked for
}

// stretchesOf reads the finished time of a month that counts, by patient.
func (e *Engine) stretchesOf(app core.App, ids []string, month Span) (map[string][]Stretch, error) {
	return e.stretchesBy(app, ids, month, e.countsOf(month))
}

// stretchesBy reads the finished time of a month that counts by a rule, by patient, with what reaches into it.
func (e *Engine) stretchesBy(app core.App, ids []string, month Span, rule collections.TimeRule) (map[string][]Stretch, error) {
	from, to := e.around(month)
	rows, err := collections.StretchesOf(app, ids, from, to, rule)
	if err != nil {
		return nil, err
	}
	start, _ := e.Bounds(month)
	found := map[string][]Stretch{}
	for _, row := range rows {
		s := stretchOf(row)
		if s.Before = s.StartedAt.Before(start); !s.Before || s.EndedAt().After(start) {
			found[row.Patient] = append(found[row.Patient], s)
		}
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
			more, left, _ := e.planConsented(f, stretches[id], month, e.Day(now) > month.End, lenient)
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
			evidence: TimeEvidence{numbers(b.Stretches), month.Start[:7], e.ruleOn(month)},
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
	switch x := f.entryFor(b.Code, d.period); {
	case x == nil:
	case Undone(x.Status):
		return left(x.Status + "_before")
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
	if rule.Instead != "" && f.stands(rule.Instead, d.period) {
		if d.raises = e.growing(f, rule.Instead, d.period, 0, b.Minutes); d.raises == nil {
			return left("billed_as_" + rule.Instead)
		}
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

// Stretch is finished time of one person for one patient.
type Stretch struct {
	ID, Source, Category string // interactive, or care management where the rule counts it
	StartedAt            time.Time
	Seconds              int
	HasNote              bool
	Before               bool // it began before the month: what it covers counted there
	counted              time.Duration
}

// Block is what a month's time comes to for one code.
type Block struct {
	Code        string
	ServiceDate string // practice day of the stretch in which the (latest) threshold was crossed
	Minutes     int    // that the block stands for
	Units       int
	Stretches   []string // that the minutes come from
	Escalated   bool     // some of it is elapsed time of an escalation, which somebody must attest
	ByEscalated bool     // and an escalation crossed the threshold
	NoNote      bool     // some of it is not documented
}

// PlanMonth says which codes the time of one patient and month comes to. Each moment counts once; time is summed in seconds and floored to minutes:
// 99457 at 20, a unit of 99458 at 40, 60 and so on. 99470 is for a month that is over and came to 10 but not to 20.
// Source: docs/decisions/billing.md, "99457 and 99458", "Overlapping time", "The twenty-minute rule" and "CPT catalogue and the eight codes".
func (e *Engine) PlanMonth(stretches []Stretch, monthOver bool) (blocks []Block) {
	uncover(stretches)
	minutes := uncovered(stretches) / 60
	add := func(code string, fromMinute, toMinute, units int) {
		block := e.block(stretches, fromMinute*60, toMinute*60)
		if _, ok := e.Rule(code, block.ServiceDate); !ok {
			return
		}
		block.Code, block.Minutes, block.Units = code, toMinute-fromMinute, units
		blocks = append(blocks, block)
	}
	first, step := ruleOf(FirstTwenty).MinMinutes, ruleOf(NextTwenty).Block
	switch short := ruleOf(FirstTen).MinMinutes; {
	case minutes >= first:
		add(FirstTwenty, 0, first, 1)
	case minutes >= short && monthOver:
		add(FirstTen, 0, short, 1)
	}
	if units := min((minutes-first)/step, e.MaxUnits99458); units > 0 {
		add(NextTwenty, first, first+units*step, units)
	}
	return blocks
}

// block collects what lies between two points of the month's summed seconds.
func (e *Engine) block(stretches []Stretch, from, to int) (b Block) {
	limit := func(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
	sum, firstContact := time.Duration(0), ""
	for _, s := range stretches {
		before := sum
		sum += s.counted
		if firstContact == "" && s.live() {
			firstContact = e.Day(s.StartedAt)
		}
		if s.counted == 0 || sum <= limit(from) || before >= limit(to) {
			continue
		}
		b.Stretches = append(b.Stretches, s.ID)
		b.Escalated = b.Escalated || s.Source == "escalation"
		b.NoNote = b.NoNote || !s.HasNote
		if sum >= limit(to) {
			b.ServiceDate, b.ByEscalated = e.Day(s.StartedAt), s.Source == "escalation"
		}
	}
	b.ServiceDate = max(b.ServiceDate, firstContact) // care management counts once there was contact
	return b
}

// ruleOf is the first row of a code: the thresholds that have not changed.
func ruleOf(code string) Rule {
	return rules[slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })]
}

// MonthTime is a patient's time in a month, in whole minutes.
type MonthTime struct {
	collections.MinutesByCategory
	// NextThreshold is how many minutes that count the next unit asks for; nil when there is none.
	NextThreshold *int `json:"next_threshold_minutes"`
}

// TimeSummary sums the finished time of a month by patient; userID, patientID and teamOf ("" for all) narrow it.
func (e *Engine) TimeSummary(app core.App, month Span, userID, patientID, teamOf string) (list []MonthTime, err error) {
	from, to := e.instants(month)
	sums, err := collections.SumTime(app, from, to, userID, patientID, teamOf, e.countsOf(month))
	for _, sum := range sums {
		list = append(list, MonthTime{sum, e.nextThreshold(sum.Counted)})
	}
	return list, err
}

// nextThreshold is the next number of minutes in a month that makes a unit.
func (e *Engine) nextThreshold(minutes int) *int {
	for n := range e.MaxUnits99458 + 1 {
		if threshold := ruleOf(FirstTwenty).MinMinutes + n*ruleOf(NextTwenty).Block; minutes < threshold {
			return &threshold
		}
	}
	return nil
}

// MonthSpan is the month YYYY-MM as days; false when the text is none.
func MonthSpan(text string) (Span, bool) {
	if len(text) != len("2006-01") || ParseDay(text+"-01").IsZero() {
		return Span{}, false
	}
	return monthOf(text + "-01"), true
}
