package emr_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
)

// A token answer in JSON is read for any Content-Type, and with any form of expires_in.
func TestTokenAnswers(t *testing.T) {
	text := map[string]string{"Content-Type": "text/plain; charset=utf-8"}
	for name, answer := range map[string]reply{
		"text/plain":        {status: 200, header: text, body: `{"access_token":"t","token_type":"bearer","expires_in":3600}`},
		"fraction":          {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":3599.5}`},
		"whole fraction":    {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":3600.0}`},
		"fraction as text":  {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":"3599.5"}`},
		"empty":             {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":""}`},
		"huge":              {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":1e300}`},
		"an object":         {status: 200, header: asJSON, body: `{"access_token":"t","token_type":"bearer","expires_in":{"a":1}}`},
		"text/plain, words": {status: 200, header: text, body: "access_token=t&token_type=bearer"},
	} {
		fake := replyToPosts()
		fake.tokens = []reply{answer}
		if _, e := deliver(t, newClient(t, fake)); e != nil {
			t.Errorf("%s: %v", name, e)
		}
	}
	fake := replyToPosts()
	fake.tokens = []reply{{status: 400, header: text, body: `{"error":"invalid_client"}`}}
	if _, e := deliver(t, newClient(t, fake)); e == nil || e.OAuthError != "invalid_client" {
		t.Errorf("an error in text/plain: %+v", e)
	}
}

// With client_secret_basic the service signs in by HTTP Basic, with the client_credentials grant.
func TestServiceSecret(t *testing.T) {
	fake := replyToPosts()
	client := newClient(t, fake, func(o *emr.Options) {
		o.Auth, o.PrivateKey, o.ClientSecret = emr.ClientSecretBasic, nil, "s3cret:/"
	})
	if !client.Configured() || !client.HasBackendService() {
		t.Fatal("not configured")
	}
	if _, e := deliver(t, client); e != nil {
		t.Fatal(e)
	}
	request := fake.requests("token")[0]
	if id, secret, ok := (&http.Request{Header: request.header}).BasicAuth(); !ok || id != clientID || secret != "s3cret%3A%2F" {
		t.Errorf("signed in as %q, %v", id, ok)
	}
	if request.form.Get("grant_type") != "client_credentials" || request.form.Has("client_assertion") || request.form.Has("client_secret") {
		t.Errorf("%v", request.form)
	}
	if without := newClient(t, fake, func(o *emr.Options) { o.Auth = emr.ClientSecretBasic }); without.Configured() {
		t.Error("configured without a secret")
	}
}

// 202 and 204 count as taken: the observation is looked up, and never sent again.
func TestTakenWithoutResult(t *testing.T) {
	for _, status := range []int{202, 204} {
		for _, conditional := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				fake := replyToPosts(reply{status: status})
				fake.replies["GET"] = []reply{{status: 200, body: bundle()}, {status: 200, body: bundle()}, {status: 200, body: bundle(observation("o-9", "urn:uuid:"+observationID))}}
				client := newClient(t, fake, quickRetries, func(o *emr.Options) { o.ConditionalCreate = conditional })
				created, e := deliver(t, client)
				if e != nil || created.EMRID == "" || !created.AlreadyThere {
					t.Fatalf("%d: %+v, %v", status, created, e)
				}
				if got := len(posts(fake)); got != 1 {
					t.Errorf("%d: sent %d times", status, got)
				}
			})
		}
	}
}

func posts(f *fakeEMR) (sent []recordedRequest) {
	for _, r := range f.requests("fhir") {
		if r.method == "POST" {
			sent = append(sent, r)
		}
	}
	return sent
}

// What the EMR took and never shows waits until a person states whether it is there.
func TestTakenAndNeverFound(t *testing.T) {
	for _, outcome := range []string{emr.OutcomePresent, emr.OutcomeAbsent} {
		t.Run(outcome, func(t *testing.T) {
			app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
			id, reading := queueDelivery(t, app, patient, now)
			w := newWorker(f, clock, nil)
			f.refuse = func(string, int) *emr.Error {
				return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 202, Message: "EMR took the observation and does not show it (202)", Ambiguous: true}
			}
			for range 8 {
				sendDue(t, w, app, 0)
				f.refuse = nil
				clock.advance(24 * time.Hour)
			}
			check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "error_code": "outcome_unknown", "next_retry_at": ""})
			for range 3 {
				if cleared, err := w.ReconcileUnknown(t.Context(), app); cleared != 0 || err != nil {
					t.Fatal(cleared, err)
				}
				clock.advance(24 * time.Hour)
			}
			if n, err := emr.Requeue(t.Context(), app, emr.DeadLetterFilter{}, person, clock.now()); n != 0 || err != nil {
				t.Errorf("%d requeued, %v", n, err)
			}
			invalidSuccess(t, w.Transform(app, reading, person, clock.now()), "outcome_unknown")
			if f.sends[reading] != 1 || f.searches[reading] < 5 {
				t.Fatalf("sent %d times, searched %d times", f.sends[reading], f.searches[reading])
			}
			if err := w.Resolve(app, id, outcome, "looked in the chart", person, clock.now()); err != nil {
				t.Fatal(err)
			}
			invalidSuccess(t, w.Resolve(app, id, outcome, "again", person, clock.now()), "invalid_state")
			sendDue(t, w, app, 0)
			want := map[string]int{emr.OutcomePresent: 1, emr.OutcomeAbsent: 2}[outcome]
			if f.sends[reading] != want {
				t.Errorf("sent %d times, want %d", f.sends[reading], want)
			}
			check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "error_code": "", "error_message": ""})
			check(t, app, collections.Observations, reading, map[string]any{"fhir_status": "transmitted"})
		})
	}
}

// A look-up that finds the copy ends the wait, in a retry and after the last one; a failing look-up keeps the reason.
func TestTakenAndFoundLater(t *testing.T) {
	for _, retries := range []int{1, 8} {
		t.Run(fmt.Sprint(retries), func(t *testing.T) {
			app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
			id, reading := queueDelivery(t, app, patient, now)
			w := newWorker(f, clock, nil)
			f.refuse = func(string, int) *emr.Error {
				return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 202, Message: "taken", Ambiguous: true}
			}
			sendDue(t, w, app, 0)
			f.refuse = nil
			f.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "EMR authorization failed (403: insufficient scope)"}
			for range retries {
				clock.advance(24 * time.Hour)
				sendDue(t, w, app, 0)
			}
			check(t, app, collections.Transmissions, id, map[string]any{"status": "failed", "error_code": "outcome_unknown"})
			f.searchErr, f.stored[reading] = nil, "o-1"
			clock.advance(24 * time.Hour)
			sendDue(t, w, app, 0)
			if _, err := w.ReconcileUnknown(t.Context(), app); err != nil {
				t.Fatal(err)
			}
			check(t, app, collections.Transmissions, id, map[string]any{"status": "transmitted", "error_code": "", "emr_resource_id": "o-1"})
			if f.sends[reading] != 1 {
				t.Errorf("sent %d times", f.sends[reading])
			}
		})
	}
}

// A retracted reading that the EMR took without showing it is neither sent nor called never sent.
func TestTakenAndRetracted(t *testing.T) {
	c := newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 204, Message: "taken", Ambiguous: true}
	}
	c.send(time.Minute)
	c.emr.refuse = nil
	c.retract()
	for range 8 {
		c.send(24 * time.Hour)
	}
	c.checkStatus("not found", "failed", "outcome_unknown")
	var entries int
	err := c.app.DB().Select("COUNT(*)").From("audit_log").Where(dbx.HashExp{"event": string(audit.EMRTransmit)}).Row(&entries)
	if err != nil || entries == 0 {
		t.Errorf("%d entries, %v", entries, err)
	}
	c.checkTask("the copy may be there", true)
}

// After a person stated that the EMR has a reading, a correction of it is neither sent as new nor called never sent: it waits for a person, or
// changes the copy once a look-up finds it.
func TestStatedPresentAndCorrected(t *testing.T) {
	for name, correct := range map[string]func(*changingReading){"retracted": (*changingReading).retract, "completed": (*changingReading).complete} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.emr.refuse = func(string, int) *emr.Error {
				return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 202, Message: "taken", Ambiguous: true}
			}
			for range 8 {
				c.send(24 * time.Hour)
				c.emr.refuse = nil
			}
			if err := c.worker.Resolve(c.app, c.id, emr.OutcomePresent, "looked in the chart", person, c.clock.now()); err != nil {
				t.Fatal(err)
			}
			correct(c)
			for range 8 {
				c.send(24 * time.Hour)
			}
			c.checkSent("not found", 1)
			c.checkStatus("not found", "failed", "outcome_unknown")
			c.emr.stored[c.reading] = "o-1"
			if err := c.worker.Resolve(c.app, c.id, emr.OutcomePresent, "still there", person, c.clock.now()); err != nil {
				t.Fatal(err)
			}
			for range 8 {
				c.send(24 * time.Hour)
			}
			if len(c.emr.updates) != 1 || c.emr.sends[c.reading] != 1 {
				t.Errorf("%d updates, %d creates", len(c.emr.updates), c.emr.sends[c.reading])
			}
		})
	}
}

// The last word counts: what a person states to be absent after it was stated present is sent, in its present form.
func TestStatedPresentThenAbsent(t *testing.T) {
	for name, correct := range map[string]func(*changingReading){"retracted": (*changingReading).retract, "completed": (*changingReading).complete} {
		t.Run(name, func(t *testing.T) {
			c := newChangingReading(t)
			c.emr.refuse = func(string, int) *emr.Error {
				return &emr.Error{Code: emr.CodeOutcomeUnknown, Status: 202, Message: "taken", Ambiguous: true}
			}
			for range 8 {
				c.send(24 * time.Hour)
				c.emr.refuse = nil
			}
			if err := c.worker.Resolve(c.app, c.id, emr.OutcomePresent, "looked in the chart", person, c.clock.now()); err != nil {
				t.Fatal(err)
			}
			correct(c)
			for range 8 {
				c.send(24 * time.Hour)
			}
			c.checkStatus("not found", "failed", "outcome_unknown")
			if err := c.worker.Resolve(c.app, c.id, emr.OutcomeAbsent, "the EMR lost it", person, c.clock.now()); err != nil {
				t.Fatal(err)
			}
			c.send(24 * time.Hour)
			if name == "retracted" {
				c.checkStatus("absent", "failed", "entered_in_error")
				c.checkSent("absent", 1)
				return
			}
			c.checkStatus("absent", "transmitted", "")
			c.checkSent("absent", 2)
		})
	}
}

// An answer without a body that names what was created needs no look-up.
func TestNoContentWithLocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts(reply{status: 204, header: map[string]string{"Location": "/fhir/Observation/o-7/_history/1"}})
		fake.replies["GET"] = []reply{{status: 200, body: bundle()}}
		client := newClient(t, fake, quickRetries, func(o *emr.Options) { o.ConditionalCreate = false })
		created, e := deliver(t, client)
		if e != nil || created.EMRID != "o-7" || len(posts(fake)) != 1 {
			t.Errorf("%+v, %v, sent %d times", created, e, len(posts(fake)))
		}
	})
}
