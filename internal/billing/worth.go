package billing

import (
	"cmp"
	"slices"

	"github.com/pocketbase/pocketbase/core"
)

// Worth is what it would bring to reach a code that is near, and what beside days or minutes stands against it.
// Source: docs/decisions/billing.md, "Near-billable list".
type Worth struct {
	Expected Cents `json:"expected"` // of the code
	// Gain is how much more that is than what the period has come to already; PerUnit is Gain by each day or minute that is still missing.
	Gain    Cents `json:"gain"`
	PerUnit Cents `json:"gain_per_unit"`
	// Until is the last day on which there is still time for all that is missing: of days, of which each takes one, the last to begin on.
	Until   string   `json:"until"`
	Against []string `json:"against"` // not_active, missing_consent, missing_diagnosis
}

// NearWorth is what those of [Engine.NearBillable] are worth.
func (e *Engine) NearWorth(app core.App, list []Near, today string) (worth map[string]Worth, err error) {
	tariff, err := e.readTariff(app)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list))
	for i, n := range list {
		ids[i] = n.PatientID
	}
	slices.Sort(ids)
	worth = map[string]Worth{}
	for some := range slices.Chunk(slices.Compact(ids), chunk) {
		patients, err := e.load(app, some, today)
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if f := patients[n.PatientID]; f != nil {
				worth[n.key()] = e.worthOf(tariff, f, n, today)
			}
		}
	}
	return worth, nil
}

// key tells one nearness from another.
func (n Near) key() string { return n.PatientID + n.CPTCode + n.PeriodStart }

// WorthIn finds what a nearness is worth.
func (n Near) WorthIn(of map[string]Worth) Worth { return of[n.key()] }

func (e *Engine) worthOf(t tariff, f *facts, n Near, today string) Worth {
	w := Worth{Expected: t.rate(f.payer, n.CPTCode, n.PeriodEnd), Until: n.PeriodEnd, Against: append([]string{}, e.missing(f, today)...)}
	w.Gain = w.Expected
	if n.Reached != nil && ruleOf(n.CPTCode).Instead == *n.Reached { // it takes the other's place
		w.Gain -= t.rate(f.payer, *n.Reached, n.PeriodEnd)
	}
	if missing := n.Missing(); missing > 0 {
		w.PerUnit = w.Gain / Cents(missing)
		if n.Unit == "days" {
			w.Until = AddDays(n.PeriodEnd, 1-missing)
		}
	}
	return w
}

// ByWorth orders by what each day or minute of work brings; what nothing else stands against comes first, and of equals what has less time left.
func ByWorth(of map[string]Worth) func(a, b Near) int {
	return func(a, b Near) int {
		x, y := a.WorthIn(of), b.WorthIn(of)
		return cmp.Or(cmp.Compare(min(len(x.Against), 1), min(len(y.Against), 1)), cmp.Compare(y.PerUnit, x.PerUnit), cmp.Compare(x.Until, y.Until), byMissing(a, b))
	}
}
