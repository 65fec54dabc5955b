package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
)

// The state parameter contains its expiry and a keyed hash of itself and the browser's cookie, so only the browser that began the sign-in can
// complete it. Nonce and code verifier are derived from both, so neither URL reveals them. Source: OpenID Connect Core 1.0, sections 3.1.2.1 and
// 15.5.2; RFC 7636; RFC 9700, section 4.7.1.
const (
	cookieBytes = 32
	stateLife   = 10 * time.Minute
	stateRandom = 16
	stateEnd    = stateRandom + 8
	stateBytes  = stateEnd + sha256.Size
)

// oauthState holds the values of one sign-in, derived from the state parameter and the cookie.
type oauthState struct {
	text, cookie, nonce, verifier string
	ends                          time.Time
}

// stateKey authenticates the states of one provider.
type stateKey []byte

// BrowserSecret returns a new value for the cookie that binds sign-ins to a browser.
func BrowserSecret() string {
	secret := make([]byte, cookieBytes)
	_, _ = rand.Read(secret) // never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}

// begin returns a new state. A browser that is already in another sign-in keeps its cookie, so that
// sign-ins in two tabs can both complete.
func (k stateKey) begin(cookie string, now time.Time) oauthState {
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(cookie); err != nil || len(raw) != cookieBytes {
		cookie = BrowserSecret()
	}
	head := make([]byte, stateEnd)
	_, _ = rand.Read(head[:stateRandom]) // never fails
	ends := now.Add(stateLife)
	binary.BigEndian.PutUint64(head[stateRandom:], uint64(ends.UnixMicro()))
	return k.derive(head, cookie, ends)
}

func (k stateKey) derive(head []byte, cookie string, ends time.Time) oauthState {
	mac := func(what string) []byte { return phi.MAC(k, what+"\x00"+string(head)+cookie) } // the head has a fixed length
	return oauthState{
		text: base64.RawURLEncoding.EncodeToString(append(head, mac("state")...)), cookie: cookie, ends: ends,
		nonce: base64.RawURLEncoding.EncodeToString(mac("nonce")), verifier: base64.RawURLEncoding.EncodeToString(mac("verifier")),
	}
}

// read refuses a state that this browser did not begin or that has expired.
func (k stateKey) read(text, cookie string, now time.Time) (oauthState, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != stateBytes || cookie == "" {
		return oauthState{}, UnknownState()
	}
	ends := time.UnixMicro(int64(binary.BigEndian.Uint64(raw[stateRandom:stateEnd]))).UTC() //nolint:gosec // a forged one is refused below
	s := k.derive(raw[:stateEnd:stateEnd], cookie, ends)
	if !hmac.Equal([]byte(s.text), []byte(text)) || !now.Before(ends) {
		return oauthState{}, UnknownState()
	}
	return s, nil
}

// UnknownState is the fault for a sign-in that this browser did not begin, that has expired, or that was completed before.
func UnknownState() error {
	return fault.State("invalid_oauth_state", "This sign-in was not begun in this browser, or too long ago. Begin again.")
}
