package billing

import (
	"cmp"
	"slices"
	"time"
)

// Stretch is finished time of one person for one patient.
type Stretch struct {
	ID, Source string
	StartedAt  time.Time
	Seconds    int
	HasNote    bool
}

// Block is what a month's interactive time comes to for one code.
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

// PlanMonth says which codes the interactive time of one month comes to. Time is summed in seconds and floored to minutes: 99457 at 20, a unit of
// 99458 at 40, 60 and so on. 99470 is for a month that is over and came to 10 but not to 20.
// Source: docs/decisions/billing.md, "99457 and 99458" and "CPT catalogue and the eight codes".
func (e *Engine) PlanMonth(stretches []Stretch, monthOver bool) (blocks []Block) {
	slices.SortFunc(stretches, func(a, b Stretch) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	total := 0
	for _, s := range stretches {
		total += s.Seconds
	}
	minutes := total / 60
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
	sum := 0
	for _, s := range stretches {
		before := sum
		sum += s.Seconds
		if sum <= from || before >= to {
			continue
		}
		b.Stretches = append(b.Stretches, s.ID)
		b.Escalated = b.Escalated || s.Source == "escalation"
		b.NoNote = b.NoNote || !s.HasNote
		if sum >= to {
			b.ServiceDate, b.ByEscalated = e.Day(s.StartedAt), s.Source == "escalation"
		}
	}
	return b
}

// ruleOf is the first row of a code: the thresholds that have not changed.
func ruleOf(code string) Rule {
	return rules[slices.IndexFunc(rules, func(r Rule) bool { return r.Code == code })]
}
