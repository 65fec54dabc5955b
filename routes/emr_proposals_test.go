package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// proposed returns the only open proposal of a kind.
func (r reply) proposed(kind string) object {
	r.t.Helper()
	found := slices.DeleteFunc(r.list("proposals"), func(p object) bool { return p["kind"] != kind })
	if len(found) != 1 {
		r.t.Fatalf("%d proposals of %s: %s", len(found), kind, r.body)
	}
	return found[0]
}

func (r reply) wantNone(kind string) reply {
	r.t.Helper()
	for _, p := range r.list("proposals") {
		if p["kind"] == kind {
			r.t.Errorf("%s proposes %v", r.what, p)
		}
	}
	return r
}

func (c *chartClinic) decide(role authz.Role, p object, word string, body any) reply {
	c.t.Helper()
	return c.request(role, "POST", fmt.Sprintf("%sproposals/%v/%s/", c.path, p["id"], word), body)
}

func (c *chartClinic) read() reply {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", c.path, nil).want(200)
}

func (c *chartClinic) shown() reply {
	c.t.Helper()
	return c.request(authz.Nurse, "GET", "/patients/"+c.patient+"/", nil).want(200)
}

func TestDiagnosesProposedFromChart(t *testing.T) {
	c := newChartClinic(t)
	add := func(id string, more object) {
		condition := object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active"), "verificationStatus": coded("confirmed")}
		for name, value := range more {
			condition[name] = value
		}
		c.chart("Condition", id, condition)
	}
	add("c1", nil)
	add("c2", nil) // the same code in another row
	add("c3", object{"code": icd10("e11.9", "Type 2 diabetes")})
	add("c4", object{"code": icd10("I50.9", "Heart failure"), "verificationStatus": coded("provisional")})
	add("c5", object{"code": icd10("J44.9", "COPD"), "clinicalStatus": coded("resolved")})
	add("c6", object{"code": icd10("X99.99", "no such code")})
	add("c7", object{"code": concept("http://snomed.info/sct", "44054006", "Diabetes")})
	got := c.refresh()
	wantTexts(t, "proposed", proposedCodes(got), "I10", "E11.9")

	first, second := got.list("proposals")[0], got.list("proposals")[1]
	after := c.decide(authz.MA, first, "accept", nil).want(200)
	wantTexts(t, "proposed after one", proposedCodes(after), "E11.9")
	if codes := fmt.Sprint(c.shown().object()["icd10_codes"]); codes != "[I10]" {
		t.Errorf("the patient has %s", codes)
	}
	c.decide(authz.MA, first, "accept", nil).want(400, "invalid_state")
	c.decide(authz.MA, first, "dismiss", nil).want(400, "invalid_state")
	c.decide(authz.MA, second, "dismiss", nil).want(200)
	wantTexts(t, "proposed after a refresh", proposedCodes(c.refresh()))
	c.request(authz.Nurse, "POST", c.path+"proposals/99/accept/", nil).want(404)
	c.request(authz.Nurse, "POST", c.path+"proposals/x/accept/", nil).want(404)
	c.decide(authz.MA, second, "accept", object{"payer": 1}).wantFields("payer")
	if events := strings.Join(c.events(c.patient), " "); !strings.Contains(events, "patient.update emr_proposal.accept") || !strings.Contains(events, "emr_proposal.dismiss") {
		t.Errorf("audited %s", events)
	}
}

func proposedCodes(r reply) (codes []string) {
	for _, p := range r.list("proposals") {
		if p["kind"] == "diagnosis" {
			codes = append(codes, fmt.Sprint(p["value"].(object)["code"]))
		}
	}
	return codes
}

// A value that staff entered in the meantime is not replaced, and a proposal that the chart no longer supports is withdrawn until it does again.
func TestProposalsFollowRecordAndChart(t *testing.T) {
	c := newChartClinic(t)
	hypertension := object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active")}
	c.chart("Condition", "c1", hypertension)
	p := c.refresh().proposed("diagnosis")
	c.request(authz.Nurse, "PATCH", "/patients/"+c.patient+"/", object{"icd10_codes": []string{"I10"}}).want(200)
	c.read().wantNone("diagnosis")
	c.decide(authz.Nurse, p, "accept", nil).want(400, "invalid_state")
	c.request(authz.Nurse, "PATCH", "/patients/"+c.patient+"/", object{"icd10_codes": []string{}}).want(200)

	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("resolved")})
	c.refresh().wantNone("diagnosis")
	c.decide(authz.Nurse, p, "accept", nil).want(400, "invalid_state")
	c.chart("Condition", "c1", hypertension)
	if again := c.refresh().proposed("diagnosis"); again["id"] != p["id"] {
		t.Errorf("proposed again as %v", again)
	}
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Condition", Status: 500})
	c.refresh().proposed("diagnosis") // an EMR that fails withdraws nothing
}

func TestProposedOrder(t *testing.T) {
	c := newChartClinic(t)
	c.chart("ServiceRequest", "s1", object{"status": "active", "intent": "order", "authoredOn": "2026-01-10T09:00:00Z", "code": object{"text": "Cardiac monitoring, inpatient"}})
	c.chart("ServiceRequest", "s2", object{"status": "revoked", "authoredOn": "2026-01-11", "code": object{"text": "Remote patient monitoring"}})
	c.chart("ServiceRequest", "s3", object{"status": "active", "authoredOn": "2027-01-11", "code": object{"text": "Remote patient monitoring"}})
	c.refresh().wantNone("order")
	c.chart("ServiceRequest", "s4", object{
		"status": "active", "authoredOn": "2026-01-09T09:00:00Z", "code": concept("http://www.ama-assn.org/go/cpt", "99457", ""),
		"requester": object{"display": "Dr. Grace Hopper", "identifier": object{"system": "http://hl7.org/fhir/sid/us-npi", "value": "1234567893"}},
	})
	p := c.refresh().proposed("order")
	if p["date"] != "2026-01-09" || p["value"].(object)["requester"] != "Dr. Grace Hopper (NPI 1234567893)" {
		t.Errorf("proposed %v", p)
	}
	c.decide(authz.Nurse, p, "accept", nil).wantFields("author_id") // a nurse cannot order, and the patient has no provider
	c.decide(authz.Nurse, p, "accept", object{"author_id": c.people[authz.MA].Number()}).wantFields("author_id")
	c.decide(authz.Nurse, p, "accept", object{"author_id": c.people[authz.Provider].Number()}).want(200).wantNone("order")
	orders := c.request(authz.Nurse, "GET", "/patients/"+c.patient+"/orders/", nil).results()
	if len(orders) != 1 || orders[0]["kind"] != "rpm_order" || orders[0]["dated"] != "2026-01-09" || orders[0]["author_id"] != float64(c.people[authz.Provider].Number()) {
		t.Errorf("recorded %v", orders)
	}
	c.refresh().wantNone("order")
}

func TestProposedInsurance(t *testing.T) {
	c := newChartClinic(t)
	payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Aetna Health", "payer_id": "AETNA", "claim_filing_code": "CI", "edi_payer_id": "60054"}).want(201).object()["id"]
	c.chart("Coverage", "k0", object{"status": "cancelled", "payor": []object{{"display": "Old"}}, "subscriberId": "O1"})
	c.chart("Coverage", "k2", object{"status": "active", "order": 2, "payor": []object{{"display": "Second"}}, "subscriberId": "S2"})
	c.chart("Coverage", "k1", object{
		"status": "active", "order": 1, "subscriberId": "W123", "relationship": coded("self"), "payor": []object{{"reference": "#org"}},
		"class":     []object{{"type": coded("group"), "value": "G-7"}},
		"contained": []object{{"resourceType": "Organization", "id": "org", "name": "AETNA  health"}},
	})
	p := c.refresh().proposed("insurance")
	if value := p["value"].(object); value["payer_id"] != payer || value["member_id"] != "W123" || value["group_number"] != "G-7" {
		t.Errorf("proposed %v", value)
	}
	c.decide(authz.MA, p, "accept", nil).want(200).wantNone("insurance")
	c.shown().wantAt(object{"insurance.payer_id": payer, "insurance.member_id": "W123", "insurance.group_number": "G-7", "insurance.relationship": "self"})
	c.chart("Coverage", "k1", object{"status": "active", "order": 1, "subscriberId": "OTHER", "payor": []object{{"display": "Aetna Health"}}})
	c.refresh().wantNone("insurance") // staff's value stands

	c = newChartClinic(t)
	c.chart("Coverage", "k1", object{"status": "active", "subscriberId": "W9", "payor": []object{{"display": "Unheard Mutual"}}})
	p = c.refresh().proposed("insurance")
	c.decide(authz.MA, p, "accept", nil).wantFields("payer_id")
	c.decide(authz.MA, p, "accept", object{"payer_id": 9999}).want(400)
	c.request(authz.MA, "PATCH", "/patients/"+c.patient+"/", object{"insurance": object{"self_pay": true}}).want(200)
	c.read().wantNone("insurance")
	c.decide(authz.MA, p, "accept", object{"payer_id": 1}).want(400, "invalid_state")
}

func TestProposedVisit(t *testing.T) {
	c := newChartClinic(t)
	provider := c.people[authz.Provider].Number()
	c.request(authz.Nurse, "PATCH", "/patients/"+c.patient+"/", object{"primary_provider_id": provider}).want(200)
	for id, day := range map[string]string{"v1": "2025-11-02", "v2": "2026-01-05", "v3": "2026-01-12"} {
		c.chart("Encounter", id, object{"status": "finished", "class": object{"code": "AMB"}, "period": object{"start": day + "T15:00:00Z", "end": day + "T15:30:00Z"}})
	}
	c.chart("Encounter", "v4", object{"status": "planned", "class": object{"code": "AMB"}, "period": object{"start": "2026-01-14"}})
	if p := c.refresh().proposed("established_visit"); p["date"] != "2026-01-12" {
		t.Errorf("proposed %v", p)
	}
	c.request(authz.Nurse, "POST", "/patients/"+c.patient+"/consents/", object{"type": "rpm", "method": "written", "granted_at": "2026-01-08T12:00:00Z"}).want(201)
	p := c.refresh().proposed("established_visit")
	if p["date"] != "2026-01-05" {
		t.Errorf("a visit after the beginning of monitoring is proposed: %v", p)
	}
	c.decide(authz.Nurse, p, "accept", nil).want(200)
	orders := c.request(authz.Nurse, "GET", "/patients/"+c.patient+"/orders/?kind=established_visit", nil).results()
	if len(orders) != 1 || orders[0]["dated"] != "2026-01-05" || orders[0]["author_id"] != float64(provider) {
		t.Errorf("recorded %v", orders)
	}
}

func TestProposedDeath(t *testing.T) {
	c := newChartClinic(t)
	ada := sandbox.EMRPatient{ID: "e1", Family: "Lovelace", Given: []string{"Ada"}, Gender: "female", BirthDate: "1955-12-10", Deceased: true, DeceasedAt: "2026-01-12T23:00:00-05:00"}
	c.emr.AddPatient(ada)
	p := c.refresh().proposed("deceased")
	if p["date"] != "2026-01-12" {
		t.Errorf("proposed %v", p)
	}
	c.decide(authz.MA, p, "accept", nil).want(403, "permission_denied") // a medical assistant cannot archive
	c.decide(authz.Nurse, p, "accept", nil).want(200).wantNone("deceased")
	c.shown().wantAt(object{"active": false, "deceased_at": "2026-01-12"})

	c = newChartClinic(t)
	ada.DeceasedAt = ""
	c.emr.AddPatient(ada)
	c.decide(authz.Nurse, c.refresh().proposed("deceased"), "accept", nil).want(200)
	c.shown().wantAt(object{"active": false, "deceased_at": nil})
}

// stay adds an encounter in a hospital.
func (c *chartClinic) stay(id, class, status, start, end string) {
	c.t.Helper()
	within := object{"start": start}
	if end != "" {
		within["end"] = end
	}
	c.chart("Encounter", id, object{"status": status, "class": object{"code": class}, "period": within})
}

func (c *chartClinic) wantHold(what string, until any, by any) {
	c.t.Helper()
	got := c.shown()
	if got.at("hold") == nil {
		if until != nil {
			c.t.Errorf("%s: no hold", what)
		}
		return
	}
	if got.at("hold.until") != until || got.at("hold.by") != by {
		c.t.Errorf("%s: hold until %v by %v, want %v by %v", what, got.at("hold.until"), got.at("hold.by"), until, by)
	}
}

func autoHold(o *emrcontext.Options) { o.AutoHold = true }

// An inpatient stay sets a hold, each read extends it, and its end ends it.
func TestStayInHospital(t *testing.T) {
	for _, class := range []string{"IMP", "ACUTE"} {
		c := newChartClinic(t, autoHold)
		c.stay("h1", class, "in-progress", "2026-01-14T20:00:00-05:00", "")
		c.refresh().wantNone("hold")
		c.wantHold("admitted", "2026-01-19T05:00:00Z", "system")
		c.refresh()
		c.wantHold("read again", "2026-01-19T05:00:00Z", "system")
		c.now = c.now.Add(24 * time.Hour)
		c.refresh()
		c.wantHold("a day later", "2026-01-20T05:00:00Z", "system")
		c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Encounter", Status: 500})
		c.refresh()
		c.wantHold("an EMR that fails", "2026-01-20T05:00:00Z", "system")
		c.emr.ClearFaults()
		c.stay("h1", class, "onleave", "2026-01-14T20:00:00-05:00", "")
		c.refresh()
		c.wantHold("on leave", "2026-01-20T05:00:00Z", "system")
		c.stay("h1", class, "finished", "2026-01-14T20:00:00-05:00", "2026-01-16T12:00:00Z")
		c.refresh().wantNone("hold")
		c.wantHold("discharged", nil, nil)
	}
}

// Missed days raise no alert during a stay, and do again after it.
func TestMissedDaysDuringStay(t *testing.T) {
	c := newChartClinic(t, autoHold)
	engine := devices.NewEngine(devices.Rules{PracticeZone: newYork, MissedDaysBeforeEscalation: 3})
	c.request(authz.Nurse, "POST", "/devices/assign/", object{"device_id": "W-1", "patient_id": c.patient, "device_type": "scale"}).want(200)
	nights := func(count int) (raised int) {
		t.Helper()
		for range count {
			before := c.now
			c.now = c.now.AddDate(0, 0, 1)
			c.refresh()
			n, err := engine.CheckMissed(t.Context(), c.app, before, c.now)
			if err != nil {
				t.Fatal(err)
			}
			raised += n
		}
		return raised
	}
	if raised := nights(10); raised == 0 { // the device is delivered after five working days
		t.Fatal("no missed day before the stay")
	}
	c.stay("h1", "IMP", "in-progress", c.now.Format(time.RFC3339), "")
	if raised := nights(6); raised != 0 {
		t.Errorf("%d missed days during the stay", raised)
	}
	c.stay("h1", "IMP", "finished", c.now.AddDate(0, 0, -6).Format(time.RFC3339), c.now.Format(time.RFC3339))
	if raised := nights(3); raised == 0 {
		t.Error("no missed day after the stay")
	}
}

// A stay without an end in the EMR, or with an end in the past, ends the hold too.
func TestStaysThatAreOver(t *testing.T) {
	for name, end := range map[string]func(*chartClinic){
		"an end in the past":     func(c *chartClinic) { c.stay("h1", "IMP", "in-progress", "2026-01-14", "2026-01-15T10:00:00Z") },
		"finished without end":   func(c *chartClinic) { c.stay("h1", "IMP", "finished", "2026-01-14", "") },
		"entered in error":       func(c *chartClinic) { c.stay("h1", "IMP", "entered-in-error", "2026-01-14", "") },
		"of another patient now": func(c *chartClinic) { c.chart("Encounter", "h1", object{"subject": object{"reference": "Patient/e2"}}) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newChartClinic(t, autoHold)
			c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
			c.refresh()
			c.wantHold("admitted", "2026-01-19T05:00:00Z", "system")
			end(c)
			c.refresh()
			c.wantHold(name, nil, nil)
		})
	}
}

// Stays that set no hold: emergency and observation are proposed only, old ones are proposed or ignored, and those to come wait.
func TestStaysWithoutHold(t *testing.T) {
	for name, test := range map[string]struct {
		class, status, start string
		proposed             bool
	}{
		"emergency":        {"EMER", "in-progress", "2026-01-15T10:00:00Z", true},
		"observation":      {"OBSENC", "in-progress", "2026-01-15T10:00:00Z", true},
		"six weeks ago":    {"IMP", "in-progress", "2025-12-01", true},
		"without a start":  {"IMP", "in-progress", "", true},
		"never closed":     {"IMP", "in-progress", "2025-06-01", false},
		"tomorrow":         {"IMP", "in-progress", "2026-01-16T12:00:00Z", false},
		"planned":          {"IMP", "planned", "2026-01-15", false},
		"a visit":          {"AMB", "in-progress", "2026-01-15T10:00:00Z", false},
		"hospital at home": {"HH", "in-progress", "2026-01-15T10:00:00Z", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChartClinic(t, autoHold)
			c.stay("h1", test.class, test.status, test.start, "")
			got := c.refresh()
			if test.proposed {
				got.proposed("hold")
			} else {
				got.wantNone("hold")
			}
			c.wantHold(name, nil, nil)
		})
	}
}

// A hold that a person set, changed or ended is left alone.
func TestStayAndHoldsOfPeople(t *testing.T) {
	nurse := func(c *chartClinic) string { return c.people[authz.Nurse].Email() }
	holdUntil := func(c *chartClinic, until string) {
		c.t.Helper()
		if got := c.request(authz.Nurse, "POST", "/patients/"+c.patient+"/hold/", object{"reason": "travel", "until": until}); got.status > 201 {
			c.t.Fatal(got.body)
		}
	}
	c := newChartClinic(t, autoHold)
	holdUntil(c, "2026-01-20")
	c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
	c.refresh().wantNone("hold")
	c.wantHold("a person's hold", "2026-01-21T05:00:00Z", nurse(c))
	c.stay("h1", "IMP", "finished", "2026-01-14", "2026-01-15")
	c.refresh()
	c.wantHold("a person's hold after the stay", "2026-01-21T05:00:00Z", nurse(c))

	c = newChartClinic(t, autoHold)
	c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
	c.refresh()
	holdUntil(c, "2026-01-25")
	c.refresh()
	c.wantHold("changed by a person", "2026-01-26T05:00:00Z", nurse(c))

	c = newChartClinic(t, autoHold)
	c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
	c.refresh()
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "DELETE", "/patients/"+c.patient+"/hold/", nil).want(204)
	c.refresh().wantNone("hold")
	c.wantHold("ended by a person", nil, nil)
	c.stay("h2", "IMP", "in-progress", "2026-01-15T12:00:00Z", "")
	c.stay("h1", "IMP", "finished", "2026-01-14", "2026-01-15")
	c.refresh()
	c.wantHold("the next stay", "2026-01-19T05:00:00Z", "system")
}

// An EMR that is away for longer than the hold: it runs out, and the stay that is still in progress sets it again.
func TestStayAfterOutageOfEMR(t *testing.T) {
	c := newChartClinic(t, autoHold)
	c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
	c.refresh()
	c.now = c.now.Add(5 * 24 * time.Hour)
	if ended, err := patients.EndDueHolds(t.Context(), c.app, c.now); ended != 1 || err != nil {
		t.Fatalf("%d holds ended (%v)", ended, err)
	}
	c.wantHold("ran out", nil, nil)
	c.refresh().wantNone("hold")
	c.wantHold("set again", "2026-01-24T05:00:00Z", "system")
}

// Without the setting a stay is proposed; a person accepts, and it is proposed again when the hold runs out during the stay.
func TestProposedHold(t *testing.T) {
	c := newChartClinic(t)
	c.stay("e9", "EMER", "in-progress", "2026-01-15T09:00:00Z", "")
	c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
	p := c.refresh().proposed("hold")
	if p["source"] != "Encounter/h1" || p["value"].(object)["class"] != "IMP" {
		t.Errorf("proposed %v", p)
	}
	c.decide(authz.MA, p, "accept", nil).want(403, "permission_denied")
	c.decide(authz.Nurse, p, "accept", object{"until": "2026-04-01"}).wantFields("until")
	c.decide(authz.Nurse, p, "accept", nil).want(200).wantNone("hold")
	c.wantHold("accepted", "2026-01-23T05:00:00Z", c.people[authz.Nurse].Email())
	c.now = c.now.Add(9 * 24 * time.Hour)
	if _, err := patients.EndDueHolds(t.Context(), c.app, c.now); err != nil {
		t.Fatal(err)
	}
	if again := c.refresh().proposed("hold"); again["id"] != p["id"] {
		t.Errorf("proposed %v", again)
	}
	c.decide(authz.Nurse, p, "dismiss", nil).want(200)
	c.refresh().wantNone("hold")
}

// Of concurrent decisions about a proposal one counts, and its value is stored once.
func TestRaceOfDecisions(t *testing.T) {
	c := newChartClinic(t)
	c.chart("ServiceRequest", "s4", object{"status": "active", "authoredOn": "2026-01-09", "code": object{"text": "Remote patient monitoring"}})
	p := c.refresh().proposed("order")
	statuses := make(chan int, 6)
	var deciders sync.WaitGroup
	for i := range cap(statuses) {
		deciders.Go(func() { statuses <- c.decide(authz.Provider, p, []string{"accept", "dismiss"}[i%2], nil).status })
	}
	deciders.Wait()
	close(statuses)
	decided := 0
	for status := range statuses {
		if status == 200 {
			decided++
		} else if status != 400 {
			t.Errorf("answered %d", status)
		}
	}
	orders := len(c.request(authz.Nurse, "GET", "/patients/"+c.patient+"/orders/", nil).results())
	events := strings.Join(c.events(c.patient), " ")
	if decided != 1 || orders != strings.Count(events, "emr_proposal.accept") || orders+strings.Count(events, "emr_proposal.dismiss") != 1 {
		t.Errorf("%d decisions, %d orders: %s", decided, orders, events)
	}
}

// A day ends where the patient lives.
func TestStayInZoneOfPatient(t *testing.T) {
	for zone, until := range map[string]string{"Pacific/Auckland": "2026-01-19T11:00:00Z", "Pacific/Honolulu": "2026-01-19T10:00:00Z"} {
		c := newChartClinic(t, autoHold)
		c.request(authz.Nurse, "PATCH", "/patients/"+c.patient+"/", object{"time_zone": zone}).want(200)
		c.stay("h1", "IMP", "in-progress", "2026-01-14T20:00:00-05:00", "")
		c.refresh()
		c.wantHold(zone, until, "system")
	}
}

// The job reads every linked patient once a night, and a patient that fails does not hold up the others.
func TestChartsAreReadAtNight(t *testing.T) {
	c := newChartClinic(t)
	second := c.enroll(object{"external_id": "e2", "first_name": "Mary", "last_name": "Somerville"})
	c.enroll(object{"last_name": "Unlinked"})
	run := func() (read, failed int) {
		t.Helper()
		read, failed, err := c.engine.RefreshStale(t.Context(), c.app, func() time.Time { return c.now })
		if err != nil {
			t.Fatal(err)
		}
		return read, failed
	}
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Patient/e1", Status: 500})
	if read, failed := run(); read != 1 || failed != 1 {
		t.Errorf("read %d, failed %d", read, failed)
	}
	c.request(authz.Nurse, "GET", "/patients/"+second+"/emr-context/", nil).want(200).wantAt(object{"state": "current"})
	c.emr.ClearFaults()
	if read, failed := run(); read+failed != 0 {
		t.Errorf("read %d, failed %d in the same night", read, failed)
	}
	c.now = c.now.Add(21 * time.Hour)
	if read, failed := run(); read != 2 || failed != 0 {
		t.Errorf("read %d, failed %d in the next night", read, failed)
	}
	c.request(authz.Nurse, "POST", "/patients/"+second+"/archive/", object{"reason": "Moved"}).want(200)
	c.now = c.now.Add(21 * time.Hour)
	if read, _ := run(); read != 1 {
		t.Errorf("read %d after one was archived", read)
	}
}
