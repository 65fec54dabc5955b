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
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// stateLifetime bounds the time a person may take at the EMR's sign-in pages. Source: docs/decisions/emr.md, "OAuth start".
	stateLifetime = 10 * time.Minute
	// stateRetention is how long ended states are kept for troubleshooting.
	stateRetention = 24 * time.Hour
	stateBytes     = 32
	// verifierBytes become 64 characters of base64url.
	verifierBytes = 48
	// warnBefore is how long before the connection ends administrators are notified. Source: docs/decisions/emr.md, "Token storage".
	warnBefore = 24 * time.Hour

	connectionResource = audit.ResourceEMRConnection
)

// SignInStart is where to redirect the browser, and the state that the EMR will return.
type SignInStart struct{ AuthorizationURL, State string }

// StartConnection creates the state and verifier of one sign-in by a user (record id) and stores the state hashed and the verifier encrypted.
// Without settings the error is an *Error with CodeNotConfigured. Source: docs/decisions/emr.md, "OAuth start"; RFC 7636.
func StartConnection(app core.App, client *Client, userID string, by audit.Actor, now time.Time) (SignInStart, error) {
	state, verifier := randomSecret(stateBytes), randomSecret(verifierBytes)
	address, err := client.AuthorizationURL(state, verifier)
	if err != nil {
		return SignInStart{}, err
	}
	err = app.RunInTransaction(func(tx core.App) error {
		err := collections.AddEMRAuthState(tx, auth.HashSecret(state), userID, phi.Text(verifier), now, now.Add(stateLifetime), now.Add(-stateRetention))
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRAuth, Actor: by, ResourceType: connectionResource, ResourceID: string(InteractiveFlow)}, now)
	})
	if err != nil {
		return SignInStart{}, fmt.Errorf("start EMR sign-in: %w", err)
	}
	return SignInStart{address, state}, nil
}

// randomSecret returns size random bytes in base64url.
func randomSecret(size int) string {
	raw := make([]byte, size)
	_, _ = io.ReadFull(rand.Reader, raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

// Callback holds the parameters of the EMR's redirect. Its secrets refuse to print.
type Callback struct {
	State, Code phi.Text
	Error       string // set when the person or the EMR denied the request
}

// FinishConnection consumes the state, which is the caller's only proof and valid once, exchanges the code and stores the tokens. The
// faults are invalid_oauth_state, emr_authorization_denied and emr_token_exchange_failed. It reads the clock again after the EMR responds.
// Source: docs/decisions/emr.md, "Callback".
func FinishConnection(ctx context.Context, app core.App, client *Client, back Callback, from audit.Origin, clock func() time.Time) (Tokens, error) {
	user, verifier, err := consumeAuthState(app, back.State.Reveal(), clock())
	if err != nil {
		return Tokens{}, err
	}
	by := audit.User(user.Number(), user.Email(), user.Role(), from)
	refuse := func(f *fault.Error) error {
		return errors.Join(f, audit.Append(app, audit.Entry{
			Event: audit.EMRToken, Outcome: audit.MinorFailure, Actor: by, ResourceType: connectionResource, ResourceID: string(InteractiveFlow),
		}, clock()))
	}
	if back.Error != "" || back.Code == "" {
		return Tokens{}, refuse(fault.New(fault.Invalid, "emr_authorization_denied", "The EMR did not authorize the connection."))
	}
	tokens, err := client.Exchange(ctx, back.Code.Reveal(), verifier.Reveal(), user.Email())
	if err != nil {
		f := fault.New(fault.Upstream, "emr_token_exchange_failed", "The EMR issued no token.").Because(err)
		if e, ok := errors.AsType[*Error](err); ok {
			f = f.With("upstream_status", upstreamStatus(e))
		}
		return Tokens{}, refuse(f)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if err := storeTokens(tx, InteractiveFlow, tokens); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{Event: audit.EMRToken, Actor: by, ResourceType: connectionResource, ResourceID: string(InteractiveFlow)}, clock())
	})
	if err != nil {
		return Tokens{}, fmt.Errorf("store EMR tokens: %w", err)
	}
	client.UseTokens(tokens)
	return tokens, nil
}

// upstreamStatus returns the EMR's HTTP status, nil without a response.
func upstreamStatus(e *Error) any {
	if e.Status == 0 {
		return nil
	}
	return e.Status
}

// consumeAuthState ends the validity of a state. The user who started the sign-in must still be an active administrator.
func consumeAuthState(app core.App, state string, now time.Time) (user *collections.User, verifier phi.Text, err error) {
	invalid := fault.New(fault.Invalid, "invalid_oauth_state", "The sign-in at the EMR was not started here, was finished before or took too long. Start again.")
	err = app.RunInTransaction(func(tx core.App) (err error) {
		userID, v, err := collections.UseEMRAuthState(tx, auth.HashSecret(state), now)
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
		return nil, "", fmt.Errorf("consume EMR sign-in state: %w", err)
	case !user.Active() || authz.ReachOf(authz.Role(user.Role()), authz.ConnectEMR) == authz.None:
		return nil, "", invalid
	}
	return user, verifier, nil
}

// ConnectionStatus describes the practice's connection with the EMR. Zero times are unknown.
type ConnectionStatus struct {
	BackendConfigured  bool
	BackendLastSuccess time.Time
	// Connected: a usable interactive token exists; TokenExpires is the expiry of its access token.
	Connected      bool
	TokenExpires   time.Time
	RefreshExpires time.Time
	ConnectedBy    string
	Scopes         []string // of the interactive token, else of the service's token; never nil
}

// ReadConnectionStatus returns the status without a request to the EMR. Source: docs/decisions/emr.md, "Auth status and tests".
func ReadConnectionStatus(client *Client, now time.Time) (ConnectionStatus, error) {
	tokens, err := client.Connection()
	if err != nil {
		return ConnectionStatus{}, err
	}
	last := client.LastSignIn()
	s := ConnectionStatus{BackendConfigured: client.HasBackendService(), BackendLastSuccess: last.At, Scopes: Scopes(last.Scope)}
	if tokens.Usable(now) {
		s.Connected, s.TokenExpires, s.RefreshExpires, s.ConnectedBy = true, tokens.ExpiresAt, tokens.RefreshExpiresAt, tokens.ConnectedBy
		s.Scopes = Scopes(tokens.Scope)
	}
	return s, nil
}

// Scopes splits a granted scope; never nil.
func Scopes(scope string) []string { return append([]string{}, strings.Fields(scope)...) }

// WarnBeforeExpiry notifies administrators, once, that the interactive connection ends within a day, and reports whether it does.
func WarnBeforeExpiry(app core.App, client *Client, now time.Time) (ending bool, err error) {
	tokens, err := client.Connection()
	if err != nil || tokens.Refresh == "" || !now.Before(tokens.RefreshExpiresAt) || now.Before(tokens.RefreshExpiresAt.Add(-warnBefore)) {
		return false, err
	}
	return true, app.RunInTransaction(func(tx core.App) error {
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.ServiceTrouble, Severity: "warning", Key: "emr_connection_ends:" + collections.FormatInstant(tokens.RefreshExpiresAt),
			Body: "The connection with the EMR ends within a day. To keep it, an administrator must sign in at the EMR again.",
		}, now)
	})
}
