package hooks

import (
	"errors"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"

	"github.com/vigilhealth/vigil/internal/fault"
)

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
			var refused *fault.Error
			switch {
			case err == nil:
				e.Auth = holder
			case !errors.As(err, &refused):
				return e.InternalServerError("", err)
			}
			return e.Next()
		},
	}
}
