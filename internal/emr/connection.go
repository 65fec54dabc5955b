// Package connection knows how the practice is connected with its EMR: who started an interactive sign-in and with which one-time state,
// whose tokens are kept, and when they end. It refuses to know how the EMR is spoken to, which is internal/emr, and no token ever leaves it
// but to that package and, encrypted, to storage.
package emr

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"

	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// stateLifetime bounds the way through the EMR's pages. Source: docs/decisions/emr.md, "OAuth start".
	stateLifetime = 10 * time.Minute
	// stateMemory is how long ended states stay, for whoever looks into it.
	stateMemory = 24 * time.Hour
	stateBytes  = 32
	// verifierBytes become 64 characters of base64url.
	verifierBytes = 48
	// warnBefore is how long before the end of the connection administrators hear of it. Source: docs/decisions/emr.md, "Token storage".
	warnBefore = 24 * time.Hour

	resource = audit.ResourceEMRConnection
)

// Started is where to send the person's browser, and the state that will come back with it.
type Started struct{ AuthorizationURL, State string }

// Start makes state and verifier for one sign-in of a user (record id) and keeps them: the state hashed, the verifier encrypted.
// Without settings the error is an *emr.Error with the code CodeNotConfigured. Source: docs/decisions/emr.md, "OAuth start"; RFC 7636.
func Start(app core.App, client *Client, userID string, by audit.Actor, now time.Time) (Started, error) {
	state, verifier := secret(stateBytes), secret(verifierBytes)
	address, err := client.AuthorizationURL(state, verifier)
	if err != nil {
		return Started{}, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		err := collections.AddEMRAuthState(tx, auth.Hash(state), userID, phi.Text(verifier), now, now.Add(stateLifetime), now.Add(-stateMemory))
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRAuth, Actor: by, ResourceType: resource, ResourceID: string(InteractiveFlow)}, now)
	})
	if err != nil {
		return Started{}, fmt.Errorf("start EMR sign-in: %w", err)
	}
	return Started{address, state}, nil
}

// secret is that many random bytes in base64url.
func secret(size int) string {
	raw := make([]byte, size)
	_, _ = io.ReadFull(rand.Reader, raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Callback is what the EMR sent the browser back with. It refuses to print its secrets.
type Callback struct {
	State, Code phi.Text
	Error       string // set when the person or the EMR said no
}

// Finish takes the state, which is the caller's only proof and good for one try, swaps the code and keeps the tokens. The faults are
// invalid_oauth_state, emr_authorization_denied and emr_token_exchange_failed. clock is read again after the EMR has answered.
// Source: docs/decisions/emr.md, "Callback".
func Finish(ctx context.Context, app core.App, client *Client, back Callback, from audit.Origin, clock func() time.Time) (Tokens, error) {
	user, verifier, err := useAuthState(app, back.State.Reveal(), clock())
	if err != nil {
		return Tokens{}, err
	}
	by := audit.User(user.Number(), user.Email(), user.Role(), from)
	refuse := func(f *fault.Error) error {
		return errors.Join(f, audit.Append(app, audit.Entry{
			Event: audit.EMRToken, Outcome: audit.MinorFailure, Actor: by, ResourceType: resource, ResourceID: string(InteractiveFlow),
		}, clock()))
	}
	if back.Error != "" || back.Code == "" {
		return Tokens{}, refuse(fault.New(fault.Invalid, "emr_authorization_denied", "The EMR did not authorize the connection."))
	}
	tokens, err := client.Exchange(ctx, back.Code.Reveal(), verifier.Reveal(), user.Email())
	if err != nil {
		f := fault.New(fault.Upstream, "emr_token_exchange_failed", "The EMR did not give a token.").Because(err)
		if e, ok := errors.AsType[*Error](err); ok {
			f = f.With("upstream_status", statusOf(e))
		}
		return Tokens{}, refuse(f)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if err := store(tx, InteractiveFlow, tokens); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRToken, Actor: by, ResourceType: resource, ResourceID: string(InteractiveFlow)}, clock())
	})
	if err != nil {
		return Tokens{}, fmt.Errorf("store EMR tokens: %w", err)
	}
	client.Adopt(tokens)
	return tokens, nil
}

// statusOf is the EMR's status, nil without an answer.
func statusOf(e *Error) any {
	if e.Status == 0 {
		return nil
	}
	return e.Status
}

// useAuthState uses the state up. Who started must still be an active administrator.
func useAuthState(app core.App, state string, now time.Time) (user *collections.User, verifier phi.Text, err error) {
	invalid := fault.New(fault.Invalid, "invalid_oauth_state", "The sign-in at the EMR was not started here, was finished before or took too long. Start again.")
	err = app.RunInTransaction(func(tx core.App) (err error) {
		userID, v, err := collections.UseEMRAuthState(tx, auth.Hash(state), now)
		if err != nil {
			return err
		}
		verifier = v
		user, err = collections.FindUser(tx, userID)
		return err
	})
	switch {
	case collections.IsNotFound(err):
		return nil, "", invalid
	case err != nil:
		return nil, "", fmt.Errorf("take EMR sign-in: %w", err)
	case !user.Active() || authz.Reach(authz.Role(user.Role()), authz.ConnectEMR) == authz.None:
		return nil, "", invalid
	}
	return user, verifier, nil
}

// Status is how the practice is connected. Zero times are unknown.
type Status struct {
	BackendConfigured  bool
	BackendLastSuccess time.Time
	// Connected says that a usable interactive token exists; TokenExpires is that of its access token.
	Connected      bool
	TokenExpires   time.Time
	RefreshExpires time.Time
	ConnectedBy    string
	Scopes         []string // of the interactive token, else of the service's own; never nil
}

// StatusOf reads the status without asking the EMR. Source: docs/decisions/emr.md, "Auth status and tests".
func StatusOf(client *Client, now time.Time) (Status, error) {
	tokens, err := client.Connection()
	if err != nil {
		return Status{}, err
	}
	last := client.LastSignIn()
	s := Status{BackendConfigured: client.HasBackendService(), BackendLastSuccess: last.At, Scopes: Scopes(last.Scope)}
	if tokens.Usable(now) {
		s.Connected, s.TokenExpires, s.RefreshExpires, s.ConnectedBy = true, tokens.ExpiresAt, tokens.RefreshExpiresAt, tokens.ConnectedBy
		s.Scopes = Scopes(tokens.Scope)
	}
	return s, nil
}

// Scopes splits a granted scope; never nil.
func Scopes(scope string) []string { return append([]string{}, strings.Fields(scope)...) }

// WarnOfEnd announces to the administrators, once, that the interactive connection ends within a day, and returns whether it does.
func WarnOfEnd(app core.App, client *Client, now time.Time) (ending bool, err error) {
	tokens, err := client.Connection()
	if err != nil || tokens.Refresh == "" || !now.Before(tokens.RefreshExpiresAt) || now.Before(tokens.RefreshExpiresAt.Add(-warnBefore)) {
		return false, err
	}
	return true, app.RunInTransaction(func(tx core.App) error {
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.ServiceTrouble, Severity: "warning", Key: "emr_connection_ends:" + collections.Instant(tokens.RefreshExpiresAt),
			Body: "The connection with the EMR ends within a day. An administrator signs in at the EMR again to keep it.",
		}, now)
	})
}

// NewVault keeps the EMR client's tokens in the database, encrypted, one row for each flow. It holds the app for the client, which knows no
// storage. Source: docs/decisions/emr.md, "Token storage".
func NewVault(app core.App, clock func() time.Time) Vault { return vault{app, clock} }

type vault struct {
	app   core.App
	clock func() time.Time
}

// Load implements [emr.Vault].
func (v vault) Load(flow Flow) (Tokens, error) {
	t, err := collections.FindEMRToken(v.app, string(flow))
	if collections.IsNotFound(err) || collections.IsUnreadable(err) { // either way new ones are asked for
		return Tokens{}, nil
	}
	if err != nil {
		return Tokens{}, err
	}
	return Tokens{
		Access: t.AccessToken, Refresh: t.RefreshToken, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	}, nil
}

// Store implements [emr.Vault]. That a person's grant was renewed is on record; the service's own hourly sign-in is not.
func (v vault) Store(flow Flow, t Tokens) error {
	return v.app.RunInTransaction(func(tx core.App) error {
		if err := store(tx, flow, t); err != nil || flow != InteractiveFlow {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRToken, Actor: audit.System(), ResourceType: resource, ResourceID: string(flow)}, v.clock())
	})
}

func store(tx core.App, flow Flow, t Tokens) error {
	return collections.StoreEMRToken(tx, collections.EMRToken{
		Flow: string(flow), AccessToken: t.Access, RefreshToken: t.Refresh, Scope: t.Scope, ConnectedBy: t.ConnectedBy, Audience: t.Audience,
		ObtainedAt: t.ObtainedAt, ExpiresAt: t.ExpiresAt, RefreshExpiresAt: t.RefreshExpiresAt,
	})
}
