package emrcontext

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Rows name the patient by a relative reference, or an absolute one of the same EMR; all others are refused.
func TestRowsOfThePatient(t *testing.T) {
	const base = "https://emr.test/fhir/"
	for ref, want := range map[string]bool{
		"Patient/e1": true, "https://emr.test/fhir/Patient/e1": true, "Patient/e1/_history/3": true,
		"Patient/e2": false, "Patient/e11": false, "Patient/E1": false, "https://other.test/fhir/Patient/e1": false, "Group/e1": false, "#e1": false, "": false, "e1": false,
	} {
		for _, name := range []string{"subject", "patient", "beneficiary"} {
			r, ok := parse(json.RawMessage(fmt.Sprintf(`{"resourceType":"Condition","id":"c","%s":{"reference":"%s"}}`, name, ref)))
			if !ok || r.isAbout("e1", base) != want {
				t.Errorf("%s %q counts as the patient's: %v", name, ref, !want)
			}
		}
	}
	r, _ := parse(json.RawMessage(`{"resourceType":"Coverage","id":"c","subject":{"reference":"Patient/e2"},"patient":{"reference":"Patient/e1"}}`))
	if r.isAbout("e1", base) || r.isAbout("e2", base) {
		t.Error("a row that names two patients counts as one's")
	}
}

// A member of another type than expected does not hide the resource; what is no resource is refused.
func TestDamagedResources(t *testing.T) {
	for text, want := range map[string]string{
		`{"resourceType":"Condition","id":"c","code":{"text":"Gout"},"recordedDate":5}`:                            "Gout",
		`{"resourceType":"Condition","id":"c","code":{"text":"Gout","coding":"x"}}`:                                "Gout",
		`{"resourceType":"Condition","id":"c","code":{"text":"Gout"},"category":"x","onsetDateTime":{}}`:           "Gout",
		`{"resourceType":"Condition","id":"c","code":{"coding":[{"code":"M10"},{"display":"Gout, unspecified"}]}}`: "Gout, unspecified",
		`{"resourceType":"Condition","id":"c","code":{"coding":[{"code":"M10"}]}}`:                                 "M10",
		`{"resourceType":"Condition","id":"c","code":{"text":"Gout\u0000\u001b[31m\n of the foot"}}`:               "Gout [31m of the foot",
		`{"resourceType":"Condition","id":"c"}`:                                                                    "",
	} {
		r, ok := parse(json.RawMessage(text))
		if got := strings.Join(strings.Fields(r.condition().Text), " "); !ok || got != want {
			t.Errorf("%s reads as %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{`[]`, `"x"`, `null`, `{}`, `{"id":"c"}`, `{"resourceType":`} {
		if r, ok := parse(json.RawMessage(text)); ok {
			t.Errorf("%s is read as %+v", text, r.ResourceType)
		}
	}
	for _, id := range []string{"", "a/b", "a?b", strings.Repeat("a", 65), "a b"} {
		if source := (resource{ResourceType: "Condition", ID: id}).source(); source != "" {
			t.Errorf("the id %q is taken: %s", id, source)
		}
	}
	if long := clean(strings.Repeat("é", 5000)); len([]rune(long)) != maxText {
		t.Errorf("a text of 5000 characters keeps %d", len([]rune(long)))
	}
}

// Values of a chart refuse to print.
func TestChartsRefuseToPrint(t *testing.T) {
	c := Content{Conditions: []Condition{{Text: "Gout"}}, Coverage: []Coverage{{MemberID: "Gout"}}, Deceased: &Death{Date: "Gout"}}
	for _, v := range []any{c, &c, c.Conditions, c.Coverage[0], *c.Deceased, Value{Text: "Gout"}, Proposal{Value: Value{Text: "Gout"}}, View{Content: c}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "Gout") {
				t.Errorf("%T prints %s", v, text)
			}
		}
	}
}

func TestOrdersOfMonitoring(t *testing.T) {
	for text, want := range map[string]bool{
		"Remote patient monitoring": true, "RPM enrollment": true, "Remote physiologic monitoring, 30 days": true, "Home BP telemonitoring": true, "remote-monitor kit": true,
		"Fetal monitoring": false, "Remote follow-up": false, "Cardiac monitor": false, "rpms 300": false, "": false,
	} {
		if got := (Order{Text: text}).isMonitoring(); got != want {
			t.Errorf("%q counts as monitoring: %v", text, got)
		}
	}
	for code, want := range map[string]bool{"99453": true, "99454": true, "99445": true, "99470": true, "93224": false} {
		if got := (Order{Code: &Code{Code: code}}).isMonitoring(); got != want {
			t.Errorf("%s counts as monitoring: %v", code, got)
		}
	}
}

// Of several stays the inpatient one counts, in any order.
func TestCurrentStay(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	emergency := Encounter{Source: "Encounter/e", Class: "EMER", Status: "in-progress", Start: "2026-01-15T09:00:00Z"}
	ward := Encounter{Source: "Encounter/w", Class: "ACUTE", Status: "in-progress", Start: "2026-01-15T11:00:00+01:00"}
	for _, list := range [][]Encounter{{emergency, ward}, {ward, emergency}, {ward}} {
		if stay, found := currentStay(list, now); !found || stay.Source != ward.Source {
			t.Errorf("of %d stays %s counts", len(list), stay.Source)
		}
	}
	for _, start := range []string{"2026-01-15", "2026-01-15T11:59", "2026-01-15T06:59:00-05:00", "2026", "soon", ""} {
		ward.Start = start
		if _, found := currentStay([]Encounter{ward}, now); !found {
			t.Errorf("a stay since %q does not count", start)
		}
	}
	for _, start := range []string{"2026-01-15T12:00:01Z", "2026-01-16", "2025-10-17"} {
		ward.Start = start
		if _, found := currentStay([]Encounter{ward}, now); found {
			t.Errorf("a stay since %q counts", start)
		}
	}
}
