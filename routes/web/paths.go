package web

import (
	"crypto/tls"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
)

const (
	maxHeaderBytes = 16 << 10
	maxURLBytes    = 8 << 10
)

// Methods are the methods of the contract; HEAD follows GET.
var Methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Patterns returns the patterns of a path: as it is written, and without its last slash, or with one for the FHIR interface. Source:
// docs/decisions/conventions.md, "Trailing slash".
func Patterns(path string) []string {
	bare, slashed := strings.CutSuffix(path, "/")
	if !slashed && !strings.HasPrefix(path, "/fhir/R4/") {
		return []string{path}
	}
	if !slashed {
		return []string{path, path + "/{$}"}
	}
	return []string{bare, path + "{$}"}
}

// unknownPath is the path of the row that answers unmatched requests.
const unknownPath = BasePath + "/"

// IsUnknown reports whether this is the row for unmatched requests.
func (r Route) IsUnknown() bool { return r.Path == unknownPath }

// mountUnknown answers unmatched paths under /api/ and /fhir/ with the contract's error form and without a token. GET
// needs patterns of its own there, or the files of pb_public, served at /{path...}, would match. Source:
// docs/decisions/errors.md, "Unknown routes" and docs/decisions/conventions.md, "Method handling".
func (s *Server) mountUnknown(group *router.RouterGroup[*core.RequestEvent], routes []Route) {
	unknown := s.entryPoint(Route{Path: unknownPath, Permission: authz.Anyone, Limit: ratelimit.User, Handle: s.unknown})
	for _, below := range []string{"/api", "/fhir"} {
		group.GET(below, unknown)
		group.GET(below+"/{path...}", unknown)
	}
	group.Route("", "/", func(e *core.RequestEvent) error {
		if underAPI(e.Request.URL.Path) || len(s.offered(e.Request)) > 0 {
			return unknown(e)
		}
		return e.NotFoundError("", nil)
	})
	mountConflictingMethods(group, routes, unknown)
}

func underAPI(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/fhir" || strings.HasPrefix(path, "/fhir/")
}

// unknown answers 405 if the path exists for another method, else 404.
func (s *Server) unknown(c *Call) error {
	allowed := s.offered(c.Request)
	if len(allowed) == 0 {
		return fault.Missing()
	}
	c.Header().Set("Allow", strings.Join(allowed, ", "))
	return fault.New(fault.MethodNotAllowed, "method_not_allowed", "This path does not allow this method. See the Allow header.")
}

// offered lists the methods of the request's path, from the patterns with the fewest parameters.
func (s *Server) offered(r *http.Request) []string {
	var found []string
	fewest := 0
	for _, method := range Methods {
		_, pattern := s.patterns.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
		if pattern == "" {
			continue
		}
		switch n := parameters(pattern); {
		case len(found) > 0 && n > fewest:
			continue
		case n < fewest:
			found, fewest = nil, n
		case len(found) == 0:
			fewest = n
		}
		found = append(found, method)
		if method == http.MethodGet {
			found = append(found, http.MethodHead)
		}
	}
	if len(found) > 0 {
		found = append(found, http.MethodOptions)
	}
	return found
}

// The replacements of an untidy path under /api/ or /fhir/: no row serves them.
const (
	untidyPath     = BasePath + "/-"
	untidyFHIRPath = "/fhir/-"
)

// refuseUntidyPaths answers paths with doubled slashes or dot segments under /api/ and /fhir/ as unknown. The mux would
// redirect them to the clean path, in HTML and without headers, limits and logs.
func refuseUntidyPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if escapedPath := r.URL.EscapedPath(); !tidy(escapedPath) && (underAPI(escapedPath) || underAPI(path.Clean("/"+escapedPath))) {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = untidyPath, ""
			if strings.HasPrefix(path.Clean("/"+escapedPath), "/fhir") {
				r.URL.Path = untidyFHIRPath
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tidy reports whether the mux would serve the path without a redirect.
func tidy(escaped string) bool {
	segments := strings.Split(escaped, "/")
	if segments[0] != "" || len(segments) < 2 {
		return false
	}
	last := len(segments) - 1
	return !slices.Contains(segments, ".") && !slices.Contains(segments, "..") && !slices.Contains(segments[1:last], "")
}

// refuseOldTLS limits connections below TLS 1.3, which only the webhooks' server name allows, to the webhooks. Source:
// docs/decisions/limits.md, "TLS 1.3 and 1.2".
func refuseOldTLS(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		vendor, webhook := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), BasePath+"/gateway/")
		allowed := webhook && !strings.Contains(vendor, "/") || r.URL.Path == "/health" || strings.HasPrefix(r.URL.Path, "/health/")
		if r.TLS == nil || r.TLS.Version >= tls.VersionTLS13 || allowed {
			next.ServeHTTP(w, r)
			return
		}
		if r.ProtoMajor == 1 {
			w.Header().Set("Upgrade", "TLS/1.3")
			w.Header().Set("Connection", "Upgrade")
		}
		w.Header().Set("Content-Type", JSONType)
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusUpgradeRequired)
		_, _ = w.Write(errorBody(fault.New(fault.Forbidden, "tls_version", "This server name requires TLS 1.3.")))
	})
}
