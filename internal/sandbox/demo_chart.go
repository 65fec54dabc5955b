package sandbox

import (
	"fmt"
	"time"
)

// DemoChart returns a made-up chart of a patient of the EMR, with dates before a time.
func DemoChart(p EMRPatient, now time.Time) []map[string]any {
	seed := 0
	for _, r := range p.ID {
		seed = seed*31%997 + int(r)
	}
	daysAgo := func(n int) string { return now.AddDate(0, 0, -n).Format(time.DateOnly) }
	coded := func(system, code, display string) resource {
		return resource{"coding": []resource{{"system": system, "code": code, "display": display}}, "text": display}
	}
	state := func(code string) resource { return resource{"coding": []resource{{"code": code}}} }
	problems := [][2]string{{"I10", "Essential (primary) hypertension"}, {"E11.9", "Type 2 diabetes mellitus without complications"}, {"I50.9", "Heart failure, unspecified"}, {"J44.9", "Chronic obstructive pulmonary disease, unspecified"}}
	medicines := [][2]string{{"314076", "lisinopril 10 MG Oral Tablet"}, {"861007", "metformin hydrochloride 500 MG Oral Tablet"}, {"313988", "furosemide 40 MG Oral Tablet"}, {"866427", "metoprolol succinate 25 MG Extended Release Oral Tablet"}}
	problem, medicine := problems[seed%len(problems)], medicines[seed%len(medicines)]
	list := []resource{
		{"resourceType": "Condition", "code": coded("http://hl7.org/fhir/sid/icd-10-cm", problem[0], problem[1]), "clinicalStatus": state("active"), "verificationStatus": state("confirmed"), "category": []resource{state("problem-list-item")}, "recordedDate": daysAgo(700)},
		{"resourceType": "MedicationRequest", "status": "active", "intent": "order", "medicationCodeableConcept": coded("http://www.nlm.nih.gov/research/umls/rxnorm", medicine[0], medicine[1]), "authoredOn": daysAgo(90), "dosageInstruction": []resource{{"text": "1 tablet daily"}}},
		{"resourceType": "Encounter", "status": "finished", "class": resource{"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": "AMB", "display": "ambulatory"}, "type": []resource{{"text": "Office visit"}}, "period": resource{"start": daysAgo(120), "end": daysAgo(120)}},
		{"resourceType": "ServiceRequest", "status": "active", "intent": "order", "code": coded("http://www.ama-assn.org/go/cpt", "99454", "Remote patient monitoring"), "authoredOn": daysAgo(100), "requester": resource{"display": "Priya Raman"}},
		{"resourceType": "Coverage", "status": "active", "order": 1, "subscriberId": fmt.Sprintf("W%06d", 100000+seed), "relationship": state("self"), "payor": []resource{{"display": "Aetna"}}, "period": resource{"start": daysAgo(300)}},
		{"resourceType": "AllergyIntolerance", "code": resource{"text": "Penicillin"}, "clinicalStatus": state("active"), "criticality": "high", "reaction": []resource{{"manifestation": []resource{{"text": "Hives"}}}}},
	}
	for i, r := range list {
		r["id"] = fmt.Sprintf("%s-%d", p.ID, i+1)
		r[chartTypes[r["resourceType"].(string)]] = resource{"reference": "Patient/" + p.ID}
	}
	return list
}

// AddDemoCharts gives every patient a made-up chart.
func (e *EMR) AddDemoCharts() {
	e.mu.Lock()
	patients := append([]EMRPatient{}, e.patients...)
	e.mu.Unlock()
	for _, p := range patients {
		for _, r := range DemoChart(p, e.options.Now()) {
			_ = e.AddChart(r) // of known types
		}
	}
}
