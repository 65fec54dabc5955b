package auth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var (
	clock  = vigiltest.Clock
	origin = audit.Origin{Address: "192.0.2.1", Client: "test", RequestID: "request-1"}
)

func newEngine() *auth.Engine {
	return auth.New(vigiltest.Sealer(), auth.Options{RefreshFamilyLife: 7 * 24 * time.Hour})
}

func credentials(email, password string) auth.LoginBody {
	return auth.LoginBody{Email: input.Of(email), Password: input.Of(password)}
}

func withCode(body auth.LoginBody, code string) auth.LoginBody {
	body.TOTPCode = input.Of(code)
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

func refreshBody(token string) auth.RefreshBody { return auth.RefreshBody{Refresh: input.Of(token)} }

// code is the fault's code; "" for success, the error's text for what is no fault.
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

// events lists what the audit log holds, oldest first.
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
