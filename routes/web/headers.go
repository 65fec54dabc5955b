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

	"github.com/vigilhealth/vigil/internal/idempotency"
)

const requestIDHeader = "X-Request-ID"

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// SetCommonHeaders sets what every answer carries and returns the request's id, the caller's own when it is usable.
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

// The header that keeps browsers from plain HTTP. Over plain HTTP they are to ignore it, and behind a proxy we cannot tell: so it is on
// every answer. Source: RFC 6797, 8.1.
const (
	strictTransport = "Strict-Transport-Security"
	oneYear         = "max-age=31536000; includeSubDomains"
)

// strict puts the header on what is answered before or beside our endpoints too: pages, PocketBase's own routes, redirects of the mux.
func strict(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(strictTransport, oneYear)
		next.ServeHTTP(w, r)
	})
}

// crossOrigin replaces PocketBase's rule, which lets every origin in, by the listed ones, for its own routes too.
// Source: docs/decisions/limits.md, "CORS".
func (d *Door) crossOrigin() *hook.Handler[*core.RequestEvent] {
	rule := apis.CORS(apis.CORSConfig{
		AllowOriginFunc: func(origin string) (bool, error) { return slices.Contains(d.AllowedOrigins, origin), nil },
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
			SetCommonHeaders(e) // answered by the rule itself
		}
		return answer(e)
	}
	return rule
}

// Preferred picks the media type the Accept header likes best, in the order of the offers when it does not care;
// "" when it wants none of them. Without offers there is no body to choose a type for. Source: RFC 9110, 12.5.1.
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
			continue // a range that cannot be read asks for nothing
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

// quality of an offer is that of the closest range: the type itself, else its family, else everything.
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
