package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/router"
)

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
