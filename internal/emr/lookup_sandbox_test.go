package emr_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// weightOf is a delivered weight of a patient.
func weightOf(id, patientID string, at time.Time, kilograms float64) []byte {
	return fmt.Appendf(nil, `{"resourceType":"Observation","identifier":[{"system":"urn:ietf:rfc:3986","value":"urn:uuid:%s"}],"status":"final",
		"category":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/observation-category","code":"vital-signs"}]}],
		"code":{"coding":[{"system":"http://loinc.org","code":"29463-7"}]},"subject":{"reference":"Patient/%s"},"effectiveDateTime":%q,
		"valueQuantity":{"value":%g,"unit":"kg","system":"http://unitsofmeasure.org","code":"kg"}}`, id, patientID, at.Format(time.RFC3339), kilograms)
}

func withProfile(name string) func(*sandbox.EMROptions) {
	return func(o *sandbox.EMROptions) { o.Profile = name }
}

const noIdentifierSearch = "no-identifier-search"

// loseAnswers answers the first creates as they are stored, and cuts the connection.
func loseAnswers(p *sandboxEMR, times int) {
	p.emr.Fail(sandbox.Fault{Match: "POST /fhir/demo/Observation", Times: times, Drop: sandbox.DropAfter})
}

func mustPrepare(t *testing.T, c *emr.Client) {
	t.Helper()
	if _, err := c.Metadata(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Where Observations cannot be searched by identifier, a copy is found by patient, category, time and content.
func TestSecondLookUp(t *testing.T) {
	p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, nil, withProfile(noIdentifierSearch))
	client, err := sandboxClient(p.url, sandboxSigningKey(), true, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, client)
	loseAnswers(p, 3)
	for i, kilograms := range []float64{80.2, 80.3, 80.2} {
		id := fmt.Sprintf("0192f0c1-2a3b-7c4d-8e5f-60718293a4b%d", i)
		created, err := client.CreateObservation(t.Context(), id, weightOf(id, "erx-1", now.Add(time.Duration(i)*time.Hour), kilograms), id)
		if err != nil || !created.AlreadyThere || created.EMRID == "" {
			t.Errorf("%d: %+v, %v", i, created, err)
		}
	}
	if n := len(p.emr.Observations()); n != 3 {
		t.Errorf("%d stored, want 3", n)
	}
	never := "0192f0c1-2a3b-7c4d-8e5f-60718293a4b9"
	for name, resource := range map[string][]byte{
		"another value": weightOf(never, "erx-1", now, 80.4), "another time": weightOf(never, "erx-1", now.Add(30*time.Second), 80.2),
	} {
		if id, found, err := client.FindObservation(t.Context(), never, resource); found {
			t.Errorf("%s: found %s, %v", name, id, err)
		}
	}
}

// Two equal readings never share a copy.
func TestCopyBelongsToOneReading(t *testing.T) {
	p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, nil, withProfile(noIdentifierSearch))
	client, err := sandboxClient(p.url, sandboxSigningKey(), true, 0)
	if err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, client)
	ids := map[string]bool{}
	for i := range 4 {
		if i%2 == 0 {
			loseAnswers(p, 1)
		}
		id := fmt.Sprintf("0192f0c1-2a3b-7c4d-8e5f-60718293a4b%d", i)
		created, err := client.CreateObservation(t.Context(), id, weightOf(id, "erx-1", now, 80.2), id)
		if err != nil {
			t.Fatal(err)
		}
		ids[created.EMRID] = true
	}
	if len(ids) != 4 || len(p.emr.Observations()) != 4 {
		t.Errorf("%d copies for %d readings", len(p.emr.Observations()), len(ids))
	}
}

// Another delivery's copy in the database is not taken either.
func TestCopyOfAnotherDelivery(t *testing.T) {
	p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, nil, withProfile(noIdentifierSearch))
	var asked atomic.Int64
	client := sandboxClientWith(t, p.url, func(o *emr.Options) {
		o.HasCopy = func(patientID, _ string) (bool, error) { asked.Add(1); return patientID == "erx-1", nil }
	})
	mustPrepare(t, client)
	loseAnswers(p, 1)
	if _, err := client.CreateObservation(t.Context(), observationID, weightOf(observationID, "erx-1", now, 80.2), "r"); err != nil {
		t.Fatal(err)
	}
	if len(p.emr.Observations()) != 2 || asked.Load() == 0 {
		t.Errorf("%d stored: the copy of another delivery was taken for this one's", len(p.emr.Observations()))
	}
}

// searchFake serves a statement, loses the answer of the first create, and answers searches as the test defines.
func searchFake(t *testing.T, search func(query url.Values) (status int, body string), offer *emr.Offer) (client *emr.Client, creates *atomic.Int64) {
	t.Helper()
	return searchFakeAfter(t, 0, search, offer)
}

// searchFakeAfter is searchFake with the status of the first create; 0 loses its answer.
func searchFakeAfter(t *testing.T, first int, search func(query url.Values) (status int, body string), offer *emr.Offer) (
	client *emr.Client, creates *atomic.Int64,
) {
	t.Helper()
	creates = &atomic.Int64{}
	_, there := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			switch isFirst := creates.Add(1) == 1; {
			case isFirst && first == 0:
				panic(http.ErrAbortHandler)
			case isFirst:
				w.WriteHeader(first)
				return
			}
			w.Header().Set("Location", "/fhir/Observation/o-2")
			w.WriteHeader(http.StatusCreated)
			return
		}
		status, body := search(r.URL.Query())
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	return newClient(t, nil, there, func(o *emr.Options) {
		o.QuickRetryDelays = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}
		o.Capabilities = &memoryCapabilities{known: emr.StoredCapabilities{Offer: offer}}
	}), creates
}

// An answer that ignored a parameter is no answer: nothing is sent again, and the outcome is a person's to state.
func TestIgnoredParameters(t *testing.T) {
	other := func(change ...string) string {
		return strings.NewReplacer(change...).Replace(string(weightOf("", "erx-1", now, 70)))
	}
	noIdentifier := func(o string) string {
		return strings.Replace(strings.Replace(o, `"identifier"`, `"note"`, 1), `"resourceType":"Observation"`, `"resourceType":"Observation","id":"e-1"`, 1)
	}
	byContent := &emr.Offer{Create: true, Search: true, SearchParameters: []string{"patient", "category", "date"}}
	for name, test := range map[string]struct {
		offer *emr.Offer
		body  string
		sends int64
	}{
		"another patient":                     {byContent, bundle(noIdentifier(other("Patient/erx-1", "Patient/erx-9"))), 1},
		"another time":                        {byContent, bundle(noIdentifier(other("13:45", "17:45"))), 1},
		"another value":                       {byContent, bundle(noIdentifier(other())), 2},
		"a parameter refused":                 {byContent, bundle(hint("Unknown parameter: date")), 1},
		"nothing found":                       {byContent, bundle(hint("Resource request returns no results.")), 2},
		"a page at another origin":            {byContent, `{"resourceType":"Bundle","link":[{"relation":"next","url":"https://elsewhere.test/fhir/Observation"}]}`, 1},
		"self without a parameter":            {nil, `{"resourceType":"Bundle","link":[{"relation":"self","url":"https://emr.test/fhir/Observation"}]}`, 1},
		"no statement, empty":                 {nil, bundle(), 2},
		"no search offered":                   {&emr.Offer{Create: true}, bundle(), 1},
		"a pages' loop":                       {byContent, `{"resourceType":"Bundle","link":[{"relation":"next","url":"?page=2"}]}`, 1},
		"conditional create declared, no use": {&emr.Offer{Create: true, ConditionalCreate: new(true)}, bundle(), 2},
	} {
		t.Run(name, func(t *testing.T) {
			client, creates := searchFake(t, func(url.Values) (int, string) { return 200, test.body }, test.offer)
			_, err := client.CreateObservation(t.Context(), observationID, weightOf(observationID, "erx-1", now, 80.2), requestID)
			e := asError(t, err)
			if creates.Load() != test.sends || (e == nil) != (test.sends == 2) {
				t.Fatalf("sent %d times, want %d: %v", creates.Load(), test.sends, e)
			}
			if e != nil && (e.Code != emr.CodeOutcomeUnknown || !e.NeedsPerson || !e.Ambiguous) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A refused search is no answer; after a 400 the second search is tried. What the EMR has is found.
func TestNoLookUp(t *testing.T) {
	copied := strings.Replace(string(weightOf(observationID, "erx-1", now, 80.2)), `"resourceType":"Observation"`, `"resourceType":"Observation","id":"e-1"`, 1)
	for name, test := range map[string]struct {
		status int
		second string // the answer of the search by content; "" is the same status
		sends  int64
		emrID  string
	}{
		"400":                  {400, "", 1, ""},
		"403":                  {403, "", 1, ""},
		"405":                  {405, "", 1, ""},
		"400, then found":      {400, bundle(strings.Replace(copied, `"identifier"`, `"note"`, 1)), 1, "e-1"},
		"400, then not":        {400, bundle(), 2, "o-2"},
		"403 forbids the next": {403, bundle(copied), 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client, creates := searchFake(t, func(q url.Values) (int, string) {
				if test.second != "" && q.Has("patient") {
					return 200, test.second
				}
				return test.status, ""
			}, &emr.Offer{Create: true, Search: true, SearchParameters: []string{"identifier", "patient", "category", "date"}})
			created, err := client.CreateObservation(t.Context(), observationID, weightOf(observationID, "erx-1", now, 80.2), requestID)
			e := asError(t, err)
			if creates.Load() != test.sends || created.EMRID != test.emrID {
				t.Errorf("sent %d times, %+v, %v", creates.Load(), created, e)
			}
			if test.emrID == "" && (e == nil || !e.NeedsPerson || !strings.Contains(e.Message, "cannot be searched")) {
				t.Errorf("%+v", e)
			}
		})
	}
}
