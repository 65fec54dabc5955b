package hooks_test

import (
	"io"
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

// The API and FHIR routes bound their bodies themselves. All other routes are bounded here.
func TestBodyLimitOfNativeRoutes(t *testing.T) {
	router, err := apis.NewRouter(vigiltest.NewApp(t))
	if err != nil {
		t.Fatal(err)
	}
	router.Bind(hooks.Guard(hooks.Engines{
		Zone: time.UTC, Clock: func() time.Time { return vigiltest.Clock }, Auth: auth.New(vigiltest.Sealer(), auth.Options{}),
	})...)
	read := func(e *core.RequestEvent) error {
		if _, err := io.Copy(io.Discard, e.Request.Body); err != nil {
			return err
		}
		return e.NoContent(http.StatusNoContent)
	}
	const long = 70_000
	wanted := map[string]int{
		"/api/v1/patients/": 204, "/fhir/R4/Patient/_search": 204, "/fhir/R4/$export": 204,
		"/api/realtime-of-others": 413, "/fhir/elsewhere": 413, "/fhir/R4b": 413,
	}
	for path := range wanted {
		router.POST(path, read)
	}
	handler, err := router.BuildMux()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range wanted {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(strings.Repeat("a", long))))
		if answer.Code != want {
			t.Errorf("%d bytes to %s answered %d, want %d", long, path, answer.Code, want)
		}
	}
}
