package routes_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/authz"
)

// search searches a type with a query and returns the ids found.
func (p *practice) search(query string) []string {
	p.t.Helper()
	return idsOf(found(p.fhir(authz.Admin, query), "match"))
}

// Each parameter finds the matching readings, latest first.
func TestSearchReadings(t *testing.T) {
	p := newPractice(t)
	b := p.pressures // 130 … 170, at 13:45Z of the five days before
	ada := "patient=" + p.ada
	for query, want := range map[string][]string{
		ada + "&code=85354-9":                                          {b[4], b[3], b[2], b[1], b[0]},
		ada + "&code=http://loinc.org|85354-9&_sort=date":              {b[0], b[1], b[2], b[3], b[4]},
		"subject=Patient/" + p.ada + "&code=2339-0":                    {p.glucose},
		"subject:Patient=" + p.ada + "&code=41653-7,29463-7&_sort=_id": {p.weight, p.glucose},
		"patient=https://vigil.example.org/fhir/R4/Patient/" + p.bob:   {p.bobs, p.sent},
		"patient=https://elsewhere.example/Patient/" + p.bob:           nil,
		"patient=Device/" + p.bob:                                      nil,
		"patient=" + strings.ToUpper(p.bob):                            {p.bobs, p.sent},
		"code=|85354-9":                                                nil,
		"code=http://snomed.info/sct|85354-9":                          nil,
		"code=8480-6":                                                  nil, // only a component's code
		"category=laboratory":                                          {p.glucose},
		ada + "&category=vital-signs&_summary=count":                   nil,
		ada + "&category=http://terminology.hl7.org/CodeSystem/observation-category|&_count=3": {p.weight, p.glucose, p.own},
		"_id=" + b[1] + "," + p.bobs + "&_id=" + p.bobs + "," + b[2]:                           {p.bobs},
		"_id=nothing":                                                      nil,
		ada + "&date=2026-01-14":                                           {b[4]},
		ada + "&date=2026-01":                                              {p.weight, p.glucose, p.own, b[4], b[3], b[2], b[1], b[0]},
		ada + "&date=2026":                                                 {p.weight, p.glucose, p.own, b[4], b[3], b[2], b[1], b[0]},
		ada + "&date=2025":                                                 nil,
		ada + "&date=2026-01-12T13:45:00Z":                                 {b[2]},
		ada + "&date=2026-01-12T08:45:00-05:00":                            {b[2]},
		ada + "&date=2026-01-12T14:45:00+01:00":                            {b[2]}, // the plus sign is not escaped
		ada + "&date=2026-01-12T13:45:00.000Z":                             {b[2]},
		ada + "&date=2026-01-12T13:45Z":                                    {b[2]},
		ada + "&date=2026-01-12T08:45":                                     {b[2]}, // in the practice's time zone
		ada + "&date=ne2026-01-15&date=ne2026-01-12":                       {b[4], b[3], b[1], b[0]},
		ada + "&date=gt2026-01-12&date=lt2026-01-14":                       {b[3]},
		ada + "&date=ge2026-01-12&date=le2026-01-13":                       {b[3], b[2]},
		ada + "&date=sa2026-01-13&date=eb2026-01-15":                       {b[4]},
		ada + "&date=gt2026-01-14T13:45:00Z&code=85354-9":                  nil,
		ada + "&date=2026-01-10,2026-01-12":                                {b[2], b[0]},
		ada + "&date=ap2026-01-14T13:45:00Z&code=85354-9":                  {b[4]},
		ada + "&status=final&code=85354-9&_count=2":                        {b[4], b[3]},
		ada + "&status=entered-in-error,preliminary":                       nil,
		ada + "&status=registered":                                         nil,
		ada + "&component-code-value-quantity=8480-6$gt150":                {b[4], b[3]},
		ada + "&combo-code=8867-4":                                         {p.own},
		ada + "&combo-code=8480-6&_sort=date":                              {b[0], b[1], b[2], b[3], b[4]},
		"combo-code=http://loinc.org|29463-7":                              {p.weight},
		ada + "&combo-code=|8867-4":                                        nil,
		"identifier=urn:uuid:" + p.weight:                                  {p.weight},
		"identifier=urn:ietf:rfc:3986|urn:uuid:" + strings.ToUpper(p.bobs): {p.bobs},
		"identifier=urn:x|urn:uuid:" + p.weight:                            nil,
		"identifier=" + p.weight:                                           nil,
		ada + "&component-code-value-quantity=8480-6$ge150":                {b[4], b[3], b[2]},
		ada + "&component-code-value-quantity=http://loinc.org|8480-6$150|http://unitsofmeasure.org|mm[Hg]": {b[2]},
		ada + "&component-code-value-quantity=8480-6$1.5e2||mmHg":                                           {b[4], b[3], b[2], b[1], b[0]},
		ada + "&component-code-value-quantity=8480-6$ne150,8462-4$gt80":                                     {b[4], b[3], b[1], b[0]},
		ada + "&component-code-value-quantity=8480-6$lt140&component-code-value-quantity=8462-4$80":         {b[0]},
		ada + "&component-code-value-quantity=8867-4$64":                                                    {p.own},
		ada + "&component-code-value-quantity=59408-5$97":                                                   nil, // not a component
		ada + "&component-code-value-quantity=1234-5$97":                                                    nil,
		"date=ge2026-01-15&component-code-value-quantity=8867-4$gt60":                                       {p.bobs, p.own},
		"component-code-value-quantity=8480-6$190&_id=" + p.bobs:                                            {p.bobs},
	} {
		if query == ada+"&component-code-value-quantity=8480-6$1.5e2||mmHg" { // its precision as written: 1.5e2 is 145 to 155
			want = []string{b[2]}
		}
		got := p.search("/Observation?" + query)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
		form := p.requestFHIR(p.machine, "POST", "/Observation/_search", strings.ReplaceAll(query, "+", "%2B"))
		if diff := cmp.Diff(want, idsOf(found(parsed(t, form), "match"))); diff != "" || form.Code != 200 {
			t.Errorf("%s in a form: %d %s", query, form.Code, diff)
		}
	}
	if total := p.fhir(authz.Nurse, "/Observation?"+ada+"&category=vital-signs&_summary=count")["total"]; total != 8.0 {
		t.Errorf("counted %v", total)
	}
}

// The next page continues after the last row even if readings are stored in between, and its link contains no PHI.
func TestPages(t *testing.T) {
	p := newPractice(t)
	for _, sort := range []string{"date", "-date", "_id", "-_id", "_lastUpdated", "-_lastUpdated"} {
		whole := p.search("/Observation?_sort=" + sort)
		if len(whole) != 10 {
			t.Fatalf("%s: %d readings", sort, len(whole))
		}
		var got []string
		path := "/Observation?_count=3&_total=accurate&_sort=" + sort
		for pages := 0; path != ""; pages++ {
			bundle := p.fhir(authz.Admin, path)
			if bundle["total"] != 10.0 {
				t.Errorf("%s: total %v", path, bundle["total"])
			}
			got = append(got, idsOf(found(bundle, "match"))...)
			if self := linkOf(bundle, "self"); pages == 0 && self != "/Observation?_count=3&_sort="+sort+"&_total=accurate" || pages > 0 && self != path {
				t.Errorf("self is %s", self)
			}
			path = linkOf(bundle, "next")
		}
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("%s: %s", sort, diff)
		}
	}
	bundle := p.fhir(authz.Admin, "/Observation?_sort=date&_count=4&patient="+p.ada)
	next := linkOf(bundle, "next")
	if strings.Contains(next, p.ada) || !strings.HasPrefix(next, "/Observation?_page=") || strings.Contains(next, "&") {
		t.Errorf("the next page is %s", next)
	}
	body := object{"patient_id": p.ada, "systolic": 111, "diastolic": 70, "measured_at": p.now.AddDate(0, 0, -9).Format(time.RFC3339)}
	p.request(authz.Nurse, "POST", "/ingestion/blood-pressure/", body).want(201) // older than every reading shown
	p.request(authz.Nurse, "POST", "/ingestion/observations/"+p.pressures[0]+"/entered-in-error/", object{"reason": "x"}).want(200)
	if got := p.search(next); len(got) != 4 || got[0] != p.pressures[4] {
		t.Errorf("the next page begins with %v", got)
	}
	// A page link of another user shows only what the caller may see.
	rec := p.requestFHIR(p.portal, "GET", linkOf(p.fhir(authz.Admin, "/Observation?_count=1&patient="+p.bob), "next"), "")
	if got := found(parsed(t, rec), "match"); rec.Code != 200 || len(got) != 0 {
		t.Errorf("Ada is shown %v", got)
	}
	for _, bad := range []string{"", "x", "v2~a~b~c", strings.TrimPrefix(next, "/Observation?_page=")[:40]} {
		if rec := p.requestFHIR(p.machine, "GET", "/Observation?_page="+bad, ""); rec.Code != 400 || !strings.Contains(rec.Body.String(), "_page") {
			t.Errorf("%q: %d %s", bad, rec.Code, rec.Body)
		}
	}
	if rec := p.requestFHIR(p.machine, "GET", strings.Replace(next, "Observation", "Provenance", 1), ""); rec.Code != 400 {
		t.Errorf("a page of readings is one of origins: %d", rec.Code)
	}
	// A name searched for in a body does not appear in a link.
	for i := range 4 {
		p.enroll(object{"last_name": "Zephyrine", "first_name": fmt.Sprint("A", i)})
	}
	rec = p.requestFHIR(p.machine, "POST", "/Patient/_search", "family=zephyrine&_count=2")
	if next = linkOf(parsed(t, rec), "next"); strings.Contains(strings.ToLower(next), "zeph") || next == "" {
		t.Errorf("the next page is %s", next)
	}
	if got := p.search(next); len(got) != 2 {
		t.Errorf("and shows %v", got)
	}
}

// An unknown parameter is left out, also of the self link, or refused under strict handling; an invalid value is always
// refused by its parameter's name.
func TestUnknownSearchParameters(t *testing.T) {
	p := newPractice(t)
	ada := "patient=" + p.ada
	for query, self := range map[string]string{
		ada + "&colour=red&_count=100000":             "_count=1000&" + ada,
		ada + "&_elements=id":                         "_elements=id&" + ada,
		ada + "&_sort=colour":                         ada,
		ada + "&_include=Observation:performer":       ada,
		ada + "&_revinclude=AuditEvent:entity":        ada,
		ada + "&_summary=true":                        "_summary=true&" + ada,
		ada + "&performer:Practitioner=x":             ada,
		ada + "&_count=99999999999999999999999":       "_count=1000&" + ada,
		ada + "&_format=json&_pretty=true":            ada,
		ada + "&_include=Observation:subject:Patient": "_include=Observation%3Asubject%3APatient&" + ada,
	} {
		bundle := p.fhir(authz.Nurse, "/Observation?"+query)
		if got := linkOf(bundle, "self"); got != "/Observation?"+self {
			t.Errorf("%s is understood as %s", query, got)
		}
		if len(found(bundle, "match")) != 8 {
			t.Errorf("%s finds %v", query, bundle)
		}
		known := strings.Contains(query, "_count=") && !strings.Contains(query, "colour") || strings.Contains(query, "_format") || strings.Contains(query, "_summary") || strings.Contains(query, "_elements") || strings.Contains(query, "subject:")
		rec := p.requestFHIR(p.machine, "GET", "/Observation?"+query, "", "Prefer", "return=representation; handling=strict")
		if (rec.Code == 200) != known || rec.Code != 200 && (rec.Code != 400 || outcomeCode(t, rec.Body.Bytes()) != "not_supported") {
			t.Errorf("%s, strictly: %d %s", query, rec.Code, rec.Body)
		}
		if rec := p.requestFHIR(p.machine, "GET", "/Observation?"+query, "", "Prefer", "handling=lenient"); rec.Code != 200 {
			t.Errorf("%s, leniently: %d", query, rec.Code)
		}
	}
	for query, word := range map[string]string{
		"patient.name=Ada":                       "not-supported",
		"subject:Patient.family=Lovelace":        "not-supported",
		"performer.name=x":                       "not-supported",
		"performer:Practitioner.name=x":          "not-supported",
		"_has:Provenance:target:recorded=2026":   "not-supported",
		"code:text=pressure":                     "not-supported",
		"patient:identifier=x":                   "not-supported",
		"code:not=85354-9":                       "not-supported",
		"date:missing=true":                      "not-supported",
		"date=yesterday":                         "invalid",
		"date=2026-13":                           "invalid",
		"date=2026-02-30":                        "invalid",
		"date=2026-01-01T10":                     "invalid",
		"date=xx2026":                            "invalid",
		"date=":                                  "invalid",
		"patient=":                               "invalid",
		"patient=a b":                            "invalid",
		"patient=,":                              "invalid",
		"status=done":                            "invalid",
		"_count=-1":                              "invalid",
		"_count=many":                            "invalid",
		"_count=":                                "invalid",
		"_total=perhaps":                         "invalid",
		"_summary=all":                           "invalid",
		"_lastUpdated=soon":                      "invalid",
		"component-code-value-quantity=8480-6":   "invalid",
		"component-code-value-quantity=8480-6$x": "invalid",

		"component-code-value-quantity=$gt140":                                   "invalid",
		"component-code-value-quantity=http://loinc.org|$gt140&patient=" + p.ada: "invalid",
		"component-code-value-quantity=8480-6$gt140,%20$1&patient=" + p.ada:      "invalid",
		"combo-code=8867-4":  "too-costly",
		"combo-code=":        "invalid",
		"_elements=":         "invalid",
		"_elements=id,,code": "invalid",
		"identifier=|":       "invalid",
		"component-code-value-quantity=8480-6$0x10":                       "invalid",
		"component-code-value-quantity=8480-6$gt20||kPa&patient=" + p.ada: "invalid",
		"component-code-value-quantity=8480-6$gt140":                      "too-costly",
	} {
		name, _, _ := strings.Cut(query, "=")
		name, _, _ = strings.Cut(name, "=")
		for _, preference := range []string{"handling=lenient", "handling=strict"} {
			rec := p.requestFHIR(p.machine, "GET", "/Observation?"+strings.ReplaceAll(query, " ", "%20"), "", "Prefer", preference)
			var outcome struct {
				Issue []struct {
					Code, Diagnostics string
					Expression        []string
				}
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &outcome); err != nil || rec.Code != 400 {
				t.Errorf("%s: %d %s", query, rec.Code, rec.Body)
				continue
			}
			last := outcome.Issue[len(outcome.Issue)-1]
			base, _, _ := strings.Cut(name, ":")
			if last.Code != word || !strings.Contains(last.Diagnostics, base) || !slices.Contains(last.Expression, "http."+base) && !slices.Contains(last.Expression, "http."+name) {
				t.Errorf("%s: %+v", query, last)
			}
		}
	}
	if rec := p.requestFHIR(p.machine, "GET", "/Observation?%zz", ""); rec.Code != 400 {
		t.Errorf("a broken query: %d", rec.Code)
	}
	long := "_id=" + strings.Repeat(p.bobs+",", 150) + p.weight
	if rec := p.requestFHIR(p.machine, "POST", "/Observation/_search", long); rec.Code != 200 || len(found(parsed(t, rec), "match")) != 2 {
		t.Errorf("many ids: %d %s", rec.Code, rec.Body)
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Observation/_search", long+"&_count=1"); rec.Code != 400 || outcomeCode(t, rec.Body.Bytes()) != "too_long" {
		t.Errorf("many ids in pages: %d %s", rec.Code, rec.Body)
	}
}
