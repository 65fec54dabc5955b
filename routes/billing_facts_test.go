package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/routes"
)

// consentedPatient is a provider's patient with a diagnosis and with consent since November.
func (c *clinic) consentedPatient() string {
	c.t.Helper()
	patient := c.enroll(object{"icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(patient)
	return patient
}

// entryOf returns the id of a patient's entry with a code.
func (c *clinic) entryOf(patient, code string) string {
	c.t.Helper()
	list := c.request(authz.DataMonitor, "GET", "/billing/entries/?patient_id="+patient+"&cpt_code="+code, nil).results()
	if len(list) != 1 {
		c.t.Fatalf("%d entries of %s", len(list), code)
	}
	return list[0]["id"].(string)
}

func (c *clinic) manualEntry(patient, code, day string, minutes int) string {
	c.t.Helper()
	return c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{
		"patient_id": patient, "cpt_code": code, "service_date": day, "duration_minutes": minutes,
	}).want(201).text("id")
}

func (c *clinic) moveEntry(entry, move string, body any) reply {
	c.t.Helper()
	return c.request(authz.DataMonitor, "POST", "/billing/entries/"+entry+"/"+move+"/", body)
}

// wantRefusal requests a move that must be refused for exactly these reasons and leave the entry unchanged.
func (c *clinic) wantRefusal(entry, move string, body any, reasons ...string) {
	c.t.Helper()
	before := c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/", nil).body
	r := c.moveEntry(entry, move, body).want(400, "invalid_state")
	var got []string
	for _, w := range r.at("warnings").([]any) {
		got = append(got, w.(string))
	}
	slices.Sort(got)
	if slices.Sort(reasons); !slices.Equal(got, reasons) {
		c.t.Errorf("%s is refused for %v, want %v", move, got, reasons)
	}
	if body == nil {
		c.wantSameReasons(entry, move, got)
	}
	if after := c.request(authz.DataMonitor, "GET", "/billing/entries/"+entry+"/", nil).body; after != before {
		c.t.Errorf("the refused %s left %s, was %s", move, after, before)
	}
}

// retract retracts one of a patient's readings.
func (c *clinic) retract(patient string) {
	c.t.Helper()
	id := c.queryRows(c.t, `SELECT id FROM observations WHERE status = 'final' AND patient = '`+patient+`' ORDER BY measured_at DESC LIMIT 1`)[0]
	c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "Not the patient"}).want(200)
}

// Submission is refused for changed facts: retracted days, a voided 99457 under its add-on, and manual entries without
// days or minutes.
func TestFactsRefuse(t *testing.T) {
	c := newIngestingClinic(t, func(e *routes.Engines) { e.Billing.Enable2026Codes = true })
	sixteen := c.consentedPatient()
	c.storeDeviceDays(sixteen, "D-1", c.now.AddDate(0, 0, -31), 16)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
	supply := c.entryOf(sixteen, "99454")
	c.retract(sixteen)
	c.wantRefusal(supply, "review", nil, "days_below_minimum")
	c.moveEntry(supply, "void", object{"reason": "Fifteen days"}).want(200)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
	c.moveEntry(c.entryOf(sixteen, "99445"), "review", nil).want(200).wantAt(object{"transmission_days": 15.0, "amount": 47.0})

	hours := c.consentedPatient()
	c.logCall(hours, "2026-01-10T14:00:00Z", 85)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "time"}).want(200)
	first, next := c.entryOf(hours, "99457"), c.entryOf(hours, "99458")
	c.moveEntry(next, "review", nil).want(200).wantAt(object{"units": 3.0})
	c.moveEntry(first, "void", object{"reason": "Wrong"}).want(200)
	c.wantRefusal(next, "submit", nil, "missing_primary_code")
	batch := c.request(authz.DataMonitor, "POST", "/billing/claims/submit/", object{"entry_ids": []string{next}}).want(200)
	if detail := batch.at("details").([]any)[0].(object); detail["reason"] != "invalid_state" || fmt.Sprint(detail["warnings"]) != "[missing_primary_code]" {
		t.Errorf("batch refused with %v", detail)
	}

	bare := c.consentedPatient()
	c.wantRefusal(c.manualEntry(bare, "99454", "2026-01-14", 0), "review", nil, "no_device_data")
	c.wantRefusal(c.manualEntry(bare, "99457", "2026-01-14", 20), "review", nil, "minutes_below_minimum")
	c.wantRefusal(c.manualEntry(c.consentedPatient(), "99458", "2026-01-14", 20), "review", nil, "minutes_below_minimum", "missing_primary_code")
	c.wantRefusal(c.manualEntry(bare, "99091", "2026-01-14", 30), "review", nil, "minutes_below_minimum")
	c.wantRefusal(c.manualEntry(bare, "99453", "2026-01-14", 0), "review", nil, "no_device_data", "missing_setup")
	stranger := c.enroll(nil)
	c.wantRefusal(c.manualEntry(stranger, "99457", "2026-01-14", 20), "review", object{"override_reason": "Really", "attested": true},
		"minutes_below_minimum", "missing_consent", "missing_diagnosis", "missing_provider")

	reader := c.consentedPatient() // reading data is not interactive time
	c.request(authz.Nurse, "POST", "/time-entries/", object{
		"patient_id": reader, "category": "review", "started_at": "2026-01-12T14:00:00Z", "duration_seconds": 1200,
	}).want(201)
	c.wantRefusal(c.manualEntry(reader, "99457", "2026-01-14", 20), "review", nil, "minutes_below_minimum", "not_interactive")
}

// A change in the evidence of a submitted claim is detected at once, reported once, and cleared when the evidence holds
// again.
func TestEvidenceChangesAfterSubmission(t *testing.T) {
	var money *billing.Engine
	c := newIngestingClinic(t, func(e *routes.Engines) { money = e.Billing })
	patient := c.consentedPatient()
	c.storeDeviceDays(patient, "D-1", c.now.AddDate(0, 0, -31), 16)
	c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200)
	entry := c.entryOf(patient, "99454")
	c.moveEntry(entry, "review", nil).want(200)
	c.moveEntry(entry, "submit", nil).want(200).wantAt(object{"evidence_changed_at": nil, "repay_by": nil})
	c.moveEntry(entry, "pay", object{"amount": 43.02, "payment_date": "2026-01-15", "reference": "EFT"}).want(200)
	c.retract(patient)
	path := "/billing/entries/" + entry + "/"
	flagged := c.request(authz.DataMonitor, "GET", path, nil)
	flagged.wantAt(object{"status": "paid", "repay_by": "2026-03-16", "evidence_changed_at": c.now.UTC().Format(time.RFC3339)})
	if got := fmt.Sprint(flagged.at("warnings")); got != "[missing_order evidence_changed days_below_minimum]" {
		t.Errorf("the warnings are %s", got)
	}
	tasks := c.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200)
	if items := tasks.at("items").([]any); tasks.at("evidence_changed") != 1.0 || !slices.ContainsFunc(items, func(item any) bool {
		return item.(object)["task"] == "evidence_changed" && item.(object)["entry_id"] == entry && item.(object)["repay_by"] == "2026-03-16"
	}) {
		t.Errorf("the tasks are %s", tasks.body)
	}
	c.retract(patient) // one more day opens no second task
	if notified := c.queryRows(t, `SELECT kind FROM announcements WHERE kind = 'evidence_changed'`); len(notified) != 1 {
		t.Errorf("%d were notified", len(notified))
	}
	for i := range 2 { // a vendor file adds two days later
		at, id := c.now.AddDate(0, 0, -10+i), collections.NewUUID()
		c.insert("observations", dbx.Params{
			"id": id, "patient": patient, "observation_type": "weight", "measured_at": collections.FormatInstant(at), "device_id": "D-1", "source": "gateway",
			"origin": "import", "weight_kg": 80, "status": "final", "reading_key": id, "created_at": collections.FormatInstant(at),
		})
		c.insert("reading_days", dbx.Params{
			"patient": patient, "day": at.In(newYork).Format(time.DateOnly), "observation_type": "weight", "first_observation": id, "readings": 1, "device_readings": 1,
		})
	}
	if _, err := c.app.DB().NewQuery("UPDATE billing_entries SET facts_checked_at = ''").Execute(); err != nil { // as before the first recount
		t.Fatal(err)
	}
	seen, marked, err := money.RecheckAll(t.Context(), c.app, c.now)
	if err != nil || seen != 1 || marked != 1 {
		t.Errorf("%d of %d were marked: %v", marked, seen, err)
	}
	c.request(authz.DataMonitor, "GET", path, nil).wantAt(object{"evidence_changed_at": nil, "repay_by": nil})
	// consent revoked today keeps earlier services billable
	c.request(authz.MA, "POST", "/patients/"+patient+"/consents/1/revoke/", object{"reason": "Enough"}).want(200)
	c.request(authz.DataMonitor, "GET", path, nil).wantAt(object{"evidence_changed_at": nil})
}

// A denied claim is sent again only with the codes that the facts of its new period support.
func TestCorrectionsMoveThePeriod(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.consentedPatient()
	c.logCall(patient, "2025-12-20T15:00:00Z", 22)
	october := c.manualEntry(patient, "99457", "2025-12-20", 20)
	for _, move := range []string{"review", "submit"} {
		c.moveEntry(october, move, nil).want(200)
	}
	c.moveEntry(october, "deny", object{"code": "CO-16", "description": "Lacks information"}).want(200)
	again := func(day string, minutes int) object {
		return object{"corrections": object{"service_date": day, "duration_minutes": minutes}}
	}
	c.wantRefusal(october, "resubmit", again("2026-01-10", 5), "minutes_below_minimum")
	c.wantRefusal(october, "resubmit", again("2026-01-10", 20), "minutes_below_minimum")
	c.wantRefusal(october, "resubmit", again("2025-12-21", 30), "minutes_below_minimum")
	c.logCall(patient, "2026-01-10T15:00:00Z", 20)
	double := c.manualEntry(patient, "99457", "2026-01-11", 20)
	c.moveEntry(october, "resubmit", again("2026-01-10", 20)).want(400, "duplicate_entry")
	c.moveEntry(double, "void", object{"reason": "Once is enough"}).want(200)
	c.moveEntry(october, "resubmit", again("2026-01-10", 20)).want(200).wantAt(object{
		"service_date": "2026-01-10", "billing_period_start": "2026-01-01", "billing_period_end": "2026-01-31", "duration_minutes": 20.0, "claim_frequency_code": "7",
	})
}

// Days with readings typed by an assistant do not count as device days, even with a device id.
func TestTypedDays(t *testing.T) {
	c := newIngestingClinic(t)
	typed := c.consentedPatient()
	c.storeDeviceDays(typed, "D-1", c.now.AddDate(0, 0, -40), 1) // starts a period
	for i := range 16 {
		c.request(authz.MA, "POST", "/ingestion/weight/", object{
			"patient_id": typed, "weight_kg": 80, "device_id": "D-1", "measured_at": collections.FormatInstant(c.now.AddDate(0, 0, i-30)),
		}).want(201).wantAt(object{"origin": "staff"})
	}
	if made := c.request(authz.DataMonitor, "POST", "/billing/run/", object{"job": "device"}).want(200).object()["created"].([]any); len(made) != 0 {
		t.Errorf("typed days created %v", made)
	}
	c.wantRefusal(c.manualEntry(typed, "99454", "2026-01-04", 0), "review", nil, "days_below_minimum")
}

// A code that depends on a voided 99457 no longer holds.
func TestVoidedPrimaryCode(t *testing.T) {
	h := newClaimsClinic(t)
	id := h.insured("Ada", 40, nil)
	entries := h.reviewed()
	first, next := entries[id+" 99457"], entries[id+" 99458"]
	h.send(first, next)
	h.request(authz.DataMonitor, "POST", "/billing/entries/"+first+"/request-void/", object{"reason": "Nobody called"}).want(200)
	h.entry(next).wantAt(object{"lifecycle_status": "submitted", "repay_by": "2026-03-16"})
	if got := h.entry(next).body; !strings.Contains(got, "evidence_changed") || !strings.Contains(got, "missing_primary_code") {
		t.Errorf("the add-on entry is %s", got)
	}
}
