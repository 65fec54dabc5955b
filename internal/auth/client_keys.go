package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/vigilhealth/vigil/internal/egress"
)

// Limits of a key set.
const (
	maxKeys        = 20
	maxKeySetBytes = 64 << 10
	minRSABits     = 2048
	maxRSABits     = 8192 // checking a signature under a larger key costs too much CPU
)

// Signature algorithms that SMART requires. Source: HL7 SMART App Launch 2, "Client Authentication: Asymmetric".
var (
	rs384 = jwt.SigningMethodRS384.Alg()
	es384 = jwt.SigningMethodES384.Alg()
)

// keySet holds public keys that verify assertions.
type keySet []jose.JSONWebKey

// find returns the key with the id and algorithm, or nil.
func (s keySet) find(kid, alg string) crypto.PublicKey {
	for _, key := range s {
		if key.KeyID == kid && signingAlgorithm(key) == alg {
			return key.Key
		}
	}
	return nil
}

// signingAlgorithm returns the algorithm with which the key may sign assertions, or "" if none.
func signingAlgorithm(key jose.JSONWebKey) string {
	if key.KeyID == "" || key.Use != "" && key.Use != "sig" || !key.Valid() {
		return ""
	}
	alg := ""
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= minRSABits && bits <= maxRSABits && public.E > 2 && public.E%2 == 1 {
			alg = rs384
		}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P384() {
			alg = es384
		}
	}
	if key.Algorithm != "" && key.Algorithm != alg {
		return ""
	}
	return alg
}

// Errors of a key set.
var (
	errNotKeySet      = errors.New("must be a JSON Web Key Set: {\"keys\": [...]}")
	errTooManyKeys    = errors.New("must have at most 20 keys")
	errPrivateKey     = errors.New("must contain public keys only: a private key must not leave its owner")
	errUnsupportedKey = errors.New("must contain only keys with a unique kid: RSA of 2048 to 8192 bits for RS384, or EC on P-384 for ES384")
	errNoKeys         = errors.New("must have at least one key")
)

func splitKeySet(raw []byte) ([]json.RawMessage, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil || set.Keys == nil {
		return nil, errNotKeySet
	}
	if len(set.Keys) > maxKeys {
		return nil, errTooManyKeys
	}
	return set.Keys, nil
}

// parseConfiguredKeys parses the keys that an administrator entered. Every key must be usable.
func parseConfiguredKeys(raw []byte) (keySet, error) {
	members, err := splitKeySet(raw)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		return nil, errNoKeys
	}
	keys, names := keySet{}, map[string]bool{}
	for _, member := range members {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(member); err != nil {
			return nil, errUnsupportedKey
		}
		if !key.IsPublic() {
			return nil, errPrivateKey
		}
		if signingAlgorithm(key) == "" || names[key.KeyID] {
			return nil, errUnsupportedKey
		}
		names[key.KeyID] = true
		keys = append(keys, key)
	}
	return keys, nil
}

// parsePublishedKeys parses the keys that a client publishes and skips keys with other uses.
func parsePublishedKeys(raw []byte) (keySet, error) {
	members, err := splitKeySet(raw)
	if err != nil {
		return nil, err
	}
	keys := keySet{}
	for _, member := range members {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(member) == nil && key.IsPublic() && signingAlgorithm(key) != "" {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// encode returns the keys in the stored format.
func (s keySet) encode() (json.RawMessage, error) { return json.Marshal(jose.JSONWebKeySet{Keys: s}) }

// keyIDs returns the key ids, for the audit trail.
func (s keySet) keyIDs() []string {
	names := make([]string, len(s))
	for i, key := range s {
		names[i] = key.KeyID
	}
	return names
}

// Caching of a client's published keys. Source: docs/decisions/authentication.md, "Clients".
const (
	keyRefreshInterval = 10 * time.Minute // age at which keys are fetched again
	maxKeyAge          = time.Hour        // age up to which keys are used while fetching fails
	fetchRetryInterval = 5 * time.Second  // after a failed fetch
	unknownKeyInterval = time.Minute      // between fetches for an unknown key id
	fetchTimeout       = 5 * time.Second
	maxKeySources      = 1000
)

// errUnknownKey reports that the client has no key with the id and algorithm.
var errUnknownKey = errors.New("no such key")

// NewOutbound returns the HTTP client that fetches clients' keys. devHosts may be reached over plain http, for development.
func NewOutbound(devHosts []string) *egress.Client {
	return egress.New(egress.Options{Timeout: fetchTimeout, DevHosts: devHosts})
}

// keyCache caches the keys that clients publish.
type keyCache struct {
	outbound *egress.Client
	lock     sync.Mutex
	sources  map[[2]string]*keySource // by client id and URL
}

// keySource is one client's JWKS document. One request at a time fetches it; concurrent requests wait for the result.
type keySource struct {
	lock         sync.Mutex
	keys         keySet
	readAt       time.Time // time of the last successful fetch
	triedAt      time.Time
	unknownKeyAt time.Time // time of the last fetch for an unknown key id
}

// find returns the client's published key with the id and algorithm.
func (c *keyCache) find(ctx context.Context, clientID, url, kid, alg string, now time.Time) (crypto.PublicKey, error) {
	s := c.source([2]string{clientID, url})
	s.lock.Lock()
	defer s.lock.Unlock()
	var fetchErr error
	fetched := false
	if now.Sub(s.readAt) >= keyRefreshInterval && now.Sub(s.triedAt) >= fetchRetryInterval {
		fetched, fetchErr = true, c.fetch(ctx, s, url, now)
	}
	if now.Sub(s.readAt) >= maxKeyAge {
		s.keys = nil
	}
	key := s.keys.find(kid, alg)
	if key == nil && !fetched && s.keys != nil && now.Sub(s.unknownKeyAt) >= unknownKeyInterval {
		s.unknownKeyAt = now
		fetchErr = c.fetch(ctx, s, url, now)
		key = s.keys.find(kid, alg)
	}
	switch {
	case key != nil:
		return key, nil
	case fetchErr != nil:
		return nil, fetchErr
	}
	return nil, errUnknownKey
}

func (c *keyCache) source(at [2]string) *keySource {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s, known := c.sources[at]; known {
		return s
	}
	if c.sources == nil || len(c.sources) >= maxKeySources {
		c.sources = map[[2]string]*keySource{}
	}
	s := &keySource{}
	c.sources[at] = s
	return s
}

// fetch updates the cached keys. On an error the cached keys stay.
func (c *keyCache) fetch(ctx context.Context, s *keySource, url string, now time.Time) error {
	s.triedAt = now
	raw, err := c.read(ctx, url)
	if err != nil {
		return err
	}
	keys, err := parsePublishedKeys(raw)
	if err != nil {
		return fmt.Errorf("keys of a client: %w", err)
	}
	s.keys, s.readAt = keys, now
	return nil
}

// errFetch hides the URL and the response from the caller.
var errFetch = errors.New("the keys could not be fetched")

// read fetches the document. It continues after the caller disconnects, because anyone can send a request with a client's id and the result also
// serves the client's own requests. The HTTP client's timeout bounds it.
func (c *keyCache) read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, nil)
	if err != nil {
		return nil, errFetch
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	response, err := c.outbound.Do(request)
	if errors.Is(err, egress.ErrAddress) {
		return nil, egress.ErrAddress
	}
	if err != nil {
		return nil, errFetch
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", errFetch, response.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxKeySetBytes+1))
	if err != nil || len(raw) > maxKeySetBytes {
		return nil, errFetch
	}
	return raw, nil
}
