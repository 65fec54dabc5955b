// Package web has the shared HTTP code of the API: headers, access tokens, roles and limits, bodies, query parameters,
// pages and errors. It serves [Route] values, and a handler gets the [Call]. It has no code about single endpoints.
package web

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web/idempotency"
)

// BasePath is the path prefix of the contract.
const BasePath = "/api/v1"

// Route is one endpoint. Path ends with a slash, as in the contract.
type Route struct {
	Method     string
	Path       string
	Permission authz.Action // the required permission, or one of the two that require no access token
	Limit      ratelimit.Class
	Scope      authz.ClientScope // the scope for clients; "" denies them
	// MaxBody limits the body, in bytes; 0 means the default.
	MaxBody int64
	// Repeatable means that running it twice has the same effect as once, even after a crash in between.
	Repeatable bool
	// ReadOnly means that it only reads, with any method.
	ReadOnly bool
	Handle   func(*Call) error // answers through the call, or returns an error
}

// Observer receives events for metrics. Its functions may be nil and must not block.
type Observer struct {
	// Answered is called for every answer; route is a template.
	Answered func(method, route string, status int, took time.Duration)
	// Rejected is called for each rejected or quarantined reading or gateway event, with an error code or a reason.
	Rejected func(reason string)
}

// Options configure a [Server].
type Options struct {
	PublicURL      string           // scheme and host of absolute links, without a trailing slash
	Zone           *time.Location   // the practice's time zone; bare dates in filters are days there
	AllowedOrigins []string         // web origins of other hosts that may call the API
	Log            *slog.Logger     // access log and unexpected errors
	Clock          func() time.Time // nil reads the wall clock
	Observer       Observer
	AccessTokens   AccessTokens
	Limits         *ratelimit.Limiter
	// Lease permits writes; nil always does. StaleReads records reads without it.
	Lease      Lease
	StaleReads *audit.StaleReads
}

// Now reads the clock. A request reads it once.
func (o Options) Now() time.Time {
	if o.Clock != nil {
		return o.Clock().UTC()
	}
	return time.Now().UTC()
}

// Server serves routes.
type Server struct {
	Options
	// Produces lists the media types of a route's successful answers; nil means JSON for all.
	Produces func(Route) []string
	// Parameters lists the query parameters that a route takes, and reports false if it ignores others; nil checks none.
	Parameters func(Route) (names []string, checked bool)
	// OnError is called for every error answer; it may be nil.
	OnError func(Route, error)
	// RenderFault renders a fault in another format if the caller accepts it; "" keeps the contract's format. It may be
	// nil.
	RenderFault func(Route, *http.Request, *fault.Error) (contentType string, body []byte)

	// AuthorizePatient denies access to a patient that the caller may not see; it may be nil.
	AuthorizePatient func(c *Call, patientID string) error

	patterns *http.ServeMux // all patterns of the routes, to distinguish 404 from 405
	reads    *audit.Group   // batches the audit records of reads
	keys     *idempotency.Keys
}

// Mount serves routes, and what mount adds, on the app's router. It calls e.Next itself and so ends the chain of
// OnServe handlers, because it must wrap the server's handler before the router.
func (s *Server) Mount(e *core.ServeEvent, routes []Route, mount ...func(*router.RouterGroup[*core.RequestEvent])) error {
	s.PublicURL = strings.TrimSuffix(s.PublicURL, "/")
	s.patterns, s.reads, s.keys = http.NewServeMux(), audit.NewGroup(s.Log), idempotency.New(s.Log)

	e.Router.Bind(s.accessLog(), s.crossOrigin(), s.refuseNativeWrites())
	group := e.Router.Group("")
	group.Unbind(replaced...)
	for _, row := range routes {
		for _, pattern := range Patterns(row.Path) {
			group.Route(row.Method, pattern, s.entryPoint(row))
			s.patterns.Handle(row.Method+" "+pattern, http.NotFoundHandler())
		}
	}
	for _, add := range mount {
		add(group)
	}
	s.mountUnknown(group, routes)

	if err := e.Next(); err != nil {
		return err
	}
	if e.Server != nil { // nil when a test drives the router directly
		e.Server.MaxHeaderBytes = maxHeaderBytes
		e.Server.Handler = withOuterHeaders(refuseOldTLS(refuseUntidyPaths(e.Server.Handler)))
	}
	return nil
}

// replaced lists PocketBase's middlewares that the routes do without, because this package does their work.
var replaced = []string{
	apis.DefaultWWWRedirectMiddlewareId,
	apis.DefaultPanicRecoverMiddlewareId,
	apis.DefaultLoadAuthTokenMiddlewareId,
	apis.DefaultSuperuserIPsWhitelistMiddlewareId,
	apis.DefaultSecurityHeadersMiddlewareId,
	apis.DefaultRateLimitMiddlewareId,
	apis.DefaultBodyLimitMiddlewareId,
}

// callerKey is the request key of the caller's id, for the access log.
const callerKey = "caller id"

// accessLog replaces PocketBase's request log on all routes: that log keeps whole URLs and referrers, which may contain
// a searched name. This one writes the route's template and never a path, query or body. Source:
// docs/decisions/security.md, "Application logs" and "PHI in URLs".
func (s *Server) accessLog() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{
		Id:       apis.DefaultActivityLoggerMiddlewareId,
		Priority: apis.DefaultActivityLoggerMiddlewarePriority,
		Func: func(e *core.RequestEvent) error {
			started := time.Now()
			err := e.Next()
			status := e.Status()
			switch {
			case status == 0 && err != nil:
				status = router.ToApiError(err).Status
			case status == 0:
				status = http.StatusOK
			}
			took := time.Since(started)
			if s.Observer.Answered != nil {
				s.Observer.Answered(e.Request.Method, template(e.Request.Pattern), status, took)
			}
			s.Log.InfoContext(e.Request.Context(), "request",
				"request_id", e.Response.Header().Get(requestIDHeader),
				"method", e.Request.Method,
				"route", template(e.Request.Pattern),
				"status", status,
				"ms", float64(took.Microseconds())/1000,
				"user", e.Get(callerKey),
			)
			return err
		},
	}
}

// template renders a mux pattern as the contract writes it.
func template(pattern string) string {
	if _, path, found := strings.Cut(pattern, " "); found {
		pattern = path
	}
	return strings.TrimSuffix(pattern, "{$}")
}
