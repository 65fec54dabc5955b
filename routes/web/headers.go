package web

import (
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"

	"github.com/vigilhealth/vigil/routes/web/idempotency"
)

const requestIDHeader = "X-Request-ID"

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// SetCommonHeaders sets the headers of every answer and returns the request id: the caller's own if it is valid.
// Source: docs/decisions/conventions.md, "Common response headers" and docs/decisions/security.md, "Security headers".
func SetCommonHeaders(e *core.RequestEvent) (requestID string) {
	requestID = e.Request.Header.Get(requestIDHeader)
	if !requestIDPattern.MatchString(requestID) {
		requestID = newRequestID()
	}
	h := e.Response.Header()
	h.Set(requestIDHeader, requestID)
	h.Set("Cache-Control", "no-store")
	h.Set(strictTransport, oneYear)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-site")
	return requestID
}

// The HSTS header. Browsers ignore it over plain HTTP, and a service behind a proxy cannot detect TLS, so it is on
// every answer. Source: RFC 6797, 8.1.
const (
	strictTransport = "Strict-Transport-Security"
	oneYear         = "max-age=31536000; includeSubDomains"
)

// dashboardPolicy replaces PocketBase's policy for its dashboard, which allows scripts of any local port, although the dashboard has the console's
// origin. Source: docs/decisions/security.md, "Security headers".
const dashboardPolicy = "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'"

// withOuterHeaders sets headers on answers outside the routes too: pages, PocketBase's own routes and dashboard, redirects of the mux.
func withOuterHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(strictTransport, oneYear)
		if strings.HasPrefix(r.URL.Path, "/_/") {
			w.Header().Set("Content-Security-Policy", dashboardPolicy)
			w.Header().Set("Referrer-Policy", "no-referrer")
		}
		next.ServeHTTP(w, r)
	})
}

// crossOrigin replaces PocketBase's rule, which allows every origin, with the listed origins, for PocketBase's routes
// too. Source: docs/decisions/limits.md, "CORS".
func (s *Server) crossOrigin() *hook.Handler[*core.RequestEvent] {
	rule := apis.CORS(apis.CORSConfig{
		AllowOriginFunc: func(origin string) (bool, error) { return slices.Contains(s.AllowedOrigins, origin), nil },
		AllowMethods:    []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowHeaders:    []string{"Authorization", "Content-Type", requestIDHeader, EmergencyHeader, idempotency.Header, "Prefer", "If-Match", "If-None-Match"},
		ExposeHeaders: []string{
			"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
			"RateLimit-Policy", "RateLimit", requestIDHeader, "Content-Disposition", "ETag", "Last-Modified", replayedHeader,
		},
		MaxAge: 600,
	})
	answer := rule.Func
	rule.Func = func(e *core.RequestEvent) error {
		if e.Request.Method == http.MethodOptions {
			SetCommonHeaders(e) // answered by the CORS handler
		}
		return answer(e)
	}
	return rule
}

// Preferred returns the offered media type that the Accept header prefers, the first offer on a tie, or "" if it
// accepts none. Without offers there is no body to negotiate. Source: RFC 9110, 12.5.1.
func Preferred(h http.Header, offers ...string) string {
	if len(offers) == 0 {
		return "*/*"
	}
	ranges := mediaRanges(h)
	if len(ranges) == 0 {
		return offers[0]
	}
	best, bestQuality := "", 0.0
	for _, offer := range offers {
		if q := quality(ranges, offer); q > bestQuality {
			best, bestQuality = offer, q
		}
	}
	return best
}

type mediaRange struct {
	kind    string // "*/*", "application/*" or a whole media type
	quality float64
}

func mediaRanges(h http.Header) []mediaRange {
	var ranges []mediaRange
	for _, part := range strings.Split(strings.Join(h.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue // a malformed range matches nothing
		}
		q := 1.0
		if text, given := params["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil || q < 0 || q > 1 {
				q = 1
			}
		}
		ranges = append(ranges, mediaRange{kind, q})
	}
	return ranges
}

// quality returns the quality of an offer: that of the most specific range, first the type, then its family, then */*.
func quality(ranges []mediaRange, offer string) float64 {
	family, _, _ := strings.Cut(offer, "/")
	for _, kind := range []string{offer, family + "/*", "*/*"} {
		for _, r := range ranges {
			if r.kind == kind {
				return r.quality
			}
		}
	}
	return 0
}
