package auth_test

import (
	"context"
	"crypto/ecdsa"
	"net/url"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// signInFrom signs in with an assertion from an origin, under a context that may be canceled.
func signInFrom(ctx context.Context, t *testing.T, e *auth.MachineClients, app core.App, assertion string, from audit.Origin) error {
	t.Helper()
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	request, err := auth.ReadTokenRequest("application/x-www-form-urlencoded", []byte(form.Encode()), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.SignIn(ctx, app, request, func(string) error { return nil }, from, clientClock)
	return err
}

// TestCanceledRequestStillFetchesKeys: a caller who uses a client's id and disconnects while the keys are fetched does not block the client,
// because the fetch completes for the next request.
func TestCanceledRequestStillFetchesKeys(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	e := newMachineClients("127.0.0.1")
	key := newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
	ctx, cancel := context.WithCancel(t.Context())
	server.publish(published(t, map[string]*ecdsa.PrivateKey{"1": key}))
	cancel()
	_ = signInFrom(ctx, t, e, app, assertion(t, newKey(t), "1", m.Client.Id, "forged", clientClock), clientOrigin)
	if _, err := signIn(t, e, app, assertion(t, key, "1", m.Client.Id, "good", clientClock), clientClock); err != nil || server.requests.Load() != 1 {
		t.Errorf("the client gets %v (%s), and its keys were fetched %d times", err, reason(t, app), server.requests.Load())
	}
}

// TestNoFetchForRefusedClients checks that keys are not fetched for a client that is refused anyway.
func TestNoFetchForRefusedClients(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	e := newMachineClients("127.0.0.1")
	key := newKey(t)
	server.publish(published(t, map[string]*ecdsa.PrivateKey{"1": key}))
	for body, why := range map[string]string{
		`"active":false`:                      "the client is not active",
		`"allowed_cidrs":["198.51.100.0/24"]`: "the address is not one of the client's",
	} {
		m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks",`+body+`}`)
		err := signInFrom(t.Context(), t, e, app, assertion(t, key, "1", m.Client.Id, "1", clientClock), clientOrigin)
		if clientErrorCode(err) != "invalid_client" || server.requests.Load() != 0 || reason(t, app) != why {
			t.Errorf("%s: %v (%s), and the keys were fetched %d times", body, err, reason(t, app), server.requests.Load())
		}
	}
}

// TestAssertionWorksOnceAfterWaiting: a request reads the clock on arrival and may then wait for keys, so a jti stays stored for a while after
// the assertion's expiry.
func TestAssertionWorksOnceAfterWaiting(t *testing.T) {
	app := vigiltest.NewApp(t)
	e, key := newMachineClients(), newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks":`+string(published(t, map[string]*ecdsa.PrivateKey{"a": key}))+`}`)
	seen := assertion(t, key, "a", m.Client.Id, "1", clientClock)
	ends := clientClock.Add(4 * time.Minute)
	if _, err := signIn(t, e, app, seen, ends.Add(-2*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := signIn(t, e, app, assertion(t, key, "a", m.Client.Id, "2", ends), ends.Add(20*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := signIn(t, e, app, seen, ends.Add(-time.Second)); clientErrorCode(err) != "invalid_client" { // arrived before the expiry and waited
		t.Errorf("used twice: %v", err)
	}
}
