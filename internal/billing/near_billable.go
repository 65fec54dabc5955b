package billing

import (
	"cmp"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// NearCode is a patient close to a code.
type NearCode struct {
	PatientID   string `json:"patient_id"`
	CPTCode     string `json:"cpt_code"`
	PeriodStart string `json:"period_start"`
	PeriodEnd   string `json:"period_end"`
	Unit        string `json:"unit"` // days or minutes
	Have        int    `json:"have"`
	Needed      int    `json:"needed"`
	DaysLeft    int    `json:"days_left"` // of the period, including today
	// Reached is the code that the period supports now, nil for none; Reachable the codes it can still support.
	Reached   *string  `json:"reached"`
	Reachable []string `json:"reachable"`
	// HasDataToday means that today has data, so that today cannot add a day.
	HasDataToday bool `json:"-"`
	// DaysHeld is for how many days the patient has had a device without any reading, 0 with one.
	DaysHeld int `json:"-"`
}

// Missing returns how many days or minutes are missing.
func (n NearCode) Missing() int { return n.Needed - n.Have }

// NearBillable lists the patients closest to a code of the current periods, least missing first, at most limit. include filters patients; nil
// includes all.
func (e *Engine) NearBillable(app core.App, now time.Time, include func(patientID string) bool, limit int) (list []NearCode, err error) {
	if list, err = e.nearMinutes(app, now, include); err != nil {
		return nil, err
	}
	days, err := e.nearDeviceDays(app, now, include)
	if err != nil {
		return nil, err
	}
	list = append(list, days...)
	slices.SortFunc(list, byMissing)
	return list[:min(limit, len(list))], nil
}

func byMissing(a, b NearCode) int {
	return cmp.Or(cmp.Compare(a.Missing(), b.Missing()), cmp.Compare(a.DaysLeft, b.DaysLeft), cmp.Compare(a.PatientID, b.PatientID), cmp.Compare(a.CPTCode, b.CPTCode))
}

// nearMinutes returns the patients with interactive time this month who are below the next threshold.
func (e *Engine) nearMinutes(app core.App, now time.Time, include func(string) bool) (list []NearCode, err error) {
	today := e.Day(now)
	month := monthOf(today)
	from, to := e.instants(month)
	rows, err := collections.CountedMinutes(app, from, to, e.timeRuleOf(month))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		next := e.nextThreshold(row.Minutes, month.End)
		if next == nil || include != nil && !include(row.Patient) {
			continue
		}
		n := NearCode{PatientID: row.Patient, CPTCode: FirstTwenty, PeriodStart: month.Start, PeriodEnd: month.End, Unit: "minutes", Have: row.Minutes, Needed: *next}
		if n.Needed > baseRule(FirstTwenty, month.End).MinMinutes {
			n.CPTCode = NextTwenty
		}
		n.DaysLeft = DaysBetween(today, month.End) + 1
		e.setReachableByMinutes(&n, month.End)
		list = append(list, n)
	}
	return list, nil
}

// MissingText returns what is missing in words: "2 more days".
func (n NearCode) MissingText() string { return plural(n.Missing(), "more "+n.Unit[:len(n.Unit)-1]) }

// setReachableByMinutes sets the codes that a month's minutes support and can still support; every code stays reachable until the month is over.
func (e *Engine) setReachableByMinutes(n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{FirstTen, FirstTwenty, NextTwenty} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok:
		case n.Have >= rule.MinMinutes:
			n.Reached = &code
			if code == NextTwenty {
				n.Reachable = append(n.Reachable, code) // a further unit
			}
		default:
			n.Reachable = append(n.Reachable, code)
		}
	}
}

// firstSupplyCode returns the code that the first days of a period support: 99445 where the date and the payer have it, else 99454. Source:
// docs/decisions/billing.md, "Near-billable list".
func (e *Engine) firstSupplyCode(f *patientFacts, payer, day string) string {
	if _, ok := e.Rule(ShortSupply, day); ok && f.takesShortSupply(payer, day) {
		return ShortSupply
	}
	return DeviceSupply
}

// setReachableByDays does the same for the days of a period: each remaining day can add one.
func (e *Engine) setReachableByDays(f *patientFacts, n *NearCode, day string) {
	n.Reachable = []string{}
	for _, code := range []string{ShortSupply, DeviceSupply} {
		rule, ok := e.Rule(code, day)
		switch {
		case !ok || code == ShortSupply && !f.takesShortSupply(f.payerID(), day):
		case n.Have >= rule.MinDays:
			n.Reached = &code
		case n.Have+n.DaysLeft >= rule.MinDays:
			n.Reachable = append(n.Reachable, code)
		}
	}
}

// RevenueEstimate is the expected revenue of reaching a near code, and what else blocks it. Source: docs/decisions/billing.md, "Near-billable list".
type RevenueEstimate struct {
	Expected Cents `json:"expected"` // of the code
	// Gain is the difference from what the period supports now; PerUnit is Gain per missing day or minute.
	Gain    Cents `json:"gain"`
	PerUnit Cents `json:"gain_per_unit"`
	// Until is the last day on which the code can still be reached; for days, since each takes one, the last day to begin.
	Until   string   `json:"until"`
	Missing []string `json:"against"` // not_active, missing_consent, missing_diagnosis
}

// EstimateRevenue returns the estimates for the results of [Engine.NearBillable].
func (e *Engine) EstimateRevenue(app core.App, list []NearCode, today string) (worth map[string]RevenueEstimate, err error) {
	tariff, err := e.loadPriceList(app)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.PatientID
	}
	slices.Sort(ids)
	worth = map[string]RevenueEstimate{}
	for some := range slices.Chunk(slices.Compact(ids), chunkSize) {
		patients, err := e.loadFacts(app, some, today)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if f := patients[n.PatientID]; f != nil {
				worth[n.key()] = e.estimateRevenue(tariff, f, n, today)
			}
		}
	}
	return worth, nil
}

// key identifies the code, patient and period.
func (n NearCode) key() string { return n.PatientID + n.CPTCode + n.PeriodStart }

// EstimateIn returns its estimate.
func (n NearCode) EstimateIn(of map[string]RevenueEstimate) RevenueEstimate { return of[n.key()] }

func (e *Engine) estimateRevenue(t priceList, f *patientFacts, n NearCode, today string) RevenueEstimate {
	w := RevenueEstimate{Expected: t.expectedRate(f.payer, n.CPTCode, n.PeriodEnd), Until: n.PeriodEnd, Missing: append([]string{}, e.missingItems(f, today)...)}
	w.Gain = w.Expected
	if n.Reached != nil && baseRule(n.CPTCode, n.PeriodEnd).Instead == *n.Reached { // it replaces that code
		w.Gain -= t.expectedRate(f.payer, *n.Reached, n.PeriodEnd)
	}
	if missing := n.Missing(); missing > 0 {
		w.PerUnit = w.Gain / Cents(missing)
		if n.Unit == "days" {
			w.Until = AddDays(n.PeriodEnd, 1-missing)
		}
	}
	return w
}

// ByEstimatedGain orders by gain per day or minute of work; unblocked ones come first, and equal ones by the earlier deadline.
func ByEstimatedGain(of map[string]RevenueEstimate) func(a, b NearCode) int {
	return func(a, b NearCode) int {
		x, y := a.EstimateIn(of), b.EstimateIn(of)
		return cmp.Or(cmp.Compare(min(len(x.Missing), 1), min(len(y.Missing), 1)), cmp.Compare(y.PerUnit, x.PerUnit), cmp.Compare(x.Until, y.Until), byMissing(a, b))
	}
}
