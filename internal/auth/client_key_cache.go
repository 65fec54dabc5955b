package auth

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/vigilhealth/vigil/internal/egress"
)

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
