package routes_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// Caregivers are RelatedPersons, inactive once their access ended. Source: docs/decisions/fhir.md, "Caregivers".
func TestRelatedPersons(t *testing.T) {
	f := newFamily(t)
	until := f.now.AddDate(0, 0, 3).Format("2006-01-02")
	f.request(authz.Nurse, "POST", "/patients/"+f.ada+"/caregivers/", caregiverBody(object{"email": "uncle@family.example", "first_name": "Zoë", "relationship": "other", "until": until})).want(201)
	as := func(token, path string, status int) reply {
		t.Helper()
		rec := f.requestWithToken("GET", "/fhir/R4/"+path, token)
		if rec.Code != status {
			t.Fatalf("%s: %d, %s", path, rec.Code, rec.Body)
		}
		return reply{t: t, status: rec.Code, body: rec.Body.String()}
	}
	nurse := func() string { return vigiltest.Token(t, f.people[authz.Nurse], f.now) }
	ids := func(path string) (found []string) {
		t.Helper()
		entries, _ := as(nurse(), path, 200).at("entry").([]any)
		for _, entry := range entries {
			found = append(found, entry.(object)["resource"].(object)["id"].(string))
		}
		return found
	}
	adas, bobs := fmt.Sprint(f.access[f.ada]), fmt.Sprint(f.access[f.bob])
	uncle := ids("RelatedPerson?name=" + url.QueryEscape("zoe"))
	if len(uncle) != 1 {
		t.Fatalf("a name finds %v", uncle)
	}
	account := fmt.Sprint(f.caregiver.Number())
	for search, want := range map[string][]string{
		"RelatedPerson?patient=" + f.ada:                          {adas, uncle[0]},
		"RelatedPerson?patient=Patient/" + f.bob:                  {bobs},
		"Patient/" + f.ada + "/RelatedPerson?_sort=-_id":          {uncle[0], adas},
		"RelatedPerson?identifier=urn:rpm:user%7C" + account:      {adas, bobs},
		"RelatedPerson?identifier=" + account + "&_id=" + bobs:    {bobs},
		"RelatedPerson?identifier=urn:other%7C" + account:         nil,
		"RelatedPerson?active=true&patient=" + f.ada:              {adas, uncle[0]},
		"RelatedPerson?active=false":                              nil,
		"RelatedPerson?active=true,false&patient=" + f.bob:        {bobs},
		"RelatedPerson?_lastUpdated=gt2100":                       nil,
		"RelatedPerson?name=nobody":                               nil,
		"RelatedPerson?name:exact=Zo%C3%AB&patient=" + f.ada:      {uncle[0]},
		"RelatedPerson?name=" + f.people[authz.Nurse].FirstName(): nil,
	} {
		got := ids(search)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s finds %v, want %v", search, got, want)
		}
	}
	for _, search := range []string{"active=yes", "active=1", "patient=a/b/c", "identifier=%7C"} {
		as(nurse(), "RelatedPerson?"+search, 400)
	}

	read := as(nurse(), "RelatedPerson/"+uncle[0], 200)
	for _, part := range []string{
		`"active":true`, `"patient":{"reference":"Patient/` + f.ada + `"}`, `"end":"` + until + `"`, `"given":["Zoë"]`, `"value":"uncle@family.example"`, `"code":"O"`,
	} {
		if !strings.Contains(read.body, part) {
			t.Errorf("the resource lacks %s: %s", part, read.body)
		}
	}
	f.now = f.now.AddDate(0, 0, 5)
	if over := as(nurse(), "RelatedPerson/"+uncle[0], 200); over.at("active") != false || over.at("period.end") != until {
		t.Errorf("after the last day: %s", over.body)
	}
	f.request(authz.Nurse, "DELETE", "/patients/"+f.bob+"/caregivers/"+bobs+"/", nil).want(204)
	if over := as(nurse(), "RelatedPerson/"+bobs, 200); over.at("active") != false || !strings.HasPrefix(fmt.Sprint(over.at("period.end")), f.now.Format("2006-01-02T")) {
		t.Errorf("after the access was revoked: %s", over.body)
	}
	if got := ids("RelatedPerson?active=false"); len(got) != 2 {
		t.Errorf("inactive are %v", got)
	}

	// Who may not: data monitors, caregivers, other patients, clients without the scope.
	as(vigiltest.Token(t, f.people[authz.DataMonitor], f.now), "RelatedPerson/"+adas, 403)
	for _, path := range []string{"/RelatedPerson", "/RelatedPerson?patient=" + f.ada, "/RelatedPerson/" + adas + "?patient_id=" + f.ada, "/Patient/" + f.ada + "/RelatedPerson"} {
		if rec := f.fhir(path); rec.Code != 403 {
			t.Errorf("a caregiver gets %s: %d", path, rec.Code)
		}
	}
	portal := vigiltest.Token(t, f.adaPortal, f.now)
	if own, _ := as(portal, "RelatedPerson", 200).at("entry").([]any); len(own) != 2 {
		t.Errorf("the patient sees %v", own)
	}
	as(portal, "RelatedPerson/"+bobs, 404)
	for _, name := range []string{"name=zoe", "name:contains=o", "name:exact=Zo%C3%AB"} { // it would tell names that the patient is not shown
		as(portal, "RelatedPerson?"+name, 400)
	}
	for scope, status := range map[string]int{"system/Patient.rs": 403, "system/RelatedPerson.rs": 200, "system/*.rs": 200} {
		token := f.signIn(f.addClient(object{"scopes": []string{scope}}), "").want(200).object()["access_token"].(string)
		as(token, "RelatedPerson/"+adas, status)
		as(token, "RelatedPerson?patient="+f.ada, status)
	}
	as(nurse(), "RelatedPerson/999999", 404)
	as(nurse(), "RelatedPerson/x", 404)
	f.request(authz.Nurse, "POST", "/patients/"+f.ada+"/archive/", object{"reason": "Deceased", "deceased_at": f.now.Format("2006-01-02")}).want(200)
	if over := as(nurse(), "RelatedPerson/"+adas, 200); over.at("active") != false || over.at("period.end") != f.now.Format("2006-01-02") {
		t.Errorf("after the patient's death: %s", over.body)
	}
	if got := ids("RelatedPerson?active=true&patient=" + f.ada); len(got) != 0 {
		t.Errorf("active after the patient's death: %v", got)
	}
	if events := strings.Join(f.events(f.ada), " "); !strings.Contains(events, "patient.read") || !strings.Contains(events, "patient.search") {
		t.Errorf("the audit trail has %s", events)
	}
}
