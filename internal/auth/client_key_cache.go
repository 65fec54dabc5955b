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

// How long keys that were fetched are good, and how often they are fetched. Source: docs/decisions/authentication.md, "Clients".
const (
	freshKeys    = 10 * time.Minute // then they are fetched again
	staleKeys    = time.Hour        // until then they do while they cannot be fetched
	betweenTries = 5 * time.Second  // after one that failed
	unknownKey   = time.Minute      // between fetches because of a key that nobody knows
	fetchTimeout = 5 * time.Second
	mostSources  = 1000
)

// errUnknownKey says that a client has no key by that name for that way of signing.
var errUnknownKey = errors.New("no such key")

// NewOutbound is what fetches the keys of clients. devHosts are those of developers.
func NewOutbound(devHosts []string) *egress.Client {
	return egress.New(egress.Options{Timeout: fetchTimeout, DevHosts: devHosts})
}

// keyCache remembers the keys that clients publish.
type keyCache struct {
	outbound *egress.Client
	lock     sync.Mutex
	known    map[[2]string]*keySource // by client and address
}

// keySource is where one client publishes its keys. One request at a time asks; the others wait for what it brings.
type keySource struct {
	lock    sync.Mutex
	keys    keySet
	readAt  time.Time // when they came
	triedAt time.Time
	askedAt time.Time // when a key that nobody knew was last asked for
}

// find returns the key that a client publishes under a name.
func (c *keyCache) find(ctx context.Context, clientID, url, kid, alg string, now time.Time) (crypto.PublicKey, error) {
	s := c.source([2]string{clientID, url})
	s.lock.Lock()
	defer s.lock.Unlock()
	var failed error
	fetched := false
	if now.Sub(s.readAt) >= freshKeys && now.Sub(s.triedAt) >= betweenTries {
		fetched, failed = true, c.fetch(ctx, s, url, now)
	}
	if now.Sub(s.readAt) >= staleKeys {
		s.keys = nil
	}
	key := s.keys.find(kid, alg)
	if key == nil && !fetched && s.keys != nil && now.Sub(s.askedAt) >= unknownKey {
		s.askedAt = now
		failed = c.fetch(ctx, s, url, now)
		key = s.keys.find(kid, alg)
	}
	switch {
	case key != nil:
		return key, nil
	case failed != nil:
		return nil, failed
	}
	return nil, errUnknownKey
}

func (c *keyCache) source(at [2]string) *keySource {
	c.lock.Lock()
	defer c.lock.Unlock()
	if s, known := c.known[at]; known {
		return s
	}
	if c.known == nil || len(c.known) >= mostSources {
		c.known = map[[2]string]*keySource{}
	}
	s := &keySource{}
	c.known[at] = s
	return s
}

// fetch brings the keys. What goes wrong leaves those that are there.
func (c *keyCache) fetch(ctx context.Context, s *keySource, url string, now time.Time) error {
	s.triedAt = now
	raw, err := c.read(ctx, url)
	if err != nil {
		return err
	}
	keys, err := parseFetched(raw)
	if err != nil {
		return fmt.Errorf("keys of a client: %w", err)
	}
	s.keys, s.readAt = keys, now
	return nil
}

// errFetch hides the address and whatever the other side said.
var errFetch = errors.New("the keys could not be fetched")

// read is not cut short when whoever asked hangs up: anybody may ask in a client's name, and the answer is for the client, too. It has a bound of its own.
func (c *keyCache) read(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, url, nil)
	if err != nil {
		return nil, errFetch
	}
	request.Header.Set("Accept", "application/jwk-set+json, application/json")
	answer, err := c.outbound.Do(request)
	if errors.Is(err, egress.ErrAddress) {
		return nil, egress.ErrAddress
	}
	if err != nil {
		return nil, errFetch
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: status %d", errFetch, answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, mostKeyData+1))
	if err != nil || len(raw) > mostKeyData {
		return nil, errFetch
	}
	return raw, nil
}
