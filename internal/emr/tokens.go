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
	// renewBefore is how long before its expiry a token is no longer used.
	renewBefore = 5 * time.Minute
	// unknownLifetime applies when the EMR returns no lifetime: the longest that SMART recommends.
	unknownLifetime = 5 * time.Minute
	// refreshLifetime is how long a refresh token is valid; EMRs do not return that. Source: docs/decisions/emr.md, "Token storage".
	refreshLifetime = 7 * 24 * time.Hour
)

// Flow is one of the two OAuth flows.
type Flow string

// The flows, as they are stored.
const (
	BackendServicesFlow Flow = "backend_services"
	InteractiveFlow     Flow = "interactive"
)

// Tokens are the result of a sign-in. The secrets refuse to print.
type Tokens struct {
	Access, Refresh       phi.Text
	Scope                 string // as granted; "" when the EMR omits it
	ObtainedAt, ExpiresAt time.Time
	RefreshExpiresAt      time.Time // zero without a refresh token
	ConnectedBy           string    // e-mail address of the person who signed in; "" for the service itself
	// Audience identifies the EMR and client of the tokens: stored tokens of another audience are never sent.
	Audience string
}

// Usable reports whether the access token, or the refresh token, is valid at a time.
func (t Tokens) Usable(now time.Time) bool { return t.alive(now) || t.refreshable(now) }

func (t Tokens) alive(now time.Time) bool { return t.Access != "" && now.Before(t.ExpiresAt) }

func (t Tokens) refreshable(now time.Time) bool {
	return t.Refresh != "" && now.Before(t.RefreshExpiresAt)
}

// renewAt returns when to stop using the access token. A short-lived one is used for half its life, so that it serves more than one call.
func (t Tokens) renewAt() time.Time {
	lifetime := t.ExpiresAt.Sub(t.ObtainedAt)
	if lifetime > renewBefore {
		return t.ExpiresAt.Add(-renewBefore)
	}
	return t.ObtainedAt.Add(lifetime / 2)
}

// Vault stores the tokens of each flow, encrypted. It is called outside of transactions.
type Vault interface {
	// Load returns the stored tokens, zero if there are none.
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

// audience identifies the EMR and client, short enough for a column.
func audience(o Options) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.BaseURL, o.TokenURL, o.ClientID}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// tokenRequest is a request to the token endpoint; secrets are the values in it that no error may repeat.
type tokenRequest struct {
	clientcredentials.Config
	secrets []string
}

// requestToken sends one token request, which make builds just before it is sent.
func (t *transport) requestToken(ctx context.Context, make func() (tokenRequest, error)) (Tokens, *Error) {
	var (
		request  tokenRequest
		token    *oauth2.Token
		refused  *oauth2.RetrieveError
		unusable bool
	)
	took, e := t.do(ctx, func(ctx context.Context) (err error) {
		if request, err = make(); err != nil {
			return err
		}
		token, err = request.Token(context.WithValue(ctx, oauth2.HTTPClient, t.tokenHTTP()))
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
		e.Ambiguous = false // a token request without a response is simply repeated
		return Tokens{}, e
	case refused != nil:
		e = t.tokenRefusal(refused, request.secrets)
		e.took = took
		return Tokens{}, e
	case unusable:
		// A success without a usable token. The cause is dropped: it may quote the response.
		return Tokens{}, &Error{
			Code: CodeAuth, Status: http.StatusOK, Message: "EMR authorization failed (unusable token answer)", took: took,
		}
	}
	return readTokens(token, t.now()), nil
}

// readTokens reads a token response. Source: RFC 6749, section 5.1.
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
func (t *transport) tokenRefusal(r *oauth2.RetrieveError, secrets []string) *Error {
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
	e.readStatus(e.Status, r.Response.Header, t.now())
	e.Ambiguous = false
	switch {
	case e.Code == CodeRateLimited:
		t.pace.pause(e.RetryAfter)
	case e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden:
		e.Code, e.Message = CodeAuth, fmt.Sprintf("EMR authorization failed (%d)", e.Status)
	}
	return e
}
