package billing

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"
	"golang.org/x/sync/errgroup"

	"github.com/vigilhealth/vigil/collections"
)

// NotBilledYet is the reason of an entry that is due before the next run.
const NotBilledYet = "not_billed_yet"

// Unbilled is activity that supports a code and has no entry.
type Unbilled struct {
	PatientID        string `json:"patient_id"`
	PatientName      string `json:"patient_name"` // set by the route, like the MRN
	MRN              string `json:"mrn"`
	CPTCode          string `json:"cpt_code"`
	PeriodStart      string `json:"period_start"`
	PeriodEnd        string `json:"period_end"`
	TransmissionDays *int   `json:"transmission_days"`
	Minutes          *int   `json:"minutes"`
	Reason           string `json:"reason"`
	EstimatedAmount  Cents  `json:"estimated_amount"`
}

// UnbilledFilter narrows the search; zero members are open. Periods count by their last day. nil means any payer or provider; a pointer to ""
// means none.
type UnbilledFilter struct {
	From, To, CPTCode, PatientID string
	Payer, Provider              *string
}

// Unbilled returns finished periods and months that support a code and have no entry, as a strict run would find them. Entries that a user
// voided or billed another way are not unbilled.
func (e *Engine) Unbilled(app core.App, f UnbilledFilter, now time.Time) (list []Unbilled, err error) {
	u := &unbilledSearch{Engine: e, app: app, filter: f, today: e.Day(now), list: []Unbilled{}}
	if u.tariff, err = e.loadPriceList(app); err != nil {
		return nil, err
	}
	u.span = Span{max(f.From, "1900-01-01"), AddDays(u.today, -1)}
	if f.To != "" {
		u.span.End = min(u.span.End, f.To)
	}
	var parts []*unbilledSearch
	var workers errgroup.Group
	workers.SetLimit(maxSearchers)
	for after := ""; ; {
		ids, err := collections.PatientsWithActivity(app, f.PatientID, after, chunkSize)
		if err != nil || len(ids) == 0 {
			if err = errors.Join(err, workers.Wait()); err != nil {
				return nil, err
			}
			break
		}
		part := *u
		parts = append(parts, &part)
		workers.Go(func() error { return part.searchChunkSafely(ids) })
		after = ids[len(ids)-1]
	}
	for _, part := range parts {
		u.list = append(u.list, part.list...)
	}
	slices.SortStableFunc(u.list, func(a, b Unbilled) int { return cmp.Compare(a.PeriodEnd, b.PeriodEnd) })
	return u.list, nil
}

// maxSearchers is how many chunks are searched in parallel, each on its own connection; the other connections stay free.
const maxSearchers = 2

// unbilledSearch is a search in progress.
type unbilledSearch struct {
	*Engine
	app    core.App
	filter UnbilledFilter
	span   Span
	today  string
	tariff priceList
	list   []Unbilled
}

// searchChunkSafely searches a chunk and returns a panic as an error; in its own goroutine it would end the service.
func (u *unbilledSearch) searchChunkSafely(ids []string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("unbilled activity search panicked (%T): %s", v, debug.Stack()) // the text of v could quote a value
		}
	}()
	return u.searchChunk(ids)
}

func (u *unbilledSearch) searchChunk(ids []string) error {
	patients, err := u.loadFacts(u.app, ids, u.span.Start)
	if err != nil {
		return err
	}
	windows, err := u.unbilledPeriods(u.app, patients, u.span)
	if err != nil {
		return err
	}
	times, err := u.loggedTimeByMonth(ids, patients)
	if err != nil {
		return err
	}
	for _, id := range ids {
		f := patients[id]
		if f == nil || !u.matches(f) {
			continue
		}
		u.addDevicePeriods(f, windows[id])
		u.addMonths(f, times[id])
	}
	return nil
}

func (u *unbilledSearch) matches(f *patientFacts) bool {
	payer, _ := u.tariff.payerOf(f.payer)
	return (u.filter.Payer == nil || *u.filter.Payer == payer) && (u.filter.Provider == nil || *u.filter.Provider == f.provider)
}

// add records a code that was earned, unless it was decided not to bill it.
func (u *unbilledSearch) add(f *patientFacts, code string, period Span, service string, units int, days, minutes *int, reason string) {
	switch reason {
	case NotBilledYet, MissingConsent, MissingDiagnosis, MissingNote, MissingPrimary, "reviewed_before_more_time":
	default:
		return
	}
	if u.filter.CPTCode != "" && u.filter.CPTCode != code || period.End < u.span.Start || period.End > u.span.End {
		return
	}
	u.list = append(u.list, Unbilled{
		PatientID: f.id, CPTCode: code, PeriodStart: period.Start, PeriodEnd: period.End, TransmissionDays: days, Minutes: minutes, Reason: reason,
		EstimatedAmount: u.tariff.expectedRate(f.payer, code, service) * Cents(units),
	})
}

// addDevicePeriods plans period by period, so that each reason belongs to its period.
func (u *unbilledSearch) addDevicePeriods(f *patientFacts, windows []supplyPeriod) {
	taught := map[string]bool{} // days of set-up; each episode of care has one
	for _, w := range windows {
		due, skipped := u.draftDeviceEntries(f, []supplyPeriod{w}, false)
		days := new(len(w.days))
		for _, d := range due {
			switch {
			case d.code != Setup:
				u.add(f, d.code, d.period, d.service, 1, days, nil, NotBilledYet)
			case !taught[d.service]:
				u.add(f, Setup, d.period, d.service, 1, nil, nil, NotBilledYet)
				taught[d.service] = true
			}
		}
		for _, s := range skipped {
			if s.CPTCode != Setup {
				u.add(f, s.CPTCode, Span{w.Start, w.End}, w.End, 1, days, nil, s.Reason)
			}
		}
	}
	if len(windows) == 0 || len(taught) > 0 {
		return
	}
	due, skipped := u.draftDeviceEntries(f, nil, false) // the set-up alone
	for _, d := range due {
		u.add(f, d.code, d.period, d.service, 1, nil, nil, NotBilledYet)
	}
	for _, s := range skipped {
		u.add(f, s.CPTCode, Span{f.setupDay, f.setupDay}, f.setupDay, 1, nil, nil, s.Reason)
	}
}

func (u *unbilledSearch) addMonths(f *patientFacts, byMonth map[Span][]LoggedTime) {
	for _, month := range slices.SortedFunc(maps.Keys(byMonth), func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }) {
		due, skipped, blocks := u.planMonthTime(f, byMonth[month], month, true, false)
		for _, d := range due {
			units := d.units
			if d.toRaise != nil {
				units -= d.toRaise.Units
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

// loggedTimeByMonth returns the finished interactive time of patients, by practice month, for months that are over.
func (u *unbilledSearch) loggedTimeByMonth(ids []string, patients map[string]*patientFacts) (map[string]map[Span][]LoggedTime, error) {
	from, to := u.monthWithLead(Span{monthOf(u.span.Start).Start, u.span.End})
	rows, err := collections.BillableTimeLines(u.app, ids, from, to, u.byPayer(u.timeRule(u.TimeRule), u.span))
	if err != nil {
		return nil, err
	}
	found := map[string]map[Span][]LoggedTime{}
	for _, row := range rows {
		f := patients[row.Patient]
		if f == nil {
			continue
		}
		months := u.splitByMonth(parseLoggedTime(row.List), f.minutesRule())
		maps.DeleteFunc(months, func(month Span, _ []LoggedTime) bool { return month.End > u.span.End })
		found[row.Patient] = months
	}
	return found, nil
}
