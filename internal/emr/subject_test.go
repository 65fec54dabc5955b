package emr_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// troubledPatients adds patients that the EMR refuses in different ways, and one that it accepts.
func troubledPatients(o *sandbox.EMROptions) {
	o.Patients = []sandbox.EMRPatient{
		{ID: "gone", Family: "Lovelace", Deleted: true},
		{ID: "here", Family: "Lovelace"},
		{ID: "idle", Family: "Lovelace", Inactive: true},
		{ID: "merged", Family: "Lovelace", ReplacedBy: "here"},
	}
}

// A refused reading names the patient as the reason when the EMR's record of the patient is deleted, inactive or merged.
func TestPatientRefusal(t *testing.T) {
	for _, hapi := range []bool{true, false} {
		for id, want := range map[string]struct {
			code, message string
			refused       bool // by the EMR's own rules and not because of its patient
		}{
			"gone":    {emr.CodePatientNotFound, "Patient deleted in EMR", false},
			"unknown": {emr.CodePatientNotFound, "Patient not found in EMR", false},
			"here":    {emr.CodeInvalidResource, "Invalid FHIR resource: processing", true},
			"idle":    {emr.CodePatientMerged, "Patient merged or inactive in EMR", true},
			"merged":  {emr.CodePatientMerged, "Patient merged or inactive in EMR", true},
		} {
			t.Run(fmt.Sprintf("%s, like HAPI %t", id, hapi), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newSandboxTransport(t, troubledPatients, func(o *sandbox.EMROptions) { o.LikeHAPI = hapi })
					if want.refused {
						b.failing, b.fail = []int{0}, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
							w.WriteHeader(400)
							_, _ = w.Write([]byte(outcome("processing")))
						}
					}
					began := time.Now()
					_, err := b.client(t).CreateObservation(t.Context(), observationID, []byte(strings.Replace(observationJSON, "pat-1001", id, 1)), requestID)
					e := asError(t, err)
					if !hapi && id == "gone" {
						want.message = "Patient not found in EMR" // the EMR's response names it
					}
					if e == nil || e.Code != want.code || e.Message != want.message || e.Ambiguous || e.Class() != emr.ClassRequest || time.Since(began) > 0 {
						t.Fatalf("%+v", e)
					}
					asks := 2
					if !hapi && !want.refused {
						asks = 1 // the response's code is enough
					}
					if len(b.requests) != asks || len(e.Attempts) != asks || e.Attempts[0].Code != want.code {
						t.Errorf("requests %v, %+v", b.requests, e.Attempts)
					}
					if hapi && !want.refused && !strings.Contains(e.Diagnostics.Reveal(), "specified in path: Observation.subject") {
						t.Errorf("the diagnostics are lost: %q", e.Diagnostics.Reveal())
					}
				})
			})
		}
	}
}

// Which refusals cause a read of the patient, and the possible answers.
func TestPatientCheck(t *testing.T) {
	const subject = `{"resourceType":"Observation","status":"final","subject":{"reference":"Patient/erx-1"}}`
	patient := func(id, rest string) reply {
		return reply{status: 200, body: `{"resourceType":"Patient","id":"` + id + `"` + rest + `}`}
	}
	for name, test := range map[string]struct {
		post     reply
		resource string
		get      reply
		isRead   bool
		code     string
	}{
		"no code":                 {reply{status: 400}, subject, reply{status: 404}, true, emr.CodePatientNotFound},
		"no code, deleted":        {reply{status: 422}, subject, reply{status: 410}, true, emr.CodePatientNotFound},
		"processing, in the EMR":  {reply{status: 400, body: outcome("processing")}, subject, patient("erx-1", ""), true, emr.CodeInvalidResource},
		"invalid, in the EMR":     {reply{status: 422, body: outcome("invalid")}, subject, patient("erx-1", `,"active":true`), true, emr.CodeInvalidResource},
		"business-rule, inactive": {reply{status: 422, body: outcome("business-rule")}, subject, patient("erx-1", `,"active":false`), true, emr.CodePatientMerged},
		"conflict, replaced":      {reply{status: 409, body: outcome("conflict")}, subject, patient("erx-1", `,"link":[{"type":"replaced-by"}]`), true, emr.CodePatientMerged},
		"value, read as another":  {reply{status: 400, body: outcome("value")}, subject, patient("erx-9", ""), true, emr.CodePatientMerged},
		"may not be read":         {reply{status: 400}, subject, reply{status: 403}, true, emr.CodeInvalidResource},
		"patient read fails":      {reply{status: 400}, subject, reply{status: 503}, true, emr.CodeInvalidResource},
		"a page":                  {reply{status: 400}, subject, reply{status: 200, body: "<html>"}, true, emr.CodeInvalidResource},
		"linked otherwise":        {reply{status: 400}, subject, patient("erx-1", `,"link":[{"type":"seealso"}]`), true, emr.CodeInvalidResource},
		"about the resource":      {reply{status: 422, body: outcome("required")}, subject, reply{status: 404}, false, emr.CodeInvalidResource},
		"about both":              {reply{status: 422, body: outcome("processing", "invariant")}, subject, reply{status: 404}, false, emr.CodeInvalidResource},
		"says not found":          {reply{status: 422, body: outcome("not-found")}, subject, reply{status: 200}, false, emr.CodePatientNotFound},
		"says deleted":            {reply{status: 400, body: outcome("deleted")}, subject, reply{status: 200}, false, emr.CodePatientNotFound},
		"404":                     {reply{status: 404}, subject, reply{status: 200}, false, emr.CodePatientNotFound},
		"410":                     {reply{status: 410}, subject, reply{status: 200}, false, emr.CodePatientNotFound},
		"scope missing":           {reply{status: 403}, subject, reply{status: 404}, false, emr.CodeAuth},
		"not signed in":           {reply{status: 401}, subject, reply{status: 404}, false, emr.CodeAuth},
		"too many":                {reply{status: 429}, subject, reply{status: 404}, false, emr.CodeRateLimited},
		"creates not supported":   {reply{status: 405}, subject, reply{status: 404}, false, emr.CodeInvalidResource},
		"several match":           {reply{status: 412}, subject, reply{status: 404}, false, emr.CodeInvalidResource},
		"media type":              {reply{status: 415}, subject, reply{status: 404}, false, emr.CodeInvalidResource},
		"create fails with 500":   {reply{status: 500}, subject, reply{status: 404}, false, emr.CodeUnavailable},
		"without a subject":       {reply{status: 400}, observationResource, reply{status: 404}, false, emr.CodeInvalidResource},
		"malformed subject":       {reply{status: 400}, strings.Replace(subject, "erx-1", "a/b?c", 1), reply{status: 404}, false, emr.CodeInvalidResource},
	} {
		t.Run(name, func(t *testing.T) {
			fake := &fakeEMR{replies: map[string][]reply{"POST": {test.post}, "GET": {test.get}}}
			_, err := newClient(t, fake).CreateObservation(t.Context(), observationID, []byte(test.resource), requestID)
			e := asError(t, err)
			if e == nil || e.Code != test.code || e.Status != test.post.status {
				t.Fatalf("%+v", e)
			}
			reads := 0
			for _, h := range fake.requests("fhir") {
				if h.method == http.MethodGet {
					reads++
					if h.url != baseURL+"/Patient/erx-1" || h.header.Get("Cache-Control") != "no-cache" {
						t.Errorf("requested %s", h.url)
					}
				}
			}
			if want := map[bool]int{true: 1}[test.isRead]; reads != want {
				t.Errorf("read %d times", reads)
			}
		})
	}
}
