package routes_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// A read that does not tell whether the patient is in hospital does not end the hold: it runs out unless a later read finds the stay.
func TestStayWithUnansweredRead(t *testing.T) {
	for name, fault := range map[string]sandbox.Fault{
		"no scope":      {Match: "GET /fhir/demo/Encounter", Status: 403},
		"not supported": {Match: "GET /fhir/demo/Encounter", Status: 404},
		"refused":       {Match: "GET /fhir/demo/Encounter", Status: 422},
		"failed":        {Match: "GET /fhir/demo/Encounter", Status: 500},
		"no patient":    {Match: "GET /fhir/demo/Patient/e1", Status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChartClinic(t, autoHold)
			c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
			c.refresh()
			c.emr.Fail(fault)
			c.now = c.now.Add(time.Hour)
			if lacks := c.refresh().lacks(); len(lacks) != 1 {
				t.Errorf("unavailable: %q", lacks)
			}
			c.wantHold(name, "2026-01-19T05:00:00Z", "system")
			c.emr.ClearFaults()
			c.now = c.now.Add(24 * time.Hour)
			c.refresh().wantNone("hold")
			c.wantHold("found again", "2026-01-20T05:00:00Z", "system")
		})
	}
}

// Encounters that cannot be read do not tell that the patient is out of hospital.
func TestStayWithUnreadableEncounters(t *testing.T) {
	for name, damage := range map[string]object{
		"another row":       {"id": "a/b", "status": "finished", "class": object{"code": "AMB"}},
		"the stay, no text": {"id": "h1?", "status": 5},
		"the stay, bad id":  {"id": "h 1", "status": "in-progress", "class": object{"code": "IMP"}, "period": object{"start": "2026-01-14"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChartClinic(t, autoHold)
			c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
			c.refresh()
			c.wantHold("in progress", "2026-01-19T05:00:00Z", "system")
			c.emr.RemoveChart("Encounter", "h1")
			c.chart("Encounter", damage["id"].(string), damage)
			c.now = c.now.Add(time.Hour)
			wantTexts(t, "unavailable", c.refresh().lacks(), "Encounter: unreadable")
			c.wantHold(name, "2026-01-19T05:00:00Z", "system")
			c.emr.RemoveChart("Encounter", damage["id"].(string))
			c.refresh()
			c.wantHold("none", nil, nil)
		})
	}
}

// A chart that takes too long is kept as far as it was read.
func TestSlowChart(t *testing.T) {
	c := newChartClinic(t, func(o *emrcontext.Options) { o.MaxRefresh = 6 * time.Second })
	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active")})
	c.chart("MedicationRequest", "m1", object{"intent": "order", "status": "active", "medicationCodeableConcept": object{"text": "Lisinopril 10 mg"}})
	c.chart("AllergyIntolerance", "a1", object{"code": object{"text": "Penicillin"}})
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/MedicationRequest", Drop: sandbox.DropHang})
	got := c.refresh()
	got.wantAt(object{"state": "current"})
	wantTexts(t, "conditions", texts(got.list("conditions"), "text"), "Essential hypertension")
	wantTexts(t, "allergies", texts(got.list("allergies"), "text"), "Penicillin")
	wantTexts(t, "unavailable", got.lacks(), "MedicationRequest: failed")
	c.emr.ClearFaults()
	wantTexts(t, "medications", texts(c.refresh().list("medications"), "text"), "Lisinopril 10 mg")
}

// A patient whose record cannot be read does not stay at the front of the queue.
func TestUnreadablePatientInQueue(t *testing.T) {
	for _, column := range []string{"first_name", "date_of_birth", "insurance_details", "insurance_member_id", "deceased_at"} {
		t.Run(column, func(t *testing.T) {
			c := newChartClinic(t)
			second := c.enroll(object{"external_id": "e2", "first_name": "Mary", "last_name": "Somerville"})
			if _, err := c.app.DB().NewQuery("UPDATE patients SET " + column + " = 'damaged' WHERE id = {:id}").Bind(dbx.Params{"id": c.patient}).Execute(); err != nil {
				t.Fatal(err)
			}
			read, failed, _ := c.runNight()
			if read+failed != 2 {
				t.Errorf("read %d, failed %d", read, failed)
			}
			c.request(authz.Nurse, "GET", "/patients/"+second+"/emr-context/", nil).want(200).wantAt(object{"state": "current"})
			if read, failed, _ = c.runNight(); read+failed != 0 {
				t.Errorf("read %d, failed %d in the same night", read, failed)
			}
		})
	}
}

// A stay that was over by the EMR and is in progress again has its hold set or proposed again.
func TestStayInProgressAgain(t *testing.T) {
	c := newChartClinic(t, autoHold)
	for range 2 {
		c.stay("h1", "IMP", "in-progress", "2026-01-14", "")
		c.now = c.now.Add(time.Hour)
		c.refresh().wantNone("hold")
		c.wantHold("in progress", "2026-01-19T05:00:00Z", "system")
		c.stay("h1", "IMP", "finished", "2026-01-14", "2026-01-15")
		c.now = c.now.Add(time.Hour)
		c.refresh().wantNone("hold")
		c.wantHold("finished", nil, nil)
	}
	c.stay("h1", "EMER", "in-progress", "2026-01-14", "")
	c.refresh().proposed("hold")
}

// A person's end of one stay's hold stands when the system ends the hold of the next.
func TestStayEndedByPersonBeforeAnother(t *testing.T) {
	c := newChartClinic(t, autoHold)
	c.stay("h1", "IMP", "in-progress", "2026-01-13", "")
	c.refresh()
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "DELETE", "/patients/"+c.patient+"/hold/", nil).want(204)
	c.stay("h1", "IMP", "finished", "2026-01-13", "2026-01-14")
	c.stay("h2", "IMP", "in-progress", "2026-01-14", "")
	c.now = c.now.Add(time.Hour)
	c.refresh()
	c.wantHold("the next stay", "2026-01-19T05:00:00Z", "system")
	c.stay("h2", "IMP", "finished", "2026-01-14", "2026-01-15")
	c.refresh()
	c.wantHold("after the next stay", nil, nil)
	c.stay("h1", "IMP", "in-progress", "2026-01-13", "")
	c.now = c.now.Add(time.Hour)
	c.refresh().wantNone("hold")
	c.wantHold("ended by a person", nil, nil)
}

func (c *chartClinic) runNight() (read, failed int, err error) {
	return c.engine.RefreshStale(c.t.Context(), c.app, func() time.Time { return c.now })
}

// A chart that cannot be stored does not hold up the others, and is tried again the next night.
func TestChartThatCannotBeStored(t *testing.T) {
	c := newChartClinic(t)
	c.enroll(object{"external_id": "e2", "first_name": "Mary", "last_name": "Somerville"})
	c.chart("Condition", "c1", object{"code": icd10("I10", "Essential hypertension"), "clinicalStatus": coded("active")})
	if _, err := c.app.DB().NewQuery(fmt.Sprintf(`CREATE TRIGGER broken BEFORE INSERT ON emr_proposals WHEN NEW.patient = '%s'
		BEGIN SELECT RAISE(ABORT, 'broken'); END`, c.patient)).Execute(); err != nil {
		t.Fatal(err)
	}
	if read, failed, err := c.runNight(); read != 1 || failed != 1 || err == nil {
		t.Errorf("read %d, failed %d (%v)", read, failed, err)
	}
	if read, failed, err := c.runNight(); read+failed != 0 || err != nil {
		t.Errorf("read %d, failed %d (%v) in the same night", read, failed, err)
	}
	if _, err := c.app.DB().NewQuery("DROP TRIGGER broken").Execute(); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(21 * time.Hour)
	if read, failed, err := c.runNight(); read != 2 || failed != 0 || err != nil {
		t.Errorf("read %d, failed %d (%v) in the next night", read, failed, err)
	}
}

// A caller who goes away is no failed attempt.
func TestRefreshOfCallerWhoLeft(t *testing.T) {
	c := newChartClinic(t)
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.engine.Refresh(ctx, c.app, c.patient, func() time.Time { cancel(); return c.now }); err == nil {
		t.Fatal("a chart was read without a caller")
	}
	if read, failed, err := c.runNight(); read != 1 || failed != 0 || err != nil {
		t.Errorf("read %d, failed %d (%v)", read, failed, err)
	}
}

// Accepting an insurance adds what the record lacks, and replaces nothing that staff entered.
func TestInsuranceOfStaffStands(t *testing.T) {
	clinic := func(entered object) (*chartClinic, any) {
		c := newChartClinic(t)
		payer := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Aetna Health", "payer_id": "AETNA", "claim_filing_code": "CI", "edi_payer_id": "60054"}).want(201).object()["id"]
		c.chart("Coverage", "k1", object{
			"status": "active", "subscriberId": "W123", "relationship": coded("other"), "payor": []object{{"display": "Aetna Health"}},
			"class": []object{{"type": coded("group"), "value": "G-7"}},
		})
		if entered["payer_id"] != nil {
			entered["payer_id"] = payer
		}
		c.request(authz.MA, "PATCH", "/patients/"+c.patient+"/", object{"insurance": entered}).want(200)
		return c, payer
	}
	c, payer := clinic(object{"payer_id": true, "group_number": "STAFF-1", "relationship": "self"})
	p := c.refresh().proposed("insurance")
	other := c.request(authz.Admin, "POST", "/billing/payers/", object{"name": "Humana", "payer_id": "HUM", "claim_filing_code": "CI", "edi_payer_id": "61101"}).want(201).object()["id"]
	c.decide(authz.MA, p, "accept", object{"payer_id": other}).wantFields("payer_id")
	c.shown().wantAt(object{"insurance.payer_id": payer})
	c.decide(authz.MA, p, "accept", object{"payer_id": payer}).want(200)
	c.shown().wantAt(object{"insurance.payer_id": payer, "insurance.member_id": "W123", "insurance.group_number": "STAFF-1", "insurance.relationship": "self"})

	c, _ = clinic(object{"member_id": "STAFF-2"})
	c.refresh().wantNone("insurance")

	c, payer = clinic(object{"member_id": "W123", "group_number": "STAFF-3"})
	c.decide(authz.MA, c.refresh().proposed("insurance"), "accept", nil).want(200)
	c.shown().wantAt(object{"insurance.payer_id": payer, "insurance.member_id": "W123", "insurance.group_number": "STAFF-3"})
}

// An open proposal, and one that is made again, has what the chart has now.
func TestProposalsHaveTheLatestValue(t *testing.T) {
	c := newChartClinic(t)
	order := func(status, date, text string) reply {
		c.chart("ServiceRequest", "s1", object{"status": status, "authoredOn": date, "code": object{"text": text}})
		return c.refresh()
	}
	first := order("active", "2026-01-09", "Remote monitoring").proposed("order")
	for _, again := range []reply{
		order("active", "2026-01-12", "Remote patient monitoring"),
		order("revoked", "2026-01-12", "Remote patient monitoring").wantNone("order"),
		order("active", "2026-01-13", "Remote monitoring of weight"),
	} {
		for _, p := range again.list("proposals") {
			value := p["value"].(object)
			if p["id"] != first["id"] || p["date"] != value["dated"] || p["date"] == "2026-01-09" || value["text"] == "Remote monitoring" {
				t.Errorf("proposed %v", p)
			}
		}
	}
	if p := c.read().proposed("order"); p["date"] != "2026-01-13" || p["value"].(object)["text"] != "Remote monitoring of weight" {
		t.Errorf("proposed %v", p)
	}
}

// A medicine whose resource cannot be read keeps its earlier name, and the EMR is not asked for the others.
func TestMedicinesByReferenceUnavailable(t *testing.T) {
	names := []string{"Furosemide 40 mg", "Lisinopril 10 mg"}
	c := newChartClinic(t)
	for i, name := range names {
		c.chart("MedicationRequest", fmt.Sprintf("m%d", i), object{"intent": "order", "status": "active", "medicationReference": object{"reference": fmt.Sprintf("Medication/shelf%d", i)}})
		if err := c.emr.AddChart(object{"resourceType": "Medication", "id": fmt.Sprintf("shelf%d", i), "code": object{"text": name}}); err != nil {
			t.Fatal(err)
		}
	}
	wantTexts(t, "unavailable", c.refresh().lacks())
	for status, lack := range map[int]string{500: "Medication: failed", 403: "Medication: no_scope"} {
		c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Medication/shelf", Status: status})
		got := c.refresh()
		wantTexts(t, "medications", texts(got.list("medications"), "text"), names...)
		wantTexts(t, "unavailable", got.lacks(), lack)
		c.emr.ClearFaults()
	}
	c.emr.Fail(sandbox.Fault{Match: "GET /fhir/demo/Medication/shelf", Status: 429})
	got := c.refresh()
	wantTexts(t, "medications after a 429", texts(got.list("medications"), "text"), names...)
	if lacks := got.lacks(); len(lacks) < 2 || lacks[0] != "Medication: failed" {
		t.Errorf("unavailable: %q", lacks)
	}
}

// Decided diagnoses make room for the next of a long list.
func TestDiagnosesBeyondTheFirstTwelve(t *testing.T) {
	c := newChartClinic(t)
	codes := []string{"I10", "E11.9", "I50.9", "J44.9", "I48.91", "N18.9", "I25.10", "E66.9", "J45.909", "I11.9", "I12.9", "E10.9", "I20.9", "R03.0", "I50.22", "I50.32", "E11.65", "N18.6", "E10.65", "I48.0", "N18.4", "N18.5"}
	for i, code := range codes {
		c.chart("Condition", fmt.Sprintf("c%d", i), object{"code": icd10(code, "Disease"), "clinicalStatus": coded("active")})
	}
	got := c.refresh()
	first := proposedCodes(got)
	if len(first) != 12 {
		t.Fatalf("%d diagnoses are proposed: %q", len(first), first)
	}
	for _, p := range got.list("proposals") {
		c.decide(authz.Nurse, p, "dismiss", nil).want(200)
	}
	if next := proposedCodes(c.refresh()); len(next) == 0 {
		t.Error("no further diagnosis is proposed")
	}
}
