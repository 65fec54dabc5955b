package hooks

import (
	"embed"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
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

	// Ways to an account by mail or by another service: none knows lock or second factor. A superuser's password is set on the machine.
	"POST /api/collections/{collection}/request-password-reset",
	"POST /api/collections/{collection}/confirm-password-reset",
	"POST /api/collections/{collection}/request-verification",
	"POST /api/collections/{collection}/confirm-verification",
	"POST /api/collections/{collection}/request-email-change",
	"POST /api/collections/{collection}/confirm-email-change",
	"POST /api/collections/{collection}/auth-with-oauth2",
	"GET /api/oauth2-redirect",
	"POST /api/oauth2-redirect",
}

// authMethods describes the dashboard's door.
const authMethods = "GET /api/collections/{collection}/auth-methods"

// superusersOnly lists the routes by which superusers sign in to the dashboard, and nobody else anywhere.
var superusersOnly = []string{
	authMethods,
	"POST /api/collections/{collection}/auth-with-password",
	"POST /api/collections/{collection}/auth-refresh",
	"POST /api/collections/{collection}/request-otp",
	"POST /api/collections/{collection}/auth-with-otp",
}

// closeRoutes is the outermost middleware of the router: closed routes do not exist.
func closeRoutes() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilClosedRoutes", Priority: -100001, Func: func(e *core.RequestEvent) error {
		foreign := e.Request.PathValue("collection") != core.CollectionNameSuperusers
		if slices.Contains(closed, e.Request.Pattern) || foreign && slices.Contains(superusersOnly, e.Request.Pattern) {
			return e.NotFoundError("", nil)
		}
		return e.Next()
	}}
}

// maxStrangersBody is the largest body, in bytes, that PocketBase's own routes read of anybody but a superuser: a sign-in or a subscription.
const maxStrangersBody = 64 << 10

// limitBodies keeps strangers from filling the memory: PocketBase reads up to 32 MiB before it asks who sends them. It comes after the token is read
// and before the body is.
func limitBodies() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilBodyLimit", Priority: apis.DefaultRateLimitMiddlewarePriority + 5, Func: func(e *core.RequestEvent) error {
		path := e.Request.URL.Path // the contract's routes and FHIR's have limits of their own, and forms of their own to say so
		if e.HasSuperuserAuth() || strings.HasPrefix(path, "/api/v1/") || strings.HasPrefix(path, "/fhir/R4/") {
			return e.Next()
		}
		return apis.BodyLimit(maxStrangersBody).Func(e)
	}}
}

// closeNative is the last line behind closed routes: PocketBase gives no user a token.
func closeNative(app core.App) {
	app.OnRecordAuthRequest(collections.Users).BindFunc(notFound)
}

func notFound[E interface {
	NotFoundError(message string, data any) *router.ApiError
}](e E) error {
	return e.NotFoundError("", nil)
}

//go:embed dashboard
var dashboardFiles embed.FS

// Dashboard is what PocketBase's dashboard has to know about Vigil, a folder for each thing: our types of fields, the collections in groups, the
// search for people, and closed doors.
func Dashboard() (extensions []core.UIExtension, err error) {
	folders, err := fs.ReadDir(dashboardFiles, "dashboard")
	for _, folder := range folders {
		files, unknown := fs.Sub(dashboardFiles, "dashboard/"+folder.Name())
		extensions, err = append(extensions, core.UIExtension{Name: "vigil-" + folder.Name(), FS: files}), errors.Join(err, unknown)
	}
	return extensions, err
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

// Guard puts our doors before PocketBase's own routes: those that are closed do not exist, an access token is one of ours, strangers send little, and superusers sign
// in as users do.
func Guard(e Engines) []*hook.Handler[*core.RequestEvent] {
	h := &hooks{e}
	return []*hook.Handler[*core.RequestEvent]{closeRoutes(), h.loadAccessToken(), limitBodies(), h.superuserDoor()}
}

// loadAccessToken takes the place of PocketBase's own reading of tokens, which knows no key but those that lie in the database. A token that is not
// good is none, as there.
func (h *hooks) loadAccessToken() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{
		Id: apis.DefaultLoadAuthTokenMiddlewareId, Priority: apis.DefaultLoadAuthTokenMiddlewarePriority,
		Func: func(e *core.RequestEvent) error {
			token := accessToken(e.Request)
			if token == "" || h.Auth == nil {
				return e.Next()
			}
			holder, err := h.Auth.Holder(e.App, token, h.Clock())
			switch _, refused := errors.AsType[*fault.Error](err); {
			case err == nil:
				e.Auth = holder
			case !refused:
				return e.InternalServerError("", err)
			}
			return e.Next()
		},
	}
}
