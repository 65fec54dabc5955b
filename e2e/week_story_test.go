package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	"github.com/pquerna/otp/totp"
)

// weekMarks must not be in a push, a mail or a log line: identities of patients and staff, readings and devices, and every
// text that a user entered.
var weekMarks = map[string][]string{
	"first name": {"Xavrielle"}, "last name": {"Quillbrandt"}, "birth date": {"1937-08-29", "08/29/1937"}, "phone": {"555-731-9042", "5557319042"},
	"e-mail": {"xq.marker@postfach.example"}, "street": {"4711 Zyzwick Lane"}, "city": {"Blorpington"}, "SSN": {"219-09-8765", "219098765"},
	"MRN": {"MRN-QX4477"}, "second name": {"Bartholomaeus", "Trampelbach"}, "second MRN": {"MRN-QX4488"}, "EMR id": {emrPatient}, "gateway id": {"GWMARK-7731"},
	"device": {"SERIALMARK-77A1"}, "second device": {"SERIALMARK-88B2"}, "hub": {"HUBMARK-3"}, "stray patient": {"payload-of-Eulalia-Grobschmied"},
	"staff name": {"Nepomuzena", "Krautwurst"}, "staff phone": {"555-864-2097", "5558642097"}, "consent": {"signed-by-daughter-Kunigunde"},
	"reading": {"151/93", "151 mmHg", "Systolic 151", "187/121", "187 mmHg", "Systolic 187"}, "emergency": {"found-by-neighbour-Adelgunde"},
	"alert note": {"called-niece-Wilhelmine"}, "escalation reason": {"asked-for-by-uncle-Balthasar"}, "resolution": {"settled-with-aunt-Philomena"},
	"work note":    {"left-word-with-nephew-Ekkehard"},
	"error reason": {"wrong-arm-of-Ottokar"}, "denial": {"denied-for-cousin-Sieglinde"}, "time note": {"talked-with-brother-Gundobald"},
	"staff message": {"bring-along-sister-Roswitha"}, "patient message": {"driven-by-godson-Friedwart"}, "questionnaire": {"positive PHQ", "PHQ-2 screen", "hopeless"},
	"stray text": {"asks-for-landlady-Kreszentia"}, "urgent text": {"wakes-lodger-Theobald"}, "stray phone": {"+12125550999", "2125550999"},
	"password": {password, "Unutterable-Word-93!"},
}

// Users of the week.
const (
	provider  = "provider@vigil.test" // in Berlin
	nurse     = "nurse@vigil.test"    // in Sydney
	manager   = "manager@vigil.test"
	assistant = "ma@vigil.test"
	monitor   = "monitor@vigil.test"
	visitor   = "visitor@vigil.test" // a nurse without a care team
	portal    = "portal@vigil.test"
)

// enrol creates the patients, the users and their phones.
func (w *week) enrol() {
	w.t.Helper()
	admin := w.as(adminEmail)
	mark := func(name string) string { return weekMarks[name][0] }
	w.bob = w.patient(w.t, object{"first_name": mark("second name"), "last_name": weekMarks["second name"][1], "mrn": mark("second MRN")})
	for email, account := range map[string]object{
		provider: {"role": "provider", "time_zone": "Europe/Berlin"}, nurse: {"role": "nurse", "time_zone": "Australia/Sydney"},
		manager: {"role": "clinical_manager"}, assistant: {"role": "ma"}, monitor: {"role": "data_monitor"}, visitor: {"role": "nurse"},
		portal: {"role": "patient", "patient_id": w.bob},
	} {
		account["email"], account["password"], account["phone"] = email, password, mark("staff phone")
		account["first_name"], account["last_name"] = mark("staff name"), weekMarks["staff name"][1]
		w.post(w.t, "/api/v1/auth/register/", admin, account).expect(w.t, http.StatusCreated)
		w.pushes.subscribe(w.t, w.practice, w.as(email), "/"+email)
	}
	w.pushes.subscribe(w.t, w.practice, admin, "/"+adminEmail)
	for _, email := range []string{provider, nurse} {
		w.send(w.t, http.MethodPatch, "/api/v1/users/me/notification-preferences/", w.as(email), `{"quiet_hours":{"enabled":true}}`).expect(w.t, http.StatusOK)
	}
	w.run("reminders") // the morning has passed in Sydney and New York: missed empty reminders are not made up for
	w.ann = text(w.t, w.post(w.t, "/api/v1/patients/", admin, object{
		"first_name": mark("first name"), "last_name": mark("last name"), "date_of_birth": mark("birth date"), "gender": "female", "phone": mark("phone"),
		"email": mark("e-mail"), "ssn": mark("SSN"), "mrn": mark("MRN"), "external_id": "Patient/" + mark("EMR id"), "gateway_patient_id": mark("gateway id"),
		"address": object{"line1": mark("street"), "city": mark("city"), "state": "IL", "zip": "62701"}, "icd10_codes": []string{"I10"},
	}).expect(w.t, http.StatusCreated), "id")
	w.send(w.t, http.MethodPut, "/api/v1/patients/"+w.ann+"/care-team/", admin, encode(w.t, object{
		"primary_provider_id": w.number(provider), "members": []object{{"user_id": w.number(nurse)}},
	})).expect(w.t, http.StatusOK)
	w.post(w.t, "/api/v1/patients/"+w.ann+"/consents/", admin, object{"type": "rpm", "method": "verbal", "granted_at": "2026-03-20", "notes": mark("consent")}).expect(w.t, http.StatusCreated)
	w.post(w.t, "/api/v1/patients/"+w.ann+"/caregivers/", admin, object{"email": portal, "relationship": "spouse", "scope": "read"}).expect(w.t, http.StatusCreated)
	for device, patient := range map[string]string{mark("device"): w.ann, mark("second device"): w.bob} {
		w.post(w.t, "/api/v1/devices/assign/", admin, object{
			"device_id": device, "patient_id": patient, "device_type": "bp_monitor", "assigned_at": weekStart.Add(-72 * time.Hour).Format(time.RFC3339),
		}).expect(w.t, http.StatusOK)
	}
}

// story returns the events by hour of the week.
func (w *week) story() map[int]func() {
	mark := func(name string) string { return weekMarks[name][0] }
	device := object{"device_id": mark("device"), "hub_id": mark("hub")}
	with := func(more object) object {
		event := object{}
		for _, from := range []object{device, more} {
			for name, value := range from {
				event[name] = value
			}
		}
		return event
	}
	return map[int]func(){
		0:   w.severe, // before the days without a reading escalate automatically
		1:   func() { w.event(with(object{"event_type": "device.connected"}), http.StatusOK) },
		2:   w.followUp,
		3:   func() { w.event(with(object{"event_type": "device.battery_low", "battery_level": 13}), http.StatusOK) },
		4:   func() { w.event(object{"event_type": "hub.offline", "hub_id": mark("hub")}, http.StatusOK) },
		5:   w.enteredInError,
		6:   w.strayEvents,
		8:   w.visit,
		10:  w.denial,
		12:  w.unbilled,
		14:  w.secondFactor,
		16:  w.forgottenPassword,
		18:  w.lock,
		20:  func() { w.pushes.refuse("/"+assistant, true); w.strayEvents() },
		21:  func() { w.pushes.refuse("/"+assistant, false) },
		36:  w.lateAndWithdrawn,
		40:  func() { w.emrDown.Store(true) },
		60:  w.portalMessages,
		62:  w.strayTexts,
		64:  w.questionnaire,
		68:  func() { w.emrDown.Store(false) }, // all retries of the first hours have failed
		70:  w.putOnCall,
		72:  w.receiverGone,
		75:  w.critical, // 3:00 at night in Berlin
		89:  w.assign,   // 2:00 at night in Sydney
		90:  w.resolve,
		92:  w.takeAndForget,
		110: w.rememberAndNote,
		100: func() { w.event(with(object{"event_type": "device.battery_low", "battery_level": 7}), http.StatusOK) },
		150: w.tamperWithAudit,
	}
}

// first returns a field of the first result of a list.
func (w *week) first(path, email, field string) string {
	w.t.Helper()
	return fmt.Sprint(at(w.t, w.get(w.t, path, w.as(email)).expect(w.t, http.StatusOK), "results.0."+field))
}

func (w *week) followUp() {
	alert := w.first("/api/v1/alerts/?status=active", nurse, "id")
	w.post(w.t, "/api/v1/alerts/"+alert+"/acknowledge/", w.as(nurse), object{"outcome": "monitoring", "clinical_note": weekMarks["alert note"][0], "follow_up_required": true}).expect(w.t, http.StatusOK)
}

func (w *week) enteredInError() {
	w.run("pending FHIR processing")
	observation := w.first("/api/v1/ingestion/observations/?fhir_status=transmitted", nurse, "id")
	w.post(w.t, "/api/v1/ingestion/observations/"+observation+"/entered-in-error/", w.as(nurse), object{"reason": weekMarks["error reason"][0]}).expect(w.t, http.StatusOK)
}

// lateAndWithdrawn stores a reading long after a newer one, and retracts an escalated reading of another person.
func (w *week) lateAndWithdrawn() {
	carl := text(w.t, w.post(w.t, "/api/v1/patients/", w.as(adminEmail), object{
		"first_name": "Carl", "last_name": "Brief", "date_of_birth": "1950-01-02", "gender": "male",
	}).expect(w.t, http.StatusCreated), "id")
	measured := func(systolic int, ago time.Duration) string {
		return text(w.t, w.post(w.t, "/api/v1/ingestion/blood-pressure/", w.as(adminEmail), object{
			"patient_id": carl, "systolic": systolic, "diastolic": 80, "measured_at": w.clock.Now().Add(-ago).Format(time.RFC3339),
		}).expect(w.t, http.StatusCreated), "id")
	}
	measured(120, time.Hour)
	measured(190, 30*time.Hour)
	oxygen := text(w.t, w.post(w.t, "/api/v1/ingestion/pulse-oximetry/", w.as(adminEmail), object{
		"patient_id": carl, "spo2": 80, "measured_at": w.clock.Now().Format(time.RFC3339),
	}).expect(w.t, http.StatusCreated), "id")
	w.post(w.t, "/api/v1/ingestion/observations/"+oxygen+"/entered-in-error/", w.as(adminEmail), object{"reason": weekMarks["error reason"][0]}).expect(w.t, http.StatusOK)
	w.post(w.t, "/api/v1/patients/"+carl+"/archive/", w.as(adminEmail), object{"reason": "Discharged."}).expect(w.t, http.StatusOK)
}

// strayEvents sends two events that match no patient, one of them dangerous, and a malformed one.
func (w *week) strayEvents() {
	stray := object{
		"event_type": "measurement.created", "device_id": "nobody's", "patient_id": weekMarks["stray patient"][0], "measurement_type": "weight",
		"values": object{"weight": 80}, "unit": "kg", "patient_name": weekMarks["stray patient"][0],
	}
	w.event(stray, http.StatusOK)
	danger := object{"measurement_type": "blood_pressure", "values": object{"systolic": 212, "diastolic": 126}, "unit": "mmHg"}
	w.event(changed(stray, danger), http.StatusOK)
	stray["values"] = object{"weight": weekMarks["stray patient"][0]}
	w.event(stray, http.StatusBadRequest)
}

func (w *week) visit() {
	w.send(w.t, http.MethodGet, "/api/v1/patients/"+w.ann+"/", w.as(visitor), "", "X-Emergency-Access", weekMarks["emergency"][0]).expect(w.t, http.StatusOK)
}

// denial reverses a payment, so that the entry built on it no longer holds, and its payer denies it too.
func (w *week) denial() {
	as := w.as(monitor)
	w.post(w.t, "/api/v1/time-entries/", w.as(nurse), object{
		"patient_id": w.ann, "category": "interactive", "activity": "phone_call", "notes": weekMarks["time note"][0], "started_at": "2026-03-28T06:00:00Z",
		"duration_seconds": 2400,
	}).expect(w.t, http.StatusCreated)
	paths := map[string]string{}
	for _, code := range []string{"99457", "99458"} {
		entry := text(w.t, w.post(w.t, "/api/v1/billing/entries/manual-create/", as, object{
			"patient_id": w.ann, "cpt_code": code, "service_date": "2026-03-28", "duration_minutes": 20,
		}).expect(w.t, http.StatusCreated), "id")
		paths[code] = "/api/v1/billing/entries/" + entry + "/"
		w.post(w.t, paths[code]+"review/", as, object{}).expect(w.t, http.StatusOK)
		wantAt(w.t, w.post(w.t, "/api/v1/billing/claims/submit/", as, object{"entry_ids": []string{entry}}).expect(w.t, http.StatusOK), object{"submitted": 1.0})
	}
	w.post(w.t, paths["99457"]+"pay/", as, object{"amount": 40, "payment_date": "2026-03-28", "reference": "EFT-1"}).expect(w.t, http.StatusOK)
	w.post(w.t, paths["99457"]+"request-void/", as, object{"reason": weekMarks["denial"][0]}).expect(w.t, http.StatusOK)
	w.post(w.t, paths["99458"]+"deny/", as, object{"code": "CO-16", "description": weekMarks["denial"][0]}).expect(w.t, http.StatusOK)
}

// unbilled logs time for a patient without consent.
func (w *week) unbilled() {
	w.post(w.t, "/api/v1/time-entries/", w.as(adminEmail), object{
		"patient_id": w.bob, "category": "interactive", "activity": "phone_call", "notes": weekMarks["time note"][0],
		"started_at": w.clock.Now().Add(-time.Hour).Format(time.RFC3339), "duration_seconds": 1500,
	}).expect(w.t, http.StatusCreated)
	w.run("smart billing engine")
}

func (w *week) signInWith(more object) answer {
	w.t.Helper()
	body := object{"email": visitor, "password": password}
	for name, value := range more {
		body[name] = value
	}
	return w.post(w.t, "/api/v1/auth/login/", "", body)
}

// secondFactor enables it, uses a backup code, disables it, does the same with a passkey, and reuses a refresh token.
func (w *week) secondFactor() {
	as := w.as(visitor)
	set := w.post(w.t, "/api/v1/auth/2fa/setup/", as, object{"password": password}).expect(w.t, http.StatusOK)
	code, err := totp.GenerateCode(text(w.t, set, "secret"), w.clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.post(w.t, "/api/v1/auth/2fa/verify/", as, object{"totp_code": code}).expect(w.t, http.StatusOK)
	w.signInWith(object{"backup_code": text(w.t, set, "backup_codes.0")}).expect(w.t, http.StatusOK)
	fresh := w.post(w.t, "/api/v1/auth/2fa/backup-codes/", as, object{"password": password, "backup_code": text(w.t, set, "backup_codes.1")}).expect(w.t, http.StatusOK)
	w.post(w.t, "/api/v1/auth/2fa/disable/", as, object{"password": password, "backup_code": text(w.t, fresh, "backup_codes.0")}).expect(w.t, http.StatusOK)
	w.passkey()
	session := text(w.t, w.signInWith(nil).expect(w.t, http.StatusOK), "refresh")
	w.post(w.t, "/api/v1/auth/token/refresh/", "", object{"refresh": session}).expect(w.t, http.StatusOK)
	w.clock.set(w.clock.Now().Add(time.Minute)) // a repeat within seconds counts as a network retry
	w.post(w.t, "/api/v1/auth/token/refresh/", "", object{"refresh": session}).expect(w.t, http.StatusUnauthorized)
}

func (w *week) forgottenPassword() {
	w.post(w.t, "/api/v1/auth/password-reset/", "", object{"email": visitor}).expect(w.t, http.StatusOK)
	w.awaitAnnouncements()
	token := ""
	for _, mail := range w.mail.Messages() {
		for line := range strings.Lines(mail.Text) {
			if address, err := url.Parse(strings.TrimSpace(line)); err == nil && mail.To[0] == visitor && address.Query().Get("token") != "" {
				token = address.Query().Get("token") // the newest
			}
		}
	}
	fresh := weekMarks["password"][1]
	w.post(w.t, "/api/v1/auth/password-reset/confirm/", "", object{"token": token, "new_password": fresh, "new_password_confirm": fresh}).expect(w.t, http.StatusOK)
}

func (w *week) lock() {
	for range 5 {
		w.signInWith(nil).expect(w.t, http.StatusUnauthorized) // the old password
	}
	w.signInWith(nil).expect(w.t, http.StatusLocked)
}

func (w *week) critical() {
	w.clock.set(w.clock.Now().Add(time.Second))
	w.event(object{
		"event_type": "measurement.created", "device_id": weekMarks["device"][0], "patient_id": weekMarks["gateway id"][0], "measurement_type": "blood_pressure",
		"values": object{"systolic": 187, "diastolic": 121, "pulse": 141}, "unit": "mmHg", // with that pulse the escalation is not held
	}, http.StatusOK)
	w.post(w.t, "/api/v1/escalations/", w.as(nurse), object{"patient_id": w.ann, "priority": "urgent", "reason": weekMarks["escalation reason"][0]}).expect(w.t, http.StatusCreated)
}

// severe stores a first severe pressure: the patient is prompted to measure again, and does not.
func (w *week) severe() {
	w.post(w.t, "/api/v1/ingestion/blood-pressure/", w.as(adminEmail), object{
		"patient_id": w.bob, "systolic": 187, "diastolic": 121, "measured_at": w.clock.Now().Format(time.RFC3339),
	}).expect(w.t, http.StatusCreated)
}

// receiverGone adds a webhook receiver that answers 410 Gone.
func (w *week) receiverGone() {
	gone := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) }))
	w.t.Cleanup(gone.Close)
	w.post(w.t, "/api/v1/webhooks/", w.as(adminEmail), object{"url": gone.URL, "events": []string{"observation.created"}}).expect(w.t, http.StatusCreated)
}

func (w *week) putOnCall() {
	w.send(w.t, http.MethodPut, "/api/v1/on-call/", w.as(manager), encode(w.t, object{"time_zone": "Australia/Sydney", "overrides": []object{
		{"starts_at": weekStart.Format(time.RFC3339), "ends_at": weekStart.Add(103 * time.Hour).Format(time.RFC3339), "user_id": w.number(visitor)},
		{"starts_at": weekStart.Add(103 * time.Hour).Format(time.RFC3339), "ends_at": weekStart.AddDate(0, 1, 0).Format(time.RFC3339), "user_id": w.number(manager)},
	}})).expect(w.t, http.StatusOK)
	// Unclaimed, it goes to the nurse on call by the next day, and is then handed over to the manager.
	w.post(w.t, "/api/v1/escalations/", w.as(nurse), object{"patient_id": w.ann, "priority": "routine", "reason": weekMarks["escalation reason"][0]}).expect(w.t, http.StatusCreated)
}

// urgent returns the path of the escalation that the nurse opened for the critical reading.
func (w *week) urgent() string {
	return "/api/v1/escalations/" + w.first("/api/v1/escalations/?priority=urgent&patient_id="+w.ann, nurse, "id") + "/"
}

func (w *week) takeAndForget() {
	w.send(w.t, http.MethodPatch, w.urgent(), w.as(nurse), encode(w.t, object{"status": "in_progress", "assigned_to": nurse})).expect(w.t, http.StatusOK)
}

func (w *week) rememberAndNote() {
	w.send(w.t, http.MethodPatch, w.urgent(), w.as(nurse), encode(w.t, object{"notes": weekMarks["work note"][0]})).expect(w.t, http.StatusOK)
}

// stat returns the path of the escalation that the critical reading opened.
func (w *week) stat() string {
	return "/api/v1/escalations/" + w.first("/api/v1/escalations/?priority=stat&patient_id="+w.ann, nurse, "id") + "/"
}

func (w *week) assign() {
	w.send(w.t, http.MethodPatch, w.stat(), w.as(provider), encode(w.t, object{"status": "in_progress", "assigned_to": nurse})).expect(w.t, http.StatusOK)
}

func (w *week) resolve() {
	w.send(w.t, http.MethodPatch, w.stat(), w.as(nurse), encode(w.t, object{"status": "resolved", "resolution_notes": weekMarks["resolution"][0]})).expect(w.t, http.StatusOK)
}

func (w *week) tamperWithAudit() {
	for _, statement := range []string{"DROP TRIGGER audit_log_no_update", "UPDATE audit_log SET outcome = '4' WHERE id = '000000000000002'"} {
		if _, err := w.app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			w.t.Fatal(err)
		}
	}
}
