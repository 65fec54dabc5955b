package hooks_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// served returns PocketBase's router with Vigil's middleware and extensions, as the service starts it.
func served(t *testing.T) http.Handler {
	t.Helper()
	app := vigiltest.NewApp(t)
	engines := hooks.Engines{
		Zone: time.UTC, Clock: func() time.Time { return vigiltest.Clock }, Auth: auth.New(vigiltest.Sealer(), auth.Options{}),
	}
	hooks.Bind(app, engines)
	router, err := apis.NewRouter(app)
	if err != nil {
		t.Fatal(err)
	}
	extensions, err := hooks.Dashboard()
	if err != nil {
		t.Fatal(err)
	}
	start := &core.ServeEvent{App: app, Router: router, UIExtensions: extensions}
	var handler http.Handler
	err = app.OnServe().Trigger(start, func(e *core.ServeEvent) error {
		e.Router.Bind(hooks.Guard(engines)...)
		handler, err = e.Router.BuildMux()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func TestCloseRoutes(t *testing.T) {
	handler := served(t)
	for request, want := range map[string]int{
		"GET /api/collections/_superusers/auth-methods":     200, // required for the dashboard's sign-in form
		"GET /api/collections/users/auth-methods":           404,
		"GET /api/collections/_pb_users_auth_/auth-methods": 404,
		"POST /api/collections/_superusers/impersonate/x":   404,
		"POST /api/sql":        404,
		"DELETE /api/logs":     404,
		"GET /_/extensions.js": 200,
	} {
		method, path, _ := strings.Cut(request, " ")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		if answer.Code != want {
			t.Errorf("%s answered %d, want %d", request, answer.Code, want)
		}
	}
}

// A browser must not use extensions of an earlier version, which lack new field types.
func TestExtensionIsNotCached(t *testing.T) {
	answer := httptest.NewRecorder()
	served(t).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/_/extensions.js", nil))
	if got := answer.Header().Get("Cache-Control"); got != "no-cache" {
		t.Errorf("Cache-Control is %q", got)
	}
	for _, part := range []string{"app.fieldTypes.phi", "app.utils.sortedCollectionsByType", "app.components.recordsSearchbar", "app.routes.superuserOnly"} {
		if !strings.Contains(answer.Body.String(), part) {
			t.Errorf("the extension lacks %s", part)
		}
	}
}
