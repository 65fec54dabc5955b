package billing

import (
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// TimeEvidence is the evidence of an entry for time: the numbers of its time entries and the month.
type TimeEvidence struct {
	TimeEntries []int64 `json:"time_entries"`
	Month       string  `json:"month"`
	Rule        string  `json:"rule,omitempty"` // by which the time counted; "" for all interactive time, before contact methods were required
}

// billTime bills the interactive time of a month for patients, in the transaction.
func (e *Engine) billTime(tx core.App, t priceList, ids []string, month Span, lenient bool, now time.Time) ([]CreatedEntry, error) {
	due, _, err := e.planTimeFor(tx, ids, month, lenient, now)
	if err != nil {
		return nil, err
	}
	return e.storeDrafts(tx, t, due, now)
}

// planTimeFor drafts the entries for the interactive time of a month, in the order of the patients.
func (e *Engine) planTimeFor(app core.App, ids []string, month Span, lenient bool, now time.Time) (due []entryDraft, skipped []SkippedEntry, err error) {
	patients, err := e.loadFacts(app, ids, month.Start)
	if err != nil {
		return nil, nil, err
	}
	times, err := e.loggedTime(app, ids, month)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range ids {
		if f := patients[id]; f != nil {
			more, left, _ := e.planMonthTime(f, times[id], month, e.Day(now) > month.End, lenient)
			due, skipped = append(due, more...), append(skipped, left...)
		}
	}
	return due, skipped, nil
}

// draftTimeEntries drafts the entries of a month's blocks, considering what is billed already.
func (e *Engine) draftTimeEntries(f *patientFacts, blocks []Block, month Span, lenient bool) (due []entryDraft, skipped []SkippedEntry) {
	first := false // 99457 is billed, or part of this plan
	for _, b := range blocks {
		d := entryDraft{
			patient: f, code: b.Code, period: month, service: b.ServiceDate, minutes: b.Minutes, units: b.Units, source: SourceTime, timeEntryIDs: b.TimeEntryIDs,
			evidence: TimeEvidence{timeEntryNumbers(b.TimeEntryIDs), month.Start[:7], e.ruleNameOf(month, f.minutesRule())},
		}
		if b.CrossedByEscalation {
			d.source = SourceEscalation
		}
		if b.HasEscalationTime {
			d.warnings = append(d.warnings, AttestInteraction)
		}
		skip := e.placeBlock(f, b, &d, first, lenient)
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

// alreadyBilled is a reason that is not reported.
const alreadyBilled = "already_billed"

// placeBlock decides whether a block creates an entry, raises one, or is skipped.
func (e *Engine) placeBlock(f *patientFacts, b Block, d *entryDraft, first, lenient bool) *SkippedEntry {
	left := func(reason string) *SkippedEntry { return &SkippedEntry{f.id, b.Code, reason} }
	rule, _ := e.Rule(b.Code, b.ServiceDate)
	switch x := f.entryFor(b.Code, d.period); {
	case x == nil:
	case IsUndone(x.Status):
		return left(x.Status + "_before")
	case x.Source == SourceManual:
		if b.Code == FirstTwenty {
			return left(alreadyBilled)
		}
		return left("manual_entry_exists")
	case b.Units <= x.Units:
		return left(alreadyBilled)
	case x.Status != PendingReview:
		return left("reviewed_before_more_time")
	default:
		d.toRaise = x
	}
	if primary := f.entryFor(FirstTwenty, d.period); len(rule.After) > 0 && (!first || d.toRaise == nil && primary != nil && collections.Number(primary.Payer) != f.payer) {
		return left(MissingPrimary)
	}
	if rule.Instead != "" && f.hasActiveEntry(rule.Instead, d.period) {
		if d.toRaise = e.upgradableEntry(f, rule.Instead, d.period, 0, b.Minutes); d.toRaise == nil {
			return left("billed_as_" + rule.Instead)
		}
	}
	if b.HasUndocumentedTime && !lenient {
		return left(MissingNote)
	}
	if b.HasUndocumentedTime {
		d.warnings = append(d.warnings, MissingNote)
	}
	return e.applyEligibility(f, d, lenient)
}

func timeEntryNumbers(ids []string) []int64 {
	list := make([]int64, len(ids))
	for i, id := range ids {
		list[i] = collections.Number(id)
	}
	slices.Sort(list)
	return list
}

// Block is the part of a month's time that supports one code.
type Block struct {
	Code                string
	ServiceDate         string // practice day of the time entry that crossed the (latest) threshold
	Minutes             int    // that the block claims
	Units               int
	TimeEntryIDs        []string // that contribute minutes
	HasEscalationTime   bool     // some is elapsed time of an escalation, which has to be attested
	CrossedByEscalation bool     // an escalation crossed the threshold
	HasUndocumentedTime bool     // some has no note
}

// PlanMonth returns the codes that a patient's time in a month supports. Each moment counts once; seconds are summed and rounded down to
// minutes: 99457 at 20, a unit of 99458 at 40, 60 and so on. 99470 requires a finished month with 10 to 19 minutes. Source:
// docs/decisions/billing.md, "99457 and 99458", "Overlapping time", "The twenty-minute rule" and "CPT catalogue and the eight codes".
func (e *Engine) PlanMonth(times []LoggedTime, monthOver bool) (blocks []Block) {
	if len(times) == 0 {
		return nil
	}
	setCounted(times)
	minutes, day := sumCounted(times)/60, e.Day(times[0].StartedAt)
	add := func(code string, fromMinute, toMinute, units int) {
		block := e.newBlock(times, fromMinute*60, toMinute*60)
		if _, ok := e.Rule(code, block.ServiceDate); !ok {
			return
		}
		block.Code, block.Minutes, block.Units = code, toMinute-fromMinute, units
		blocks = append(blocks, block)
	}
	first, step := baseRule(FirstTwenty, day).MinMinutes, baseRule(NextTwenty, day).Block
	switch short := baseRule(FirstTen, day).MinMinutes; {
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

// newBlock collects the time between two points of the month's summed seconds.
func (e *Engine) newBlock(times []LoggedTime, from, to int) (b Block) {
	limit := func(seconds int) time.Duration { return time.Duration(seconds) * time.Second }
	sum, firstContact := time.Duration(0), ""
	for _, s := range times {
		before := sum
		sum += s.counted
		if firstContact == "" && s.isLive() {
			firstContact = e.Day(s.StartedAt)
		}
		if s.counted == 0 || sum <= limit(from) || before >= limit(to) {
			continue
		}
		b.TimeEntryIDs = append(b.TimeEntryIDs, s.ID)
		b.HasEscalationTime = b.HasEscalationTime || s.Source == "escalation"
		b.HasUndocumentedTime = b.HasUndocumentedTime || !s.HasNote
		if sum >= limit(to) {
			b.ServiceDate, b.CrossedByEscalation = e.Day(s.StartedAt), s.Source == "escalation"
		}
	}
	b.ServiceDate = max(b.ServiceDate, firstContact) // care management counts once there was contact
	return b
}

// planMonthTime drafts the entries of a month's time under monitoring and consent. Codes that only other time would support are skipped as such;
// blocks contains all of them.
func (e *Engine) planMonthTime(f *patientFacts, all []LoggedTime, month Span, over, lenient bool) (due []entryDraft, skipped []SkippedEntry, blocks []Block) {
	monitored, counting := e.dropUnmonitoredTime(f, all), e.dropUncountedTime(f, all, month)
	blocks = e.PlanMonth(counting, over)
	due, skipped = e.draftTimeEntries(f, blocks, month, lenient)
	addLost := func(times []LoggedTime, reason string) {
		earned := len(blocks)
		for _, b := range e.PlanMonth(times, over) {
			rule, _ := e.Rule(b.Code, b.ServiceDate)
			known := slices.ContainsFunc(blocks[:earned], func(x Block) bool { return x.Code == b.Code || x.Code == rule.Instead })
			if !known && !f.hasActiveEntry(b.Code, month) && (rule.Instead == "" || !f.hasActiveEntry(rule.Instead, month)) {
				skipped, blocks = append(skipped, SkippedEntry{f.id, b.Code, reason}), append(blocks, b)
			}
		}
	}
	if len(counting) < len(monitored) {
		addLost(monitored, MissingConsent)
	}
	if len(monitored) < len(all) {
		addLost(all, NotActive)
	}
	return due, skipped, blocks
}
