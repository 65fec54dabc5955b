package reports_test

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"time"
)

// The oracle computes every report from all claims in memory, in the simplest code, without code of the package. Objects are as in JSON.

type object = map[string]any

// request is a request for a report; "any" matches every payer and provider.
type request struct{ from, to, payer, provider, code, patient string }

func money(cents int) float64 { return float64(cents) / 100 }

// rounded returns n ÷ d, half away from zero; 0 if d is 0.
func rounded(n, d, decimals int) float64 {
	if d == 0 {
		return 0
	}
	value, err := strconv.ParseFloat(big.NewRat(int64(n), int64(d)).FloatString(decimals), 64)
	if err != nil {
		panic(err)
	}
	return value
}

func moved(day string, days int) string {
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return at.AddDate(0, 0, days).Format(time.DateOnly)
}

func apart(a, b string) (days int) {
	x, _ := time.Parse(time.DateOnly, a)
	y, _ := time.Parse(time.DateOnly, b)
	return int(y.Sub(x).Hours()) / 24
}

func practiceDay(instant string) string {
	at, err := time.Parse(time.RFC3339Nano, instant)
	if err != nil {
		return ""
	}
	return at.In(newYork).Format(time.DateOnly)
}

// about returns the claims that match a request.
func (p practice) about(q request) (found []claim) {
	return slices.DeleteFunc(p.ever(q), func(c claim) bool { return c.status == "voided" })
}

// ever returns the same claims including voided ones.
func (p practice) ever(q request) (found []claim) {
	for _, c := range p.claims {
		if q.from != "" && c.day < q.from || q.to != "" && c.day > q.to || q.code != "" && c.code != q.code ||
			q.patient != "" && c.patient != q.patient || q.payer != "any" && c.payer != q.payer || q.provider != "any" && c.provider != q.provider {
			continue
		}
		found = append(found, c)
	}
	return found
}

type figures struct {
	claims, units, cents, paid, sent, sentCents, denied, paidClaims, settled, days int
	patients                                                                       map[string]bool
	states                                                                         map[string]int
	oldest                                                                         string
}

func sumUp(claims []claim) (f figures) {
	f.patients, f.states = map[string]bool{}, map[string]int{}
	for _, c := range claims {
		f.claims++
		f.units += c.units
		f.cents += c.cents
		f.paid += c.paid
		f.patients[c.patient] = true
		f.states[c.status]++
		if f.oldest == "" || c.day < f.oldest {
			f.oldest = c.day
		}
		if c.submitted != "" {
			f.sent++
			f.sentCents += c.cents
		}
		if c.deniedOn != "" {
			f.denied++
		}
		if c.status == "paid" {
			f.paidClaims++
		}
		if c.paidOn != "" && c.submitted != "" {
			f.settled++
			f.days += max(0, apart(c.submitted[:10], c.paidOn))
		}
	}
	return f
}

// split groups claims by a key, in their order.
func split(claims []claim, key func(claim) string) (keys []string, parts map[string][]claim) {
	parts = map[string][]claim{}
	for _, c := range claims {
		parts[key(c)] = append(parts[key(c)], c)
	}
	for k := range parts {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys, parts
}

// richest sorts keys by revenue, the highest first.
func richest(keys []string, parts map[string][]claim) {
	sort.SliceStable(keys, func(i, j int) bool { return sumUp(parts[keys[i]]).cents > sumUp(parts[keys[j]]).cents })
}

func byPayer(c claim) string    { return c.payer }
func byProvider(c claim) string { return c.provider }

// byCode sums the states of each code; totals are in the order of codes.
func byCode(c claim) string    { return c.code }
func byPatient(c claim) string { return c.patient }

func numbered(id string) any {
	n, err := strconv.Atoi(id)
	if err != nil {
		return nil
	}
	return n
}

func (p practice) payerName(id string) string {
	if id == "" {
		return "Self-pay"
	}
	if name := p.payers[id]; name != "" {
		return name
	}
	return "Gone"
}

func (f figures) byStatus() object {
	return object{"pending": f.states["pending_review"] + f.states["reviewed"], "submitted": f.states["submitted"], "paid": f.states["paid"], "denied": f.states["denied"], "appealed": f.states["appealed"]}
}

func periodOf(day, group string) string {
	at, _ := time.Parse(time.DateOnly, day)
	switch group {
	case "day":
		return day
	case "week":
		year, week := at.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	}
	return day[:7]
}

func groupOf(from, to string) string {
	switch n := apart(from, to) + 1; {
	case n <= 31:
		return "day"
	case n <= 182:
		return "week"
	}
	return "month"
}

// periods groups claims by the periods of a span.
func (p practice) periods(q request, group string) (keys []string, parts map[string][]claim) {
	for day := q.from; day <= q.to; day = moved(day, 1) {
		if key := periodOf(day, group); len(keys) == 0 || keys[len(keys)-1] != key {
			keys = append(keys, key)
		}
	}
	_, parts = split(p.about(q), func(c claim) string { return periodOf(c.day, group) })
	return keys, parts
}

// reconciled adds charges and their results to a report.
func (p practice) reconciled(q request, o object) object {
	billed, expected, paid, adjusted, share, refunded, open, sent := 0, 0, 0, 0, 0, 0, 0, 0
	out := map[string][4]int{}
	for _, c := range p.ever(q) {
		refunded += c.refunded
		if c.status == "voided" || c.status == "refunded" {
			was := out[c.status]
			out[c.status] = [4]int{was[0] + 1, was[1] + c.charge, was[2] + c.paid, was[3] + c.refunded}
			continue
		}
		billed, expected, paid, adjusted, share = billed+c.charge, expected+c.cents, paid+c.paid, adjusted+c.adjusted, share+c.share
		open += c.charge - c.paid - c.adjusted - c.share
		if c.status != "pending_review" && c.status != "reviewed" {
			sent += c.charge - c.paid - c.adjusted - c.share
		}
	}
	o["billed"], o["expected"], o["paid"], o["adjusted"], o["patient_responsibility"] = money(billed), money(expected), money(paid), money(adjusted), money(share)
	o["refunded"], o["open"], o["open_submitted"] = money(refunded), money(open), money(sent)
	apart := object{}
	for _, state := range []string{"voided", "refunded"} {
		apart[state] = object{"claims": out[state][0], "billed": money(out[state][1]), "paid": money(out[state][2]), "refunded": money(out[state][3])}
	}
	o["left_out"] = apart
	return o
}

func (p practice) oracleRevenue(q request) object {
	all := p.about(q)
	o := object{"total_revenue": money(sumUp(all).cents), "collected_revenue": money(sumUp(all).paid), "by_cpt": []object{}, "by_payer": []object{}, "by_provider": []object{}, "by_period": []object{}}
	add := func(list string, f figures, more object) {
		more["claims"], more["revenue"], more["collected"] = f.claims, money(f.cents), money(f.paid)
		o[list] = append(o[list].([]object), more)
	}
	keys, parts := split(all, byCode)
	for _, k := range keys {
		add("by_cpt", sumUp(parts[k]), object{"cpt_code": k, "units": sumUp(parts[k]).units})
	}
	keys, parts = split(all, byPayer)
	richest(keys, parts)
	for _, k := range keys {
		add("by_payer", sumUp(parts[k]), object{"payer_id": numbered(k), "payer": p.payerName(k)})
	}
	keys, parts = split(all, byProvider)
	richest(keys, parts)
	for _, k := range keys {
		add("by_provider", sumUp(parts[k]), object{"provider_id": numbered(k), "provider": p.providers[k]})
	}
	keys, parts = p.periods(q, groupOf(q.from, q.to))
	for _, k := range keys {
		add("by_period", sumUp(parts[k]), object{"period": k})
	}
	return p.reconciled(q, o)
}

func (p practice) oracleBreakdown(q request, group string) object {
	rows := []object{}
	keys, parts := p.periods(q, group)
	for _, k := range keys {
		f := sumUp(parts[k])
		rows = append(rows, object{"period": k, "revenue": money(f.cents), "claims": f.claims, "patients_billed": len(f.patients)})
	}
	return object{"date_from": q.from, "date_to": q.to, "total_revenue": money(sumUp(p.about(q)).cents), "breakdown": rows}
}

func (p practice) oracleStats(month string) object {
	all := p.about(request{from: month + "-01", to: month + "-31", payer: "any", provider: "any"})
	f, byCPT := sumUp(all), object{}
	keys, parts := split(all, byCode)
	for _, k := range keys {
		byCPT[k] = money(sumUp(parts[k]).cents)
	}
	return object{
		"period": month, "total_revenue": money(f.cents), "collected_revenue": money(f.paid), "total_claims": f.claims, "claims_by_status": f.byStatus(),
		"revenue_by_cpt": byCPT, "collection_rate": rounded(f.paid, f.sentCents, 4), "avg_days_to_payment": rounded(f.days, f.settled, 1),
	}
}

// monthRows returns the months with the change from the month before.
func (p practice) monthRows(q request, change string, factor, decimals int) []object {
	rows, last := []object{}, 0
	keys, parts := p.periods(q, "month")
	for _, k := range keys {
		f := sumUp(parts[k])
		row := object{"month": k, "revenue": money(f.cents), "collected": money(f.paid), "claims": f.claims, change: nil}
		if last > 0 {
			row[change] = rounded((f.cents-last)*factor, last, decimals)
		}
		rows, last = append(rows, row), f.cents
	}
	return rows
}

func (p practice) oracleExecutive(q request) object {
	before := q
	before.from, before.to = moved(q.from, -apart(q.from, q.to)-1), moved(q.from, -1)
	f, previous := sumUp(p.about(q)), sumUp(p.about(before)).cents
	revenue := object{"total": money(f.cents), "collected": money(f.paid), "previous_total": money(previous), "change_pct": nil}
	if previous > 0 {
		revenue["change_pct"] = rounded((f.cents-previous)*100, previous, 1)
	}
	active, compliant := 0, 0
	for _, one := range p.people {
		if !one.active || one.deleted {
			continue
		}
		active++
		zone := newYork
		if one.zone != "" {
			zone, _ = time.LoadLocation(one.zone)
		}
		days := 0
		for i := range 30 {
			y, m, d := p.now.In(zone).Date()
			if one.days[time.Date(y, m, d-i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)] {
				days++
			}
		}
		if days >= 16 {
			compliant++
		}
	}
	return p.reconciled(q, object{
		"revenue": revenue, "month_over_month": p.monthRows(q, "change_pct", 100, 1), "collection_rate": rounded(f.paid, f.sentCents, 4),
		"claims_by_status": f.byStatus(), "active_patients": active, "compliance_rate": rounded(compliant*100, active, 1),
	})
}

func (p practice) oracleStatus(q request) object {
	f, rows := sumUp(p.about(q)), []object{}
	_, parts := split(p.about(q), func(c claim) string { return c.status })
	for _, state := range []string{"pending_review", "reviewed", "submitted", "paid", "denied", "appealed", "void_requested", "refund_due", "refunded"} {
		s := sumUp(parts[state])
		if s.claims == 0 && (state == "void_requested" || state == "refund_due" || state == "refunded") {
			continue
		}
		row := object{"status": state, "lifecycle_status": state, "claims": s.claims, "amount": money(s.cents), "oldest_service_date": nil}
		if state == "pending_review" || state == "reviewed" {
			row["status"] = "pending"
		}
		if s.oldest != "" {
			row["oldest_service_date"] = s.oldest
		}
		rows = append(rows, row)
	}
	return object{"total_claims": f.claims, "total_amount": money(f.cents), "results": rows}
}

func (p practice) oracleAging(q request) object {
	today := p.now.In(newYork).Format(time.DateOnly)
	waits := func(c claim) bool { return c.status == "submitted" || c.status == "appealed" }
	left := func(c claim) int { return c.charge - c.paid - c.adjusted - c.share }
	open := slices.DeleteFunc(p.about(q), func(c claim) bool {
		return !waits(c) && (left(c) == 0 || !slices.Contains([]string{"paid", "denied", "void_requested", "refund_due"}, c.status))
	})
	waiting := func(claims []claim) []claim {
		return slices.DeleteFunc(slices.Clone(claims), func(c claim) bool { return !waits(c) })
	}
	rest := func(claims []claim) float64 {
		sum := 0
		for _, c := range claims {
			sum += left(c)
		}
		return money(sum)
	}
	buckets := func(claims []claim) (rows []object) {
		_, parts := split(claims, func(c claim) string {
			switch age := apart(practiceDay(c.submitted), today); {
			case age <= 30:
				return "0-30"
			case age <= 60:
				return "31-60"
			case age <= 90:
				return "61-90"
			}
			return "90+"
		})
		for _, name := range []string{"0-30", "31-60", "61-90", "90+"} {
			rows = append(rows, object{"bucket": name, "claims": len(waiting(parts[name])), "amount": money(sumUp(waiting(parts[name])).cents), "open": rest(parts[name])})
		}
		return rows
	}
	payers := []object{}
	keys, parts := split(open, byPayer)
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := parts[keys[i]], parts[keys[j]]
		if x, y := sumUp(waiting(a)).cents, sumUp(waiting(b)).cents; x != y {
			return x > y
		}
		return rest(a) > rest(b)
	})
	for _, k := range keys {
		payers = append(payers, object{"payer_id": numbered(k), "payer": p.payerName(k), "claims": len(waiting(parts[k])), "amount": money(sumUp(waiting(parts[k])).cents), "open": rest(parts[k]), "buckets": buckets(parts[k])})
	}
	return object{"as_of": today, "total_amount": money(sumUp(waiting(open)).cents), "total_open": rest(open), "buckets": buckets(open), "by_payer": payers}
}
