package routes_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
)

// judged returns, by LOINC code, the interpretation and the ends of the reference range of an Observation and its components.
func judged(t *testing.T, resource object) map[string]string {
	t.Helper()
	found := map[string]string{}
	read := func(part object) {
		code := part["code"].(object)["coding"].([]any)[0].(object)["code"].(string)
		list, interpreted := part["interpretation"].([]any)
		ranges, _ := part["referenceRange"].([]any)
		if !interpreted {
			if len(ranges) > 0 {
				t.Errorf("%s has a range and no interpretation", code)
			}
			return
		}
		var codes []string
		for _, one := range list {
			coding := one.(object)["coding"].([]any)[0].(object)
			if coding["system"] != "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation" || coding["display"] == nil {
				t.Errorf("%s: %v", code, coding)
			}
			codes = append(codes, fmt.Sprint(coding["code"]))
		}
		end := func(name string) any {
			if len(ranges) == 0 {
				return "-"
			}
			if value, has := ranges[0].(object)[name].(object); has {
				return value["value"]
			}
			return "-"
		}
		found[code] = fmt.Sprintf("%v %v %v", strings.Join(codes, "+"), end("low"), end("high"))
	}
	read(resource)
	components, _ := resource["component"].([]any)
	for _, c := range components {
		read(c.(object))
	}
	return found
}

func wantJudged(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// The bounds in force when a reading was evaluated are those of its FHIR form, whatever was set since; a reading from before they were stored
// has none, nor has a first weight without a target.
func TestStoryInterpretation(t *testing.T) {
	w := newWard(t, nil)
	served := func(id string) map[string]string {
		t.Helper()
		return judged(t, w.request(authz.Nurse, "GET", "/fhir/observations/"+id+"/", nil).want(200).object())
	}
	set := func(body object) {
		t.Helper()
		body["reason"] = "agreed"
		w.request(authz.Provider, "PUT", "/patients/"+w.patient+"/vital-config/", body).want(200)
	}
	store := func(path string, values object) string {
		t.Helper()
		w.now = w.now.Add(time.Hour)
		values["patient_id"], values["measured_at"] = w.patient, w.now.Format(time.RFC3339)
		return w.request(authz.Nurse, "POST", "/ingestion/"+path+"/", values).want(201).at("id").(string)
	}
	set(object{"blood_pressure": object{"systolic_low": 95, "diastolic_low": 55}})
	first := store("blood-pressure", object{"systolic": 186, "diastolic": 90, "pulse": 70})
	want := map[string]string{"8480-6": "HH 95 140", "8462-4": "H 55 90", "8867-4": "N 50 110"}
	wantJudged(t, "first", served(first), want)
	set(object{"blood_pressure": object{"systolic_high": 190, "systolic_critical": 220}})
	wantJudged(t, "looser since", served(first), want)
	wantJudged(t, "with the new bounds", served(store("blood-pressure", object{"systolic": 189, "diastolic": 55, "pulse": 40})),
		map[string]string{"8480-6": "N 95 190", "8462-4": "L 55 90", "8867-4": "LL 50 110"})
	wantJudged(t, "SpO2", served(store("pulse-oximetry", object{"spo2": 92})), map[string]string{"59408-5": "L 92 -"})
	wantJudged(t, "weight", served(store("weight", object{"weight_kg": 82})), map[string]string{})
	set(object{"pulse_oximetry": nil})
	wantJudged(t, "switched off", served(store("pulse-oximetry", object{"spo2": 80})), map[string]string{})
	wantSame(t, "sealed", w.queryRows(t, `SELECT evaluated_bounds FROM observations WHERE evaluated_bounds LIKE '%systolic%'`), nil)
	if _, err := w.app.DB().NewQuery(`UPDATE observations SET evaluated_bounds = ''`).Execute(); err != nil {
		t.Fatal(err)
	}
	wantJudged(t, "from before", served(first), map[string]string{})
}

// A weight has the limit over its target as its range, and the direction of a change that raised an alert as an interpretation.
func TestStoryInterpretationOfWeight(t *testing.T) {
	w := newWard(t, nil)
	weigh := func(kg float64) map[string]string {
		t.Helper()
		w.now = w.now.Add(24 * time.Hour)
		id := w.request(authz.Nurse, "POST", "/ingestion/weight/", object{
			"patient_id": w.patient, "weight_kg": kg, "measured_at": w.now.Format(time.RFC3339),
		}).want(201).at("id").(string)
		return judged(t, w.request(authz.Nurse, "GET", "/fhir/observations/"+id+"/", nil).want(200).object())
	}
	const code = "29463-7"
	wantJudged(t, "the first", weigh(80), map[string]string{})
	wantJudged(t, "steady", weigh(80.4), map[string]string{code: "N - -"})
	wantJudged(t, "a gain in a day", weigh(82), map[string]string{code: "A+U - -"})
	wantJudged(t, "a critical gain", weigh(84.7), map[string]string{code: "AA+U - -"})
	wantJudged(t, "a loss", weigh(82.2), map[string]string{code: "A+D - -"})
	w.request(authz.Provider, "PUT", "/patients/"+w.patient+"/vital-config/", object{"reason": "dry weight", "weight": object{
		"target_kg": 80, "over_target_kg": 2.3, "change_threshold_kg": 9, "critical_change_kg": 20, "daily_change_kg": 5,
	}}).want(200)
	wantJudged(t, "at the limit over the target", weigh(82.3), map[string]string{code: "H - 82.3"})
	wantJudged(t, "below it", weigh(82.2), map[string]string{code: "N - 82.3"})
	w.request(authz.Provider, "PUT", "/patients/"+w.patient+"/vital-config/", object{"reason": "acute", "weight": object{"daily_change_kg": 1}}).want(200)
	wantJudged(t, "over it, by a gain", weigh(83.4), map[string]string{code: "H+A+U - 82.3"})
}

// The EMR gets them unless VIGIL_FHIR_SEND_INTERPRETATION is false; a correction leaves what it has.
func TestInterpretationIsDelivered(t *testing.T) {
	for _, sends := range []bool{true, false} {
		a := newAtTheEMR(t, func(r *ingest.Rules) { r.SendInterpretation = sends })
		id := a.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", object{
			"patient_id": a.patient, "systolic": 152, "diastolic": 80, "measured_at": a.now.Add(-time.Minute).Format(time.RFC3339),
		}).want(201).at("id").(string)
		a.deliver(time.Minute)
		want := map[string]string{}
		if sends {
			want = map[string]string{"8480-6": "H 90 140", "8462-4": "N 60 90"}
		}
		content := func() object {
			var o object
			if err := json.Unmarshal(a.copies(1)[0].Resource, &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
		if sends {
			want["8462-4"] = judged(t, a.request(authz.Nurse, "GET", "/fhir/observations/"+id+"/", nil).want(200).object())["8462-4"]
		}
		wantJudged(t, "delivered", judged(t, content()), want)
		a.request(authz.Provider, "PUT", "/patients/"+a.patient+"/vital-config/", object{"reason": "agreed", "blood_pressure": object{"systolic_high": 160}}).want(200)
		a.retract(id)
		a.deliver(time.Minute)
		if status := content()["status"]; status != "entered-in-error" {
			t.Errorf("the copy is %v", status)
		}
		wantJudged(t, "after the correction", judged(t, content()), want)
	}
}

// The Provenance of a reading that a person confirmed names the verifier; a portal user sees no name, and a reading confirmed by a second one
// has none.
func TestProvenanceNamesTheVerifier(t *testing.T) {
	w := newWard(t, nil)
	ids := w.addCuff("BP-1", w.now, cuffReading{0, 186, 88}, cuffReading{4, 117, 64})
	agents := func(id string) (types []string) {
		t.Helper()
		r := parsed(t, w.requestFHIR(w.tokenOf(authz.Nurse), "GET", "/Provenance/"+id, ""))
		for _, agent := range r["agent"].([]any) {
			a := agent.(object)
			code := a["type"].(object)["coding"].([]any)[0].(object)["code"].(string)
			if code == "verifier" {
				code += fmt.Sprint(" ", a["who"].(object)["reference"])
			}
			types = append(types, code)
		}
		return types
	}
	wantSame(t, "not confirmed", agents(ids[1]), []string{"author", "transmitter"})
	w.request(authz.Nurse, "POST", "/ingestion/observations/"+ids[1]+"/confirm/", object{}).want(200)
	wantSame(t, "confirmed", agents(ids[1]), []string{"author", "transmitter", "verifier Practitioner/" + fmt.Sprint(w.people[authz.Nurse].Number())})
	wantSame(t, "the other", agents(ids[0]), []string{"author", "transmitter"})
}
