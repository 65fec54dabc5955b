package billing

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/worklist"
)

// Near is a patient who is close to a code.
type Near struct {
	PatientID   string `json:"patient_id"`
	CPTCode     string `json:"cpt_code"`
	PeriodStart string `json:"period_start"`
	PeriodEnd   string `json:"period_end"`
	Unit        string `json:"unit"` // days or minutes
	Have        int    `json:"have"`
	Needed      int    `json:"needed"`
	DaysLeft    int    `json:"days_left"` // of the period, today included
	// Reached is the code that the period has come to already, nil for none; Reachable those that it can still come to.
	Reached   *string  `json:"reached"`
	Reachable []string `json:"reachable"`
	// Today says that today has data already, so that of the days left it is no room for another.
	Today bool `json:"-"`
}

const (
	unitDays    = "days"
	unitMinutes = "minutes"
)

// Missing is how much is still to come.
func (n Near) Missing() int { return n.Needed - n.Have }

// Still says in words what is missing: "2 more days".
func (n Near) Still() string { return plural(n.Missing(), "more "+n.Unit[:len(n.Unit)-1]) }

// NearWorth is one who is near, and what it would bring.
type NearWorth struct {
	Near
	Worth
}

// NearFilter narrows the list of those who are near, and says in which order; zero members leave it as it is.
type NearFilter struct {
	Include func(patientID string) bool
	Unit    string // days or minutes
	ByWorth bool   // what brings the most comes first, instead of the least missing
}

// NearBillable lists the patients closest to a code of the running periods, the least missing first unless the filter says otherwise: a page of them,
// and how many there are.
func (e *Engine) NearBillable(app core.App, now time.Time, f NearFilter, offset, limit int) (page []NearWorth, total int, err error) {
	order := e.lists.byLack
	if f.ByWorth {
		order = e.lists.byWorth
	}
	var all []nearness
	if err := e.lists.near.Ask(app, e.nearNow(now), func(a worklist.Snapshot[[]nearness]) { all = order.In(a) }); err != nil {
		return nil, 0, err
	}
	for _, n := range all {
		if f.Unit != "" && f.Unit != n.what.Value().unit || f.Include != nil && !f.Include(n.patient.Value()) {
			continue
		}
		if total++; total > offset && len(page) < limit {
			page = append(page, n.what.Value().of(n.patient))
		}
	}
	return page, total, nil
}

// NearDays are those whose running 30 days can still come to 16 days with data, or to two.
func (e *Engine) NearDays(app core.App, now time.Time, include func(string) bool) (list []Near, err error) {
	var all []nearness
	if err := e.lists.near.Ask(app, e.nearNow(now), func(a worklist.Snapshot[[]nearness]) { all = e.lists.byLack.In(a) }); err != nil {
		return nil, err
	}
	for _, n := range all {
		if n.what.Value().unit == unitDays && (include == nil || include(n.patient.Value())) {
			list = append(list, n.what.Value().of(n.patient).Near)
		}
	}
	return list, nil
}

func (e *Engine) nearNow(now time.Time) worklist.Question[[]nearness] {
	today := e.Day(now)
	return worklist.Question[[]nearness]{
		Name: "looking for who is near a code", Key: today, Whom: collections.PatientsWithActivity,
		Answer: func(app core.App, ids []string) (map[string][]nearness, error) { return e.nearOf(app, ids, today) },
	}
}

// nearOf says how near some patients are, and what it would bring.
func (e *Engine) nearOf(app core.App, ids []string, today string) (map[string][]nearness, error) {
	tariff, err := e.lists.tariff.of(app)
	if err != nil {
		return nil, err
	}
	patients, err := e.load(app, ids, today)
	if err != nil {
		return nil, err
	}
	list, err := e.nearTime(app, ids, today)
	if err != nil {
		return nil, err
	}
	days, err := e.nearDays(app, patients, today)
	if err != nil {
		return nil, err
	}
	found := map[string][]nearness{}
	for _, n := range append(list, days...) {
		f := patients[n.PatientID]
		if f == nil { // removed between the two reads
			continue
		}
		near := closenessOf(NearWorth{n, e.worthOf(tariff, f, n, today)})
		found[n.PatientID] = append(found[n.PatientID], nearness{unique.Make(n.PatientID), unique.Make(near)})
	}
	return found, nil
}

// nearTime are those who have interactive time this month and are under the next threshold.
func (e *Engine) nearTime(app core.App, ids []string, today string) (list []Near, err error) {
	month := monthOf(today)
	from, to := e.instants(month)
	rows, err := collections.CountedMinutes(app, ids, from, to, e.countsOf(month))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		next := e.nextThreshold(row.Minutes)
		if next == nil {
			continue
		}
		n := Near{PatientID: row.Patient, CPTCode: FirstTwenty, PeriodStart: month.Start, PeriodEnd: month.End, Unit: unitMinutes, Have: row.Minutes, Needed: *next}
		if n.Needed > ruleOf(FirstTwenty).MinMinutes {
			n.CPTCode = NextTwenty
		}
		n.DaysLeft = DaysBetween(today, month.End) + 1
		e.reachMinutes(&n, month.End)
		list = append(list, n)
	}
	return list, nil
}

// nearDays are those who hold a device, and whose running 30 days can still come to 16 days with data.
func (e *Engine) nearDays(app core.App, patients map[string]*facts, today string) (list []Near, err error) {
	anchors, err := e.anchors(app, patients)
	if err != nil {
		return nil, err
	}
	var windows []window
	for id, found := range anchors {
		f := patients[id]
		if p, ok := periodWith(found[len(found)-1], today); ok && f.activeOn(today) && f.holdsDevice() {
			windows = append(windows, window{Patient: id, Start: p.Start, End: p.End})
		}
	}
	if err := e.fill(app, patients, windows); err != nil {
		return nil, err
	}
	needed := ruleOf(DeviceSupply).MinDays
	for _, w := range windows {
		n := Near{
			PatientID: w.Patient, CPTCode: DeviceSupply, PeriodStart: w.Start, PeriodEnd: w.End, Unit: unitDays, Have: len(w.days), Needed: needed,
			DaysLeft: DaysBetween(today, w.End) + 1, Today: slices.Contains(w.days, today),
		}
		if e.reachDays(&n, w.End); 0 < n.Missing() && n.Missing() <= n.DaysLeft {
			list = append(list, n)
		}
	}
	return list, nil
}

// nearness is a [NearWorth] as it stands on a worklist: what is the same for many patients is there once.
type nearness struct {
	patient worklist.Patient
	what    unique.Handle[closeness]
}

// closeness is a [NearWorth] but for whose it is, in values that compare.
type closeness struct {
	code, unit         string
	period             Span
	have, needed, left int
	reached            string // "" for none
	reachable          string // parted by commas
	today              bool
	expected           Cents
	gain, perUnit      Cents
	until              string
	against            string // parted by commas
}

func closenessOf(n NearWorth) closeness {
	c := closeness{
		code: n.CPTCode, unit: n.Unit, period: Span{n.PeriodStart, n.PeriodEnd}, have: n.Have, needed: n.Needed, left: n.DaysLeft,
		reachable: strings.Join(n.Reachable, ","), today: n.Today, expected: n.Expected, gain: n.Gain, perUnit: n.PerUnit, until: n.Until,
		against: strings.Join(n.Against, ","),
	}
	if n.Reached != nil {
		c.reached = *n.Reached
	}
	return c
}

func (c closeness) of(patient worklist.Patient) NearWorth {
	n := NearWorth{
		Near{
			PatientID: patient.Value(), CPTCode: c.code, PeriodStart: c.period.Start, PeriodEnd: c.period.End, Unit: c.unit, Have: c.have, Needed: c.needed,
			DaysLeft: c.left, Reachable: parted(c.reachable), Today: c.today,
		},
		Worth{Expected: c.expected, Gain: c.gain, PerUnit: c.perUnit, Until: c.until, Against: parted(c.against)},
	}
	if c.reached != "" {
		n.Reached = &c.reached
	}
	return n
}

func parted(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

func byLack(a, b nearness) int {
	if a.what != b.what {
		x, y := a.what.Value(), b.what.Value()
		if order := cmp.Or(cmp.Compare(x.needed-x.have, y.needed-y.have), cmp.Compare(x.left, y.left)); order != 0 {
			return order
		}
	}
	if order := worklist.Before(a.patient, b.patient); order != 0 {
		return order
	}
	return cmp.Compare(a.what.Value().code, b.what.Value().code)
}

// byWorth orders by what each day or minute of work brings; what nothing else stands against comes first, and of equals what has less time left.
func byWorth(a, b nearness) int {
	if a.what != b.what {
		x, y := a.what.Value(), b.what.Value()
		order := cmp.Or(cmp.Compare(min(len(x.against), 1), min(len(y.against), 1)), cmp.Compare(y.perUnit, x.perUnit), cmp.Compare(x.until, y.until))
		if order != 0 {
			return order
		}
	}
	return byLack(a, b)
}
