package emr_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// storeObservation makes the sandbox store the one resource and returns its id.
func (st *sandboxTransport) storeObservation(t *testing.T, client *emr.Client) string {
	t.Helper()
	created, e := st.send(t, client)
	if e != nil {
		t.Fatal(e)
	}
	st.requests = nil
	return created.EMRID
}

func retractedCopy(id string) []byte {
	return []byte(strings.Replace(strings.Replace(observationJSON, `"final"`, `"entered-in-error"`, 1), "{", `{"id":"`+id+`",`, 1))
}

// An update is applied exactly once, to the version that was read, after any failure and with other clients changing the copy.
func TestUpdateReplacesReadVersion(t *testing.T) {
	for _, hapi := range []bool{false, true} {
		for name, test := range map[string]struct {
			others   int // how often another client changes the copy first
			lost     int // how many responses to a PUT are lost
			versions int // at the end
			requests string
			code     string
		}{
			"no other client":                   {versions: 2, requests: "GET PUT"},
			"another client is faster":          {others: 1, versions: 3, requests: "GET PUT GET PUT"},
			"another client is faster, thrice":  {others: 3, versions: 5, requests: "GET PUT GET PUT GET PUT GET PUT"},
			"another client is always faster":   {others: 9, versions: 5, requests: "GET PUT GET PUT GET PUT GET PUT", code: emr.CodeUnavailable},
			"a lost answer":                     {lost: 1, versions: 2, requests: "GET PUT GET"},
			"another client, and a lost answer": {others: 1, lost: 1, versions: 3, requests: "GET PUT GET PUT GET"},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newSandboxTransport(t, func(o *sandbox.EMROptions) { o.LikeHAPI = hapi })
					client := b.client(t)
					id := b.storeObservation(t, client)
					others, lost := test.others, test.lost
					b.failing = []int{1, 3, 5, 7, 9}
					b.fail = func(next http.Handler, w http.ResponseWriter, r *http.Request) {
						switch {
						case others > 0:
							others--
							other := r.Clone(t.Context())
							other.Header.Del("If-Match")
							other.Body = body(strings.Replace(observationJSON, "{", `{"id":"`+id+`","note":[{"text":"seen"}],`, 1))
							next.ServeHTTP(discard{}, other)
						case lost > 0:
							lost--
							faultModes["broken off, done"](next, w, r)
						}
						next.ServeHTTP(w, r)
					}
					_, err := client.UpdateObservation(t.Context(), id, retractedCopy(id), requestID, false)
					e := asError(t, err)
					if (e != nil) != (test.code != "") || e != nil && (e.Code != test.code || e.Ambiguous || e.Class() != emr.ClassRequest) {
						t.Errorf("%+v", e)
					}
					got := b.Observations()[0]
					if got.Versions != test.versions || strings.Join(b.requests, " ") != test.requests {
						t.Errorf("%d versions, %s, requests %v", got.Versions, got.Status, b.requests)
					}
					if e == nil && got.Status != "entered-in-error" {
						t.Errorf("%s", got.Status)
					}
				})
			})
		}
	}
}

// The entity tag is the version of the copy that was read; without a version the update has no If-Match.
func TestUpdateSendsIfMatch(t *testing.T) {
	const with = `{"resourceType":"Observation","id":"obs-7","meta":{"versionId":"3"},"status":"final"}`
	const without = `{"resourceType":"Observation","id":"obs-7","status":"final"}`
	for name, test := range map[string]struct {
		body, tag, want string
	}{
		"in the resource":         {with, "", `W/"3"`},
		"in both":                 {with, `W/"3"`, `W/"3"`},
		"as a proxy marks it":     {with, `W/"3--gzip"`, `W/"3"`},
		"in the header":           {without, `W/"17"`, `W/"17"`},
		"strong":                  {without, `"17"`, `"17"`},
		"none":                    {without, "", ""},
		"not one":                 {without, `17`, ""},
		"of several":              {without, `"1", "2"`, ""},
		"no version but a page's": {`<html>`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeEMR{replies: map[string][]reply{
				"GET": {{status: 200, body: test.body, header: map[string]string{"ETag": test.tag}}}, "PUT": {{status: 200}},
			}}
			if _, err := newClient(t, fake).UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, false); err != nil {
				t.Fatal(err)
			}
			put := fake.requests("fhir")[1]
			if got := put.header.Get("If-Match"); put.method != http.MethodPut || got != test.want || len(put.header["If-Match"]) > 1 {
				t.Errorf("%s with %q, want %q", put.method, got, test.want)
			}
		})
	}
}

// A 412 without an If-Match is an ordinary refusal, and does not cause another read.
func TestUpdateRefusedWithoutVersion(t *testing.T) {
	fake := &fakeEMR{replies: map[string][]reply{"GET": {{status: 403}}, "PUT": {{status: 412}}}}
	_, err := newClient(t, fake).UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, false)
	if e := asError(t, err); e == nil || e.Code != emr.CodeInvalidResource || e.Message != "Invalid FHIR resource (412)" || len(fake.requests("fhir")) != 2 {
		t.Errorf("%+v", e)
	}
}

// The refusals of an update. Source: docs/decisions/transmissions.md, "Delivery failure texts".
func TestUpdateRefused(t *testing.T) {
	for _, test := range []struct {
		reply         reply
		code, message string
	}{
		{reply{status: 403, body: outcome("forbidden")}, emr.CodeUpdateRefused, "Update refused by EMR (403: insufficient scope)"},
		{reply{status: 405}, emr.CodeUpdateRefused, "Update refused by EMR (405)"},
		{reply{status: 405, body: outcome("not-supported")}, emr.CodeUpdateRefused, "Update refused by EMR: not-supported"},
		{reply{status: 501}, emr.CodeUpdateRefused, "Update refused by EMR (501)"},
		{reply{status: 422, body: outcome("business-rule", "Ada Lovelace")}, emr.CodeUpdateRefused, "Update refused by EMR: business-rule"},
		{reply{status: 422, body: outcome("deleted")}, emr.CodePatientNotFound, "Patient deleted in EMR"},
		{reply{status: 422, body: outcome("not-found")}, emr.CodePatientNotFound, "Patient not found in EMR"},
		{reply{status: 404, body: outcome("not-found")}, emr.CodeInvalidResource, "Observation not found in EMR"},
		{reply{status: 400, body: outcome("structure")}, emr.CodeInvalidResource, "Invalid FHIR resource: structure"},
		{reply{status: 401}, emr.CodeAuth, "EMR authorization failed (401)"},
		{reply{status: 500}, emr.CodeUnavailable, "EMR unavailable (500)"},
	} {
		fake := &fakeEMR{replies: map[string][]reply{"GET": {{status: 200, body: `{"meta":{"versionId":"1"}}`}}, "PUT": {test.reply}}}
		_, err := newClient(t, fake).UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, false)
		e := asError(t, err)
		if e == nil || e.Code != test.code || e.Message != test.message || e.Ambiguous != (test.reply.status == 500) {
			t.Errorf("%d: %+v", test.reply.status, e)
			continue
		}
		if last := e.Attempts[len(e.Attempts)-1]; last.Status != test.reply.status || last.Code != test.code {
			t.Errorf("%d: attempt %+v", test.reply.status, last)
		}
		if refused := test.code == emr.CodeUpdateRefused; refused && (e.Class() != emr.ClassRequest || len(fake.requests("fhir")) != 2) {
			t.Errorf("%d: attributed to the EMR, or retried", test.reply.status)
		}
	}
}

// The EMR's copy can be compared without changing anything.
func TestHasObservation(t *testing.T) {
	for name, test := range map[string]struct {
		reply            reply
		has, known, fail bool
	}{
		"as sent":       {reply: reply{status: 200, body: corrected}, has: true, known: true},
		"not as sent":   {reply: reply{status: 200, body: `{"resourceType":"Observation","status":"final"}`}, known: true},
		"deleted":       {reply: reply{status: 410}, has: true, known: true},
		"forbidden":     {reply: reply{status: 403}},
		"not there":     {reply: reply{status: 404}},
		"read fails":    {reply: reply{status: 503}, fail: true},
		"no connection": {reply: reply{err: http.ErrServerClosed}, fail: true},
	} {
		fake := &fakeEMR{replies: map[string][]reply{"GET": {test.reply}}}
		has, known, err := newClient(t, fake).HasObservation(t.Context(), copyID, []byte(corrected))
		if has != test.has || known != test.known || (err != nil) != test.fail || len(fake.requests("fhir")) != 1 {
			t.Errorf("%s: %v %v %v", name, has, known, err)
		}
	}
}

// A failed read is retried like a request, and shares the same three quick retries.
func TestUpdateRetriesRead(t *testing.T) {
	for failures := range 4 {
		synctest.Test(t, func(t *testing.T) {
			b := newSandboxTransport(t)
			client := b.client(t)
			id := b.storeObservation(t, client)
			for n := range failures {
				b.failing = append(b.failing, n)
			}
			b.fail = faultModes["500, not done"]
			began := time.Now()
			_, err := client.UpdateObservation(emr.WithSharedRetries(t.Context()), id, retractedCopy(id), requestID, true)
			want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}[failures]
			if took := time.Since(began); err != nil || took != want {
				t.Errorf("%d failures: %v after %s", failures, err, took)
			}
		})
	}
}
