package billing

// Worth is what it would bring to reach a code that is near, and what beside days or minutes stands against it.
// Source: docs/decisions/billing.md, "What is near and what it is worth".
type Worth struct {
	Expected Cents `json:"expected"` // of the code
	// Gain is how much more that is than what the period has come to already; PerUnit is Gain by each day or minute that is still missing.
	Gain    Cents `json:"gain"`
	PerUnit Cents `json:"gain_per_unit"`
	// Until is the last day on which there is still time for all that is missing: of days, of which each takes one, the last to begin on.
	Until   string   `json:"until"`
	Against []string `json:"against"` // not_active, missing_consent, missing_diagnosis
}

func (e *Engine) worthOf(t tariff, f *facts, n Near, today string) Worth {
	w := Worth{Expected: t.rate(f.payer, n.CPTCode, n.PeriodEnd), Until: n.PeriodEnd, Against: append([]string{}, e.missing(f, today)...)}
	w.Gain = w.Expected
	if n.Reached != nil && ruleOf(n.CPTCode).Instead == *n.Reached { // it takes the other's place
		w.Gain -= t.rate(f.payer, *n.Reached, n.PeriodEnd)
	}
	if missing := n.Missing(); missing > 0 {
		w.PerUnit = w.Gain / Cents(missing)
		if n.Unit == unitDays {
			w.Until = AddDays(n.PeriodEnd, 1-missing)
		}
	}
	return w
}
