package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fault"
)

// ClientTokenLife is the lifetime of a client's access token. There is no refresh token: a client signs in again.
const ClientTokenLife = 15 * time.Minute

// The prefixes identify tokens and secrets to people and secret scanners, and distinguish client tokens from user tokens without a lookup.
const (
	tokenPrefix  = "ct_"
	secretPrefix = "cs_"
)

// MachineClientOptions are the options of [NewMachineClients].
type MachineClientOptions struct {
	TokenURL string         // token endpoint: the audience of client assertions
	Outbound *egress.Client // fetches JWKS documents
}

// MachineClients signs in machine clients and authenticates their access tokens. A client proves its identity with an assertion signed by its
// own key or with a secret; only the public key or a hash of the secret is stored. It is safe for concurrent use.
// Source: docs/decisions/authentication.md, "Clients".
type MachineClients struct {
	signer  *Signer
	options MachineClientOptions
	keys    keyCache
	cache   *async.Cache[cachedClient]
	used    clientUses
}

// NewMachineClients returns a MachineClients that signs tokens with the ring.
func NewMachineClients(ring Ring, options MachineClientOptions) *MachineClients {
	return &MachineClients{signer: NewSigner(ring), options: options, keys: keyCache{outbound: options.Outbound}, cache: async.NewCache[cachedClient](maxCachedClients)}
}

// UserAuthenticator authenticates a user's access token.
type UserAuthenticator interface {
	Authenticate(app core.App, token string, now time.Time) (Caller, error)
}

// TokenAuthenticator authenticates the access token of a user or a client. The prefix decides, so user tokens cost no extra lookup.
type TokenAuthenticator struct {
	Users   UserAuthenticator
	Clients *MachineClients
}

// Authenticate returns the holder of the token. It refuses with token_invalid or token_expired, and with not_authenticated for an empty token.
func (a TokenAuthenticator) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	if strings.HasPrefix(token, tokenPrefix) {
		return a.Clients.Authenticate(app, token, now)
	}
	return a.Users.Authenticate(app, token, now)
}

// errUnknownClientToken reports a token that names no client.
var errUnknownClientToken = errors.New("auth: token of no client")

// Authenticate returns the client of an access token. Status, allowed addresses and scopes come from the database; the token can only narrow the
// scopes.
func (mc *MachineClients) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	table, err := app.FindCachedCollectionByNameOrId(collections.Clients)
	if err != nil {
		return Caller{}, fmt.Errorf("find clients: %w", err)
	}
	var client cachedClient
	read, err := mc.signer.Check(strings.TrimPrefix(token, tokenPrefix), ClientToken, now, func(t TokenClaims) (Account, error) {
		if t.Collection != table.Id {
			return Account{}, errUnknownClientToken
		}
		found, err := mc.cachedClient(app, t.Holder, now)
		if collections.IsNotFound(err) {
			err = errUnknownClientToken
		}
		client = found
		return Account{TokenKey: found.tokenKey, Life: ClientTokenLife}, err
	})
	forged, expired := errors.Is(err, ErrInvalid) || errors.Is(err, errUnknownClientToken), errors.Is(err, ErrExpired)
	switch {
	case err != nil && !forged && !expired: // a server error, not a bad token
		return Caller{}, err
	case forged || !client.active:
		return Caller{}, fault.New(fault.Unauthenticated, "token_invalid", "The token is invalid.")
	case expired:
		return Caller{}, fault.New(fault.Unauthenticated, "token_expired", "The token has expired.")
	}
	if mc.used.record(client.ID, now) {
		if err := collections.MarkClientUsed(app, client.ID, now); err != nil {
			return Caller{}, err
		}
	}
	caller := client.Client
	caller.Scopes = authz.ParseClientScopes(strings.Fields(read.Scope)).Intersect(client.Scopes)
	return CallerOf(&caller), nil
}

// LastUsed returns the time of the client's last request. The stored value lags by up to a minute.
func (mc *MachineClients) LastUsed(c *collections.Client) time.Time {
	if noted := mc.used.latest(c.Id); noted.After(c.LastUsedAt()) {
		return noted
	}
	return c.LastUsedAt()
}

// Evict removes a client from the cache. Call it after the commit of every change: before it, a reader could cache the old state again.
func (mc *MachineClients) Evict(id string) { mc.cache.Evict(id) }

// cachedClient holds the client fields that a request needs.
type cachedClient struct {
	Client
	tokenKey string
	active   bool
}

// maxCachedClients bounds the client cache.
const maxCachedClients = 1000

// cachedClient returns the client from the cache or the database.
func (mc *MachineClients) cachedClient(app core.App, id string, now time.Time) (cachedClient, error) {
	return mc.cache.Get(id, now, func() (known cachedClient, err error) {
		record, err := collections.FindClient(app, id)
		if err != nil {
			return known, err
		}
		values := record.Values()
		known = cachedClient{tokenKey: record.TokenKey(), active: values.Active}
		known.Client = Client{ID: record.Id, Name: values.Name, Scopes: authz.ParseClientScopes(values.Scopes)}
		known.AllowedRanges, err = rangesOf(values)
		return known, err
	})
}

// rangesOf parses the client's allowed address ranges. An invalid range is an error, because ignoring it would allow more addresses.
func rangesOf(values collections.ClientValues) ([]netip.Prefix, error) {
	ranges := make([]netip.Prefix, len(values.AllowedCIDRs))
	for i, text := range values.AllowedCIDRs {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("range of a client: %w", err)
		}
		ranges[i] = prefix
	}
	return ranges, nil
}

// clientUses holds the time of each client's last request and when that was last stored. Storing once a minute saves writes.
type clientUses struct {
	lock     sync.Mutex
	byClient map[string]clientUse
}

type clientUse struct{ at, stored time.Time }

// record notes a request of the client and reports whether to store its time.
func (u *clientUses) record(id string, now time.Time) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	last, known := u.byClient[id]
	store := now.Sub(last.stored) >= time.Minute
	if store {
		last.stored = now
	}
	if u.byClient == nil || !known && len(u.byClient) >= maxCachedClients {
		u.byClient = map[string]clientUse{}
	}
	u.byClient[id] = clientUse{now, last.stored}
	return store
}

func (u *clientUses) latest(id string) time.Time {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.byClient[id].at
}

// Client is a machine client that makes a request, as loaded from the database.
type Client struct {
	ID, Name string
	// Scopes are the scopes of the token that the client still has.
	Scopes authz.ClientScopes
	// AllowedRanges lists the allowed address ranges; empty allows every address.
	AllowedRanges []netip.Prefix
}

// CallerOf returns the client as a caller.
func CallerOf(client *Client) Caller {
	return Caller{RecordID: client.ID, Role: authz.Client, Client: client}
}

// AllowsAddress reports whether the client may send requests from the address. An invalid address is allowed only without ranges.
func (c *Client) AllowsAddress(address string) bool {
	if len(c.AllowedRanges) == 0 {
		return true
	}
	at, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(c.AllowedRanges, func(r netip.Prefix) bool { return r.Contains(at.Unmap()) })
}

// IsAuthenticated reports whether the caller is a known user or client.
func (c Caller) IsAuthenticated() bool { return c.ID != 0 || c.Client != nil }
