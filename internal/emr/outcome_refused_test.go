package emr_test

import (
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
)

// A real refusal after an unknown outcome is what a person must resolve; a failure of the look-up, or of the EMR, is not. The copy that was found
// stays known, so that nothing is sent as new.
func TestRefusalAfterUnknownOutcome(t *testing.T) {
	c := newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 202, Message: "taken", Ambiguous: true}
	}
	c.send(time.Minute)
	c.retract()
	c.emr.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "EMR authorization failed (403: insufficient scope)"}
	c.send(24 * time.Hour)
	c.checkStatus("look-up refused", "failed", "outcome_unknown")
	c.emr.searchErr, c.emr.stored[c.reading] = nil, "o-1"
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(24 * time.Hour)
	c.checkStatus("EMR away", "failed", "outcome_unknown")
	c.emr.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeUpdateRefused, Status: 405, Message: "Update refused by EMR (405)"}
	}
	c.send(24 * time.Hour)
	c.checkStatus("update refused", "failed", "update_refused")
	check(t, c.app, collections.Transmissions, c.id, map[string]any{"emr_resource_id": "o-1"})
	delete(c.emr.stored, c.reading)
	c.emr.refuse = nil
	c.send(24 * time.Hour)
	c.checkSent("the copy is known", 1, "entered-in-error", "entered-in-error", "entered-in-error")
}

// An update that the EMR took with 202 is looked up, and sent again only after a look-up that does not find it.
func TestUpdateTakenWithoutResult(t *testing.T) {
	const old, now = `{"status":"final"}`, `{"resourceType":"Observation","status":"entered-in-error"}`
	fake := &fakeEMR{replies: map[string][]reply{
		"GET": {{status: 200, body: old}, {status: 200, body: old}, {status: 200, body: now}}, "PUT": {{status: 202}},
	}}
	client := newClient(t, fake, func(o *emr.Options) { o.QuickRetryDelays = []time.Duration{1, 1, 1} })
	got, err := client.UpdateObservation(t.Context(), copyID, []byte(corrected), requestID, false)
	puts := 0
	for _, request := range fake.requests("fhir") {
		if request.method == "PUT" {
			puts++
		}
	}
	if err != nil || !got.AlreadyThere || puts != 1 {
		t.Errorf("%+v, %v, sent %d times", got, err, puts)
	}
}
