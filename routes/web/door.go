// Package web is how a request comes in at the door and how its answer goes out: headers, access tokens, roles and limits, bodies, query
// parameters, pages, errors. It knows HTTP and the forms of the contract that all endpoints share; what an endpoint means it refuses to know.
// A row of the caller's tables is a [Route], and its handler is handed the [Call].
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
	"github.com/vigilhealth/vigil/internal/idempotency"
	"github.com/vigilhealth/vigil/internal/ratelimit"
)

// BasePath is where the contract answers.
const BasePath = "/api/v1"

// Route is one endpoint. The path is the contract's, with its trailing slash.
type Route struct {
	Method string
	Path   string
	Who    authz.Action // the permission asked for, or one of the two that ask for no access token
	Limit  ratelimit.Class
	Scope  authz.ClientScope // what opens it to clients; "" is closed to them
	// MaxBody is the largest body, in bytes; 0 is as for others.
	MaxBody int64
	// Repeatable: doing it twice leaves what doing it once does, whoever is killed in between.
	Repeatable bool
	// Asks: it only reads, whatever its method.
	Asks   bool
	Handle func(*Call) error // answers through the call, or returns what went wrong
}

// Watch is told what happens at the door, for those who count; its functions may be nil and must not block.
type Watch struct {
	// Answered is told of every answer: the route is a template.
	Answered func(method, route string, status int, took time.Duration)
	// Rejected is told why a reading or gateway event was refused or put into quarantine: an error code or a reason.
	Rejected func(reason string)
}

// Options are what every answer depends on.
type Options struct {
	PublicURL      string           // scheme and host of absolute links, no trailing slash
	Zone           *time.Location   // the practice's: bare dates in filters are days there
	AllowedOrigins []string         // web origins of other hosts that may call
	Log            *slog.Logger     // access log and unexpected errors
	Clock          func() time.Time // nil reads the wall clock
	Watch          Watch
	AccessTokens   AccessTokens
	Limits         *ratelimit.Limiter
}

// Now reads the clock, once for each request.
func (o Options) Now() time.Time {
	if o.Clock != nil {
		return o.Clock().UTC()
	}
	return time.Now().UTC()
}

// Door serves routes.
type Door struct {
	Options
	// Produces lists the media types in which a route's success may come; nil is JSON for all.
	Produces func(Route) []string
	// Refused is told of every refusal; it may be nil.
	Refused func(Route, error)
	// OtherForm says what went wrong in another form than the contract's, to who asked for it; "" leaves it at that. It may be nil.
	OtherForm func(Route, *http.Request, *fault.Error) (contentType string, body []byte)

	// Reach refuses a patient whom the caller may not be let at; it may be nil.
	Reach func(c *Call, patientID string) error

	known *http.ServeMux // every pattern of the routes, to tell "no such path" from "not this method"
	reads *audit.Group   // what callers were shown, recorded many at a time
	keys  *idempotency.Keys
}

// Open serves routes, and what else mount adds, on the app's router. It ends the chain of OnServe handlers it is called in: it calls e.Next
// itself, since requests must also be met before the router sees them.
func (d *Door) Open(e *core.ServeEvent, routes []Route, mount ...func(*router.RouterGroup[*core.RequestEvent])) error {
	d.PublicURL = strings.TrimSuffix(d.PublicURL, "/")
	d.known, d.reads, d.keys = http.NewServeMux(), audit.NewGroup(d.Log), idempotency.New(d.Log)

	e.Router.Bind(d.accessLog(), d.crossOrigin())
	group := e.Router.Group("")
	group.Unbind(replaced...)
	for _, row := range routes {
		for _, pattern := range Patterns(row.Path) {
			group.Route(row.Method, pattern, d.door(row))
			d.known.Handle(row.Method+" "+pattern, http.NotFoundHandler())
		}
	}
	for _, add := range mount {
		add(group)
	}
	d.mountUnknown(group, routes)

	if err := e.Next(); err != nil {
		return err
	}
	if e.Server != nil { // there is none when a test drives the router itself
		e.Server.MaxHeaderBytes = maxHeaderBytes
		e.Server.Handler = strict(refuseOldTLS(refuseUntidyPaths(e.Server.Handler)))
	}
	return nil
}

// replaced lists PocketBase's own middlewares that our endpoints do without: the door does their work.
var replaced = []string{
	apis.DefaultWWWRedirectMiddlewareId,
	apis.DefaultPanicRecoverMiddlewareId,
	apis.DefaultLoadAuthTokenMiddlewareId,
	apis.DefaultSuperuserIPsWhitelistMiddlewareId,
	apis.DefaultSecurityHeadersMiddlewareId,
	apis.DefaultRateLimitMiddlewareId,
	apis.DefaultBodyLimitMiddlewareId,
}

// callerKey is where the door leaves the caller's id for the access log.
const callerKey = "caller id"

// accessLog replaces PocketBase's request log, for its own routes too: that one keeps whole URLs and referrers, and a
// search for a name would stand in them. This one writes the route's template and never a path, query or body.
// Source: docs/decisions/security.md, "Application logs" and "PHI in URLs".
func (d *Door) accessLog() *hook.Handler[*core.RequestEvent] {
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
			if d.Watch.Answered != nil {
				d.Watch.Answered(e.Request.Method, template(e.Request.Pattern), status, took)
			}
			d.Log.InfoContext(e.Request.Context(), "request",
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

// template is a mux pattern as the contract writes it.
func template(pattern string) string {
	if _, path, found := strings.Cut(pattern, " "); found {
		pattern = path
	}
	return strings.TrimSuffix(pattern, "{$}")
}
