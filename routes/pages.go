package routes

import (
	"io/fs"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/router"
)

// pagePolicy lets the console use what this service serves and nothing else: no inline script, no other origin, no frame.
const pagePolicy = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"

// ServePages serves the console and its files, compressed, wherever no other route answers.
func ServePages(r *router.Router[*core.RequestEvent], files fs.FS) {
	r.GET("/{path...}", apis.Static(files, false)).Bind(apis.Gzip(), &hook.Handler[*core.RequestEvent]{Func: func(e *core.RequestEvent) error {
		h := e.Response.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		return e.Next()
	}})
}
