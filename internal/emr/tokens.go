package emr

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

const (
	// renewBefore is how long before its end a token is no longer used.
	renewBefore = 5 * time.Minute
	// unknownLifetime is taken when the EMR does not say: the longest SMART recommends.
	unknownLifetime = 5 * time.Minute
	// refreshLifetime is how long a refresh token lives, which EMRs do not say. Source: docs/decisions/emr.md, "Token storage".
	refreshLifetime = 7 * 24 * time.Hour
)

// Flow is one of the two ways to a token.
type Flow string

// The flows, as they are stored.
const (
	BackendServicesFlow Flow = "backend_services"
	InteractiveFlow     Flow = "interactive"
)

// Tokens are what a sign-in brought. The secrets refuse to print.
type Tokens struct {
	Access, Refresh       phi.Text
	Scope                 string // as granted; "" when the EMR does not say
	ObtainedAt, ExpiresAt time.Time
	RefreshExpiresAt      time.Time // zero without a refresh token
	ConnectedBy           string    // e-mail address of who signed in; "" for the service itself
	// Audience tells for which EMR and client they are: kept ones of others are never sent.
	Audience string
}

// Usable reports whether the tokens, or those they can be swapped for, are good at a time.
func (t Tokens) Usable(now time.Time) bool { return t.alive(now) || t.refreshable(now) }

func (t Tokens) alive(now time.Time) bool { return t.Access != "" && now.Before(t.ExpiresAt) }

func (t Tokens) refreshable(now time.Time) bool {
	return t.Refresh != "" && now.Before(t.RefreshExpiresAt)
}

// renewAt is when the access token is no longer used. A short-lived one still has to serve more than one call.
func (t Tokens) renewAt() time.Time {
	lifetime := t.ExpiresAt.Sub(t.ObtainedAt)
	if lifetime > renewBefore {
		return t.ExpiresAt.Add(-renewBefore)
	}
	return t.ObtainedAt.Add(lifetime / 2)
}

// Vault keeps the tokens of each flow, encrypted. It is called outside of transactions.
type Vault interface {
	// Load returns the kept tokens, zero ones for none.
	Load(Flow) (Tokens, error)
	Store(Flow, Tokens) error
}

func loadTokens(v Vault, flow Flow, audience string) (Tokens, error) {
	if v == nil {
		return Tokens{}, nil
	}
	t, err := v.Load(flow)
	if err != nil || t.Audience != audience {
		return Tokens{}, err
	}
	return t, nil
}

// audience is a name for EMR and client, short enough for a column.
func audience(o Options) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.BaseURL, o.TokenURL, o.ClientID}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// tokenRequest is a request to the token address; secrets are what it carries and no error may repeat.
type tokenRequest struct {
	clientcredentials.Config
	secrets []string
}

// requestToken makes one token request, which is made up at the moment of leaving.
func (l *transport) requestToken(ctx context.Context, make func() (tokenRequest, error)) (Tokens, *Error) {
	var (
		request  tokenRequest
		token    *oauth2.Token
		refused  *oauth2.RetrieveError
		unusable bool
	)
	took, e := l.use(ctx, func(ctx context.Context) (err error) {
		if request, err = make(); err != nil {
			return err
		}
		token, err = request.Token(context.WithValue(ctx, oauth2.HTTPClient, l.http))
		if refusal, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
			refused = refusal
			return nil
		}
		if _, unanswered := errors.AsType[*url.Error](err); err != nil && !unanswered && ctx.Err() == nil {
			unusable = true
			return nil
		}
		return err
	})
	switch {
	case e != nil:
		e.Ambiguous = false // a token asked for in vain is asked for again
		return Tokens{}, e
	case refused != nil:
		e = l.tokenRefusal(refused, request.secrets)
		e.took = took
		return Tokens{}, e
	case unusable:
		// A success in name only. The cause is dropped: it may quote the answer.
		return Tokens{}, &Error{
			Code: CodeAuth, Status: http.StatusOK, Message: "EMR authorization failed (unusable token answer)", took: took,
		}
	}
	return readTokens(token, l.now()), nil
}

// readTokens reads a token answer. Source: RFC 6749, section 5.1.
func readTokens(token *oauth2.Token, now time.Time) Tokens {
	lifetime := unknownLifetime
	if seconds, err := strconv.ParseFloat(fmt.Sprint(token.Extra("expires_in")), 64); err == nil && seconds > 0 {
		lifetime = time.Duration(min(seconds, 1e9) * float64(time.Second))
	}
	scope, _ := token.Extra("scope").(string)
	t := Tokens{Access: phi.Text(token.AccessToken), Refresh: phi.Text(token.RefreshToken), Scope: scope, ObtainedAt: now, ExpiresAt: now.Add(lifetime)}
	if t.Refresh != "" {
		t.RefreshExpiresAt = now.Add(refreshLifetime)
	}
	return t
}

// oauthErrors are the codes of RFC 6749, section 5.2; others are not repeated.
var oauthErrors = []string{
	"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
}

// tokenRefusal reads the token endpoint's error.
func (l *transport) tokenRefusal(r *oauth2.RetrieveError, secrets []string) *Error {
	description := r.ErrorDescription
	for _, secret := range secrets {
		if secret != "" {
			description = strings.ReplaceAll(description, secret, "[secret]")
		}
	}
	e := &Error{Diagnostics: fhir.Diagnostics(description)}
	if slices.Contains(oauthErrors, r.ErrorCode) {
		e.OAuthError = r.ErrorCode
	}
	e.Status = r.Response.StatusCode
	e.readStatus(e.Status, r.Response.Header, l.now())
	e.Ambiguous = false
	switch {
	case e.Code == CodeRateLimited:
		l.pace.pause(e.RetryAfter)
	case e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden:
		e.Code, e.Message = CodeAuth, fmt.Sprintf("EMR authorization failed (%d)", e.Status)
	}
	return e
}
