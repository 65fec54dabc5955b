// Package clients knows machines that sign in with credentials of their own: what an administrator says of one, how it proves who it is, by an
// assertion under its own key or by a secret, and which of its scopes a token carries until when. It refuses to know what a scope opens, which
// is access's matter, and it never keeps a secret or a private key: of the one it has a hash, of the other the public half.
// Source: docs/decisions/authentication.md, "Clients".
package auth

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"

	"github.com/vigilhealth/vigil/internal/async"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Life is how long an access token lasts. There is no refresh: a client signs in again.
const Life = 15 * time.Minute

// Prefixes tell what a text is, to people and to programs that look for secrets in the wrong places, and tokens of clients from those of people
// before anything is looked up.
const (
	tokenPrefix  = "ct_"
	secretPrefix = "cs_"
)

// MachineClientOptions of the engine.
type MachineClientOptions struct {
	TokenURL string         // where clients sign in: the audience of their assertions
	Outbound *egress.Client // fetches their keys
}

// MachineClients signs clients in and recognises them. It is safe for concurrent use.
type MachineClients struct {
	signer  *Signer
	options MachineClientOptions
	keys    keyCache
	known   *async.Cache[knownClient]
	used    uses
}

// NewMachineClients returns an engine.
func NewMachineClients(ring Ring, options MachineClientOptions) *MachineClients {
	return &MachineClients{signer: NewSigner(ring), options: options, keys: keyCache{outbound: options.Outbound}, known: async.NewCache[knownClient](rememberedClients)}
}

// People tells which person holds an access token.
type People interface {
	Authenticate(app core.App, token string, now time.Time) (Caller, error)
}

// Holders tells who holds an access token, a person or a client. A person's token costs nothing more for it.
type Holders struct {
	People  People
	Clients *MachineClients
}

// Authenticate returns the holder of the token, or the fault token_invalid or token_expired; not_authenticated for no token.
func (b Holders) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	if strings.HasPrefix(token, tokenPrefix) {
		return b.Clients.Authenticate(app, token, now)
	}
	return b.People.Authenticate(app, token, now)
}

// errUnknownClientToken is said of tokens that name no client.
var errUnknownClientToken = errors.New("not a token of a client")

// Authenticate returns the client of an access token. What it may do, from where, and whether it may be used at all is the database's, not
// the token's: the token can only carry less.
func (e *MachineClients) Authenticate(app core.App, token string, now time.Time) (Caller, error) {
	table, err := app.FindCachedCollectionByNameOrId(collections.Clients)
	if err != nil {
		return Caller{}, fmt.Errorf("find clients: %w", err)
	}
	var client knownClient
	read, err := e.signer.Check(strings.TrimPrefix(token, tokenPrefix), ClientToken, now, func(t TokenClaims) (Account, error) {
		if t.Collection != table.Id {
			return Account{}, errUnknownClientToken
		}
		found, err := e.knownClient(app, t.Holder, now)
		if collections.IsNotFound(err) {
			err = errUnknownClientToken
		}
		client = found
		return Account{TokenKey: found.tokenKey, Life: Life}, err
	})
	forged, expired := errors.Is(err, ErrInvalid) || errors.Is(err, errUnknownClientToken), errors.Is(err, ErrExpired)
	switch {
	case err != nil && !forged && !expired: // ours, not the token's
		return Caller{}, err
	case forged || !client.active:
		return Caller{}, fault.New(fault.Unauthenticated, "token_invalid", "The token is invalid.")
	case expired:
		return Caller{}, fault.New(fault.Unauthenticated, "token_expired", "The token has expired.")
	}
	if e.used.due(client.ID, now) {
		if err := collections.MarkClientUsed(app, client.ID, now); err != nil {
			return Caller{}, err
		}
	}
	caller := client.Client
	caller.Scopes = authz.ReadClientScopes(strings.Fields(read.Scope)).Within(client.Scopes)
	return CallerOf(&caller), nil
}

// LastUsed is when a client was last heard of, which is stored to the minute only.
func (e *MachineClients) LastUsed(c *collections.Client) time.Time {
	if noted := e.used.latest(c.Id); noted.After(c.LastUsedAt()) {
		return noted
	}
	return c.LastUsedAt()
}

// Forget drops what is remembered of a client. It is called after every change of one has been committed: before the commit, the old state
// could be read and remembered again.
func (e *MachineClients) Forget(id string) { e.known.Forget(id) }

// knownClient is what a request needs to know of a client.
type knownClient struct {
	Client
	tokenKey string
	active   bool
}

// rememberedClients bounds the memory.
const rememberedClients = 1000

// knownClient returns what a request needs to know of a client.
func (e *MachineClients) knownClient(app core.App, id string, now time.Time) (knownClient, error) {
	return e.known.Find(id, now, func() (known knownClient, err error) {
		record, err := collections.FindClient(app, id)
		if err != nil {
			return known, err
		}
		values := record.Values()
		known = knownClient{tokenKey: record.TokenKey(), active: values.Active}
		known.Client = Client{ID: record.Id, Name: values.Name, Scopes: authz.ReadClientScopes(values.Scopes)}
		known.From, err = rangesOf(values)
		return known, err
	})
}

// rangesOf are the ranges of addresses that a client is let in from. One that cannot be read is an error: left out, it would let in more.
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

// uses remembers when each client was last heard of, and when that was last stored: once a minute is exact enough, and spares the writes.
type uses struct {
	lock sync.Mutex
	of   map[string]use
}

type use struct{ at, stored time.Time }

// due notes a use and reports whether it is to be stored.
func (u *uses) due(id string, now time.Time) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	last, known := u.of[id]
	store := now.Sub(last.stored) >= time.Minute
	if store {
		last.stored = now
	}
	if u.of == nil || !known && len(u.of) >= rememberedClients {
		u.of = map[string]use{}
	}
	u.of[id] = use{now, last.stored}
	return store
}

func (u *uses) latest(id string) time.Time {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.of[id].at
}
