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

// closedRoutes are PocketBase's own routes that answer 404.
var closedRoutes = []string{
	"POST /api/sql", // arbitrary SQL would bypass every rule and trigger
	"POST /api/collections/{collection}/impersonate/{id}", // a token without sign-in, second factor or end
	// An unencrypted zip of all data and token keys, or a replaced database; vigil backup does both safely.
	"GET /api/backups", "POST /api/backups", "POST /api/backups/upload",
	"GET /api/backups/{key}", "DELETE /api/backups/{key}", "POST /api/backups/{key}/restore",
	// No collection has files.
	"POST /api/files/token", "GET /api/files/{collection}/{recordId}/{filename}",
	"DELETE /api/logs", // deletes evidence
	"DELETE /api/collections/{collection}/truncate", // records must be kept

	// Sign-in by mail or OAuth2 has no lockout and no second factor. A superuser's password is reset on the server.
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

// authMethods is the route that describes the dashboard's sign-in.
const authMethods = "GET /api/collections/{collection}/auth-methods"

// superusersOnly are the sign-in routes that exist only for superusers.
var superusersOnly = []string{
	authMethods,
	"POST /api/collections/{collection}/auth-with-password",
	"POST /api/collections/{collection}/auth-refresh",
	"POST /api/collections/{collection}/request-otp",
	"POST /api/collections/{collection}/auth-with-otp",
}

// closeRoutes is the outermost middleware: closed routes answer 404.
func closeRoutes() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilClosedRoutes", Priority: -100001, Func: func(e *core.RequestEvent) error {
		foreign := e.Request.PathValue("collection") != core.CollectionNameSuperusers
		if slices.Contains(closedRoutes, e.Request.Pattern) || foreign && slices.Contains(superusersOnly, e.Request.Pattern) {
			return e.NotFoundError("", nil)
		}
		return e.Next()
	}}
}

// maxAnonymousBody is the largest body, in bytes, that PocketBase's own routes read without a superuser's token: a sign-in or a subscription.
const maxAnonymousBody = 64 << 10

// limitBodies bounds the memory for anonymous requests: PocketBase reads up to 32 MiB before it checks the sender. It runs after the token is
// read and before the body is.
func limitBodies() *hook.Handler[*core.RequestEvent] {
	return &hook.Handler[*core.RequestEvent]{Id: "vigilBodyLimit", Priority: apis.DefaultRateLimitMiddlewarePriority + 5, Func: func(e *core.RequestEvent) error {
		path := e.Request.URL.Path // the API and FHIR have their own limits and error formats
		if e.HasSuperuserAuth() || strings.HasPrefix(path, "/api/v1/") || strings.HasPrefix(path, "/fhir/R4/") {
			return e.Next()
		}
		return apis.BodyLimit(maxAnonymousBody).Func(e)
	}}
}

// refuseUserTokens is the last guard behind the closed routes: PocketBase issues no token to a user.
func refuseUserTokens(app core.App) {
	app.OnRecordAuthRequest(collections.Users).BindFunc(notFound)
}

func notFound[E interface {
	NotFoundError(message string, data any) *router.ApiError
}](e E) error {
	return e.NotFoundError("", nil)
}

//go:embed dashboard
var dashboardFiles embed.FS

// Dashboard returns Vigil's extensions of PocketBase's dashboard, one folder each: field types, collection groups, the search for people, and
// the closed pages.
func Dashboard() (extensions []core.UIExtension, err error) {
	folders, err := fs.ReadDir(dashboardFiles, "dashboard")
	for _, folder := range folders {
		files, unknown := fs.Sub(dashboardFiles, "dashboard/"+folder.Name())
		extensions, err = append(extensions, core.UIExtension{Name: "vigil-" + folder.Name(), FS: files}), errors.Join(err, unknown)
	}
	return extensions, err
}

// disableExtensionCache makes browsers revalidate Vigil's dashboard extensions. PocketBase allows two weeks of caching, which would outlast an
// upgrade.
func disableExtensionCache(app core.App) {
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

// Guard returns the middleware in front of PocketBase's own routes: closed routes answer 404, access tokens are Vigil's, anonymous bodies are
// small, and superusers sign in with lockout and second factor.
func Guard(e Engines) []*hook.Handler[*core.RequestEvent] {
	h := &hooks{e}
	return []*hook.Handler[*core.RequestEvent]{closeRoutes(), h.loadAccessToken(), limitBodies(), h.superuserSignIn()}
}

// loadAccessToken replaces PocketBase's token middleware, which accepts only keys from the database. An invalid token is ignored, as in
// PocketBase.
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
