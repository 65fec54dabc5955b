package routes_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Source: docs/decisions/fhir.md, "Questionnaires".
func TestQuestionnairesInFHIR(t *testing.T) {
	f := newFamily(t)
	phq, zone := f.assign(f.ada, object{"questionnaire": "phq-2", "every_days": 7}), f.assign(f.bob, object{"questionnaire": "heart-failure-zone", "every_days": 1})
	first := f.requestAs(f.adaPortal, "POST", phq+"answers/", phq2(1, 2)).want(201).at("id").(string)
	f.now = f.now.AddDate(0, 0, 7)
	second := f.asCaregiver("POST", phq+"answers/", phq2(0, 0)).want(201).at("id").(string)
	third := f.request(authz.Nurse, "POST", zone+"answers/", zoneAnswers(object{"weight": "gained"})).want(201).at("id").(string)

	decode := func(answer *httptest.ResponseRecorder, status int) (o object) {
		t.Helper()
		if err := json.Unmarshal(answer.Body.Bytes(), &o); err != nil || answer.Code != status {
			t.Fatalf("%d, %s", answer.Code, answer.Body)
		}
		return o
	}
	as := func(role authz.Role, path string, status int) object {
		t.Helper()
		return decode(f.requestWithToken("GET", "/fhir/R4/"+path, vigiltest.Token(t, f.people[role], f.now)), status)
	}
	found := func(search string) (ids []string) {
		t.Helper()
		entries, _ := as(authz.Provider, "QuestionnaireResponse?"+search, 200)["entry"].([]any)
		for _, entry := range entries {
			ids = append(ids, entry.(object)["resource"].(object)["id"].(string))
		}
		return ids
	}
	for search, want := range map[string][]string{
		"patient=" + f.ada:                                                        {second, first},
		"patient=" + f.ada + "&_sort=authored":                                    {first, second},
		"subject=Patient/" + f.bob:                                                {third},
		"questionnaire=phq-2":                                                     {second, first},
		"questionnaire=Questionnaire/phq-2":                                       {second, first},
		"questionnaire=urn:rpm:questionnaire:heart-failure-zone":                  {third},
		"questionnaire=urn:rpm:questionnaire:phq-2%7C2003-11-01&patient=" + f.bob: nil,
		"questionnaire=urn:rpm:questionnaire:phq-2%7C9&patient=" + f.ada:          nil,
		"questionnaire=urn:rpm:questionnaire:phq-2%7C2003-11-01":                  {second, first},
		"questionnaire=urn:rpm:questionnaire:phq-2%7C9,phq-2":                     {second, first},
		"questionnaire=phq-9":                                                     nil,
		"authored=lt2026-01-20":                                                   {first},
		"patient=" + f.ada + "&authored=gt2026-01-20":                             {second},
		"_id=" + third: {third},
	} {
		if got := found(search); !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", search, got, want)
		}
	}

	read := as(authz.Nurse, "QuestionnaireResponse/"+first, 200)
	text, _ := json.Marshal(read["item"])
	for _, part := range []string{`"linkId":"44250-9"`, `"code":"LA6569-3"`, `"linkId":"55758-7"`, `"valueInteger":3`, `"code":"positive"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the items lack %s: %s", part, text)
		}
	}
	if read["questionnaire"] != "urn:rpm:questionnaire:phq-2|2003-11-01" || read["status"] != "completed" || read["subject"].(object)["reference"] != "Patient/"+f.ada {
		t.Errorf("the response is %v", read)
	}
	if byCaregiver := as(authz.Nurse, "QuestionnaireResponse/"+second, 200); byCaregiver["source"].(object)["display"] != "Caregiver" {
		t.Errorf("a caregiver's response has the source %v", byCaregiver["source"])
	}
	as(authz.DataMonitor, "QuestionnaireResponse/"+first, 403)

	own := decode(f.requestWithToken("GET", "/fhir/R4/QuestionnaireResponse", vigiltest.Token(t, f.adaPortal, f.now)), 200)
	if len(own["entry"].([]any)) != 2 {
		t.Errorf("the patient sees %v", own)
	}
	decode(f.requestWithToken("GET", "/fhir/R4/QuestionnaireResponse/"+third, vigiltest.Token(t, f.adaPortal, f.now)), 404)
	for _, path := range []string{"/QuestionnaireResponse?patient=" + f.ada, "/QuestionnaireResponse/" + first + "?patient_id=" + f.ada} {
		decode(f.fhir(path), 403)
	}
	if events := strings.Join(f.events(f.ada), " "); !strings.Contains(events, "patient.read") {
		t.Errorf("the audit trail has %s", events)
	}

	form := decode(f.requestWithToken("GET", "/fhir/R4/Questionnaire/phq-2", ""), 200)
	body, _ := json.Marshal(form)
	for _, part := range []string{"Poco interés", "ordinalValue", "55757-9", "LA6571-9", `"readOnly":true`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("the questionnaire lacks %s", part)
		}
	}
	if all := decode(f.requestWithToken("GET", "/fhir/R4/Questionnaire?url=urn:rpm:questionnaire:heart-failure-zone", ""), 200); all["total"] != 1.0 {
		t.Errorf("%v", all["total"])
	}
	decode(f.requestWithToken("GET", "/fhir/R4/Questionnaire/phq-9", ""), 404)
}
