package emr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

func bundle(entries int, next string) string {
	var b strings.Builder
	b.WriteString(`{"resourceType":"Bundle","type":"searchset","link":[{"relation":"next","url":"` + next + `"}],"entry":[`)
	for n := range entries {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"resource":{"resourceType":"Patient","id":"p%d","name":[{"family":"Doe"}],"text":{"div":"%s"}}}`, n, strings.Repeat("x", 600))
	}
	b.WriteString(`]}`)
	return b.String()
}

// If an EMR ignores _count and returns 10,000 entries, the first ones are read, even when the size limit cut off the rest.
func TestHugeBundle(t *testing.T) {
	whole := []byte(bundle(10_000, ""))
	if len(whole) < maxBundle {
		t.Fatalf("only %d bytes", len(whole))
	}
	page, ok := readPatients(whole[:maxBundle], 100, testTime)
	if !ok || len(page.patients) != 100 || page.patients[99].ID != "p99" {
		t.Errorf("%d patients, %v", len(page.patients), ok)
	}
	if _, ok := readPatients(whole[:20_000], 100, testTime); ok {
		t.Error("a bundle that ends too early was accepted as complete")
	}
}

func TestReadPatients(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		ids  string
		ok   bool
	}{
		"empty":             {`{"resourceType":"Bundle","type":"searchset","total":0}`, "", true},
		"no patients":       {`{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"OperationOutcome"}},{}]}`, "", true},
		"kind at the end":   {`{"entry":[{"resource":{"resourceType":"Patient","id":"a"}}],"resourceType":"Bundle"}`, "a", true},
		"bad id":            {`{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"Patient","id":"a/b"}}]}`, "", true},
		"not a bundle":      {`{"resourceType":"Patient","id":"a"}`, "", false},
		"a list":            {`[]`, "", false},
		"HTML":              {`<html>`, "", false},
		"nothing":           {``, "", false},
		"entry not a list":  {`{"resourceType":"Bundle","entry":{}}`, "", false},
		"half":              {`{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"Patient","id":"a"}}`, "", false},
		"kind is no string": {`{"resourceType":7}`, "", false},
	} {
		page, ok := readPatients([]byte(test.body), 20, testTime)
		var ids []string
		for _, p := range page.patients {
			ids = append(ids, p.ID)
		}
		if ok != test.ok || ok && strings.Join(ids, ",") != test.ids {
			t.Errorf("%s: %v, %v", name, ids, ok)
		}
	}
}

func TestReadPatientTakesWhatFits(t *testing.T) {
	p, ok := readPatient([]byte(`{"resourceType":"Patient","id":"a1","active":true,"gender":"robot","birthDate":"1960-05","deceasedDateTime":"2020",
		"identifier":[{"value":"no type"},{"use":"old","type":{"coding":[{"code":"MR"}]},"value":"OLD"},{"type":{"coding":[{"code":"SS"},{"code":"MR"}]},"value":" M1 "}],
		"name":[{"use":"nickname","given":["Bob"]},{"use":"official","family":"Doe","given":["Robert","J"]}],
		"telecom":[{"system":"email","value":"a@b.example"},{"system":"phone","use":"old","value":"1"},{"system":"phone","value":"+14135551001"}],
		"address":[{"use":"work","line":["Desk"],"city":"X"},{"use":"home","line":["1 Road","Flat 2","Back"],"city":"Town","postalCode":"01103"}]}`), testTime)
	who := p.Who
	if !ok || p.Gender != "unknown" || p.MRN != "M1" || !p.Deceased || p.Retired || who.DateOfBirth != "" || who.FirstName != "Robert" || who.LastName != "Doe" ||
		who.Phone != "+14135551001" || who.Email != "a@b.example" || who.Address.Line1 != "1 Road" || who.Address.Line2 != "Flat 2, Back" || who.Address.City != "Town" {
		t.Errorf("%v, gender %s, mrn %s, %q %q %q", ok, p.Gender, p.MRN, who.FirstName, who.DateOfBirth, who.Address.Line2)
	}
	for _, retired := range []string{`"active":false`, `"link":[{"type":"replaced-by"}]`} {
		if p, ok := readPatient([]byte(`{"resourceType":"Patient","id":"a",`+retired+`}`), testTime); !ok || !p.Retired {
			t.Errorf("%s is not retired", retired)
		}
	}
	if got := fmt.Sprintf("%v %+v", p, p); strings.Contains(got, "Robert") {
		t.Error("a patient prints")
	}
}

func TestOnlyLinksOfTheSameOriginAreFollowed(t *testing.T) {
	const request = "https://emr.test/fhir/r4/Patient?name=a"
	for link, want := range map[string]string{
		"https://emr.test/fhir/r4/Patient?page=2":     "https://emr.test/fhir/r4/Patient?page=2",
		"https://emr.test/fhir/r4?_getpages=1":        "https://emr.test/fhir/r4?_getpages=1",
		"https://emr.test:443/fhir/r4/Patient?page=2": "https://emr.test/fhir/r4/Patient?page=2",
		"HTTPS://EMR.test/fhir/r4/Patient?page=2":     "https://emr.test/fhir/r4/Patient?page=2",
		"https://emr.test/fhir/r4/Patient?page=2#top": "https://emr.test/fhir/r4/Patient?page=2",
		"Patient?page=2":                        "https://emr.test/fhir/r4/Patient?page=2",
		"?_getpages=1":                          "https://emr.test/fhir/r4/Patient?_getpages=1",
		"/fhir/p1/Patient?page=2":               "https://emr.test/fhir/p1/Patient?page=2",
		"../r4/Patient?page=2":                  "https://emr.test/fhir/r4/Patient?page=2",
		"//emr.test/fhir/r4/Patient?p=2":        "https://emr.test/fhir/r4/Patient?p=2",
		"https://evil.test/fhir/r4/Patient":     "",
		"//evil.test/fhir/r4/Patient":           "",
		"https://emr.test@evil.test/Patient":    "",
		"https://user@emr.test/fhir/r4/Patient": "",
		"http://emr.test/fhir/r4/Patient":       "",
		"https://emr.test:8443/fhir/r4/Patient": "",
		"https://emr.test.evil.test/fhir/r4":    "",
		"javascript:alert(1)":                   "",
		"%zz":                                   "",
	} {
		if got, ok := sameOrigin(request, link); got != want || ok != (want != "") {
			t.Errorf("%s: %q", link, got)
		}
	}
}

// Of every repeating element the first usable entry that is in use counts, not the first.
func TestPeriodsOfEveryElement(t *testing.T) {
	const mr = `"type":{"coding":[{"code":"MR"}]}`
	read := func(members string) Patient {
		p, ok := readPatient([]byte(`{"resourceType":"Patient","id":"a",`+members+`}`), testTime)
		if !ok {
			t.Fatalf("unreadable: %s", members)
		}
		return p
	}
	for members, want := range map[string]string{
		`"address":[{"line":["1 Old Mill Rd"],"city":"A","period":{"end":"2020-07-22"}},{"line":["7 New Harbor Ave"],"city":"A","period":{"start":"2020-07-22"}}]`: "7 New Harbor Ave",
		`"address":[{"use":"home","line":["1 Old"],"city":"A","period":{"end":"2020"}},{"use":"home","line":["7 New"],"city":"A"}]`:                                "7 New",
		`"address":[{"use":"home","line":["1 Future"],"city":"A","period":{"start":"2027-01-01"}},{"use":"temp","line":["7 Now"],"city":"A"}]`:                     "7 Now",
		`"address":[{"use":"home","text":"somewhere"},{"use":"work","line":[null,"7 Now"],"city":"A"}]`:                                                            "7 Now",
		`"address":[{"use":"billing","line":["1 Bill"],"city":"A"},{"use":"old","line":["2 Old"],"city":"A"}]`:                                                     "",
		`"telecom":[{"system":"phone","value":"555-201-0001","period":{"end":"2018"}},{"system":"phone","value":"555-201-0002"}]`:                                  "555-201-0002",
		`"telecom":[{"system":"phone","value":"call me"},{"system":"phone","value":"555-201-0002"}]`:                                                               "555-201-0002",
		`"telecom":[{"system":"phone","value":"555-201-0001","rank":2},{"system":"phone","value":"555-201-0002","rank":1}]`:                                        "555-201-0002",
		`"telecom":[{"system":"phone","value":"12"}]`: "12",
		`"telecom":[{"system":"email","value":"former@example.org","period":{"end":"2018-01-01T00:00:00"}},{"system":"email","value":"now@example.org"}]`: "now@example.org",
		`"telecom":[{"system":"email","value":"NONE"},{"system":"email","value":"real@example.org"}]`:                                                     "real@example.org",
		`"telecom":[{"system":"email","value":"next@example.org","period":{"start":"2026-02"}}]`:                                                          "",
		`"identifier":[{` + mr + `,"value":"OLD-777","period":{"end":"2015-05-05"}},{"use":"usual",` + mr + `,"value":"NEW-1"}]`:                          "NEW-1",
		`"identifier":[{"use":"secondary",` + mr + `,"value":"SEC-1"},{"use":"usual",` + mr + `,"value":"NEW-1"}]`:                                        "NEW-1",
		`"identifier":[{"use":"official",` + mr + `,"value":"not one!"},{"use":"secondary",` + mr + `,"value":"SEC-1"}]`:                                  "SEC-1",
		`"identifier":[{` + mr + `,"value":"SOON","period":{"start":"2026-01-16"}}]`:                                                                      "",
		`"name":[{"family":"Doe","given":[null,"Nora"]}]`:                                                                                                 "Nora",
	} {
		p := read(members)
		got := p.MRN + p.Who.Phone + p.Who.Email + p.Who.FirstName
		if p.Who.Address != nil {
			got += p.Who.Address.Line1
		}
		if got != want {
			t.Errorf("%s: %q, want %q", members, got, want)
		}
	}
}

func FuzzReadPatients(f *testing.F) {
	f.Add([]byte(bundle(3, "https://emr.test/fhir/Patient?page=2")), 2)
	f.Add([]byte(`{"resourceType":"Bundle","entry":[{"resource":{"resourceType":"Patient","id":"1","name":[{"text":"x"}],"active":false}}]}`), 20)
	f.Add([]byte(`{"entry":[],"link":null}`), 1)
	f.Add([]byte(`<!doctype html>`), 100)
	f.Fuzz(func(t *testing.T, body []byte, count int) {
		count = 1 + int(uint(count)%100)
		page, _ := readPatients(body, count, testTime)
		if len(page.patients) > count {
			t.Errorf("%d patients for %d", len(page.patients), count)
		}
		for _, p := range page.patients {
			if !IsPatientID(p.ID) || p.Gender == "" {
				t.Errorf("%q %q", p.ID, p.Gender)
			}
		}
		readPatient(body, testTime)
	})
}

func FuzzReadTokens(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"a","expires_in":3600,"scope":"x","refresh_token":"r"}`, `{"expires_in":"60"}`, `{"expires_in":-1}`, `{"expires_in":1e300}`,
		`{"expires_in":null,"scope":7}`, `{"expires_in":{"a":1}}`,
	} {
		f.Add([]byte(seed))
	}
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var extra map[string]any
		if json.Unmarshal(raw, &extra) != nil {
			return
		}
		refresh, _ := extra["refresh_token"].(string)
		got := readTokens((&oauth2.Token{AccessToken: "a", RefreshToken: refresh}).WithExtra(extra), now)
		if !got.ExpiresAt.After(now) || got.renewAt().Before(now) || got.renewAt().After(got.ExpiresAt) || (refresh != "") != got.refreshable(now) {
			t.Errorf("%v %v %v", got.ExpiresAt, got.renewAt(), got.RefreshExpiresAt)
		}
	})
}

// Invisible characters in the EMR's text do not make a patient invalid, and are removed.
func TestReadPatientIsCleaned(t *testing.T) {
	p, ok := readPatient([]byte(`{"resourceType":"Patient","id":"a1","name":[{"family":"\u202eLovelace\u202c","given":["\ufeffA\u200bda"]}],
		"telecom":[{"system":"phone","value":"\u202d555 0100\u202c"}],"address":[{"line":["1 Main\u2028St"],"city":"Bos\u00adton"}]}`), testTime)
	if !ok || p.Who.LastName != "Lovelace" || p.Who.FirstName != "Ada" || p.Who.Phone != "555 0100" || p.Who.Address.Line1 != "1 Main St" || p.Who.Address.City != "Boston" {
		t.Errorf("read %q %q %q %q %q", p.Who.FirstName, p.Who.LastName, p.Who.Phone, p.Who.Address.Line1, p.Who.Address.City)
	}
	if p, _ := readPatient([]byte(`{"resourceType":"Patient","id":"a1","name":[{"family":"خانه\u200cای"}]}`), testTime); p.Who.LastName != "خانه\u200cای" {
		t.Errorf("read %+q", p.Who.LastName)
	}
}
