package notifications_test

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// browser is a test receiver on one device.
type browser struct{ *vigiltest.PushReceiver }

func newBrowser(t testing.TB) *browser {
	t.Helper()
	return &browser{vigiltest.NewPushReceiver(t)}
}

func (b *browser) subscribe(endpoint string) string { return b.Subscription(endpoint) }

func (b *browser) open(body []byte) (map[string]any, error) { return b.Open(body) }

// received is one request to the push service.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// pushService answers as the test sets it, by path, and records the requests.
type pushService struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
	answer   func(w http.ResponseWriter, r *http.Request, earlier int)
}

func newPushService(t testing.TB) *pushService {
	t.Helper()
	s := &pushService{answer: func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(http.StatusCreated) }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		earlier := 0
		for _, one := range s.requests {
			if one.path == r.URL.Path {
				earlier++
			}
		}
		s.requests = append(s.requests, received{r.URL.Path, r.Header, body})
		s.mu.Unlock()
		s.answer(w, r, earlier)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *pushService) host() string { return strings.TrimPrefix(s.URL, "http://") }

// got returns the requests to a path, or all for "".
func (s *pushService) got(path string) (requests []received) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.requests {
		if path == "" || one.path == path {
			requests = append(requests, one)
		}
	}
	return requests
}

// checkVAPID verifies signature and claims. Source: RFC 8292, sections 2 and 3.
func checkVAPID(t *testing.T, header, publicKey, audience string, subject string) {
	t.Helper()
	token, key, found := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	parts := strings.Split(token, ".")
	if !found || key != publicKey || len(parts) != 3 {
		t.Fatalf("Authorization is %q", header)
	}
	raw, err := base64.RawURLEncoding.DecodeString(key)
	if err != nil || len(raw) != 65 {
		t.Fatal("the key is", len(raw), "bytes long", err)
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), raw)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || len(signature) != 64 || !ecdsa.Verify(public, sum[:], new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])) {
		t.Error("the signature is not valid")
	}
	var head struct{ Alg string }
	var claims struct {
		Aud, Sub string
		Exp      int64
	}
	for i, into := range []any{&head, &claims} {
		part, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(part, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	left := time.Until(time.Unix(claims.Exp, 0))
	if head.Alg != "ES256" || claims.Aud != audience || claims.Sub != subject || left <= 0 || left > 12*time.Hour {
		t.Errorf("%s token for %s by %s, valid for %v", head.Alg, claims.Aud, claims.Sub, left)
	}
}

// newKeys returns a VAPID key pair.
func newKeys(t testing.TB, subject string) notifications.PushKeys {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return notifications.PushKeys{Public: encode(key.PublicKey().Bytes()), Private: encode(key.Bytes()), Subject: subject}
}
