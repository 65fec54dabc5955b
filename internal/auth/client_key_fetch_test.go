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

// ask is countFailedSignIns for somebody at an address who may stop waiting.
func ask(ctx context.Context, t *testing.T, e *auth.MachineClients, app core.App, assertion string, from audit.Origin) error {
	t.Helper()
	form := url.Values{
		"grant_type": {"client_credentials"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	asked, err := auth.ReadForm("application/x-www-form-urlencoded", []byte(form.Encode()), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.SignIn(ctx, app, asked, func(string) error { return nil }, from, clientClock)
	return err
}

// A stranger who knows a client's id and hangs up while its keys are fetched keeps the client out of nothing: what was asked for is fetched all
// the same, for whoever comes next.
func TestWhoeverHangsUp(t *testing.T) {
	app := vigiltest.NewApp(t)
	server := newKeyServer(t)
	e := newMachineClients("127.0.0.1")
	key := newKey(t)
	m := register(t, e, app, `{"name":"Cloud","scopes":["ingest"],"jwks_url":"`+server.URL+`/jwks"}`)
	ctx, hangUp := context.WithCancel(t.Context())
	server.publish(published(t, map[string]*ecdsa.PrivateKey{"1": key}))
	hangUp()
	_ = ask(ctx, t, e, app, assertion(t, newKey(t), "1", m.Client.Id, "forged", clientClock), clientOrigin) // whatever a stranger hears
	if _, err := signIn(t, e, app, assertion(t, key, "1", m.Client.Id, "good", clientClock), clientClock); err != nil || server.asked.Load() != 1 {
		t.Errorf("the client is told %v (%s), and its keys were asked for %d times", err, reason(t, app), server.asked.Load())
	}
}

// Nothing is fetched for a client that would not be let in anyway.
func TestNothingIsFetchedInVain(t *testing.T) {
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
		err := ask(t.Context(), t, e, app, assertion(t, key, "1", m.Client.Id, "1", clientClock), clientOrigin)
		if clientErrorCode(err) != "invalid_client" || server.asked.Load() != 0 || reason(t, app) != why {
			t.Errorf("%s: %v (%s), and the keys were asked for %d times", body, err, reason(t, app), server.asked.Load())
		}
	}
}

// A request reads the clock when it comes, and may wait for keys after that: what it brings is still known to have been used when others have long
// come after its end.
func TestOnceForWhoWaited(t *testing.T) {
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
	if _, err := signIn(t, e, app, seen, ends.Add(-time.Second)); clientErrorCode(err) != "invalid_client" { // it came before the end, and waited
		t.Errorf("used twice: %v", err)
	}
}
