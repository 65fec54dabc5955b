package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/descope/virtualwebauthn"
)

// named returns the service's address with a host name, because browsers create no passkeys for IP addresses.
func (w *week) named() string { return strings.Replace(w.URL, "127.0.0.1", "localhost", 1) }

// passkey adds a passkey, signs in with it, has a cloned one refused, and removes it.
func (w *week) passkey() {
	w.t.Helper()
	as, proof := w.as(visitor), object{"password": password}
	here := virtualwebauthn.RelyingParty{ID: "localhost", Name: "RPM", Origin: w.named()}
	holds, key := virtualwebauthn.NewAuthenticator(), virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeRSA)
	offered := w.post(w.t, "/api/v1/auth/passkeys/registration-options/", as, proof).expect(w.t, http.StatusOK)
	asked, err := virtualwebauthn.ParseAttestationOptions(string(offered.body))
	if err != nil {
		w.t.Fatal(err)
	}
	holds.Options.UserHandle = []byte(asked.UserID)
	made := json.RawMessage(virtualwebauthn.CreateAttestationResponse(here, holds, key, *asked))
	id := at(w.t, w.post(w.t, "/api/v1/auth/passkeys/", as, object{"name": "Key", "credential": made}).expect(w.t, http.StatusCreated), "id")
	w.usePasskey(here, holds, key, 5).expect(w.t, http.StatusOK)
	w.usePasskey(here, holds, key, 2).expect(w.t, http.StatusUnauthorized)
	w.send(w.t, http.MethodDelete, fmt.Sprintf("/api/v1/auth/passkeys/%.0f/", id), as, encode(w.t, proof)).expect(w.t, http.StatusNoContent)
}

// usePasskey signs in with a passkey alone; count is the signature counter of its device.
func (w *week) usePasskey(here virtualwebauthn.RelyingParty, holds virtualwebauthn.Authenticator, key virtualwebauthn.Credential, count uint32) answer {
	w.t.Helper()
	offered := w.post(w.t, "/api/v1/auth/passkeys/authentication-options/", "", object{}).expect(w.t, http.StatusOK)
	asked, err := virtualwebauthn.ParseAssertionOptions(string(offered.body))
	if err != nil {
		w.t.Fatal(err)
	}
	key.Counter = count
	return w.post(w.t, "/api/v1/auth/passkeys/authenticate/", "", object{"credential": json.RawMessage(virtualwebauthn.CreateAssertionResponse(here, holds, key, *asked))})
}
