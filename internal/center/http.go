package center

import (
	"context"
	_ "embed"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/vigilhealth/vigil/internal/auth"
)

// SignOn signs people in at the identity provider.
type SignOn interface {
	Begin(ctx context.Context, now time.Time) (auth.SignOnStart, error)
	Finish(ctx context.Context, callback auth.Callback, now time.Time) (auth.Identity, error)
}

// The cookies of a sign-in that has begun, and of a session. Both need TLS and this host. Source: RFC 6265bis, 4.1.3.
const (
	signOnCookie  = "__Host-vigil-center-sign-on"
	sessionCookie = "__Host-vigil-center"
)

// CallbackPath is the redirect address at the identity provider, below the center's own.
const CallbackPath = "/callback"

// pagePolicy limits the page to this host.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page/index.html
var page []byte

//go:embed page/list.js
var script []byte

//go:embed page/list.css
var style []byte

// maxPageSize is the largest page of the list, and defaultPageSize the usual one.
const maxPageSize, defaultPageSize = 100, 50

// Handler serves the page, the sign-in and the lists.
func (c *Center) Handler(signOn SignOn, log *slog.Logger, clock func() time.Time) http.Handler {
	h := &handler{c, signOn, log, clock}
	mux := http.NewServeMux()
	for path, file := range map[string]struct {
		kind string
		body []byte
	}{"/{$}": {"text/html; charset=utf-8", page}, "/list.js": {"text/javascript; charset=utf-8", script}, "/list.css": {"text/css; charset=utf-8", style}} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", file.kind)
			_, _ = w.Write(file.body) // a client that left needs no answer
		})
	}
	mux.HandleFunc("GET /login", h.begin)
	mux.HandleFunc("GET "+CallbackPath, h.finish)
	mux.HandleFunc("POST /logout", h.signOut)
	mux.HandleFunc("GET /health/live", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /api/v1/center/triage/", h.triage)
	mux.HandleFunc("GET /api/v1/center/on-call/", h.onCall)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Content-Security-Policy", pagePolicy)
		header.Set("Referrer-Policy", "no-referrer") // the callback's URL holds the authorization code
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		mux.ServeHTTP(w, r)
	})
}

type handler struct {
	*Center
	signOn SignOn
	log    *slog.Logger
	clock  func() time.Time
}

func cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
}

func (h *handler) begin(w http.ResponseWriter, r *http.Request) {
	started, err := h.signOn.Begin(r.Context(), h.clock())
	if err != nil {
		h.fail(w, http.StatusBadGateway, "oidc_failed", "The identity provider does not answer as expected.", err)
		return
	}
	http.SetCookie(w, cookie(signOnCookie, started.Cookie, int(started.Life.Seconds())))
	http.Redirect(w, r, started.URL, http.StatusFound)
}

func (h *handler) finish(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	back := auth.Callback{State: values.Get("state"), Code: values.Get("code"), Error: values.Get("error")}
	if held, err := r.Cookie(signOnCookie); err == nil {
		back.Cookie = held.Value
	}
	now := h.clock()
	identity, err := h.signOn.Finish(r.Context(), back, now)
	if err != nil {
		h.fail(w, http.StatusUnauthorized, "authentication_failed", "The sign-in was not completed. Open the first page to try again.", err)
		return
	}
	http.SetCookie(w, cookie(signOnCookie, "", -1))
	http.SetCookie(w, cookie(sessionCookie, h.SignIn(r.Context(), identity.IDToken.Reveal(), now), int(sessionLife.Seconds())))
	http.Redirect(w, r, "/", http.StatusFound)
}

// signOut ends the session here. SameSite keeps other sites from calling it with the cookie.
func (h *handler) signOut(w http.ResponseWriter, r *http.Request) {
	if held, err := r.Cookie(sessionCookie); err == nil {
		h.SignOut(held.Value)
	}
	http.SetCookie(w, cookie(sessionCookie, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

// signedIn returns the session of a request, or answers 401.
func (h *handler) signedIn(w http.ResponseWriter, r *http.Request) (session, bool) {
	if held, err := r.Cookie(sessionCookie); err == nil {
		if s, found := h.find(held.Value, h.clock()); found {
			return s, true
		}
	}
	respond(w, http.StatusUnauthorized, failure{"Sign in first.", "not_authenticated"})
	return session{}, false
}

func (h *handler) triage(w http.ResponseWriter, r *http.Request) {
	s, ok := h.signedIn(w, r)
	if !ok {
		return
	}
	size := defaultPageSize
	for name, values := range r.URL.Query() {
		n, err := strconv.Atoi(values[0])
		if name != "page_size" || len(values) > 1 || err != nil || n < 1 || n > maxPageSize {
			respond(w, http.StatusBadRequest, failure{"The only parameter is page_size, from 1 to 100.", "validation_error"})
			return
		}
		size = n
	}
	list, err := h.Triage(r.Context(), s, size)
	if err != nil {
		h.fail(w, http.StatusBadGateway, "upstream_failed", "A practice does not answer as expected.", err)
		return
	}
	respond(w, http.StatusOK, list)
}

func (h *handler) onCall(w http.ResponseWriter, r *http.Request) {
	s, ok := h.signedIn(w, r)
	if !ok {
		return
	}
	respond(w, http.StatusOK, h.OnCall(r.Context(), s))
}

// failure is the body of an error, as the practices answer it.
type failure struct {
	Detail string `json:"detail"`
	Code   string `json:"code"`
}

func (h *handler) fail(w http.ResponseWriter, status int, code, detail string, err error) {
	h.log.Warn("request failed", slog.String("code", code), slog.Any("error", err))
	respond(w, status, failure{detail, code})
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that left needs no answer
}
