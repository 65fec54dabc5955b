package routes_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

type object = map[string]any

// clinic serves the contract on a real database with the service's hooks, one user per role, and its own clock.
type clinic struct {
	t       testing.TB
	app     *tests.TestApp
	handler http.Handler
	now     time.Time
	people  map[authz.Role]*collections.User
	auth    *auth.Engine
	clients *auth.MachineClients

	webhooks *webhooks.Engine
	texts    int // sent by patients
}

func newClinic(t testing.TB, change ...func(*routes.Engines)) *clinic {
	t.Helper()
	c := &clinic{t: t, app: vigiltest.NewApp(t), now: clock, people: map[authz.Role]*collections.User{}}
	directory := patients.NewDirectory()
	t.Cleanup(directory.Close)
	authority := auth.New(vigiltest.Sealer(), auth.Options{
		RefreshFamilyLife: 7 * 24 * time.Hour, FreshSignIn: 10 * time.Minute, ResetURL: "https://vigil.example.org/reset-password",
		SignInURL: "https://vigil.example.org",
	})
	c.auth = authority
	c.clients = auth.NewMachineClients(vigiltest.Sealer(), auth.MachineClientOptions{
		TokenURL: "https://vigil.example.org/api/v1/oauth/token/", Outbound: auth.NewOutbound([]string{"127.0.0.1"}),
	})
	c.webhooks = webhooks.New(webhooks.Options{
		Views: routes.WebhookViews{Zone: newYork, Clock: func() time.Time { return c.now }}, Timeout: 5 * time.Second, DisableAfter: 120 * time.Hour,
		Schedule: webhooks.Schedule{5 * time.Second, 5 * time.Minute}, Client: egress.New(egress.Options{Timeout: 5 * time.Second, DevHosts: []string{"127.0.0.1"}}),
		UserAgent: "Vigil/test", Clock: func() time.Time { return c.now }, Log: slog.New(slog.DiscardHandler),
	})
	money := billing.New(billing.Settings{Zone: newYork, MaxUnits99458: 3, RequireConsent: true, EscalationTimeCap: time.Hour, LiveContactFrom: "2026-01-01"})
	hooks.Bind(c.app, hooks.Engines{
		Directory: directory, Zone: newYork, Clock: func() time.Time { return c.now },
		EvictUser: authority.Evict, EvictClient: c.clients.Evict, Wake: func() {}, WakeMailer: func() {}, Auth: authority, Billing: money,
	})
	if err := directory.Build(c.app); err != nil {
		t.Fatal(err)
	}
	for _, role := range authz.Roles {
		c.people[role] = vigiltest.User(t, c.app, role)
	}
	engines := routes.Engines{
		Options: web.Options{
			PublicURL: "https://vigil.example.org", Zone: newYork, Log: slog.New(slog.DiscardHandler), Clock: func() time.Time { return c.now },
			AccessTokens: auth.TokenAuthenticator{Users: authority, Clients: c.clients}, Limits: ratelimit.NewLimiter(nil),
		},
		EMR:     routes.EMR{Client: noEMR(t)},
		Devices: devices.NewEngine(devices.Rules{PracticeZone: newYork, ManagedMode: true, DeliveryWorkingDays: 5, MissedDaysBeforeEscalation: 3}),
		Auth:    authority, Clients: c.clients, Webhooks: c.webhooks, Directory: directory,
		Billing: money, Reports: reports.New(money, 15*time.Minute),
		Dashboard:   dashboard.NewBoard(dashboard.Options{Zone: newYork, CursorKey: []byte("a key for tests")}),
		FHIRSystems: fhir.Systems{MRN: "https://vigil.example.org/fhir/identifier/mrn", EMRID: "https://vigil.example.org/fhir/identifier/emr"},
	}
	for _, f := range change {
		f(&engines)
	}
	router, err := apis.NewRouter(c.app)
	if err != nil {
		t.Fatal(err)
	}
	if err := routes.Register(&core.ServeEvent{App: c.app, Router: router}, engines); err != nil {
		t.Fatal(err)
	}
	if c.handler, err = router.BuildMux(); err != nil {
		t.Fatal(err)
	}
	return c
}

// reply is an answer that was checked against the contract.
type reply struct {
	t      testing.TB
	what   string
	status int
	body   string
}

// request sends a request as the user of the role and encodes a body that is not text.
func (c *clinic) request(role authz.Role, method, path string, body any, header ...string) reply {
	c.t.Helper()
	if text, is := body.(object); is && role == authz.Admin && (strings.HasPrefix(path, "/clients/") || strings.HasPrefix(path, "/webhooks/")) {
		body = maps.Clone(text)
		body.(object)["current_password"] = vigiltest.Password // these tokens belong to no session
	}
	return c.requestAs(c.people[role], method, path, body, header...)
}

func (c *clinic) requestAs(user *collections.User, method, path string, body any, header ...string) reply {
	c.t.Helper()
	text, isText := body.(string)
	if !isText && body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		text = string(raw)
	}
	r := httptest.NewRequestWithContext(c.t.Context(), method, "/api/v1"+path, strings.NewReader(text))
	r.Header.Set("Authorization", "Bearer "+vigiltest.Token(c.t, user, c.now))
	if text != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	c.handler.ServeHTTP(rec, r)
	vigiltest.CheckResponse(c.t, method, r.URL.Path, rec.Code, rec.Header(), rec.Body.Bytes())
	return reply{c.t, method + " " + path, rec.Code, rec.Body.String()}
}

// want checks the status and, if given, the error code.
func (r reply) want(status int, code ...string) reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s answered %d, want %d: %s", r.what, r.status, status, r.body)
	}
	if len(code) > 0 && r.object()["code"] != code[0] {
		r.t.Fatalf("%s has the code %v, want %s: %s", r.what, r.object()["code"], code[0], r.body)
	}
	return r
}

// wantFields checks which fields a validation error names.
func (r reply) wantFields(names ...string) {
	r.t.Helper()
	fields, _ := r.want(400, "validation_error").object()["field_errors"].(object)
	for _, name := range names {
		if fields[name] == nil {
			r.t.Errorf("%s does not complain about %s: %s", r.what, name, r.body)
		}
	}
	if len(fields) != len(names) {
		r.t.Errorf("%s complains about more than %v: %s", r.what, names, r.body)
	}
}

func (r reply) object() (o object) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(r.body), &o); err != nil {
		r.t.Fatalf("%s: %v in %s", r.what, err, r.body)
	}
	return o
}

// at returns the value at a dotted path through objects.
func (r reply) at(path string) any {
	r.t.Helper()
	var value any = r.object()
	for name := range strings.SplitSeq(path, ".") {
		o, _ := value.(object)
		value = o[name]
	}
	return value
}

// wantAt checks values by dotted path.
func (r reply) wantAt(values object) reply {
	r.t.Helper()
	for path, want := range values {
		if got := r.at(path); got != want {
			r.t.Errorf("%s: %s is %v, want %v", r.what, path, got, want)
		}
	}
	return r
}

// results returns the items of a list, which may leave out unreadable ones.
func (r reply) results() (items []object) {
	r.t.Helper()
	list, _ := r.want(200).object()["results"].([]any)
	for _, item := range list {
		items = append(items, item.(object))
	}
	unreadable, _ := r.object()["unreadable"].(float64)
	if count := r.object()["count"]; count != float64(len(items))+unreadable {
		r.t.Errorf("%s counts %v for %d items", r.what, count, len(items))
	}
	return items
}

// patientBody returns a patient's body with changes applied; nil removes a member.
func patientBody(changes object) object {
	body := object{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female"}
	for name, value := range changes {
		if body[name] = value; value == nil {
			delete(body, name)
		}
	}
	return body
}

// enroll creates a patient and returns the id.
func (c *clinic) enroll(changes object) string {
	c.t.Helper()
	return c.request(authz.Admin, "POST", "/patients/", patientBody(changes)).want(201).object()["id"].(string)
}

// events returns the audit events about a patient, in order.
func (c *clinic) events(patientID string) (events []string) {
	c.t.Helper()
	err := c.app.DB().Select("event").From(collections.AuditLog).Where(dbx.HashExp{"patient": patientID}).OrderBy("id").Column(&events)
	if err != nil {
		c.t.Fatal(err)
	}
	return events
}

func (c *clinic) insert(table string, columns dbx.Params) {
	c.t.Helper()
	if _, err := c.app.DB().Insert(table, columns).Execute(); err != nil {
		c.t.Fatal(err)
	}
}

// wantRoles checks that only the listed roles may call; the others get 403.
func (c *clinic) wantRoles(method, path string, body any, allowed ...authz.Role) {
	c.t.Helper()
	may := map[authz.Role]bool{}
	for _, role := range allowed {
		may[role] = true
	}
	for _, role := range authz.Roles {
		if got := c.request(role, method, path, body); (got.status != http.StatusForbidden) != may[role] {
			c.t.Errorf("%s answers %s with %d", got.what, role, got.status)
		}
	}
}

func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return "?" + values.Encode()
}
