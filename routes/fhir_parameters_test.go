package routes_test

import (
	"strings"
	"testing"
)

// Of a repeated parameter none is chosen, an empty token is no code, and strict handling holds for reads too.
func TestRepeatedAndEmptySearchParameters(t *testing.T) {
	p := newPractice(t)
	ada, many := "/Observation?patient="+p.ada, strings.Repeat("x,", 500)+"x"
	for path, want := range map[string]int{
		ada + "&code=|": 400, ada + "&combo-code=|": 400, ada + "&code=%20|%20": 400, ada + "&code=http://loinc.org|8867-4,|": 400, "/Patient?identifier=|": 400,
		ada + "&category=|": 400, "/Device?type=|": 400, ada + "&component-code-value-quantity=|$ge1": 400,
		ada + "&code=http://loinc.org|": 200, ada + "&code=|85354-9": 200,
		ada + "&_count=1&_count=2": 400, ada + "&_sort=date&_sort=-date": 400, ada + "&_summary=true&_summary=text": 400, ada + "&_total=none&_total=none": 400,
		ada + "&_elements=id&_elements=status": 400, ada + "&_format=json&_format=json": 400, "/Observation/$lastn?patient=" + p.ada + "&max=1&max=2": 400,
		ada + "&date=ge2020-01-01&date=le2030-01-01&_include=Observation:subject&_include=Observation:device&code=85354-9&code=85354-9": 200,
		"/Patient/" + p.ada + "?_summary=true&_summary=text":                                                                            400, "/Patient/" + p.ada + "?_summary=true&_elements=id": 200,
		"/CodeSystem?_id=": 400, "/CodeSystem?url=urn:x,": 400, "/CodeSystem?_id=" + many: 400, "/CodeSystem?url=" + many: 400, "/Observation?_id=" + many: 400,
	} {
		if rec := p.requestFHIR(p.machine, "GET", path, ""); rec.Code != want {
			t.Errorf("%.120s: %d %.200s", path, rec.Code, rec.Body)
		}
	}
	if rec := p.requestFHIR(p.machine, "POST", "/Observation/_search?_count=1", "_count=2&patient="+p.ada); rec.Code != 400 {
		t.Errorf("in query and form: %d", rec.Code)
	}
	for _, path := range []string{"/Patient/" + p.ada, "/Observation/" + p.weight, "/metadata", "/CodeSystem/alert-type"} {
		for query, strictly := range map[string]int{"?colour=red": 400, "?_format=json&_pretty=true": 200} {
			if rec := p.requestFHIR(p.machine, "GET", path+query, ""); rec.Code != 200 {
				t.Errorf("%s%s: %d", path, query, rec.Code)
			}
			if rec := p.requestFHIR(p.machine, "GET", path+query, "", "Prefer", "handling=strict"); rec.Code != strictly {
				t.Errorf("%s%s, strictly: %d %s", path, query, rec.Code, rec.Body)
			}
		}
	}
}
