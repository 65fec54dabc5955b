package routes_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/routes"
)

// row returns a patient's triage row as a nurse sees it.
func (c *clinic) row(patient string) object {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/triage/patients/"+query("patient_id", patient, "concern", "true"), nil).want(200).results()[0]
}

// rowSummary summarizes a row: state, values, change, age, reasons, holder.
func (c *clinic) rowSummary(patient string) string {
	c.t.Helper()
	row := c.row(patient)
	concern := row["concern"].(object)
	values, _ := json.Marshal(concern["values"])
	text := fmt.Sprint(concern["state"], " ", strings.ReplaceAll(string(values), `"`, ""), " ", concern["change"])
	if at, measured := concern["measured_at"].(string); measured {
		measuredAt, err := time.Parse(time.RFC3339, at)
		if err != nil {
			c.t.Fatal(err)
		}
		text += fmt.Sprint(" ", c.now.Sub(measuredAt))
	}
	for _, reason := range concern["reasons"].([]any) {
		text += "; " + reason.(object)["text"].(string)
		if reason.(object)["since"] != nil {
			text += " since"
		}
	}
	if holder, held := row["holder"].(object); held {
		text += fmt.Sprint(" | ", holder["state"], " ", holder["name"])
	}
	return text
}

func (c *clinic) wantRow(what, patient, want string) {
	c.t.Helper()
	if got := c.rowSummary(patient); got != want {
		c.t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// measuredInUnit stores a reading with its unit named.
func (c *clinic) measuredInUnit(kind, unit, patient, values string, ago time.Duration) {
	c.t.Helper()
	c.postEvent(c.t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-%s","patient_id":%q,"measurement_type":%q,"unit":%q,"values":{%s},"timestamp":%q}`,
		patient[24:], patient, kind, unit, values, c.now.Add(-ago).Format(time.RFC3339))).want(200)
}

// The row's main finding: critical values before values near a bound, the change since then, and the response.
func TestConcern(t *testing.T) {
	c := newIngestingClinic(t)
	high := c.enroll(nil)
	c.wantRow("nothing measured", high, "no_data {} <nil>; Never reviewed")
	c.measured("bp", high, `"systolic":120,"diastolic":78`, 3*time.Hour)
	c.wantRow("in range", high, "in_range {diastolic:78,systolic:120} <nil> 3h0m0s; Never reviewed")
	c.measured("bp", high, `"systolic":150,"diastolic":78`, 2*time.Hour)
	c.wantRow("a warning", high, "warning {diastolic:78,systolic:150} <nil> 2h0m0s; Systolic ≥ 140 | nobody <nil>")
	for i, systolic := range []int{182, 184, 188} {
		c.measured("bp", high, fmt.Sprintf(`"systolic":%d,"diastolic":114`, systolic), time.Duration(60-i*20)*time.Minute)
	}
	row := c.row(high)
	if diff := cmp.Diff(object{"critical_low": 80.0, "low": 90.0, "high": 140.0, "critical": 180.0}, row["concern"].(object)["bounds"]); diff != "" {
		t.Error(diff)
	}
	if trend := row["trend"].([]any); len(trend) != 5 || trend[0].(object)["value"] != 120.0 || trend[4].(object)["value"] != 188.0 {
		t.Errorf("the trend is %v", trend)
	}
	c.wantRow("critical three times", high, "critical {diastolic:114,systolic:188} <nil> 20m0s; Critical 3× since; Systolic ≥ 180; Stat escalation | nobody <nil>")
	c.measured("bp", high, `"systolic":130,"diastolic":80`, 0)
	c.wantRow("in range since, and still unanswered", high,
		"critical {diastolic:114,systolic:188} <nil> 20m0s; Critical 3× since; Systolic ≥ 180; In range since; Stat escalation | nobody <nil>")
	c.answerAll(high)
	c.wantRow("answered", high, "in_range {diastolic:80,systolic:130} <nil> 0s | acknowledged Test Person")
	c.now = c.now.Add(8 * 24 * time.Hour)
	c.wantRow("eight days later it is no longer in range", high, "no_data {diastolic:80,systolic:130} <nil> 192h0m0s | acknowledged Test Person")
}

// A weight is evaluated by its change; the row has the change and its period, and the other parameter out of bounds
// comes second.
func TestConcernOfChange(t *testing.T) {
	c := newIngestingClinic(t)
	heavy := c.enroll(nil)
	c.measuredInUnit("weight", "kg", heavy, `"weight":80`, 70*time.Hour)
	c.wantRow("a first weight is held against nothing", heavy, "no_bounds {weight_kg:80} <nil> 70h0m0s; No bounds to compare it with")
	c.measuredInUnit("weight", "kg", heavy, `"weight":82.9`, 3*time.Hour)
	c.wantRow("gained", heavy, "warning {weight_kg:82.9} 2.9 3h0m0s; Gain 2.9 kg within 7 days | nobody <nil>")
	concern := c.row(heavy)["concern"].(object)
	if concern["bounds"].(object)["high"] != 82.3 || concern["unit"] != "kg" || concern["rule"] != "weight_change" {
		t.Errorf("%v", concern)
	}
	c.measured("spo2", heavy, `"spo2":91`, time.Hour)
	c.wantRow("of two warnings the later", heavy, "warning {spo2:91} <nil> 1h0m0s; ≤ 92; Also weight +2.9 kg | nobody <nil>")
}

// A suspect or implausible value is never in range, even with a normal number; with bounds turned off no value is.
func TestConcernInDoubt(t *testing.T) {
	c := newIngestingClinic(t)
	uncertain := c.enroll(nil)
	for day := range 4 {
		c.measuredInUnit("weight", "kg", uncertain, `"weight":88`, time.Duration(5-day)*24*time.Hour)
	}
	c.measuredInUnit("weight", "kg", uncertain, `"weight":62`, time.Hour)
	c.wantRow("another person's weight", uncertain, "unsure {weight_kg:62} <nil> 1h0m0s; Far from the usual. Who stood on the scale? | nobody <nil>")
	loose := c.enroll(nil)
	c.postEvent(t, fmt.Sprintf(`{"event_type":"measurement.created","device_id":"DEV-L","patient_id":%q,"measurement_type":"bp","values":{"systolic":246,"diastolic":18},"timestamp":%q}`,
		loose, c.now.Format(time.RFC3339)))
	c.wantRow("a loose cuff", loose, "unsure {diastolic:18,systolic:246} <nil> 0s; Implausible: confirm or discard; Stat escalation | nobody <nil>")
	off := c.enroll(nil)
	c.request(authz.Provider, "PUT", "/patients/"+off+"/vital-config/", object{"blood_pressure": nil, "reason": "Hospice."}).want(200)
	c.measured("bp", off, `"systolic":230,"diastolic":130`, time.Hour)
	c.wantRow("without bounds", off, "no_bounds {diastolic:130,systolic:230} <nil> 1h0m0s; No bounds to compare it with")
}

// A row about a single reading has the level of that reading's alert, and no level if it is in range: the same function
// decides both.
func TestConcernIsTheAlert(t *testing.T) {
	random := rand.New(rand.NewPCG(22, 1))
	c := newIngestingClinic(t)
	for range 60 {
		kind, unit, values := "bp", "mmHg", fmt.Sprintf(`"systolic":%d,"diastolic":%d,"pulse":%d`, 120+random.IntN(80), 35+random.IntN(84), 36+random.IntN(110))
		switch random.IntN(4) {
		case 0:
			kind, unit, values = "spo2", "%", fmt.Sprintf(`"spo2":%d`, 80+random.IntN(21))
		case 1:
			kind, unit, values = "blood_glucose", "mg/dL", fmt.Sprintf(`"glucose":%d`, 40+random.IntN(360))
		}
		patient := c.enroll(nil)
		c.measuredInUnit(kind, unit, patient, values, time.Duration(random.IntN(300))*time.Minute)
		want := "in_range"
		for _, alert := range c.request(authz.Nurse, "GET", "/alerts/"+query("patient_id", patient), nil).results() {
			if level := alert["level"].(string); level == "critical" || want != "critical" {
				want = level
			}
		}
		if got := c.row(patient)["concern"].(object)["state"]; got != want {
			t.Errorf("%s %s: the row has %v, the alert %s", kind, values, got, want)
		}
		if want == "in_range" {
			continue
		}
		c.answerAll(patient)
		if got := c.row(patient)["concern"].(object)["state"]; got != want {
			t.Errorf("%s %s, answered: the row has %v, the alert %s", kind, values, got, want)
		}
	}
}

// The holder: none, notified, working on it, acknowledged by, snoozed until.
func TestHolder(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	holder := func() string {
		held, _ := c.row(patient)["holder"].(object)
		return fmt.Sprint(held["state"], " ", held["by"], " ", held["priority"], " ", held["until"])
	}
	want := func(what, want string) {
		t.Helper()
		if got := holder(); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	want("nothing open", "<nil> <nil> <nil> <nil>")
	c.measured("bp", patient, `"systolic":150,"diastolic":80`, time.Hour)
	want("a warning", "nobody <nil> <nil> <nil>")
	until := c.now.Add(3 * time.Hour).Format(time.RFC3339)
	c.request(authz.Nurse, "POST", "/patients/"+patient+"/snoozes/", object{"type": "blood_pressure", "reason": "Known.", "ends_at": until}).want(201)
	want("put off", "snoozed "+c.people[authz.Nurse].Email()+" <nil> "+until)
	e := c.request(authz.Nurse, "POST", "/escalations/", object{
		"patient_id": patient, "priority": "urgent", "reason": "Dizzy.", "assigned_to": c.people[authz.Provider].Email(),
	}).want(201).at("id")
	want("notified", "assigned "+c.people[authz.Provider].Email()+" urgent <nil>")
	if found := c.request(authz.Nurse, "GET", "/triage/patients/?escalated=true", nil).results(); len(found) != 1 || found[0]["patient_id"] != patient {
		t.Errorf("escalated are %v", found)
	}
	c.request(authz.Nurse, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{
		"patients_escalated": 1.0, "patients_alerting": 1.0, "critical_unanswered": 0.0, "patients_mine": 0.0,
	})
	c.request(authz.Provider, "PATCH", fmt.Sprintf("/escalations/%v/", e), object{"status": "in_progress"}).want(200)
	want("at work", "in_progress "+c.people[authz.Provider].Email()+" urgent <nil>")
	c.request(authz.Provider, "PATCH", fmt.Sprintf("/escalations/%v/", e), object{"status": "resolved", "resolution_notes": "Feels well."}).want(200)
	c.now = c.now.Add(4 * time.Hour)
	c.answerAll(patient)
	want("acknowledged", "acknowledged "+c.people[authz.Nurse].Email()+" <nil> <nil>")
	c.measured("bp", patient, `"systolic":210,"diastolic":125`, 0)
	c.request(authz.Nurse, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{"critical_unanswered": 1.0})
	if !strings.HasPrefix(holder(), "nobody") && !strings.HasPrefix(holder(), "assigned") {
		t.Errorf("a critical value, and the holder is %s", holder())
	}
}

// The live topic has the same row, including changes over previous days, without the series, which the subscriber
// extends itself. Without the concern parameter the list is unchanged.
func TestConcernLive(t *testing.T) {
	c := newIngestingClinic(t)
	now := c.now
	c.now = now.AddDate(0, 0, -3)
	patient := c.enroll(nil)
	c.now = now
	for day := range 3 {
		c.measured("bp", patient, `"systolic":188,"diastolic":114`, time.Duration(2-day)*24*time.Hour)
	}
	if summary := c.rowSummary(patient); !strings.Contains(summary, "Out of range on 3 of 3 days") {
		t.Error(summary)
	}
	shown, err := routes.LiveViews{Clock: func() time.Time { return c.now }}.Patients(c.app, []string{patient})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(shown[patient].Data)
	if err != nil {
		t.Fatal(err)
	}
	live, want := object{}, c.row(patient)
	if err := json.Unmarshal(raw, &live); err != nil {
		t.Fatal(err)
	}
	for _, onPagesOnly := range []string{"trend", "needs_target_weight", "proposed_target_kg"} {
		delete(want, onPagesOnly)
	}
	if diff := cmp.Diff(want, live); diff != "" {
		t.Error(diff)
	}
	plain := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]
	for _, added := range []string{"concern", "trend", "holder"} {
		if _, there := plain[added]; there {
			t.Errorf("the plain list has a %s", added)
		}
	}
}

// A page runs the same few statements for any number of rows.
func TestConcernStatementCount(t *testing.T) {
	c := newIngestingClinic(t)
	var statements atomic.Int64
	for _, builder := range []dbx.Builder{c.app.ConcurrentDB(), c.app.NonconcurrentDB()} {
		builder.(*dbx.DB).QueryLogFunc = func(context.Context, time.Duration, string, *sql.Rows, error) { statements.Add(1) }
	}
	count := func() int64 {
		statements.Store(0)
		c.request(authz.Nurse, "GET", "/triage/patients/?concern=true", nil).want(200)
		return statements.Load()
	}
	for range 2 {
		c.measured("bp", c.enroll(nil), `"systolic":150,"diastolic":80`, time.Hour)
	}
	count() // the first call fills the caches
	few := count()
	for range 12 {
		c.measured("bp", c.enroll(nil), `"systolic":150,"diastolic":80`, time.Hour)
	}
	if many := count(); many != few || few == 0 {
		t.Errorf("%d statements for 14 patients, %d for 2", many, few)
	}
}
