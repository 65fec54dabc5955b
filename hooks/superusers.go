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

// guardSuperusers makes superusers sign in with Vigil's lockout, second factor and tokens.
func guardSuperusers(app core.App, h *hooks) {
	app.OnRecordAuthWithPasswordRequest(core.CollectionNameSuperusers).BindFunc(h.checkSuperuser)
	app.OnRecordAuthRequest(core.CollectionNameSuperusers).BindFunc(h.issueToken)
	hideFields(app)
	app.OnRecordCreateRequest(signInCollections...).BindFunc(refuseSignIns)
	app.OnRecordUpdateRequest(signInCollections...).BindFunc(refuseSignIns)
	app.OnRecordDeleteRequest(signInCollections...).BindFunc(refuseSignIns)
}

// hiddenFields are never shown: PocketBase shows superusers hidden fields and opened sealed values. Whether a second factor is enabled may be
// shown. A webhook's URL may contain a secret of its receiver.
var hiddenFields = map[string][]string{
	collections.Users:             factorFields[1:],
	core.CollectionNameSuperusers: factorFields[1:],
	collections.Clients:           {"secret_hash", "token_key"},
	collections.Webhooks:          {"url", "secret", "previous_secret"},
}

func hideFields(app core.App) {
	for collection, fields := range hiddenFields {
		app.OnRecordEnrich(collection).BindFunc(func(e *core.RecordEnrichEvent) error {
			record := e.Record // Next changes e.Record
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

// checkSuperuser replaces PocketBase's password check, which has no lockout or second factor and no bound on concurrent hashing. The request
// may include a code; without one, the answer is that of PocketBase's second step, which its dashboard supports.
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
	case step.PendingToken != "":
		return e.JSON(http.StatusUnauthorized, map[string]string{"mfaId": step.PendingToken})
	}
	return apis.RecordAuthResponse(e.RequestEvent, step.Record, core.MFAMethodPassword, nil)
}

// superuserSignIn answers PocketBase's routes of the second step for superusers: its dashboard's form for a mailed code takes the code of the
// authenticator app. It runs after PocketBase's rate limits.
func (h *hooks) superuserSignIn() *hook.Handler[*core.RequestEvent] {
	routes := map[string]func(*core.RequestEvent) error{
		authMethods: describeSignIn,
		"POST /api/collections/{collection}/request-otp":   announceCode,
		"POST /api/collections/{collection}/auth-with-otp": h.checkCode,
	}
	return &hook.Handler[*core.RequestEvent]{Id: "vigilSuperusers", Priority: 10, Func: func(e *core.RequestEvent) error {
		if route := routes[e.Request.Pattern]; route != nil && e.Request.PathValue("collection") == core.CollectionNameSuperusers {
			return route(e)
		}
		return e.Next()
	}}
}

// describeSignIn returns the sign-in forms for the dashboard.
func describeSignIn(e *core.RequestEvent) error {
	return e.JSON(http.StatusOK, map[string]any{
		"password": map[string]any{"enabled": true, "identityFields": []string{core.FieldNameEmail}},
		"oauth2":   map[string]any{"enabled": false, "providers": []string{}},
		"otp":      map[string]any{"enabled": true, "duration": 0},
		"mfa":      map[string]any{"enabled": true, "duration": 0},
	})
}

// announceCode always returns the same form. No mail is sent: the code is in the authenticator app.
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

// issueToken replaces the token in the response with Vigil's and audits the sign-in; a renewed token is not a sign-in.
func (h *hooks) issueToken(e *core.RecordAuthRequestEvent) (err error) {
	if e.AuthMethod == "" {
		e.Token, err = h.Auth.RenewSuperuser(e.App, accessToken(e.Request), h.Clock())
	} else {
		e.Token, err = h.Auth.CompleteSuperuserSignIn(e.App, e.Record, originOf(e.RequestEvent), h.Clock())
	}
	if err != nil {
		return nativeError(e.RequestEvent, err)
	}
	return e.Next()
}

// nativeError returns a refusal in PocketBase's form: its dashboard expects 400 for wrong credentials and shows any other text.
func nativeError(e *core.RequestEvent, err error) error {
	if collections.IsUnreadable(err) {
		return answerUnreadable(e, err)
	}
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return e.InternalServerError("", err) // PocketBase would report any other error as the caller's
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

// factorFields are the second factors of users and superusers, which the dashboard neither shows nor changes: a reader could use them, and
// disabling one would leave only the password.
var factorFields = []string{"two_factor_enabled", "totp_secret", "totp_last_step", "totp_pending_secret", "totp_pending_codes", "totp_pending_until", "totp_pending_failures"}

// restoreFactors restores the second factors in a record that the dashboard saved as a whole, without the hidden values.
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

// signInCollections are the collections with rows that open an account. Their records cannot be written in the dashboard, which would be a
// sign-in without password or second factor. Administrators reset second factors and end sessions through the API.
var signInCollections = []string{
	collections.BackupCodes, collections.Identities, collections.LoginFailures, collections.Passkeys, collections.RefreshTokens, collections.ResetTokens,
	collections.SignInSteps, collections.UsedChallenges,
}

func refuseSignIns(e *core.RecordRequestEvent) error {
	return e.BadRequestError("Only the service writes records of this kind.", nil)
}

// guardSuperuser applies the rules of a user to a superuser.
func (h *hooks) guardSuperuser(e *core.RecordEvent) error {
	e.Record.SetEmail(auth.FoldEmail(e.Record.Email()))
	restoreFactors(e.Record)
	return continueUnless(passwordPolicy(e.App, e.Record), e)
}

// passwordPolicy refuses a new password that violates the policy. The plain text is available only while it is being set.
func passwordPolicy(app core.App, record *core.Record) error {
	password := record.GetString(core.FieldNamePassword)
	if password == "" {
		return nil
	}
	superuser := collections.AsSuperuser(record)
	owner := auth.Owner{Email: record.Email(), FirstName: superuser.FirstName(), LastName: superuser.LastName()}
	if broken := auth.PasswordProblems(app, password, owner); len(broken) > 0 {
		return validation.Errors{core.FieldNamePassword: validation.NewError("password_policy", strings.Join(broken, " "))}
	}
	return nil
}
