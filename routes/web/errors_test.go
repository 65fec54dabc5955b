package web_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/routes/web"
)

// failing serves one row that returns the test's error.
func failing(t *testing.T) (*server, func(func(*web.Call) error)) {
	t.Helper()
	var fail func(*web.Call) error
	s := serve(t, setup{rows: []web.Route{
		get("/probe/", authz.Anyone, func(c *web.Call) error { return fail(c) }),
	}})
	return s, func(f func(*web.Call) error) { fail = f }
}

func TestFaultsBecomeAnswers(t *testing.T) {
	s, set := failing(t)
	lockedUntil := "2026-01-15T14:15:00Z"
	for name, test := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"validation": {
			fault.Validation(fault.Fields{"b.c": {"Two."}, "a": {"One.", "More."}}), 400,
			`{"detail":"The request has invalid fields.","code":"validation_error","field_errors":{"a":["One.","More."],"b.c":["Two."]}}`,
		},
		"state":       {fault.State("invalid_state", "Not now."), 400, `{"detail":"Not now.","code":"invalid_state"}`},
		"wrapped":     {fmt.Errorf("reading: %w", fault.Missing()), 404, `{"detail":"Not found.","code":"not_found"}`},
		"locked":      {fault.New(fault.Locked, "account_locked", "Account locked.").With("locked_until", lockedUntil), 423, `{"detail":"Account locked.","code":"account_locked","locked_until":"` + lockedUntil + `"}`},
		"upstream":    {fault.New(fault.Upstream, "emr_error", "The EMR refused.").With("upstream_status", nil).With("again", true), 502, `{"detail":"The EMR refused.","code":"emr_error","again":true,"upstream_status":null}`},
		"timeout":     {fault.New(fault.UpstreamTimeout, "emr_timeout", "The EMR took too long."), 504, `{"detail":"The EMR took too long.","code":"emr_timeout"}`},
		"unavailable": {fault.New(fault.Unavailable, "service_unavailable", "Come back."), 503, `{"detail":"Come back.","code":"service_unavailable"}`},
		"forbidden":   {fault.Denied(), 403, `{"detail":"You do not have permission to perform this action.","code":"permission_denied"}`},
		"ampersand":   {fault.State("invalid_state", "R&D <now>"), 400, `{"detail":"R&D <now>","code":"invalid_state"}`},
		"unencodable": {fault.State("invalid_state", "No.").With("x", func() {}), 400, `{"detail":"No.","code":"invalid_state","x":null}`},
		"refused by PocketBase": {
			router.NewForbiddenError("Only superusers.", nil), 403,
			`{"detail":"You do not have permission to perform this action.","code":"permission_denied"}`,
		},
		"missing in PocketBase":  {router.NewNotFoundError("", sql.ErrNoRows), 404, `{"detail":"Not found.","code":"not_found"}`},
		"PocketBase's own limit": {router.NewApiError(413, "", nil), 413, `{"detail":"The request body is too large.","code":"payload_too_large"}`},
		"bad request in PocketBase": {
			router.NewBadRequestError("failed to save", nil), 400,
			`{"detail":"The request has invalid fields.","code":"validation_error","field_errors":{"non_field_errors":["Failed to save."]}}`,
		},
		"invalid record": {validation.Errors{
			"mrn":     validation.NewError("validation_not_unique", "value must be unique"),
			"address": validation.Errors{"city": validation.NewError("x", "cannot be blank"), "line2": nil},
		}, 400, `{"detail":"The request has invalid fields.","code":"validation_error","field_errors":{"address.city":["Cannot be blank."],"mrn":["Value must be unique."]}}`},
		"invalid record in PocketBase": {
			router.NewBadRequestError("", validation.Errors{"mrn": validation.NewError("x", "is odd")}), 400,
			`{"detail":"The request has invalid fields.","code":"validation_error","field_errors":{"mrn":["Is odd."]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set(func(*web.Call) error { return test.err })
			rec := s.do(request{target: "/api/v1/probe/"})
			if rec.Code != test.status || rec.Body.String() != test.body {
				t.Errorf("%d %s\nwant %d %s", rec.Code, rec.Body, test.status, test.body)
			}
			if rec.Header().Get("WWW-Authenticate") != "" {
				t.Error("WWW-Authenticate without a bearer problem")
			}
		})
	}
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	s, set := failing(t)
	set(func(*web.Call) error {
		return fault.New(fault.Unavailable, "service_unavailable", "Come back.").After(1100 * time.Millisecond)
	})
	if got := s.do(request{target: "/api/v1/probe/"}).Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q, want 2", got)
	}
}

func TestUnexpectedErrorsAreServerErrors(t *testing.T) {
	s, set := failing(t)
	for name, err := range map[string]error{
		"plain":       errors.New("disk on fire"),
		"no rows":     sql.ErrNoRows,
		"internal":    fault.New(fault.Internal, "odd", "Secret detail."),
		"api error":   router.NewInternalServerError("secret words", nil),
		"own timeout": context.DeadlineExceeded, // an inner timeout; the request had time left
	} {
		t.Run(name, func(t *testing.T) {
			set(func(*web.Call) error { return fmt.Errorf("doing it: %w", err) })
			rec := s.do(request{target: "/api/v1/probe/", header: map[string]string{"X-Request-ID": "incident-7"}})
			want := `{"detail":"An unexpected error occurred.","code":"server_error","request_id":"incident-7"}`
			if rec.Code != 500 || rec.Body.String() != want {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
			lines := s.log.lines(t, "request failed")
			if len(lines) != 1 || lines[0]["request_id"] != "incident-7" || lines[0]["route"] != "/api/v1/probe/" {
				t.Errorf("log %v", lines)
			}
		})
	}
}

func TestPanicsDiscloseNothing(t *testing.T) {
	s, set := failing(t)
	for _, value := range []any{"Jane Doe", errors.New("Jane Doe"), fault.Missing()} {
		set(func(*web.Call) error { panic(value) })
		rec := s.do(request{target: "/api/v1/probe/"})
		expect(t, rec, 500, "server_error")
		lines := s.log.lines(t, "request failed")
		if len(lines) != 1 {
			t.Fatalf("log %v", lines)
		}
		if logged := fmt.Sprint(lines[0]); strings.Contains(logged, "Jane") || !strings.Contains(logged, fmt.Sprintf("panic of type %T", value)) {
			t.Errorf("logged %s", logged)
		}
		if stack, _ := lines[0]["stack"].(string); !strings.Contains(stack, "errors_test.go") {
			t.Errorf("no stack of the panic: %q", stack)
		}
	}
}

func TestAbortedAnswersStayAborted(t *testing.T) {
	s, set := failing(t)
	set(func(*web.Call) error { panic(http.ErrAbortHandler) })
	if _, err := s.wire("GET", "/api/v1/probe/", nil); err == nil {
		t.Error("an aborted answer arrived")
	}
}

func TestErrorAfterTheAnswerIsOnlyLogged(t *testing.T) {
	s, set := failing(t)
	set(func(c *web.Call) error { return errors.Join(c.OK("done"), errors.New("too late")) })
	rec := s.do(request{target: "/api/v1/probe/"})
	if rec.Code != 200 || rec.Body.String() != `"done"` {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if lines := s.log.lines(t, "request failed"); len(lines) != 1 {
		t.Errorf("log %v", lines)
	}
}

func TestInterruptedWork(t *testing.T) {
	s, set := failing(t)
	ask := func(ctx context.Context) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		s.handler.ServeHTTP(rec, request{target: "/api/v1/probe/"}.build(ctx))
		return rec
	}
	set(func(*web.Call) error { return errors.New("interrupted (9)") }) // SQLite's text for both

	gone, leave := context.WithCancel(t.Context())
	leave()
	ask(gone)
	if lines := s.log.lines(t, "request"); len(lines) != 1 || lines[0]["status"] != 499.0 {
		t.Errorf("log of a disconnected caller: %v", lines)
	}

	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	expect(t, ask(late), 503, "service_unavailable")

	set(func(c *web.Call) error {
		deadline, bounded := c.Request.Context().Deadline()
		if !bounded || time.Until(deadline) > 30*time.Second {
			t.Errorf("work bounded %v by %v", bounded, time.Until(deadline))
		}
		return c.NoContent(nil)
	})
	expect(t, ask(t.Context()), 204, "")
}

func invalidField(detail, field, message string) error {
	f := fault.Field(field, message).With("note", detail)
	f.Detail = detail
	return f
}
