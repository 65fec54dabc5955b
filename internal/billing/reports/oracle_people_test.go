package reports_test

import (
	"slices"
	"sort"
	"time"
)

func (p practice) oraclePayers(q request) object {
	rows := []object{}
	keys, parts := split(p.about(q), byPayer)
	sort.SliceStable(keys, func(i, j int) bool { return sumUp(parts[keys[i]]).sent > sumUp(parts[keys[j]]).sent })
	for _, k := range keys {
		f, reasons := sumUp(parts[k]), []object{}
		denied := slices.DeleteFunc(slices.Clone(parts[k]), func(c claim) bool { return c.deniedOn == "" })
		names, of := split(denied, func(c claim) string { return c.denial })
		sort.SliceStable(names, func(i, j int) bool { return len(of[names[i]]) > len(of[names[j]]) })
		for _, name := range names[:min(5, len(names))] {
			words, saying := split(of[name], func(c claim) string { return c.words })
			sort.SliceStable(words, func(i, j int) bool { return len(saying[words[i]]) > len(saying[words[j]]) })
			reasons = append(reasons, object{"code": name, "description": words[0], "count": len(of[name])})
		}
		rows = append(rows, object{
			"payer_id": numbered(k), "payer": p.payerName(k), "submitted": f.sent, "paid": f.paidClaims, "denied": f.denied,
			"approval_rate": rounded(f.paidClaims, f.sent, 4), "denial_rate": rounded(f.denied, f.sent, 4), "avg_days_to_payment": rounded(f.days, f.settled, 1),
			"common_denial_reasons": reasons,
		})
	}
	return object{"results": rows}
}

func (p practice) oracleCodes(q request) object {
	rows := []object{}
	keys, parts := split(p.about(q), byCode)
	for _, k := range keys {
		f := sumUp(parts[k])
		paid := sumUp(slices.DeleteFunc(slices.Clone(parts[k]), func(c claim) bool { return c.status != "paid" }))
		rows = append(rows, object{
			"cpt_code": k, "volume": f.claims, "units": f.units, "revenue": money(f.cents), "avg_reimbursement": rounded(paid.paid, paid.claims*100, 2),
			"denial_rate": rounded(f.denied, f.sent, 4),
		})
	}
	return object{"results": rows}
}

func (p practice) oracleProviders(q request) object {
	rows := []object{}
	keys, parts := split(p.about(q), byProvider)
	richest(keys, parts)
	for _, k := range keys {
		f, seconds := sumUp(parts[k]), 0
		for _, s := range p.time {
			if day := s.start.In(newYork).Format(time.DateOnly); s.user == k && s.category == "interactive" && q.from <= day && day <= q.to && (q.patient == "" || q.patient == s.patient) {
				seconds += s.seconds
			}
		}
		rows = append(rows, object{
			"provider_id": numbered(k), "provider": p.providers[k], "patients_managed": len(f.patients), "claims": f.claims, "revenue": money(f.cents),
			"revenue_per_patient": rounded(f.cents, len(f.patients)*100, 2), "interactive_minutes": seconds / 60,
		})
	}
	return object{"results": rows}
}

func (p practice) oraclePatients(q request) object {
	rows := []object{}
	keys, parts := split(p.about(q), byPatient)
	if q.patient != "" {
		keys = []string{q.patient}
	}
	for _, k := range keys {
		f := sumUp(parts[k])
		row := object{
			"patient_id": k, "patient_name": "", "mrn": "", "lifetime_revenue": money(f.cents), "collected": money(f.paid), "claims": f.claims,
			"last_service_date": nil, "eligible": false,
		}
		for _, one := range p.people {
			if one.id == k {
				row["eligible"] = one.active && !one.deleted && one.diagnosis && one.consent
			}
		}
		mine := slices.Clone(parts[k])
		sort.Slice(mine, func(i, j int) bool {
			return mine[i].day > mine[j].day || mine[i].day == mine[j].day && mine[i].id > mine[j].id
		})
		history := []object{}
		for _, c := range mine {
			status := c.status
			if status == "pending_review" || status == "reviewed" {
				status = "pending"
			}
			history = append(history, object{"cpt_code": c.code, "service_date": c.day, "amount": money(c.cents), "status": status})
		}
		if len(mine) > 0 {
			row["last_service_date"] = mine[0].day
		}
		if q.patient != "" {
			row["history"] = history
		}
		rows = append(rows, row)
	}
	return object{"count": len(rows), "results": rows}
}

func (p practice) oracleTasks(q request) object {
	type item struct {
		id, task, code, since string
		order, age            int
	}
	today := p.now.In(newYork).Format(time.DateOnly)
	o := object{"oldest_pending_days": nil, "emr_corrections": 0, "missing_fee_list": 0, "missing_fee_codes": []any{}, "missing_code_list": 0, "missing_rules": 0}
	if today[5:] >= "11-01" {
		o["missing_fee_list"], o["missing_fee_codes"] = 1, []any{"99453", "99454", "99457", "99458", "99091"}
	}
	if today >= "2026-11-01" {
		o["missing_rules"] = 1
	}
	if today < "2025-10-01" || today > "2026-09-30" {
		o["missing_code_list"] = 1
	}
	var items []item
	attest := 0
	f, credits, balances := sumUp(p.about(q)), 0, 0
	for _, c := range p.about(q) {
		i := item{id: c.id, code: c.code}
		if (c.status == "paid" || c.status == "denied") && c.paid > 0 && c.paid+c.adjusted+c.share > c.charge {
			credits++
			items = append(items, item{c.id, "credit", c.code, c.created, 5, max(0, apart(practiceDay(c.created), today))})
		}
		if c.status == "paid" && c.paid+c.adjusted+c.share < c.charge {
			balances++
			items = append(items, item{c.id, "open_balance", c.code, c.created, 6, max(0, apart(practiceDay(c.created), today))})
		}
		switch c.status {
		case "pending_review":
			i.task, i.since, i.age = "review", c.created, apart(practiceDay(c.created), today)
			if c.attest {
				i.task = "attest"
				attest++
			}
			if was, known := o["oldest_pending_days"].(int); !known || i.age > was {
				o["oldest_pending_days"] = max(0, i.age)
			}
		case "reviewed":
			i.task, i.since, i.order, i.age = "submit", c.reviewed, 1, apart(practiceDay(c.reviewed), today)
		case "denied":
			i.task, i.since, i.order, i.age = "resubmit", c.deniedOn, 2, apart(c.deniedOn, today)
		case "void_requested":
			i.task, i.since, i.order, i.age = c.status, c.created, 3, apart(practiceDay(c.created), today)
		case "refund_due":
			i.task, i.since, i.order, i.age = c.status, c.created, 4, apart(practiceDay(c.created), today)
		default:
			continue
		}
		i.age = max(0, i.age)
		items = append(items, i)
	}
	sort.Slice(items, func(a, b int) bool {
		x, y := items[a], items[b]
		switch {
		case x.age != y.age:
			return x.age > y.age
		case x.since != y.since:
			return x.since < y.since
		case x.order != y.order:
			return x.order < y.order
		}
		return x.id < y.id
	})
	rows := []object{}
	for _, i := range items[:min(100, len(items))] {
		rows = append(rows, object{"entry_id": i.id, "task": i.task, "patient_name": "", "cpt_code": i.code, "age_days": i.age, "repay_by": nil})
	}
	o["pending_reviews"], o["submission_backlog"], o["denied_awaiting_resubmission"] = f.states["pending_review"], f.states["reviewed"], f.states["denied"]
	o["credits"], o["open_balances"], o["unposted_remittances"], o["secondary_due"] = credits, balances, 0, 0
	o["void_requested"], o["refund_due"] = f.states["void_requested"], f.states["refund_due"]
	o["attestation_needed"], o["evidence_changed"], o["items"] = attest, 0, rows
	return o
}
