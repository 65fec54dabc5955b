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

// Methods are those the contract uses; HEAD follows GET.
var Methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Patterns are the forms in which a path is served: as the contract writes it and, alike, without its last slash.
// Source: docs/decisions/conventions.md, "Trailing slash".
func Patterns(path string) []string {
	bare, slashed := strings.CutSuffix(path, "/")
	if !slashed {
		return []string{path}
	}
	return []string{bare, path + "{$}"}
}

// unknownPath is that of the row that answers what no row matches.
const unknownPath = BasePath + "/"

// Unknown reports whether a row answers what no row matches.
func (r Route) Unknown() bool { return r.Path == unknownPath }

// mountUnknown answers what no row matches under /api/ and /fhir/, in the contract's error form and without asking for a token.
// GET needs Patterns of its own there, or the files of pb_public, served at /{path...}, would catch it.
// Source: docs/decisions/errors.md, "Unknown routes" and docs/decisions/conventions.md, "Method handling".
func (d *Door) mountUnknown(group *router.RouterGroup[*core.RequestEvent], routes []Route) {
	unknown := d.door(Route{Path: unknownPath, Who: authz.Anyone, Limit: ratelimit.User, Handle: d.unknown})
	for _, below := range []string{"/api", "/fhir"} {
		group.GET(below, unknown)
		group.GET(below+"/{path...}", unknown)
	}
	group.Route("", "/", func(e *core.RequestEvent) error {
		if underAPI(e.Request.URL.Path) || len(d.offered(e.Request)) > 0 {
			return unknown(e)
		}
		return e.NotFoundError("", nil)
	})
	mountSiblings(group, routes, unknown)
}

func underAPI(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/fhir" || strings.HasPrefix(path, "/fhir/")
}

// unknown is 405 where the path is served for another method, else 404.
func (d *Door) unknown(c *Call) error {
	allowed := d.offered(c.Request)
	if len(allowed) == 0 {
		return fault.Missing()
	}
	c.Header().Set("Allow", strings.Join(allowed, ", "))
	return fault.New(fault.MethodNotAllowed, "method_not_allowed", "This method is not allowed here.")
}

// offered lists what the tables offer for the request's path, by the rows that name the most of it.
func (d *Door) offered(r *http.Request) []string {
	var found []string
	fewest := 0
	for _, method := range Methods {
		_, pattern := d.known.Handler(&http.Request{Method: method, URL: r.URL, Host: r.Host})
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

// These stand in for an untidy path under /api/ or /fhir/: nothing is served there.
const (
	untidyPath     = BasePath + "/-"
	untidyFHIRPath = "/fhir/-"
)

// refuseUntidyPaths keeps doubled slashes and dot segments under /api/ and /fhir/ from the mux, which would answer with a
// redirect to the clean path, in HTML and past every header, limit and log. They become an unknown path instead.
func refuseUntidyPaths(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked := r.URL.EscapedPath(); !tidy(asked) && (underAPI(asked) || underAPI(path.Clean("/"+asked))) {
			r = r.Clone(r.Context())
			r.URL.Path, r.URL.RawPath = untidyPath, ""
			if strings.HasPrefix(path.Clean("/"+asked), "/fhir") {
				r.URL.Path = untidyFHIRPath
			}
		}
		next.ServeHTTP(w, r)
	})
}

// tidy reports whether the mux would leave the path alone.
func tidy(escaped string) bool {
	segments := strings.Split(escaped, "/")
	if segments[0] != "" || len(segments) < 2 {
		return false
	}
	last := len(segments) - 1
	return !slices.Contains(segments, ".") && !slices.Contains(segments, "..") && !slices.Contains(segments[1:last], "")
}

// refuseOldTLS lets connections below TLS 1.3, which the webhooks' own server name may have, do nothing but what that name is for.
// Source: docs/decisions/limits.md, "TLS 1.3 and 1.2".
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
		_, _ = w.Write(errorBody(fault.New(fault.Forbidden, "tls_version", "TLS 1.3 is required here.")))
	})
}
