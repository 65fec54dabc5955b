package billing

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unique"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/worklist"
)

// NotBilledYet is why something that nothing stands against has no entry: no run has come by.
const NotBilledYet = "not_billed_yet"

// Unbilled is activity that earned a code and has no entry.
type Unbilled struct {
	PatientID        string `json:"patient_id"`
	PatientName      string `json:"patient_name"` // the door's, like the MRN
	MRN              string `json:"mrn"`
	CPTCode          string `json:"cpt_code"`
	PeriodStart      string `json:"period_start"`
	PeriodEnd        string `json:"period_end"`
	TransmissionDays *int   `json:"transmission_days"`
	Minutes          *int   `json:"minutes"`
	Reason           string `json:"reason"`
	EstimatedAmount  Cents  `json:"estimated_amount"`
}

// UnbilledFilter narrows what is looked through; zero members leave it open. Periods count by their last day. nil is any payer or provider;
// a pointer to "" is none.
type UnbilledFilter struct {
	From, To, CPTCode, PatientID string
	Payer, Provider              *string
}

// earned is an [Unbilled] as it stands on a worklist: what is the same for many patients is there once.
type earned struct {
	patient worklist.Patient
	what    unique.Handle[earning]
}

type earning struct {
	code     string
	period   Span
	days     int // -1 for none
	minutes  int // as well
	reason   string
	amount   Cents
	payer    string // record id; "" for none
	provider string // as well
}

// Unbilled looks for periods and months that are over and earned a code, and have no entry, as a strict run of the engine would see them. What a
// person voided, or billed in another way, and what was not monitored, is not unbilled.
func (e *Engine) Unbilled(app core.App, f UnbilledFilter, now time.Time) (list []Unbilled, err error) {
	list = []Unbilled{}
	if f.PatientID != "" { // planned anew, without waiting for everybody's
		q := e.unbilledOn(e.Day(now), e.readTariff)
		ids, err := q.Whom(app, []string{f.PatientID}, "", 1)
		if err != nil || len(ids) == 0 {
			return list, err
		}
		answers, err := q.Answer(app, ids)
		return f.choose(answers[f.PatientID]), err
	}
	var all []earned
	if err := e.lists.unbilled.Ask(app, e.unbilledNow(now), func(a worklist.Snapshot[[]earned]) { all = e.lists.byEnd.In(a) }); err != nil {
		return nil, err
	}
	return f.choose(all), nil
}

// choose are those that a filter leaves, by the end of their period.
func (f UnbilledFilter) choose(all []earned) []Unbilled {
	list := []Unbilled{}
	for _, x := range all {
		if u := x.what.Value(); f.lets(u) {
			list = append(list, u.of(x.patient))
		}
	}
	slices.SortStableFunc(list, func(a, b Unbilled) int { return cmp.Compare(a.PeriodEnd, b.PeriodEnd) })
	return list
}

func (f UnbilledFilter) lets(u earning) bool {
	return (f.CPTCode == "" || f.CPTCode == u.code) && f.From <= u.period.End && (f.To == "" || u.period.End <= f.To) &&
		(f.Payer == nil || *f.Payer == u.payer) && (f.Provider == nil || *f.Provider == u.provider)
}

func (u earning) of(patient worklist.Patient) Unbilled {
	x := Unbilled{
		PatientID: patient.Value(), CPTCode: u.code, PeriodStart: u.period.Start, PeriodEnd: u.period.End, Reason: u.reason, EstimatedAmount: u.amount,
	}
	if u.days >= 0 {
		x.TransmissionDays = &u.days
	}
	if u.minutes >= 0 {
		x.Minutes = &u.minutes
	}
	return x
}

func (e *Engine) unbilledNow(now time.Time) worklist.Question[[]earned] {
	return e.unbilledOn(e.Day(now), e.lists.tariff.of)
}

// unbilledOn asks what patients earned until the day before one, that has no entry.
func (e *Engine) unbilledOn(today string, tariffOf func(core.App) (tariff, error)) worklist.Question[[]earned] {
	u := unbilled{Engine: e, tariffOf: tariffOf, span: Span{"1900-01-01", AddDays(today, -1)}}
	return worklist.Question[[]earned]{
		Name: "looking for unbilled activity", Key: today, Whom: collections.PatientsWithActivity, Answer: u.ask,
	}
}

// unbilled is a search under way.
type unbilled struct {
	*Engine
	span     Span
	tariffOf func(core.App) (tariff, error)
	tariff   tariff
	list     []earning // of the patient who is looked at
}

// ask goes through some patients.
func (u unbilled) ask(app core.App, ids []string) (found map[string][]earned, err error) {
	if u.tariff, err = u.tariffOf(app); err != nil {
		return nil, err
	}
	patients, err := u.load(app, ids, u.span.Start)
	if err != nil {
		return nil, err
	}
	windows, err := u.windows(app, patients, u.span)
	if err != nil {
		return nil, err
	}
	stretches, err := u.stretchesByMonth(app, ids)
	if err != nil {
		return nil, err
	}
	found = map[string][]earned{}
	for _, id := range ids {
		f := patients[id]
		if f == nil {
			continue
		}
		u.list = nil
		u.devices(f, windows[id])
		u.months(f, stretches[id])
		for _, one := range u.list {
			found[id] = append(found[id], earned{unique.Make(id), unique.Make(one)})
		}
	}
	return found, nil
}

// add notes a code that was earned, unless it was decided not to bill it.
func (u *unbilled) add(f *facts, code string, period Span, service string, units int, days, minutes *int, reason string) {
	switch reason {
	case NotBilledYet, MissingConsent, MissingDiagnosis, MissingNote, MissingPrimary, "reviewed_before_more_time":
	default:
		return
	}
	if period.End < u.span.Start || period.End > u.span.End {
		return
	}
	one := earning{
		code: code, period: period, days: -1, minutes: -1, reason: reason, amount: u.tariff.rate(f.payer, code, service) * Cents(units), provider: f.provider,
	}
	one.payer, _ = u.tariff.payer(f.payer)
	if days != nil {
		one.days = *days
	}
	if minutes != nil {
		one.minutes = *minutes
	}
	u.list = append(u.list, one)
}

// devices plans window by window, so that each refusal belongs to its period.
func (u *unbilled) devices(f *facts, windows []window) {
	taught := false
	for _, w := range windows {
		due, skipped := u.planDevice(f, []window{w}, false)
		days := new(len(w.days))
		for _, d := range due {
			switch {
			case d.code != Setup:
				u.add(f, d.code, d.period, d.service, 1, days, nil, NotBilledYet)
			case !taught:
				u.add(f, Setup, d.period, d.service, 1, nil, nil, NotBilledYet)
				taught = true
			}
		}
		for _, s := range skipped {
			if s.CPTCode != Setup {
				u.add(f, s.CPTCode, Span{w.Start, w.End}, w.End, 1, days, nil, s.Reason)
			}
		}
	}
	if len(windows) == 0 || taught {
		return
	}
	due, skipped := u.planDevice(f, nil, false) // the set-up alone
	for _, d := range due {
		u.add(f, d.code, d.period, d.service, 1, nil, nil, NotBilledYet)
	}
	for _, s := range skipped {
		u.add(f, s.CPTCode, Span{f.educated, f.educated}, f.educated, 1, nil, nil, s.Reason)
	}
}

func (u *unbilled) months(f *facts, byMonth map[Span][]Stretch) {
	for _, month := range slices.SortedFunc(maps.Keys(byMonth), func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }) {
		due, skipped, blocks := u.planConsented(f, byMonth[month], month, true, false)
		for _, d := range due {
			units := d.units
			if d.raises != nil {
				units -= d.raises.Units
			}
			u.add(f, d.code, month, d.service, units, nil, new(d.minutes), NotBilledYet)
		}
		for _, s := range skipped {
			i := slices.IndexFunc(blocks, func(b Block) bool { return b.Code == s.CPTCode })
			b, units := blocks[i], blocks[i].Units
			if x := f.entryFor(b.Code, month); x != nil {
				units -= x.Units
			}
			u.add(f, s.CPTCode, month, b.ServiceDate, units, nil, new(b.Minutes), s.Reason)
		}
	}
}

// stretchesByMonth reads the finished interactive time of some patients, by practice month, of months that are over; one line for each patient,
// as entries are.
func (u *unbilled) stretchesByMonth(app core.App, ids []string) (map[string]map[Span][]Stretch, error) {
	from, to := u.around(Span{monthOf(u.span.Start).Start, u.span.End})
	rows, err := collections.StretchLines(app, ids, from, to, u.counts(u.TimeRule))
	if err != nil {
		return nil, err
	}
	found := map[string]map[Span][]Stretch{}
	for _, row := range rows {
		months := u.inMonths(stretchesOn(row.List))
		maps.DeleteFunc(months, func(month Span, _ []Stretch) bool { return month.End > u.span.End })
		found[row.Patient] = months
	}
	return found, nil
}

// EligibleOf says which of some patients may be billed for today.
func (e *Engine) EligibleOf(app core.App, ids []string, now time.Time) (map[string]bool, error) {
	today, eligible := e.Day(now), map[string]bool{}
	for some := range slices.Chunk(ids, chunk) {
		patients, err := e.load(app, some, today)
		if err != nil {
			return nil, err
		}
		for id, f := range patients {
			eligible[id] = len(e.missing(f, today)) == 0
		}
	}
	return eligible, nil
}
