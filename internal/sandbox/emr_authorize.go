package sandbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"time"
)

// codeLifetime is short, as RFC 6749 section 4.1.2 wants it.
const codeLifetime = 5 * time.Minute

// authorization is what an authorization code stands for.
type authorization struct {
	redirectURI, challenge string
	scopes                 []string
	expiresAt              time.Time
}

// The forms of RFC 7636: section 4.1 for the verifier; a challenge is 32 bytes in base64url without padding.
var (
	verifierForm  = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)
	challengeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

// S256 is the code challenge of a code verifier. Source: RFC 7636 section 4.2.
func S256(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorize approves every well-formed request at once, as if a clinician had clicked "allow".
func (e *EMR) authorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	target, err := url.Parse(query.Get("redirect_uri"))
	switch {
	case query.Get("client_id") != e.options.ClientID:
		// RFC 6749 section 4.1.2.1: an unknown client or redirect address is never redirected to.
		http.Error(w, "unknown client_id", http.StatusBadRequest)
		return
	case err != nil || !target.IsAbs() || target.Fragment != "",
		e.options.RedirectURI != "" && target.String() != e.options.RedirectURI:
		http.Error(w, "unknown redirect_uri", http.StatusBadRequest)
		return
	}
	back := target.Query()
	back.Set("state", query.Get("state"))
	code, problem := e.approve(query, e.fhirBase(r))
	if problem != nil {
		back.Set("error", problem.code)
		back.Set("error_description", problem.description)
	} else {
		back.Set("code", code)
	}
	target.RawQuery = back.Encode()
	http.Redirect(w, r, target.String(), http.StatusFound) //nolint:gosec // G710: an option fixes redirect_uri; left open, any is welcome in a sandbox
}

// approve checks an authorization request and returns its code.
func (e *EMR) approve(query url.Values, fhirBase string) (string, *oauthError) {
	scopes := granted(query.Get("scope"), userScopes)
	switch {
	case query.Get("response_type") != "code":
		return "", badRequest("unsupported_response_type", "response_type must be code")
	case query.Get("state") == "":
		return "", badRequest("invalid_request", "state is required")
	case query.Get("aud") != fhirBase:
		return "", badRequest("invalid_request", "aud is not "+fhirBase)
	case query.Get("code_challenge_method") != "S256" || !challengeForm.MatchString(query.Get("code_challenge")):
		return "", badRequest("invalid_request", "an S256 code_challenge is required")
	case len(scopes) == 0:
		return "", badRequest("invalid_scope", "no scope this EMR grants to users")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	code, err := e.secret()
	if err != nil {
		return "", badRequest("server_error", err.Error())
	}
	e.codes[code] = authorization{
		redirectURI: query.Get("redirect_uri"),
		challenge:   query.Get("code_challenge"),
		scopes:      scopes,
		expiresAt:   e.options.Now().Add(codeLifetime),
	}
	return code, nil
}

// redeemCode swaps an authorization code for tokens, once. A refresh token comes only with offline_access.
func (e *EMR) redeemCode(r *http.Request) (*tokenAnswer, *oauthError) {
	if problem := e.checkClient(r); problem != nil {
		return nil, problem
	}
	form := r.PostForm
	e.mu.Lock()
	asked, known := e.codes[form.Get("code")]
	delete(e.codes, form.Get("code")) // a code is good for one attempt
	now := e.options.Now()
	e.mu.Unlock()
	verifier := form.Get("code_verifier")
	switch {
	case !known || !now.Before(asked.expiresAt):
		return nil, badRequest("invalid_grant", "the code is unknown, used or expired")
	case form.Get("redirect_uri") != asked.redirectURI:
		return nil, badRequest("invalid_grant", "redirect_uri is not the one the code was asked with")
	case !verifierForm.MatchString(verifier),
		subtle.ConstantTimeCompare([]byte(S256(verifier)), []byte(asked.challenge)) != 1:
		return nil, badRequest("invalid_grant", "code_verifier does not match the challenge")
	}
	return e.issue(asked.scopes, slices.Contains(asked.scopes, "offline_access"))
}

// redeemRefreshToken rotates: the refresh token it was given is worth nothing afterwards.
func (e *EMR) redeemRefreshToken(r *http.Request) (*tokenAnswer, *oauthError) {
	if problem := e.checkClient(r); problem != nil {
		return nil, problem
	}
	form := r.PostForm
	e.mu.Lock()
	held, known := e.refresh[form.Get("refresh_token")]
	scopes := held.scopes
	if asked := form.Get("scope"); asked != "" {
		scopes = granted(asked, held.scopes)
	}
	alive := known && e.options.Now().Before(held.expiresAt)
	if alive && len(scopes) > 0 {
		delete(e.refresh, form.Get("refresh_token"))
	}
	e.mu.Unlock()
	switch {
	case !alive:
		return nil, badRequest("invalid_grant", "the refresh token is unknown, used or expired")
	case len(scopes) == 0:
		return nil, badRequest("invalid_scope", "no scope of the original grant")
	}
	return e.issue(scopes, true)
}

// checkClient authenticates the client of the interactive flow: by assertion when it sends one, else by its
// secret (header or form), else by name alone when no secret is configured.
func (e *EMR) checkClient(r *http.Request) *oauthError {
	form := r.PostForm
	if form.Has("client_assertion") {
		return e.checkAssertion(r)
	}
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, password, ok := r.BasicAuth(); ok {
		id, secret = unescape(user), unescape(password)
	}
	known := e.options.ClientSecret
	if id != e.options.ClientID || known != "" && subtle.ConstantTimeCompare([]byte(secret), []byte(known)) != 1 {
		return invalidClient("unknown client or wrong secret")
	}
	return nil
}

// unescape undoes the form encoding that RFC 6749 section 2.3.1 puts inside the Basic header.
func unescape(text string) string {
	if plain, err := url.QueryUnescape(text); err == nil {
		return plain
	}
	return text
}
