package auth_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var (
	clock  = vigiltest.Clock
	origin = audit.Origin{Address: "192.0.2.1", Client: "test", RequestID: "request-1"}
)

func newEngine(change ...func(*auth.Options)) *auth.Engine {
	options := auth.Options{RefreshFamilyLife: 7 * 24 * time.Hour}
	for _, apply := range change {
		apply(&options)
	}
	return auth.New(vigiltest.Sealer(), options)
}

// signedIn signs a user in at now.
func signedIn(t testing.TB, e *auth.Engine, app core.App, user *collections.User, now time.Time) (auth.Caller, auth.Session) {
	t.Helper()
	session := login(t, e, app, user, now)
	caller, err := e.Authenticate(app, session.Access, now)
	if err != nil {
		t.Fatal(err)
	}
	return caller, session
}

// loginCode returns the error code of a login with the password and, if given, a code; "" for success.
func loginCode(t testing.TB, e *auth.Engine, app core.App, user *collections.User, password, second string, now time.Time) string {
	t.Helper()
	body := credentials(user.Email(), password)
	if second != "" {
		body = withCode(body, second)
	}
	_, err := e.Login(t.Context(), app, body, origin, now)
	return code(err)
}

// reloadUser returns the user as stored.
func reloadUser(t testing.TB, app core.App, user *collections.User) *collections.User {
	t.Helper()
	current, err := collections.FindUser(app, user.Id)
	if err != nil {
		t.Fatal(err)
	}
	return current
}

// changeTokenKey changes the user's token key, as a new password does.
func changeTokenKey(t testing.TB, app core.App, user *collections.User) {
	t.Helper()
	current := reloadUser(t, app, user)
	current.RefreshTokenKey()
	if err := app.Save(current); err != nil {
		t.Fatal(err)
	}
}

// wrongFields returns the sorted names of the fields in a validation fault.
func wrongFields(err error) string {
	var f *fault.Error
	if !errors.As(err, &f) {
		return code(err)
	}
	return strings.Join(slices.Sorted(maps.Keys(f.Fields)), " ")
}

// mails returns the sorted templates in the outbox.
func mails(t testing.TB, app core.App) string {
	t.Helper()
	var templates []string
	if err := app.DB().NewQuery("SELECT template FROM mails ORDER BY template").Column(&templates); err != nil {
		t.Fatal(err)
	}
	return strings.Join(templates, " ")
}

// failureCount returns the sum of the counted failures.
func failureCount(t testing.TB, app core.App) (sum int) {
	t.Helper()
	if err := app.DB().NewQuery("SELECT COALESCE(SUM(failures), 0) FROM login_failures").Row(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

func credentials(email, password string) auth.LoginBody {
	return auth.LoginBody{Email: validate.Of(email), Password: validate.Of(password)}
}

func withCode(body auth.LoginBody, code string) auth.LoginBody {
	body.TOTPCode = validate.Of(code)
	return body
}

func login(t testing.TB, e *auth.Engine, app core.App, user *collections.User, now time.Time) auth.Session {
	t.Helper()
	session, err := e.Login(t.Context(), app, credentials(user.Email(), vigiltest.Password), origin, now)
	if err != nil {
		t.Fatalf("login of %s: %v", user.Email(), err)
	}
	return session
}

func refresh(e *auth.Engine, app core.App, token string, now time.Time) (auth.Session, error) {
	return e.Refresh(app, refreshBody(token), origin, now)
}

func refreshBody(token string) auth.RefreshBody {
	return auth.RefreshBody{Refresh: validate.Of(token)}
}

// code returns the fault's code; "" for success, and the error's text for another error.
func code(err error) string {
	var f *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &f):
		return f.Code
	}
	return err.Error()
}

func wantCode(t testing.TB, what string, err error, want string) {
	t.Helper()
	if got := code(err); got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// events returns the audited events, oldest first.
func events(t testing.TB, app core.App) (list []string) {
	t.Helper()
	rows, err := collections.AuditRows(app, "", "~", 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		list = append(list, row.Event)
	}
	return list
}
