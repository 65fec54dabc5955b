package sandbox

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// faultyEMR is a sandbox without sign-in: the token "open" is always valid.
func faultyEMR(t *testing.T) (*EMR, string) {
	t.Helper()
	e, err := NewEMR(EMROptions{ClientID: "vigil", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	e.accessTokens["open"] = grant{scopes: systemScopes, expiresAt: time.Now().Add(time.Hour)}
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	return e, server.URL
}

func openRequest(ctx context.Context, method, address, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer open")
	r.Header.Set("Content-Type", fhirJSON)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client.Do(r)
}

func TestHangingFaultCommitsFirst(t *testing.T) {
	e, address := faultyEMR(t)
	stored := make(chan struct{})
	e.options.OnObservation = func(StoredObservation) { close(stored) }
	e.Fail(Fault{Match: "POST", Times: 1, Drop: DropHang})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-stored
		leave()
	}()
	if resp, err := openRequest(ctx, "POST", address+"/fhir/demo/Observation", bloodPressure(observationID)); err == nil {
		resp.Body.Close()
		t.Fatalf("answered %d", resp.StatusCode)
	}
	if got := e.Stats(); got.Observations != 1 {
		t.Errorf("%d stored", got.Observations)
	}
}

func TestCorruptAnswers(t *testing.T) {
	for how, want := range map[string]struct {
		status int
		kind   string
	}{
		AnswerHTML: {200, "text/html"}, AnswerHalf: {200, fhirJSON}, AnswerRedirect: {307, ""},
	} {
		e, address := faultyEMR(t)
		e.Fail(Fault{Match: "/Patient", Answer: how})
		resp, err := openRequest(t.Context(), "GET", address+"/fhir/demo/Patient", "")
		if err != nil {
			t.Fatal(err)
		}
		var bundle resource
		whole := json.NewDecoder(resp.Body).Decode(&bundle) == nil
		resp.Body.Close()
		if resp.StatusCode != want.status || whole || want.kind != "" && resp.Header.Get("Content-Type") != want.kind {
			t.Errorf("%s: %d %s, whole: %v", how, resp.StatusCode, resp.Header.Get("Content-Type"), whole)
		}
	}
}

func TestShareOfFaults(t *testing.T) {
	e, _ := faultyEMR(t)
	e.Fail(Fault{Percent: 30})
	met := 0
	for range 10_000 {
		if _, found := e.nextFault(httptest.NewRequest("GET", "/fhir", nil)); found {
			met++
		}
	}
	if met < 2_500 || met > 3_500 {
		t.Errorf("30 %% of 10,000 are %d", met)
	}
}

func TestFaultRulesAreChecked(t *testing.T) {
	for rule, ok := range map[string]bool{
		`{"drop":"hang"}`: true, `{"answer":"half","percent":30}`: true, `[{"answer":"no_expiry"},{"status":503}]`: true,
		`{"drop":"down"}`: false, `{"answer":"pdf"}`: false, `{"percent":101}`: false, `{"status":200}`: false,
	} {
		if _, err := readFaults(json.RawMessage(rule)); (err == nil) != ok {
			t.Errorf("%s: %v", rule, err)
		}
	}
}

func TestSearchPages(t *testing.T) {
	_, address := faultyEMR(t)
	next, seen := address+"/fhir/demo/Patient?_count=5&name=a", map[string]bool{}
	for pages := 1; next != ""; pages++ {
		resp, err := openRequest(t.Context(), "GET", next, "")
		if err != nil {
			t.Fatal(err)
		}
		var bundle struct {
			Total int
			Link  []struct{ Relation, URL string }
			Entry []struct{ Resource struct{ ID string } }
		}
		err = json.NewDecoder(resp.Body).Decode(&bundle)
		resp.Body.Close()
		if err != nil || len(bundle.Entry) > 5 || pages > 5 {
			t.Fatalf("page %d: %d entries, %v", pages, len(bundle.Entry), err)
		}
		for _, entry := range bundle.Entry {
			if seen[entry.Resource.ID] {
				t.Errorf("%s is on two pages", entry.Resource.ID)
			}
			seen[entry.Resource.ID] = true
		}
		next = ""
		for _, link := range bundle.Link {
			if link.Relation == "next" {
				next = link.URL
			}
		}
		if next == "" && len(seen) != bundle.Total {
			t.Errorf("%d of %d", len(seen), bundle.Total)
		}
	}
}
