package sandbox

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	accessTokenLifetime  = time.Hour
	refreshTokenLifetime = 7 * 24 * time.Hour
)

// The scopes that the EMR grants; it leaves out others, as RFC 6749 section 3.3 allows.
var (
	systemScopes = []string{
		"system/Patient.read", "system/Observation.read", "system/Observation.write", "system/*.write", "system/*.read",
		"system/Patient.rs", "system/Observation.c", "system/Observation.rs", "system/Observation.cu", "system/Observation.crus",
	}
	userScopes = []string{"user/Patient.read", "user/Observation.read", "user/Observation.write", "offline_access"}
)

// Scopes of which one is required for an interaction.
var (
	readPatient         = []string{"system/Patient.read", "system/*.read", "user/Patient.read", "system/Patient.rs"}
	onlyReadObservation = []string{"system/Observation.read", "system/*.read", "user/Observation.read", "system/Observation.rs", "system/Observation.crus"}
	createObservation   = []string{
		"system/Observation.write", "system/*.write", "user/Observation.write", "system/Observation.c", "system/Observation.cu", "system/Observation.crus",
	}
	updateObservation      = []string{"system/Observation.write", "system/*.write", "user/Observation.write", "system/Observation.cu", "system/Observation.crus"}
	readOrWriteObservation = slices.Concat(onlyReadObservation, createObservation)
)

// grant is what a token permits.
type grant struct {
	scopes    []string
	expiresAt time.Time
}

// tokenAnswer is the answer of RFC 6749 section 5.1.
type tokenAnswer struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
	Scope        string `json:"scope"`
	RefreshToken string `json:"refresh_token,omitempty"`
}

// oauthError is the error of RFC 6749 section 5.2.
type oauthError struct {
	status            int
	code, description string
}

func badRequest(code, description string) *oauthError {
	return &oauthError{http.StatusBadRequest, code, description}
}

func invalidClient(description string) *oauthError {
	return &oauthError{http.StatusUnauthorized, "invalid_client", description}
}

func writeOAuthError(w http.ResponseWriter, problem *oauthError) {
	w.Header().Set("Cache-Control", "no-store")
	if problem.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="emr-sandbox"`)
	}
	writeJSON(w, problem.status, "application/json", map[string]string{
		"error": problem.code, "error_description": problem.description,
	})
}

// token is the token endpoint of both flows.
func (e *EMR) token(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	answer, problem := e.exchange(r)
	if problem != nil {
		e.count(func(s *EMRStats) { s.TokensRefused++ })
		writeOAuthError(w, problem)
		return
	}
	e.count(func(s *EMRStats) { s.TokensIssued++ })
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, "application/json", answer)
}

func (e *EMR) exchange(r *http.Request) (*tokenAnswer, *oauthError) {
	if err := r.ParseForm(); err != nil || !isForm(r) {
		return nil, badRequest("invalid_request", "the body is not a form")
	}
	for name, values := range r.PostForm {
		if len(values) > 1 {
			return nil, badRequest("invalid_request", "parameter given twice: "+name)
		}
	}
	switch r.PostForm.Get("grant_type") {
	case "client_credentials":
		return e.clientCredentials(r)
	case "authorization_code":
		return e.redeemCode(r)
	case "refresh_token":
		return e.redeemRefreshToken(r)
	case "":
		return nil, badRequest("invalid_request", "grant_type is missing")
	default:
		return nil, badRequest("unsupported_grant_type", "client_credentials, authorization_code or refresh_token")
	}
}

func isForm(r *http.Request) bool {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.TrimSpace(mediaType) == "application/x-www-form-urlencoded"
}

// clientCredentials is SMART backend services: only system scopes, only with a signed assertion, no refresh token.
func (e *EMR) clientCredentials(r *http.Request) (*tokenAnswer, *oauthError) {
	if problem := e.checkAssertion(r); problem != nil {
		return nil, problem
	}
	scopes := grantedScopes(r.PostForm.Get("scope"), slices.Concat(systemScopes, e.chartScopes()))
	if len(scopes) == 0 {
		return nil, badRequest("invalid_scope", "no scope this EMR grants to backend services")
	}
	return e.issue(scopes, false)
}

// grantedScopes returns the requested scopes that are allowed, each once, in order.
func grantedScopes(requested string, allowed []string) []string {
	var scopes []string
	for scope := range strings.FieldsSeq(requested) {
		if slices.Contains(allowed, scope) && !slices.Contains(scopes, scope) {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// issue makes an access token, and a refresh token if refreshable.
func (e *EMR) issue(scopes []string, refreshable bool) (*tokenAnswer, *oauthError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	access, err := e.secret()
	if err != nil {
		return nil, &oauthError{http.StatusInternalServerError, "server_error", err.Error()}
	}
	now := e.options.Now()
	e.accessTokens[access] = grant{scopes, now.Add(accessTokenLifetime)}
	answer := &tokenAnswer{
		AccessToken: access,
		TokenType:   "bearer",
		ExpiresIn:   int(accessTokenLifetime / time.Second),
		Scope:       strings.Join(scopes, " "),
	}
	if refreshable {
		if answer.RefreshToken, err = e.secret(); err != nil {
			return nil, &oauthError{http.StatusInternalServerError, "server_error", err.Error()}
		}
		e.refresh[answer.RefreshToken] = grant{scopes, now.Add(refreshTokenLifetime)}
	}
	return answer, nil
}

// bearer requires a valid access token with one of the scopes.
func (e *EMR) bearer(anyOf []string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token := bearerToken(r)
		e.mu.Lock()
		held, found := e.accessTokens[token]
		alive := e.options.Now().Before(held.expiresAt)
		e.mu.Unlock()
		switch {
		case token == "":
			w.Header().Set("WWW-Authenticate", `Bearer realm="emr-sandbox"`)
			writeOutcome(w, http.StatusUnauthorized, "login", "an access token is required")
		case !found || !alive:
			w.Header().Set("WWW-Authenticate", `Bearer realm="emr-sandbox", error="invalid_token"`)
			writeOutcome(w, http.StatusUnauthorized, "expired", "the access token is unknown or has expired")
		case !slices.ContainsFunc(held.scopes, func(scope string) bool { return slices.Contains(anyOf, scope) }):
			w.Header().Set("WWW-Authenticate", `Bearer realm="emr-sandbox", error="insufficient_scope"`)
			writeOutcome(w, http.StatusForbidden, "forbidden", "the access token lacks the scope for this")
		default:
			next(w, r)
		}
	}
}

func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (e *EMR) count(change func(*EMRStats)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.stats)
}
