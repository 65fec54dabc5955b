package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// monthEndEntry returns an entry from its month-end list; nil if it is not listed.
func (c *clinic) monthEndEntry(entry string) object {
	c.t.Helper()
	service := c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/", nil).want(200).text("service_date")
	for _, row := range c.request(authz.DataMonitor, "GET", "/billing/month-end/?month="+service[:7], nil).results() {
		if row["entry_id"] == entry {
			return row
		}
	}
	return nil
}

// wantSameReasons checks that the month-end list gives the reasons for which the entry's next step was refused, except
// payer rejections, which a review does not check.
func (c *clinic) wantSameReasons(entry, move string, refused []string) {
	c.t.Helper()
	if move != "review" && move != "submit" {
		return
	}
	row := c.monthEndEntry(entry)
	if row == nil {
		c.t.Errorf("%s is not in its month's end", entry)
		return
	}
	var reasons []string
	for _, reason := range row["reasons"].([]any) {
		reasons = append(reasons, reason.(string))
	}
	slices.Sort(reasons)
	if !slices.Equal(reasons, refused) || row["ready"] != (len(refused) == 0) {
		c.t.Errorf("the month-end list has %v for an entry; its %s is refused for %v", reasons, move, refused)
	}
}

// monthOfEight creates a month of eight entries: five without problems, one with revoked consent, one of a patient
// without a diagnosis, and a manual one without minutes.
func monthOfEight(c *clinic) (clean, held []string) {
	for i := range 5 {
		patient := c.consentedPatient()
		c.storeDeviceDays(patient, fmt.Sprint("M-", i), c.now.AddDate(0, 0, -31), 16+i)
		c.run("device")
		clean = append(clean, c.entryOf(patient, "99454"))
	}
	without := c.enroll(object{"icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number()})
	c.storeDeviceDays(without, "M-5", c.now.AddDate(0, 0, -31), 16)
	undiagnosed := c.enroll(object{"primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(undiagnosed)
	c.storeDeviceDays(undiagnosed, "M-6", c.now.AddDate(0, 0, -31), 16)
	c.run("device")
	return clean, []string{c.entryOf(without, "99454"), c.entryOf(undiagnosed, "99454"), c.manualEntry(c.consentedPatient(), "99457", "2026-01-14", 20)}
}

func (c *clinic) run(job string) {
	c.t.Helper()
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": job}).want(200)
}

// The month-end list gives the same reasons as the review.
func TestMonthEnd(t *testing.T) {
	c := newIngestingClinic(t)
	clean, held := monthOfEight(c)
	sheet := c.request(authz.DataMonitor, "GET", "/billing/month-end/", nil).want(200)
	sheet.wantAt(object{"month": "2026-01", "sends_claims": false, "left_out": 0.0})
	for _, entry := range clean {
		row := c.monthEndEntry(entry)
		if row["ready"] != true || row["days_needed"] != 16.0 || row["days"].(float64) < 16 || row["minutes"] != nil || fmt.Sprint(row["warnings"]) != "[missing_order]" {
			t.Errorf("a clean entry is %v", row)
		}
		if facts := row["facts"].(object); facts["consent"] != "ok" || facts["order"] != "advised" || facts["payer"] != "self_pay" {
			t.Errorf("its facts are %v", facts)
		}
	}
	for i, want := range []string{"[missing_consent]", "[missing_diagnosis]", "[minutes_below_minimum]"} {
		if row := c.monthEndEntry(held[i]); fmt.Sprint(row["reasons"]) != want || row["ready"] != false || row["in_batch"] != false {
			t.Errorf("an entry that is held back is %v, want %s", row, want)
		}
	}
	before := c.queryRows(t, `SELECT COUNT(*) FROM audit_log WHERE event LIKE 'billing.%'`)
	c.request(authz.DataMonitor, "GET", "/billing/month-end/?status=pending_review", nil).want(200)
	if after := c.queryRows(t, `SELECT COUNT(*) FROM audit_log WHERE event LIKE 'billing.%'`); !slices.Equal(before, after) {
		t.Error("weighing leaves a trace of something done")
	}
	if reviewed := c.request(authz.DataMonitor, "GET", "/billing/month-end/?status=reviewed", nil).results(); len(reviewed) != 0 {
		t.Errorf("reviewed are %v", reviewed)
	}
	for _, row := range c.request(authz.DataMonitor, "GET", "/billing/month-end/?month=2025-12", nil).results() {
		if row["cpt_code"] != "99453" || row["service_date"] != "2025-12-15" {
			t.Errorf("of December is %v", row)
		}
	}
	c.request(authz.DataMonitor, "GET", "/billing/month-end/?month=2026-1&status=paid", nil).wantFields("month", "status")
	c.wantRoles("GET", "/billing/month-end/", nil, authz.Admin, authz.DataMonitor)
}

// A bulk review equals single reviews: valid entries are reviewed, each with its audit entry; the others stay unchanged
// and report why.
func TestBulkReview(t *testing.T) {
	c := newIngestingClinic(t)
	clean, held := monthOfEight(c)
	const unknown = "0190b2c4-0000-7000-8000-0000000000ff"
	ids := append(slices.Concat(clean, held), clean[0], unknown)
	c.wantRoles("POST", "/billing/entries/review/", object{"entry_ids": []string{unknown}}, authz.Admin, authz.DataMonitor)
	answer := c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": ids, "notes": "Checked"}).want(200)
	answer.wantAt(object{"reviewed": 5.0, "skipped": 5.0})
	details := answer.at("details").([]any)
	for i, want := range []string{
		"reviewed <nil> <nil>", "reviewed <nil> <nil>", "reviewed <nil> <nil>", "reviewed <nil> <nil>", "reviewed <nil> <nil>",
		"skipped invalid_state [missing_consent]", "skipped invalid_state [missing_diagnosis]", "skipped invalid_state [minutes_below_minimum]",
		"skipped repeated <nil>", "skipped not_found <nil>",
	} {
		d := details[i].(object)
		if got := fmt.Sprint(d["status"], " ", d["reason"], " ", d["warnings"]); got != want || d["id"] != ids[i] {
			t.Errorf("of the %dth it says %s, want %s", i+1, got, want)
		}
	}
	for _, entry := range clean {
		moves := c.queryRows(t, `SELECT actor_email FROM audit_log WHERE event = 'billing.review' AND resource_id = '`+entry+`'`)
		if len(moves) != 1 || moves[0] != c.people[authz.DataMonitor].Email() {
			t.Errorf("the review's trace is %v", moves)
		}
		if row := c.monthEndEntry(entry); row["lifecycle_status"] != "reviewed" || row["ready"] != true || row["in_batch"] != false { // self-pay
			t.Errorf("reviewed it is %v", row)
		}
	}
	for _, entry := range held {
		c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/", nil).want(200).wantAt(object{"lifecycle_status": "pending_review", "reviewed_by": nil})
	}
	again := c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": clean[:1]}).want(200)
	if d := again.at("details").([]any)[0].(object); d["reason"] != "invalid_transition" {
		t.Errorf("a second review returns %v", d)
	}
	c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": []string{}}).wantFields("entry_ids")
	c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": slices.Repeat([]string{unknown}, 1001)}).wantFields("entry_ids")
	c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": []string{"x"}}).wantFields("entry_ids.0")
}

// A repeated call under its key reviews once and returns the same answer.
func TestBulkReviewUnderKey(t *testing.T) {
	c := newIngestingClinic(t)
	clean, _ := monthOfEight(c)
	body, err := json.Marshal(object{"entry_ids": clean})
	if err != nil {
		t.Fatal(err)
	}
	biller := c.tokenOf(authz.DataMonitor)
	first := answered(t, c.postWithKey(biller, "/billing/entries/review/", string(body), "month-end"), 200, "", false)
	if again := answered(t, c.postWithKey(biller, "/billing/entries/review/", string(body), "month-end"), 200, "", true); again != first {
		t.Errorf("answered %s, then %s", first, again)
	}
}

// The month's totals by state equal those of the reports, to the cent, and its patients are counted once.
func TestFunnel(t *testing.T) {
	c := newIngestingClinic(t)
	clean, _ := monthOfEight(c)
	c.request(authz.DataMonitor, "POST", "/billing/entries/review/", object{"entry_ids": clean[:4]}).want(200)
	for _, entry := range clean[:3] {
		c.moveEntry(entry, "submit", nil).want(200)
	}
	c.moveEntry(clean[0], "pay", object{"amount": 41.17, "payment_date": "2026-01-15", "reference": "EFT"}).want(200)
	c.moveEntry(clean[1], "pay", object{"amount": 43.02, "payment_date": "2026-01-15", "reference": "EFT"}).want(200)
	c.request(authz.MA, "POST", "/patients/"+c.consentedPatient()+"/archive/", object{"reason": "Moved away"}).want(403)
	c.logCall(c.consentedPatient(), "2026-01-05T14:00:00Z", 24)
	c.logCall(c.consentedPatient(), "2026-01-05T15:00:00Z", 11)
	funnel := c.request(authz.Admin, "GET", "/billing/funnel/", nil).want(200)
	// Five clean, one without consent, one without a diagnosis, one billed manually, one without a call, two with calls.
	funnel.wantAt(object{
		"month": "2026-01", "as_of": "2026-01-15", "days_left": 17.0, "time_zone": "America/New_York", "month_before.month": "2025-12",
		"patients.enrolled": 11.0, "patients.consented": 10.0, "patients.eligible": 9.0, "patients.with_data": 7.0,
		"patients.days_16_or_more": 7.0, "patients.days_2_to_15": 0.0, "patients.minutes_20_or_more": 1.0, "patients.minutes_10_to_19": 1.0,
	})
	between := "?date_from=2026-01-01&date_to=2026-01-31"
	states := map[string]object{}
	for _, row := range c.request(authz.Admin, "GET", reportPath+"claims-status/"+between, nil).want(200).at("results").([]any) {
		states[row.(object)["lifecycle_status"].(string)] = row.(object)
	}
	claims, amount, paid := 0.0, 0.0, 0.0
	for _, row := range funnel.at("entries").([]any) {
		stage := row.(object)
		if report := states[stage["lifecycle_status"].(string)]; report != nil && (report["claims"] != stage["claims"] || report["amount"] != stage["amount"]) {
			t.Errorf("the funnel has %v, the report %v", stage, report)
		}
		if stage["lifecycle_status"] != "voided" {
			claims, amount, paid = claims+stage["claims"].(float64), amount+stage["amount"].(float64), paid+stage["paid"].(float64)
		}
	}
	revenue := c.request(authz.Admin, "GET", reportPath+"revenue/"+between, nil).want(200)
	if fmt.Sprintf("%.2f", amount) != fmt.Sprintf("%.2f", revenue.at("total_revenue")) || fmt.Sprintf("%.2f", paid) != fmt.Sprintf("%.2f", revenue.at("paid")) || fmt.Sprintf("%.2f", paid) != "84.19" {
		t.Errorf("the funnel has %.0f claims, %.2f expected, %.2f paid; the report to %v and %v", claims, amount, paid, revenue.at("total_revenue"), revenue.at("paid"))
	}
	next := c.request(authz.Admin, "GET", "/billing/funnel/?month=2026-02", nil).want(200)
	next.wantAt(object{"month_before.month": "2026-01", "month_before.claims": claims, "month_before.paid": 84.19})
	c.wantRoles("GET", "/billing/funnel/", nil, authz.Admin, authz.DataMonitor)
}

// The near-billable list is ordered by the value of each missing day or minute, minus what the patient's codes already
// earn, and has the last day to reach it.
func TestNearBillableValue(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) { e.Billing.Enable2026Codes = true })
	minutes := c.consentedPatient() // 12 of 20: 99470 is reached, 8 minutes earn 21.87
	c.logCall(minutes, "2026-01-05T14:00:00Z", 12)
	c.logCall(c.consentedPatient(), "2026-01-06T14:00:00Z", 4)                   // 16 minutes for 47.87
	c.storeDeviceDays(c.consentedPatient(), "N-1", c.now.AddDate(0, 0, -20), 14) // 99445 is reached, and a sixteenth day earns nothing more
	stopped := c.enroll(object{"icd10_codes": []string{"I10"}})
	c.logCall(stopped, "2026-01-07T14:00:00Z", 19) // one minute for 21.87, but no consent
	list := c.request(authz.DataMonitor, "GET", "/billing/near-billable/?ordering=-worth", nil).results()
	var got []string
	for _, n := range list {
		got = append(got, fmt.Sprint(n["cpt_code"], " ", n["expected"], " ", n["gain"], " ", n["gain_per_unit"], " ", n["until"], " ", n["against"]))
	}
	want := []string{
		"99457 47.87 47.87 2.99 2026-01-31 []", "99457 47.87 21.87 2.73 2026-01-31 []", "99457 47.87 21.87 21.87 2026-01-31 [missing_consent]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("in the order of worth are\n%q, want\n%q", got, want)
	}
	if first := c.request(authz.Provider, "GET", "/billing/near-billable/", nil).results()[0]; first["patient_id"] != stopped {
		t.Errorf("the least missing is not first: %v", first)
	}
	c.request(authz.DataMonitor, "GET", "/billing/near-billable/?ordering=worth", nil).wantFields("ordering")
}

// A patient's calendar shows each day with data, the minutes on the day they were spent, and the period with what it
// still needs.
func TestBillingCalendar(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.consentedPatient()
	c.storeDeviceDays(patient, "C-1", time.Date(2026, 1, 3, 15, 0, 0, 0, time.UTC), 10)
	c.logCall(patient, "2026-01-06T03:30:00Z", 12) // January 5 in New York
	month := c.request(authz.Provider, "GET", "/billing/calendar/"+patient+"/?month=2026-01", nil).want(200)
	days := month.at("days").([]any)
	if len(days) != 31 {
		t.Fatalf("January has %d days", len(days))
	}
	for i, day := range days {
		d := day.(object)
		if data := i+1 >= 3 && i+1 <= 12; d["data"] != data || (d["minutes"] != 0.0) != (i+1 == 5) {
			t.Errorf("day %d: %v", i+1, d)
		}
	}
	if periods := fmt.Sprint(month.at("periods")); periods != "[map[days:10 days_needed:16 period_end:2026-02-01 period_start:2026-01-03]]" {
		t.Errorf("the periods are %s", periods)
	}
	c.wantRoles("GET", "/billing/calendar/"+patient+"/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.DataMonitor)
}

// The list of entries can be limited to given ids.
func TestEntriesByID(t *testing.T) {
	c := newIngestingClinic(t)
	clean, held := monthOfEight(c)
	list := c.request(authz.DataMonitor, "GET", "/billing/entries/?ids="+clean[1]+","+held[0], nil).results()
	if len(list) != 2 || !slices.ContainsFunc(list, func(o object) bool { return o["id"] == held[0] }) {
		t.Errorf("requested two, got %v", list)
	}
	c.request(authz.DataMonitor, "GET", "/billing/entries/?ids=x", nil).wantFields("ids")
}

// BenchmarkMonthEnd lists a month of 1,000 entries.
func BenchmarkMonthEnd(b *testing.B) {
	c := newIngestingClinic(b)
	patients := make([]string, 500)
	for i := range patients {
		patients[i] = c.consentedPatient()
		c.storeDeviceDays(patients[i], fmt.Sprint("B-", i), c.now.AddDate(0, 0, -31), 16)
		c.insert("time_entries", dbx.Params{
			"patient": patients[i], "user": c.people[authz.Nurse].Id, "category": "interactive", "activity": "phone_call", "contact_method": "phone", "source": "manual",
			"started_at": collections.FormatInstant(time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC).Add(time.Duration(i) * 25 * time.Minute)),
			"ended_at":   collections.FormatInstant(time.Date(2026, 1, 1, 5, 24, 0, 0, time.UTC).Add(time.Duration(i) * 25 * time.Minute)), "duration_seconds": 1440,
			"notes": "", "created_at": collections.FormatInstant(c.now),
		})
	}
	c.request(authz.DataMonitor, "POST", "/billing/run/", nil).want(200)
	for b.Loop() {
		if n := len(c.request(authz.DataMonitor, "GET", "/billing/month-end/", nil).results()); n < 900 {
			b.Fatalf("%d entries", n)
		}
	}
}
