package hooks

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
)

// guardSuperusers puts lock and audit around PocketBase's own sign-in to the dashboard.
func guardSuperusers(app core.App, h *hooks) {
	app.OnRecordAuthWithPasswordRequest(core.CollectionNameSuperusers).BindFunc(h.limitPasswords)
	app.OnRecordAuthRequest(core.CollectionNameSuperusers).BindFunc(h.recordSignIn)
}

func originOf(e *core.RequestEvent) audit.Origin {
	return audit.Origin{Address: e.RealIP(), Client: e.Request.UserAgent(), RequestID: e.Response.Header().Get("X-Request-ID")}
}

// limitPasswords refuses a locked address before its password is looked at, and counts wrong ones.
func (h *hooks) limitPasswords(e *core.RecordAuthWithPasswordRequestEvent) error {
	from := originOf(e.RequestEvent)
	if err := h.Auth.SuperuserMayTry(e.App, e.Record, e.Identity, from, h.Clock()); err != nil {
		var refused *fault.Error
		if errors.As(err, &refused) {
			e.Response.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter.Seconds())))
			return e.Error(http.StatusLocked, refused.Detail, nil)
		}
		return err
	}
	err := e.Next()
	var wrong *router.ApiError
	if errors.As(err, &wrong) && wrong.Status == http.StatusBadRequest {
		return errors.Join(err, h.Auth.SuperuserFailed(e.App, e.Record, e.Identity, from, h.Clock()))
	}
	return err
}

// recordSignIn audits whoever is let in, by whatever factor; renewing a token is no sign-in.
func (h *hooks) recordSignIn(e *core.RecordAuthRequestEvent) error {
	if err := e.Next(); err != nil || e.AuthMethod == "" {
		return err
	}
	return h.Auth.SuperuserSignedIn(e.App, e.Record, originOf(e.RequestEvent), h.Clock())
}
