package routes_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

func TestSearchPatientsAsFHIR(t *testing.T) {
	p := newPractice(t)
	p.request(authz.Admin, "POST", "/patients/"+p.bob+"/archive/", object{"reason": "moved away", "confirm": true}).want(200)
	gone := p.enroll(object{"last_name": "Lovelace-Gone", "mrn": "MRN-GONE"})
	p.request(authz.Admin, "DELETE", "/patients/"+gone+"/", nil).want(204)
	const mrn = "https://vigil.example.org/fhir/identifier/mrn|"
	for query, want := range map[string][]string{
		"":                           {p.ada, p.bob},
		"name=LOVE":                  {p.ada},
		"name=ada lovelace":          {p.ada},
		"name=ove":                   nil,
		"name:contains=ove":          {p.ada},
		"name:exact=Lovelace":        {p.ada},
		"name:exact=lovelace":        nil,
		"name:exact=Ada Lovelace":    {p.ada},
		"family=o'brien":             {p.bob},
		"family=nunez":               {p.bob}, // its second part, without its accent
		"family:exact=O'Brien-Núñez": {p.bob},
		"family:exact=O'Brien-Nunez": nil,
		"family=robert":              nil,
		"given=rob":                  {p.bob},
		"given=ada,robert":           {p.ada, p.bob},
		"given=ada&family=nunez":     nil,
		"name=lovelace&name=ada":     {p.ada},
		"name=%20":                   nil,
		"birthdate=1955-12-10":       {p.ada},
		"birthdate=1955-12":          {p.ada},
		"birthdate=1955,1961":        {p.ada, p.bob},
		"birthdate=gt1955-12-10":     {p.bob},
		"birthdate=ge1955-12-10&birthdate=lt1961-07-02": {p.ada},
		"birthdate=ne1955-12-10":                        {p.bob},
		"birthdate=1955-12-11":                          nil,
		"gender=male":                                   {p.bob},
		"gender=http://hl7.org/fhir/administrative-gender|female,male": {p.ada, p.bob},
		"gender=other":                  nil,
		"gender=female&birthdate=1961":  nil,
		"identifier=MRN-ADA":            {p.ada},
		"identifier=" + mrn + "mrn-ada": {p.ada},
		"identifier=urn:other|MRN-ADA":  nil,
		"identifier=MRN-GONE":           nil,
		"identifier=" + mrn:             {p.ada, p.bob}, // any patient with an MRN
		"identifier=https://vigil.example.org/fhir/identifier/emr|": nil,
		"identifier=urn:other|":     nil,
		"_id=" + p.ada + "," + gone: {p.ada},
		"_lastUpdated=gt2030":       nil,
		"_lastUpdated=2026-01-15":   {p.ada, p.bob},
	} {
		rec := p.requestFHIR(p.machine, "GET", "/Patient?"+strings.ReplaceAll(query, " ", "%20"), "")
		if query == "name=%20" {
			if rec.Code != 400 {
				t.Errorf("a blank name: %d", rec.Code)
			}
			continue
		}
		bundle := parsed(t, rec)
		if diff := cmp.Diff(want, idsOf(found(bundle, "match"))); diff != "" || bundle["total"] != float64(len(want)) {
			t.Errorf("%s: %v %s", query, bundle["total"], diff)
		}
	}
	for _, wrong := range []string{"gender=robot", "birthdate=10.12.1955", "birthdate=1955-12-10T10:00:00Z", "identifier=|"} {
		if rec := p.requestFHIR(p.machine, "GET", "/Patient?"+wrong, ""); rec.Code != 400 {
			t.Errorf("%s: %d", wrong, rec.Code)
		}
	}
	if rec := p.requestFHIR(p.machine, "GET", "/Patient/"+gone, ""); rec.Code != 404 {
		t.Errorf("deleted patient: %d", rec.Code)
	}
	if bob := p.fhir(authz.Nurse, "/Patient/"+p.bob); bob["active"] != false {
		t.Errorf("archived patient: %v", bob["active"])
	}
	// The same form as under /api/v1.
	if diff := cmp.Diff(p.request(authz.Nurse, "GET", "/fhir/patients/"+p.ada+"/", nil).want(200).object(), p.fhir(authz.Nurse, "/Patient/"+p.ada)); diff != "" {
		t.Error(diff)
	}
}

// A reading has the same form here as in its delivery and under /api/v1, and its references resolve here.
func TestReadingAsItIsServed(t *testing.T) {
	p := newPractice(t)
	elsewhere := p.request(authz.Nurse, "GET", "/fhir/observations/"+p.pressures[4]+"/", nil).want(200).object()
	here := p.fhir(authz.Nurse, "/Observation/"+p.pressures[4])
	device := here["device"].(object)["reference"].(string)
	here["device"].(object)["reference"], elsewhere["subject"] = "#device", object{"reference": "Patient/" + p.ada}
	if elsewhere["device"].(object)["reference"] == nil {
		delete(here["device"].(object), "reference")
	}
	delete(elsewhere, "contained")
	if diff := cmp.Diff(elsewhere, here); diff != "" {
		t.Error(diff)
	}
	if served := p.fhir(authz.Nurse, "/"+device); served["identifier"].([]any)[0].(object)["value"] != cuff || served["status"] != "active" {
		t.Errorf("the device: %v", served)
	}
	if here["effectiveDateTime"] != "2026-01-14T08:45:00-05:00" {
		t.Errorf("measured %v", here["effectiveDateTime"])
	}
	if got := p.search("/Observation?patient=" + p.ada + "&date=" + here["effectiveDateTime"].(string)); !slices.Equal(got, p.pressures[4:]) {
		t.Errorf("its own time finds %v", got)
	}
	if own := p.fhir(authz.Nurse, "/Observation/"+p.own); own["performer"].([]any)[0].(object)["reference"] != "Patient/"+p.ada {
		t.Errorf("typed by the patient: %v", own)
	}
}

// A retracted reading stays as entered in error, in a new version; a suspect one is preliminary until a person confirms
// it.
func TestStatesOfReadings(t *testing.T) {
	p := newPractice(t)
	path := "/Observation/" + p.weight
	const stored = "Thu, 15 Jan 2026 13:45:00 GMT"
	for _, since := range []string{stored, "Thu, 15 Jan 2026 13:44:59 GMT"} { // within its second it may change again
		if rec := p.requestFHIR(p.machine, "GET", path, "", "If-Modified-Since", since); rec.Code != 200 || rec.Header().Get("Last-Modified") == stored {
			t.Errorf("at once: %d %v", rec.Code, rec.Header())
		}
	}
	p.now = p.now.Add(time.Second)
	first := p.requestFHIR(p.machine, "GET", path, "")
	tag := first.Header().Get("ETag")
	if tag != `W/"1"` || first.Header().Get("Last-Modified") != stored {
		t.Errorf("%v", first.Header())
	}
	for header, want := range map[[2]string]int{
		{"If-None-Match", tag}: 304, {"If-None-Match", `"x", W/"1"`}: 304, {"If-None-Match", "*"}: 304, {"If-None-Match", `W/"2"`}: 200,
		{"If-Modified-Since", stored}: 304, {"If-Modified-Since", "Thu, 15 Jan 2026 13:44:59 GMT"}: 200, {"If-Modified-Since", "soon"}: 200,
	} {
		rec := p.requestFHIR(p.machine, "GET", path, "", header[0], header[1])
		if rec.Code != want || (want == 304) != (rec.Body.Len() == 0) || rec.Header().Get("ETag") != tag {
			t.Errorf("%v: %d %s", header, rec.Code, rec.Body)
		}
	}
	p.now = p.now.Add(time.Minute - time.Second)
	p.request(authz.Nurse, "POST", "/ingestion/observations/"+p.weight+"/entered-in-error/", object{"reason": "somebody else"}).want(200)
	rec := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", path, "", "If-None-Match", tag)
	if rec.Code != 200 || rec.Header().Get("ETag") == tag || parsed(t, rec)["status"] != "entered-in-error" {
		t.Errorf("retracted: %d %s", rec.Code, rec.Body)
	}
	for query, want := range map[string]int{"status=entered-in-error": 1, "status=final": 9, "status=preliminary": 0, "_lastUpdated=ge2026-01-15T13:46:00Z": 1, "_lastUpdated=lt2026-01-15T13:46:00Z": 9} {
		if got := p.search("/Observation?" + query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}

	lena := p.enroll(object{"mrn": "MRN-LENA"})
	weigh := func(kg float64, ago time.Duration) string {
		return p.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": lena, "weight_kg": kg, "measured_at": p.now.Add(-ago).Format(time.RFC3339)}).
			want(201).at("id").(string)
	}
	for day := range 4 {
		weigh(70, time.Duration(day+2)*24*time.Hour)
	}
	doubted := weigh(105, time.Minute)
	p.request(authz.Nurse, "GET", "/ingestion/observations/"+doubted+"/", nil).want(200).wantAt(object{"review_state": "suspect"})
	if got := p.search("/Observation?status=preliminary"); !slices.Equal(got, []string{doubted}) {
		t.Errorf("preliminary: %v", got)
	}
	before := p.requestFHIR(p.machine, "GET", "/Observation/"+doubted, "")
	if parsed(t, before)["status"] != "preliminary" {
		t.Errorf("doubted: %s", before.Body)
	}
	p.request(authz.Nurse, "POST", "/ingestion/observations/"+doubted+"/confirm/", object{}).want(200)
	after := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", "/Observation/"+doubted, "", "If-None-Match", before.Header().Get("ETag"))
	if after.Code != 200 || parsed(t, after)["status"] != "final" {
		t.Errorf("confirmed: %d %s", after.Code, after.Body)
	}
}

func TestLastReadings(t *testing.T) {
	p := newPractice(t)
	b := p.pressures
	p.request(authz.Nurse, "POST", "/ingestion/observations/"+b[4]+"/entered-in-error/", object{"reason": "x"}).want(200)
	ada := "/Observation/$lastn?patient=" + p.ada
	for path, want := range map[string][]string{
		ada:                                 {b[3], p.weight, p.own, p.glucose},
		strings.Replace(ada, "$", "%24", 1): {b[3], p.weight, p.own, p.glucose},
		ada + "&max=2&code=85354-9":         {b[3], b[2]},
		ada + "&max=9999&category=vital-signs&date=lt2026-01-15": {b[3], b[2], b[1], b[0]},
		ada + "&category=laboratory":                             {p.glucose},
		ada + "&status=entered-in-error":                         {b[4]},
		ada + "&code=1234-5":                                     nil,
		"/Observation/$lastn?subject=Patient/" + p.bob:           {p.bobs, p.sent},
	} {
		if diff := cmp.Diff(want, p.search(path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if self := linkOf(p.fhir(authz.Nurse, ada+"&max=9999&colour=red"), "self"); self != "/Observation/$lastn?max=100&patient="+p.ada {
		t.Errorf("self is %s", self)
	}
	for _, wrong := range []string{"/Observation/$lastn", "/Observation/$lastn?code=85354-9", ada + "&max=0", ada + "&max=x", "/Observation/$lastn?patient=" + p.ada + "," + p.bob, ada + "&date=x"} {
		if rec := p.requestFHIR(p.machine, "GET", wrong, ""); rec.Code != 400 {
			t.Errorf("%s: %d", wrong, rec.Code)
		}
	}
}

// The provenance states the source: measured, typed by staff or patient, sent by a client, imported.
func TestProvenanceOfReadings(t *testing.T) {
	p := newPractice(t)
	imported := p.pressures[0]
	if _, err := p.app.DB().Update(collections.Observations, dbx.Params{"origin": "import"}, dbx.HashExp{"id": imported}).Execute(); err != nil {
		t.Fatal(err)
	}
	device := p.search("/Device?identifier=" + cuff)[0]
	nurse := strconv.FormatInt(p.people[authz.Nurse].Number(), 10)
	for id, want := range map[string]string{
		p.pressures[1]: "author Device/" + device + "; transmitter Device gateway",
		imported:       "author Device/" + device + "; assembler Import of a file",
		p.weight:       "author Practitioner/" + nurse,
		p.own:          "author Patient/" + p.ada,
		p.sent:         "author Device; transmitter Device cloud",
	} {
		bundle := p.fhir(authz.Nurse, "/Provenance?target=Observation/"+id)
		all := found(bundle, "match")
		if len(all) != 1 || all[0]["target"].([]any)[0].(object)["reference"] != "Observation/"+id {
			t.Errorf("%s: %v", id, bundle)
			continue
		}
		var agents []string
		for _, a := range all[0]["agent"].([]any) {
			agent := a.(object)
			who := agent["who"].(object)
			name, _ := who["reference"].(string)
			if name == "" {
				name, _ = who["display"].(string)
			}
			agents = append(agents, fmt.Sprint(agent["type"].(object)["coding"].([]any)[0].(object)["code"], " ", name))
			if byPatient := strings.HasPrefix(name, "Patient/"); (agent["onBehalfOf"] == nil) != byPatient {
				t.Errorf("%s: %v", id, agent)
			}
		}
		if got := strings.Join(agents, "; "); got != want {
			t.Errorf("%s came from %q, want %q", id, got, want)
		}
	}
	if got := p.search("/Provenance?patient=" + p.bob + "&_sort=_id"); !slices.Equal(got, []string{p.bobs, p.sent}) {
		t.Errorf("of Bob: %v", got)
	}
	if got := p.search("/Provenance?recorded=gt2026-01-15T13:45:00Z"); len(got) != 0 {
		t.Errorf("later: %v", got)
	}
}

// An alert is a flag, active until it is resolved, acknowledged or not.
func TestAlertsAreFlags(t *testing.T) {
	p := newPractice(t)
	bobs := found(p.fhir(authz.Nurse, "/Flag?patient="+p.bob+"&status=active"), "match")
	if len(bobs) != 1 {
		t.Fatalf("%v", bobs)
	}
	flag, id := bobs[0], bobs[0]["id"].(string)
	alert := p.request(authz.Nurse, "GET", "/alerts/"+id+"/", nil).want(200).object()
	code := flag["code"].(object)
	if code["text"] != alert["message"] || code["coding"].([]any)[0].(object)["code"] != "blood_pressure" || code["coding"].([]any)[1].(object)["code"] != "critical" ||
		flag["subject"].(object)["reference"] != "Patient/"+p.bob || flag["period"].(object)["start"] != alert["created_at"] || flag["period"].(object)["end"] != nil ||
		flag["author"] == nil || flag["category"].([]any)[0].(object)["coding"].([]any)[0].(object)["code"] != "clinical" {
		t.Errorf("%v", flag)
	}
	p.now = p.now.Add(time.Hour)
	p.request(authz.Nurse, "POST", "/alerts/"+id+"/acknowledge/", nil).want(200)
	if got := p.fhir(authz.Nurse, "/Flag/"+id); got["status"] != "active" {
		t.Errorf("acknowledged: %v", got["status"])
	}
	p.request(authz.Nurse, "POST", "/alerts/"+id+"/resolve/", nil).want(200)
	over := p.fhir(authz.Nurse, "/Flag/"+id)
	if over["status"] != "inactive" || over["period"].(object)["end"] != "2026-01-15T14:45:00Z" || over["meta"].(object)["versionId"] == flag["meta"].(object)["versionId"] {
		t.Errorf("resolved: %v", over)
	}
	p.request(authz.Nurse, "POST", "/ingestion/observations/"+p.pressures[4]+"/entered-in-error/", object{"reason": "x"}).want(200)
	for query, want := range map[string]int{
		"status=active": 3, "status=inactive": 1, "status=entered-in-error": 1, "": 5, "patient=" + p.bob: 1, "patient=Patient/" + p.bob + "&status=active,inactive": 1,
		"date=2026-01-15": 2, "date=ne2026-01-15": 3, "date=lt2026-01-15": 0, "date=gt2026-01-15": 3, "date=ge2026-01-15": 5, "date=le2026-01-15": 2,
		"date=gt2040": 3, "date=lt2040": 5, "date=sa2026-01-14&date=lt2026-01-16": 5, "date=eb2026-01-16": 2, "date=eb2026-01-15T14:45:00Z": 0,
		"date=sa2026-01-15": 0, "date=2026-01-15T14": -1, "date=2026-01-15T14:45Z": 0, "date=ge2026-01-15T14:45Z": 3, "date=gt2026-01-15T14:30Z": 5,
		"date=ap2026-01-15": 5, "date=2025,2026": 2, "_id=" + id: 1, "_id=x," + id: 1, "_lastUpdated=ge2026-01-15T14:45:00Z": 2,
	} {
		if want < 0 {
			if rec := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", "/Flag?"+query, ""); rec.Code != 400 {
				t.Errorf("%s: %d", query, rec.Code)
			}
			continue
		}
		if got := p.search("/Flag?" + query); len(got) != want {
			t.Errorf("%s: %v", query, got)
		}
	}
	if rec := p.requestFHIR(p.tokenOf(authz.Nurse), "GET", "/Flag?status=open", ""); rec.Code != 400 {
		t.Errorf("a state of no flag: %d", rec.Code)
	}
}

func TestRegistriesAsFHIR(t *testing.T) {
	p := newPractice(t)
	p.request(authz.Admin, "PATCH", fmt.Sprintf("/users/%d/", p.people[authz.Provider].Number()), object{"npi": "1234567893", "first_name": "Grace", "last_name": "Hopper"}).want(200)
	grace := strconv.FormatInt(p.people[authz.Provider].Number(), 10)
	for query, want := range map[string]int{
		"/Practitioner": 6, "/Practitioner?name=hop": 1, "/Practitioner?name=grace hopper": 1, "/Practitioner?name:exact=hopper": 0, "/Practitioner?name:exact=Hopper": 1,
		"/Practitioner?name:contains=oppe": 1, "/Practitioner?name=nobody": 0, "/Practitioner?identifier=http://hl7.org/fhir/sid/us-npi|1234567893": 1, "/Practitioner?identifier=0": 0,
		"/Practitioner?identifier=urn:rpm:user|" + grace: 1, "/Practitioner?identifier=" + grace: 1, "/Practitioner?identifier=urn:other|" + grace: 0,
		"/Practitioner?identifier=http://hl7.org/fhir/sid/us-npi|" + grace: 0, "/Practitioner?identifier=urn:rpm:user|0" + grace: 0,
		"/Practitioner?identifier=urn:rpm:user|": 6, "/Practitioner?identifier=http://hl7.org/fhir/sid/us-npi|": 1, "/Practitioner?identifier=urn:other|": 0,
		"/Practitioner?identifier=|": -1, "/Device?identifier=urn:rpm:device|": 1, "/Device?identifier=urn:other|": 0,
		"/Practitioner?identifier=": -1, "/Practitioner?_id=" + grace + ",999": 1,
		"/CareTeam": 1, "/CareTeam?patient=" + p.ada: 1, "/CareTeam?patient=" + p.bob: 0, "/CareTeam?status=active": 1, "/CareTeam?status=inactive": 0, "/CareTeam?status=x": -1,
		"/CareTeam?_lastUpdated=2026-01-15": 1, "/CareTeam?_lastUpdated=gt2026-01-16": 0, "/CareTeam?subject=Patient/" + p.ada + "&_summary=count": 0,
		"/Device": 1, "/Device?patient=" + p.ada: 1, "/Device?patient=" + p.bob: 0, "/Device?identifier=urn:rpm:device|" + cuff: 1, "/Device?identifier=x": 0,
		"/Device?type=258057004": 1, "/Device?type=http://snomed.info/sct|19892000": 0, "/Device?_lastUpdated=2026": 1, "/Device?_lastUpdated=2025": 0,
	} {
		rec := p.requestFHIR(p.machine, "GET", strings.ReplaceAll(query, " ", "%20"), "")
		if want < 0 {
			if rec.Code != 400 {
				t.Errorf("%s: %d", query, rec.Code)
			}
			continue
		}
		if got := found(parsed(t, rec), "match"); len(got) != want {
			t.Errorf("%s: %s", query, rec.Body)
		}
	}
	who := p.fhir(authz.DataMonitor, "/Practitioner/"+grace)
	if who["identifier"].([]any)[0].(object)["value"] != "1234567893" || who["active"] != true || who["name"].([]any)[0].(object)["family"] != "Hopper" || who["telecom"] != nil {
		t.Errorf("%v", who)
	}
	team := p.fhir(authz.Nurse, "/CareTeam/"+p.ada)
	first := team["participant"].([]any)[0].(object)
	if first["member"].(object)["reference"] != "Practitioner/"+grace || first["member"].(object)["display"] != "Grace Hopper" || first["role"].([]any)[0].(object)["text"] != "primary provider" ||
		len(team["participant"].([]any)) != 2 {
		t.Errorf("%v", team)
	}
	if rec := p.requestFHIR(p.machine, "GET", "/CareTeam/"+p.bob, ""); rec.Code != 404 {
		t.Errorf("nobody's team: %d", rec.Code)
	}
	p.now = p.now.Add(48 * time.Hour)
	p.request(authz.Admin, "PUT", "/patients/"+p.ada+"/care-team/", object{"members": []object{}}).want(200)
	if got := p.search("/CareTeam?_lastUpdated=gt2026-01-16"); len(got) != 1 {
		t.Errorf("a former user is missing: %v", got)
	}
}

func TestAuditEventsAsFHIR(t *testing.T) {
	p := newPractice(t)
	last := p.fhir(authz.Admin, "/AuditEvent?_count=1")
	event := found(last, "match")[0]
	if last["total"] != nil || event["recorded"] == nil || linkOf(last, "next") == "" {
		t.Errorf("%v", last)
	}
	want := p.request(authz.Admin, "GET", "/audit/events/"+event["id"].(string)+"/?_format=fhir", nil).want(200).object()
	if want["meta"] = (object{"versionId": "1", "lastUpdated": event["recorded"]}); !cmp.Equal(want, event) {
		t.Error(cmp.Diff(want, event))
	}
	creates := found(p.fhir(authz.Admin, "/AuditEvent?patient="+p.bob+"&action=C&outcome=0&date=2026-01-15&_count=100"), "match")
	if len(creates) == 0 || slices.ContainsFunc(creates, func(e object) bool { return e["action"] != "C" }) {
		t.Errorf("%v", creates)
	}
	for _, none := range []string{"outcome=12", "date=2025", "patient=nobody", "_id=999999"} {
		if got := p.search("/AuditEvent?" + none); len(got) != 0 {
			t.Errorf("%s: %v", none, got)
		}
	}
	counted := p.fhir(authz.Admin, "/AuditEvent?patient="+p.bob+"&_summary=count")
	if counted["total"] == 0.0 || slices.Contains(slices.Collect(maps.Keys(counted)), "entry") {
		t.Errorf("%v", counted)
	}
}
