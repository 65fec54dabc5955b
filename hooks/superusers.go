package hooks

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"strings"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"
	"github.com/pocketbase/pocketbase/tools/security"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// guardSuperusers has superusers sign in by our rules, and gives them our tokens.
func guardSuperusers(app core.App, h *hooks) {
	app.OnRecordAuthWithPasswordRequest(core.CollectionNameSuperusers).BindFunc(h.checkSuperuser)
	app.OnRecordAuthRequest(core.CollectionNameSuperusers).BindFunc(h.giveToken)
	hideSecrets(app)
	app.OnRecordCreateRequest(signIns...).BindFunc(refuseSignIns)
	app.OnRecordUpdateRequest(signIns...).BindFunc(refuseSignIns)
	app.OnRecordDeleteRequest(signIns...).BindFunc(refuseSignIns)
}

// secrets are the fields that nobody is shown: PocketBase shows superusers what is hidden, and what is sealed, opened. Whether there is a second
// factor may be seen. An address of a webhook may hold a secret of its receiver's.
var secrets = map[string][]string{
	collections.Users:             factorFields[1:],
	core.CollectionNameSuperusers: factorFields[1:],
	collections.Clients:           {"secret_hash", "token_key"},
	collections.Webhooks:          {"url", "secret", "previous_secret"},
}

func hideSecrets(app core.App) {
	for collection, fields := range secrets {
		app.OnRecordEnrich(collection).BindFunc(func(e *core.RecordEnrichEvent) error {
			record := e.Record // the event goes on to the next one
			if err := e.Next(); err != nil {
				return err
			}
			record.Hide(fields...)
			return nil
		})
	}
}

func originOf(e *core.RequestEvent) audit.Origin {
	return audit.Origin{Address: e.RealIP(), Client: validate.CleanLine(e.Request.UserAgent()), RequestID: e.Response.Header().Get("X-Request-ID")}
}

// checkSuperuser takes the place of PocketBase's own check of the password, which knows neither lock nor second factor and hashes for as many as
// come. A code may come with the password; when it does not, the answer is that of PocketBase's own second step, which its dashboard knows.
func (h *hooks) checkSuperuser(e *core.RecordAuthWithPasswordRequestEvent) error {
	var body struct {
		Code string `json:"totp_code" form:"totp_code"`
	}
	if err := e.BindBody(&body); err != nil {
		return e.BadRequestError("An error occurred while loading the submitted data.", nil)
	}
	step, err := h.Auth.SuperuserPassword(e.Request.Context(), e.App, e.Identity, e.Password, body.Code, originOf(e.RequestEvent), h.Clock())
	switch {
	case err != nil:
		return nativeError(e.RequestEvent, err)
	case step.Half != "":
		return e.JSON(http.StatusUnauthorized, map[string]string{"mfaId": step.Half})
	}
	return apis.RecordAuthResponse(e.RequestEvent, step.Record, core.MFAMethodPassword, nil)
}

// superuserDoor answers the routes of PocketBase's second step for superusers: what its dashboard takes for a mailed code is that of the
// authenticator app. It runs after PocketBase's limits.
func (h *hooks) superuserDoor() *hook.Handler[*core.RequestEvent] {
	doors := map[string]func(*core.RequestEvent) error{
		authMethods: describeDoor,
		"POST /api/collections/{collection}/request-otp":   announceCode,
		"POST /api/collections/{collection}/auth-with-otp": h.checkCode,
	}
	return &hook.Handler[*core.RequestEvent]{Id: "vigilSuperusers", Priority: 10, Func: func(e *core.RequestEvent) error {
		if door := doors[e.Request.Pattern]; door != nil && e.Request.PathValue("collection") == core.CollectionNameSuperusers {
			return door(e)
		}
		return e.Next()
	}}
}

// describeDoor tells the dashboard which forms to show.
func describeDoor(e *core.RequestEvent) error {
	return e.JSON(http.StatusOK, map[string]any{
		"password": map[string]any{"enabled": true, "identityFields": []string{core.FieldNameEmail}},
		"oauth2":   map[string]any{"enabled": false, "providers": []string{}},
		"otp":      map[string]any{"enabled": true, "duration": 0},
		"mfa":      map[string]any{"enabled": true, "duration": 0},
	})
}

// announceCode answers anybody the same: nothing is sent, the code is on the authenticator app.
func announceCode(e *core.RequestEvent) error {
	return e.JSON(http.StatusOK, map[string]string{"otpId": "app" + security.RandomString(12)})
}

func (h *hooks) checkCode(e *core.RequestEvent) error {
	var body struct {
		Code string `json:"password" form:"password"`
		Half string `json:"mfaId" form:"mfaId"`
	}
	if err := e.BindBody(&body); err != nil {
		return e.BadRequestError("An error occurred while loading the submitted data.", nil)
	}
	half := cmp.Or(body.Half, e.Request.URL.Query().Get("mfaId")) // where PocketBase's SDK puts it
	step, err := h.Auth.SuperuserCode(e.Request.Context(), e.App, half, strings.TrimSpace(body.Code), originOf(e), h.Clock())
	if err != nil {
		return nativeError(e, err)
	}
	return apis.RecordAuthResponse(e, step.Record, core.MFAMethodOTP, nil)
}

// giveToken puts our token into the answer, and audits whoever is let in; renewing a token is no sign-in.
func (h *hooks) giveToken(e *core.RecordAuthRequestEvent) (err error) {
	if e.AuthMethod == "" {
		e.Token, err = h.Auth.SuperuserRenewed(e.App, accessToken(e.Request), h.Clock())
	} else {
		e.Token, err = h.Auth.SuperuserSignedIn(e.App, e.Record, originOf(e.RequestEvent), h.Clock())
	}
	if err != nil {
		return nativeError(e.RequestEvent, err)
	}
	return e.Next()
}

// nativeError says a refusal as PocketBase would: its dashboard takes 400 for wrong credentials and shows any other text as it is.
func nativeError(e *core.RequestEvent, err error) error {
	if collections.IsUnreadable(err) {
		return answerUnreadable(e, err)
	}
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return e.InternalServerError("", err) // any other error PocketBase takes for the caller's
	}
	if refused.RetryAfter > 0 {
		e.Response.Header().Set("Retry-After", strconv.Itoa(int(refused.RetryAfter.Seconds())))
	}
	switch {
	case refused.Code == "authentication_failed":
		return e.BadRequestError("Failed to authenticate.", nil)
	case refused.Kind == fault.Locked:
		return e.Error(http.StatusLocked, refused.Detail, nil)
	case refused.Kind == fault.Forbidden:
		return e.ForbiddenError(refused.Detail, nil)
	case refused.Kind == fault.Unauthenticated:
		return e.UnauthorizedError(refused.Detail, nil)
	}
	return e.Error(http.StatusServiceUnavailable, refused.Detail, nil)
}

// factorFields are the second factors of users and superusers, which nobody reads or writes in the dashboard: who could read one could use it, and
// who could turn one off would need the password only.
var factorFields = []string{"two_factor_enabled", "totp_secret", "totp_last_step", "totp_pending_secret", "totp_pending_codes", "totp_pending_until", "totp_pending_failures"}

// restoreFactors undoes what the dashboard, which saves whole records, wrote in the place of what it was not shown.
func restoreFactors(record *core.Record) {
	if !fromDashboard(record) {
		return
	}
	for _, field := range factorFields {
		if record.Collection().Fields.GetByName(field) != nil {
			record.SetRaw(field, record.Original().GetRaw(field))
		}
	}
}

// signIns are the collections of which a row opens an account: nobody makes, changes or takes away one by hand, for that would be a sign-in
// without password or second factor. Administrators reset second factors and end sessions in the contract.
var signIns = []string{
	collections.BackupCodes, collections.Identities, collections.LoginFailures, collections.Passkeys, collections.RefreshTokens, collections.ResetTokens,
	collections.SignInSteps, collections.UsedChallenges,
}

func refuseSignIns(e *core.RecordRequestEvent) error {
	return e.BadRequestError("Records of this kind are written by the service alone.", nil)
}

// guardSuperuser holds a superuser to the rules of a user.
func (h *hooks) guardSuperuser(e *core.RecordEvent) error {
	e.Record.SetEmail(auth.FoldEmail(e.Record.Email()))
	restoreFactors(e.Record)
	return unless(passwordPolicy(e.Record), e)
}

// passwordPolicy refuses a new password that breaks the policy. Only while it is being set is it there in the clear.
func passwordPolicy(record *core.Record) error {
	password := record.GetString(core.FieldNamePassword)
	if password == "" {
		return nil
	}
	superuser := collections.AsSuperuser(record)
	owner := auth.Owner{Email: record.Email(), FirstName: superuser.FirstName(), LastName: superuser.LastName()}
	if broken := auth.PasswordProblems(password, owner); len(broken) > 0 {
		return validation.Errors{core.FieldNamePassword: validation.NewError("password_policy", strings.Join(broken, " "))}
	}
	return nil
}
