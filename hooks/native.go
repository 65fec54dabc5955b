package hooks

import (
	"embed"
	"io/fs"
	"slices"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
)

// closed lists PocketBase's own routes that answer 404, and why.
var closed = []string{
	"POST /api/sql", // arbitrary SQL would go round every rule and trigger
	"POST /api/collections/{collection}/impersonate/{id}", // a token without sign-in, second factor or end
	// An open zip of everything, keys of tokens included, or a database put in the place of ours; vigil backup does both.
	"GET /api/backups", "POST /api/backups", "POST /api/backups/upload",
	"GET /api/backups/{key}", "DELETE /api/backups/{key}", "POST /api/backups/{key}/restore",
	// There are no files.
	"POST /api/files/token", "GET /api/files/{collection}/{recordId}/{filename}",
	"DELETE /api/logs", // removes traces
	"DELETE /api/collections/{collection}/truncate", // records are kept
}

// authMethods describes doors that are closed, but for the dashboard's: its sign-in page asks before it shows a form.
const authMethods = "GET /api/collections/{collection}/auth-methods"

// CloseRoutes is the outermost middleware of the router: closed routes do not exist.
func CloseRoutes() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilClosedRoutes", Priority: -100001, Func: func(e *core.RequestEvent) error {
		foreign := e.Request.PathValue("collection") != core.CollectionNameSuperusers
		if slices.Contains(closed, e.Request.Pattern) || foreign && e.Request.Pattern == authMethods {
			return e.NotFoundError("", nil)
		}
		return e.Next()
	}}
}

// closeNative keeps users out of every way in that PocketBase itself offers: none of them knows lockout, second factor or
// rotation. Superusers keep theirs; the collection's nil rules close the rest.
func closeNative(app core.App) {
	const users = collections.Users
	app.OnRecordAuthRequest(users).BindFunc(notFound)
	app.OnRecordRequestPasswordResetRequest(users).BindFunc(notFound)
	app.OnRecordConfirmPasswordResetRequest(users).BindFunc(notFound)
	app.OnRecordRequestVerificationRequest(users).BindFunc(notFound)
	app.OnRecordConfirmVerificationRequest(users).BindFunc(notFound)
	app.OnRecordRequestEmailChangeRequest(users).BindFunc(notFound)
	app.OnRecordConfirmEmailChangeRequest(users).BindFunc(notFound)
}

func notFound[E interface {
	NotFoundError(message string, data any) *router.ApiError
}](e E) error {
	return e.NotFoundError("", nil)
}

//go:embed dashboard
var dashboardFiles embed.FS

// Dashboard teaches PocketBase's dashboard our field types.
func Dashboard() (core.UIExtension, error) {
	files, err := fs.Sub(dashboardFiles, "dashboard")
	return core.UIExtension{Name: "vigil", FS: files}, err
}

// refreshDashboard has browsers ask for our part of the dashboard each time. PocketBase lets them keep it for two weeks,
// past an upgrade of ours.
func refreshDashboard(app core.App) {
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Router.BindFunc(func(e *core.RequestEvent) error {
			if e.Request.Pattern == "GET /_/extensions.js" {
				e.Response.Header().Set("Cache-Control", "no-cache")
			}
			return e.Next()
		})
		return e.Next()
	})
}
