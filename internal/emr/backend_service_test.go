package emr_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/emr"
)

var asJSON = map[string]string{"Content-Type": "application/json"}

func TestTokenRenewedFiveMinutesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		client := newClient(t, fake)
		for _, step := range []struct {
			wait    time.Duration
			fetches int
		}{{0, 1}, {time.Minute, 1}, {54*time.Minute - time.Second, 1}, {time.Second, 2}, {54 * time.Minute, 2}} {
			time.Sleep(step.wait)
			if _, e := deliver(t, client); e != nil {
				t.Fatal(e)
			}
			if got := len(fake.requests("token")); got != step.fetches {
				t.Errorf("after another %v: %d fetches, want %d", step.wait, got, step.fetches)
			}
			sends := fake.requests("fhir")
			if got, want := sends[len(sends)-1].header.Get("Authorization"), fmt.Sprintf("Bearer token-%d", step.fetches); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		verifyAssertion(t, fake.requests("token")[1].form.Get("client_assertion"), fake.requests("token")[1].at)
	})
}

func TestTokenLifetimes(t *testing.T) {
	for body, usable := range map[string]time.Duration{
		`{"access_token":"t","token_type":"bearer","expires_in":"3600"}`: 55 * time.Minute,
		`{"access_token":"t","token_type":"bearer","expires_in":360}`:    time.Minute,
		`{"access_token":"t","token_type":"bearer","expires_in":60}`:     30 * time.Second,
		`{"access_token":"t","token_type":"bearer"}`:                     150 * time.Second,
		`{"access_token":"t","token_type":"bearer","expires_in":-5}`:     150 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			fake := replyToPosts()
			fake.tokens = []reply{{status: 200, header: asJSON, body: body}}
			client := newClient(t, fake)
			for i, wait := range []time.Duration{0, usable - time.Nanosecond, time.Nanosecond} {
				time.Sleep(wait)
				if _, e := deliver(t, client); e != nil {
					t.Fatal(e)
				}
				if got, want := len(fake.requests("token")), []int{1, 1, 2}[i]; got != want {
					t.Errorf("%s: %d fetches, want %d", body, got, want)
				}
			}
		})
	}
}

func TestTokenFetchIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		fake.tokens = []reply{{hang: true}}
		client := newClient(t, fake)
		var group sync.WaitGroup
		codes := make([]string, 20)
		for i := range codes {
			group.Go(func() {
				if _, e := deliver(t, client); e != nil {
					codes[i] = e.Code
				}
			})
		}
		group.Wait()
		if got := len(fake.requests("token")); got != 1 {
			t.Errorf("%d fetches", got)
		}
		for i, code := range codes {
			if code != emr.CodeTimeout {
				t.Errorf("caller %d: %q", i, code)
			}
		}
		for range codes {
			group.Go(func() { _, _ = deliver(t, client) })
		}
		group.Wait()
		if got := len(fake.requests("token")); got != 2 {
			t.Errorf("%d fetches after the failure", got)
		}
	})
}

func TestCancelKeepsSharedFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		client := newClient(t, fake, func(o *emr.Options) { o.RatePerSecond = 1 })
		if _, err := client.Metadata(t.Context()); err == nil { // takes the first two turns
			t.Fatal("metadata without a statement")
		}
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := client.SignIn(ctx) // waits for the third turn
			left <- err
		}()
		synctest.Wait()
		stayed := make(chan error, 1)
		go func() {
			_, err := client.SignIn(t.Context())
			stayed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("left with %v", err)
		}
		if err := <-stayed; err != nil {
			t.Errorf("stayed with %v", err)
		}
		if got := len(fake.requests("token")); got != 2 {
			t.Errorf("%d fetches", got)
		}
	})
}

func TestUnauthorizedRenewsOnce(t *testing.T) {
	fake := replyToPosts(reply{status: 201}, reply{status: 401}, reply{status: 201})
	client := newClient(t, fake)
	_, _ = deliver(t, client)
	created, e := deliver(t, client)
	if e != nil || len(created.Attempts) != 2 || created.Attempts[0].Code != emr.CodeAuth || created.Attempts[1].Code != "" {
		t.Fatalf("%+v %v", created, e)
	}
	sends := fake.requests("fhir")
	if len(fake.requests("token")) != 2 || sends[1].header.Get("Authorization") != "Bearer token-1" || sends[2].header.Get("Authorization") != "Bearer token-2" {
		t.Errorf("%d fetches, sends %v", len(fake.requests("token")), sends)
	}
}

func TestConcurrentRefusalsShareSignIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		client := newClient(t, fake)
		if _, err := client.SignIn(t.Context()); err != nil {
			t.Fatal(err)
		}
		fake.refuse = "token-1"
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if _, e := deliver(t, client); e != nil {
					t.Error(e)
				}
			})
		}
		group.Wait()
		if got := len(fake.requests("token")); got != 2 {
			t.Errorf("%d sign-ins", got)
		}
	})
}

func TestTokenRefusals(t *testing.T) {
	for _, test := range []struct {
		name                 string
		reply                reply
		code, message, oauth string
	}{
		{
			"invalid client",
			reply{status: 400, header: asJSON, body: `{"error":"invalid_client","error_description":"unknown kid"}`},
			emr.CodeAuth, "EMR authorization failed (400)", "invalid_client",
		},
		{"401", reply{status: 401, header: asJSON, body: `{"error":"invalid_client"}`}, emr.CodeAuth, "EMR authorization failed (401)", "invalid_client"},
		{"403", reply{status: 403}, emr.CodeAuth, "EMR authorization failed (403: insufficient scope)", ""},
		{"404", reply{status: 404, body: "no"}, emr.CodeAuth, "EMR authorization failed (404)", ""},
		{"own words as code", reply{status: 400, header: asJSON, body: `{"error":"Ada Lovelace"}`}, emr.CodeAuth, "EMR authorization failed (400)", ""},
		{"error with 200", reply{status: 200, header: asJSON, body: `{"error":"invalid_scope"}`}, emr.CodeAuth, "EMR authorization failed (200)", "invalid_scope"},
		{"redirect", reply{status: 302, header: map[string]string{"Location": "https://elsewhere.test/"}}, emr.CodeAuth, "EMR authorization failed (302)", ""},
		{"malformed", reply{status: 200, header: asJSON, body: `{"access_token":`}, emr.CodeAuth, "EMR authorization failed (unusable token answer)", ""},
		{"no token", reply{status: 200, header: asJSON, body: `{}`}, emr.CodeAuth, "EMR authorization failed (unusable token answer)", ""},
		{"429", reply{status: 429}, emr.CodeRateLimited, "EMR rate limit exceeded", ""},
		{"503", reply{status: 503}, emr.CodeUnavailable, "EMR unavailable (503)", ""},
		{"no connection", reply{err: errors.New("refused")}, emr.CodeUnavailable, "EMR unavailable (no connection)", ""},
		{"timeout", reply{hang: true}, emr.CodeTimeout, "Connection timeout after 30s", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := replyToPosts()
				fake.tokens = []reply{test.reply}
				client := newClient(t, fake)
				_, e := deliver(t, client)
				if e == nil || e.Code != test.code || e.Message != test.message || e.OAuthError != test.oauth || e.Status != test.reply.status {
					t.Fatalf("%+v", e)
				}
				if e.Ambiguous || len(fake.requests("fhir")) != 0 || len(fake.requests("token")) != 1 {
					t.Errorf("ambiguous %v, %d sends, %d fetches", e.Ambiguous, len(fake.requests("fhir")), len(fake.requests("token")))
				}
				if len(e.Attempts) != 1 || e.Attempts[0].Code != test.code || e.Attempts[0].Status != test.reply.status {
					t.Errorf("attempts %+v", e.Attempts)
				}
				if !client.LastSignIn().At.IsZero() {
					t.Error("counts as signed in")
				}
			})
		})
	}
}

func TestTokenFetchIsRetriedQuickly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := replyToPosts()
		fake.tokens = []reply{{status: 503}, {hang: true}}
		created, e := deliver(t, newClient(t, fake, quickRetries))
		if e != nil || len(created.Attempts) != 3 || created.Attempts[1].Took != 30*time.Second {
			t.Errorf("%+v %v", created, e)
		}
		seen := map[string]bool{}
		for _, h := range fake.requests("token") {
			seen[h.form.Get("client_assertion")] = true
		}
		if len(seen) != 3 {
			t.Errorf("%d different assertions", len(seen))
		}
	})
}

func TestAssertionIsNotRepeated(t *testing.T) {
	fake := replyToPosts()
	fake.tokens = []reply{{status: 400, header: asJSON, body: `{"error":"invalid_client","error_description":"bad assertion {assertion}"}`}}
	_, err := newClient(t, fake).SignIn(t.Context())
	e := asError(t, err)
	if got := e.Diagnostics.Reveal(); got != "bad assertion [secret]" {
		t.Errorf("diagnostics %q", got)
	}
	if strings.Contains(e.Error(), "assertion") {
		t.Errorf("error %v", e)
	}
}
