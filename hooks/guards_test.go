package hooks_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"
	"github.com/pocketbase/pocketbase/tools/subscriptions"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

const (
	patientID     = "0194c5a8-0000-7000-8000-000000000001"
	observationID = "0194c5a8-0000-7000-8000-00000000000a"
)

// bound returns an app with hooks and a patient; woken counts the wake-ups of the EMR worker.
func bound(t *testing.T) (app *tests.TestApp, woken *int) {
	t.Helper()
	app, woken = vigiltest.NewApp(t), new(int)
	engine := ingest.NewReadingStore(ingest.Rules{PracticeZone: time.UTC, AutoTransform: true, MaxFuture: time.Minute})
	hooks.Bind(app, hooks.Engines{
		ReadingStore: engine, Directory: patients.NewDirectory(), Zone: time.UTC,
		Clock: func() time.Time { return vigiltest.Clock }, EvictUser: func(string) {}, Wake: func() { *woken++ }, WakeMailer: func() {},
	})
	save(t, app, collections.Patients, object{
		"id": patientID, "first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10",
		"gender": "female", "active": true,
	})
	return app, woken
}

func fresh(t *testing.T, app core.App, collection string, columns object) *core.Record {
	t.Helper()
	record, err := collections.NewRecord(app, collection)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(columns)
	return record
}

func save(t *testing.T, app core.App, collection string, columns object) *core.Record {
	t.Helper()
	record := fresh(t, app, collection, columns)
	if err := app.Save(record); err != nil {
		t.Fatalf("save into %s: %v", collection, err)
	}
	return record
}

func weighing(kg float64) object {
	return object{"patient": patientID, "observation_type": "weight", "weight_kg": kg, "measured_at": collections.FormatInstant(vigiltest.Clock)}
}

// Only superusers can use PocketBase's record routes: every rule of every collection is nil. PocketBase's own collections let an account see
// its own sign-in aids, of which there are none.
func TestClosedRoutes(t *testing.T) {
	app, _ := bound(t)
	all, err := app.FindAllCollections()
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{
		core.CollectionNameMFAs: true, core.CollectionNameOTPs: true, core.CollectionNameExternalAuths: true,
		core.CollectionNameAuthOrigins: true,
	}
	for _, c := range all {
		rules := map[string]*string{"create": c.CreateRule, "update": c.UpdateRule}
		if !own[c.Name] {
			rules["list"], rules["view"], rules["delete"] = c.ListRule, c.ViewRule, c.DeleteRule
		}
		if c.IsAuth() && c.Name != core.CollectionNameSuperusers {
			rules["auth"], rules["manage"] = c.AuthRule, c.ManageRule
			if c.PasswordAuth.Enabled || c.OTP.Enabled || c.OAuth2.Enabled || c.MFA.Enabled {
				t.Errorf("%s signs in through PocketBase", c.Name)
			}
		}
		for name, rule := range rules {
			if rule != nil {
				t.Errorf("%s: the %s rule is %q", c.Name, name, *rule)
			}
		}
	}
	if len(all) < 30 {
		t.Errorf("only %d collections", len(all))
	}
}

// PocketBase's own sign-in routes, which have no lockout, second factor or rotation, give users no token.
func TestNativeSignInIsClosed(t *testing.T) {
	d := newDashboard(t)
	user := vigiltest.User(t, d.app, authz.Nurse, vigiltest.Email("nurse@vigil.test"))
	token := vigiltest.Token(t, user, vigiltest.Clock)
	for path, body := range map[string]string{
		"auth-with-password":     `{"identity":"nurse@vigil.test","password":"` + vigiltest.Password + `"}`,
		"auth-with-otp":          `{"otpId":"x","password":"y"}`,
		"auth-with-oauth2":       `{"provider":"google"}`,
		"request-otp":            `{"email":"nurse@vigil.test"}`,
		"auth-refresh":           `{}`,
		"request-password-reset": `{"email":"nurse@vigil.test"}`,
		"request-verification":   `{"email":"nurse@vigil.test"}`,
		"request-email-change":   `{"newEmail":"other@vigil.test"}`,
		"records":                `{"email":"new@vigil.test","password":"` + vigiltest.Password + `","passwordConfirm":"` + vigiltest.Password + `"}`,
	} {
		answer := d.as(token, "POST", "/api/collections/users/"+path, body)
		if answer.Code < 400 || strings.Contains(answer.Body.String(), `"token"`) {
			t.Errorf("%s answered %d %s", path, answer.Code, answer.Body)
		}
	}
	for _, c := range []string{"users", "patients", "observations", "audit_log", "thresholds"} {
		if answer := d.as(token, "GET", "/api/collections/"+c+"/records", ""); answer.Code != http.StatusForbidden {
			t.Errorf("%s answered %d", c, answer.Code)
		}
	}
}

// as sends a request with a token, or none.
func (d *dashboard) as(token, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, r)
	return answer
}

func TestRealtimeIsClosed(t *testing.T) {
	d := newDashboard(t)
	user := vigiltest.Token(t, vigiltest.User(t, d.app, authz.Admin), vigiltest.Clock)
	for _, test := range []struct {
		who, token, topics string
		want               int
	}{
		{"a guest", "", `["patients/*"]`, 403},
		{"a guest", "", `["made-up"]`, 403},
		{"a guest", "", `["users/x","made-up"]`, 403},
		{"a user", user, `["patients/*"]`, 403},
		{"a user", user, `["made-up"]`, 403},
		{"a user", user, `["@triage"]`, 403},
		{"a guest who leaves", "", `[]`, 204},
		{"a user who leaves", user, `[]`, 204},
		{"a superuser", d.token, `["patients/*"]`, 204},
	} {
		client := subscriptions.NewDefaultClient()
		d.app.SubscriptionsBroker().Register(client)
		answer := d.as(test.token, "POST", "/api/realtime", fmt.Sprintf(`{"clientId":%q,"subscriptions":%s}`, client.Id(), test.topics))
		if answer.Code != test.want || (answer.Code >= 400 && len(client.Subscriptions()) != 0) {
			t.Errorf("%s on %s: %d, subscribed to %v", test.who, test.topics, answer.Code, client.Subscriptions())
		}
	}
}

// Records that must be kept cannot be deleted, one by one or all at once.
func TestUndeletableCollections(t *testing.T) {
	app, _ := bound(t)
	for _, name := range []string{
		collections.Alerts, collections.AuditLog, collections.BillingEntries, collections.Consents, collections.DeviceAssignments,
		collections.Escalations, collections.GatewayEvents, collections.Observations, collections.Patients, collections.ThresholdChanges,
		collections.Snoozes, collections.TimeEntries, collections.Transmissions, collections.TransmissionAttempts, collections.TriageScores, collections.Users,
	} {
		c, err := app.FindCollectionByNameOrId(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.DB().Insert(name, dbx.Params{"id": "0000000000009" + name[:2]}).Execute(); err != nil {
			t.Fatal(err)
		}
		before := vigiltest.RowCounts(t, app)
		record, err := app.FindRecordById(name, "0000000000009"+name[:2])
		if err != nil {
			t.Fatal(err)
		}
		if err := app.Delete(record); err == nil {
			t.Errorf("%s: deleted", name)
		}
		if err := app.TruncateCollection(c); err == nil {
			t.Errorf("%s: truncated", name)
		}
		if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 {
			t.Errorf("%s: rows %v", name, added)
		}
	}
}

// Only the audit engine can add rows to the audit log, and no row can be changed or deleted.
func TestAuditLogIsAppendOnly(t *testing.T) {
	app, _ := bound(t)
	entry := audit.Entry{Event: audit.PatientRead, Actor: audit.System()}
	for range 3 {
		if err := audit.Append(app, entry, vigiltest.Clock); err != nil {
			t.Fatal(err)
		}
	}
	columns := object{
		"recorded_at": collections.FormatInstant(vigiltest.Clock), "event": "patient.read", "action": "R", "outcome": "0", "actor_type": "user",
		"prev_hash": strings.Repeat("0", 64), "hash": strings.Repeat("0", 64),
	}
	if err := app.Save(fresh(t, app, collections.AuditLog, columns)); err == nil {
		t.Error("a row was forged through the app")
	}
	record, err := app.FindRecordById(collections.AuditLog, collections.NumberID(2))
	if err != nil {
		t.Fatal(err)
	}
	record.Set("event", "patient.delete")
	if app.Save(record) == nil || app.SaveNoValidate(record) == nil || app.UnsafeWithoutHooks().SaveNoValidate(record) == nil {
		t.Error("a row was changed through the app")
	}
	if app.Delete(record) == nil || app.UnsafeWithoutHooks().Delete(record) == nil || app.TruncateCollection(record.Collection()) == nil {
		t.Error("a row was deleted through the app")
	}
	if app.Delete(record.Collection()) == nil {
		t.Error("the collection was deleted")
	}
	row := "id, recorded_at, event, action, outcome, actor_type, prev_hash, hash"
	for _, statement := range []string{
		"UPDATE audit_log SET event = 'x'", "UPDATE audit_log SET hash = hash WHERE id = '000000000000001'", "DELETE FROM audit_log",
		"DELETE FROM audit_log WHERE id = '000000000000003'",
		"INSERT OR REPLACE INTO audit_log (" + row + ") SELECT " + row + " FROM audit_log WHERE id = '000000000000001'",
		"REPLACE INTO audit_log (" + row + ") SELECT " + row + " FROM audit_log",
		"INSERT INTO audit_log (" + row + ") SELECT " + row + " FROM audit_log WHERE TRUE ON CONFLICT (id) DO UPDATE SET event = 'x'",
	} {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid || result.Checked != 3 {
		t.Errorf("%+v (%v)", result, err)
	}
	if err := collections.CheckAuditTriggers(app); err != nil {
		t.Error(err)
	}
}

func TestObservationIsImmutable(t *testing.T) {
	app, _ := bound(t)
	record := save(t, app, collections.Observations, weighing(80))
	record.Set("weight_kg", 70)
	if err := app.Save(record); err == nil {
		t.Error("a stored reading was changed")
	}
	if err := app.Delete(record); err == nil {
		t.Error("a stored reading was deleted")
	}
	stored, err := app.FindRecordById(collections.Observations, record.Id)
	if err != nil || stored.Get("weight_kg") != 80.0 {
		t.Errorf("%v (%v)", stored, err)
	}
}

// A duplicate id is refused in upper and lower case, with the other errors.
func TestDuplicateIDIsRefused(t *testing.T) {
	app, _ := bound(t)
	first := save(t, app, collections.Observations, weighing(80))
	collection, err := app.FindCollectionByNameOrId(collections.Observations)
	if err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{first.Id, strings.ToUpper(first.Id)} {
		second := core.NewRecord(collection)
		second.Load(weighing(90))
		second.Id = given
		if err := app.Save(second); err == nil || !strings.Contains(err.Error(), "id:") {
			t.Errorf("%s: %v", given, err)
		}
	}
	wrong := core.NewRecord(collection)
	wrong.Load(weighing(95))
	wrong.Set("original_unit", strings.Repeat("x", 21))
	if err := app.Save(wrong); err == nil || !strings.Contains(err.Error(), "original_unit") {
		t.Error(err)
	}
}

func TestIDs(t *testing.T) {
	app, _ := bound(t)
	first := save(t, app, collections.Observations, weighing(80))
	if id, err := uuid.Parse(first.Id); err != nil || id.Version() != 7 {
		t.Errorf("id %s", first.Id)
	}
	for given, want := range map[string]string{"0194C5A8-0000-7000-8000-00000000000A": observationID, "abc": ""} {
		columns := weighing(80 + float64(len(given)))
		columns["id"] = given
		record := save(t, app, collections.Observations, columns)
		if want != "" && record.Id != want || want == "" && len(record.Id) != 36 {
			t.Errorf("id %s was stored as %s", given, record.Id)
		}
	}

	number := func(given string) int64 {
		columns := object{"name": "Payer", "payer_code": uuid.NewString()}
		if given != "" {
			columns["id"] = given
		}
		return collections.Number(save(t, app, collections.Payers, columns).Id)
	}
	next := number("")
	if got := number(""); got != next+1 {
		t.Errorf("%d follows %d", got, next)
	}
	taken, err := collections.NextID(app, collections.Payers)
	if err != nil {
		t.Fatal(err)
	}
	if got := number(taken); collections.NumberID(got) != taken {
		t.Errorf("the taken number %s was stored as %d", taken, got)
	}
	// The sequence would later collide with a number it has not reached.
	if got := number(collections.NumberID(next + 4)); got != next+3 {
		t.Errorf("the number %d, which is not reached, was stored as %d", next+4, got)
	}
	if got := number(""); got != next+4 {
		t.Errorf("then %d", got)
	}
}

// The worker is woken after the commit of a reading, and not after a rollback.
func TestWorkerWakesAfterCommit(t *testing.T) {
	app, woken := bound(t)
	changed := errors.New("changed our mind")
	for _, end := range []error{nil, changed} {
		*woken = 0
		err := app.RunInTransaction(func(tx core.App) error {
			kg := 80.0
			if end != nil {
				kg = 90
			}
			if err := tx.Save(fresh(t, tx, collections.Observations, weighing(kg))); err != nil {
				return err
			}
			if *woken != 0 {
				t.Error("woken before the commit")
			}
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		if want := map[bool]int{true: 1, false: 0}[end == nil]; *woken != want {
			t.Errorf("ended with %v: woken %d times", end, *woken)
		}
	}
}

// A write and everything that its hooks add are one transaction.
func TestWriteIsOneTransaction(t *testing.T) {
	app, woken := bound(t)
	before := vigiltest.RowCounts(t, app)
	if _, err := app.DB().NewQuery(`CREATE TRIGGER broken BEFORE INSERT ON transmissions BEGIN SELECT RAISE(ABORT, 'broken'); END`).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := app.Save(fresh(t, app, collections.Observations, weighing(80))); err == nil {
		t.Error("half a reading was stored")
	}
	if added := vigiltest.RowsAdded(t, app, before); len(added) != 0 || *woken != 0 {
		t.Errorf("rows %v, woken %d times", added, *woken)
	}
}

// A payer's rate is validated for every writer, as in the API.
func TestPayerRatesAreValidated(t *testing.T) {
	app, _ := bound(t)
	payer := save(t, app, collections.Payers, object{"name": "Acme", "payer_code": "AC", "is_active": true})
	rate := func(changes object) *core.Record {
		record := fresh(t, app, collections.PayerRates, object{"payer": payer.Id, "cpt_code": "99454", "rate_cents": 4302, "effective_date": "2026-01-01"})
		record.Load(changes)
		return record
	}
	for _, changes := range []object{{"rate_cents": -1}, {"rate_cents": 1e9}, {"cpt_code": "99999"}, {"effective_date": "2026-02-30"}} {
		if err := app.Save(rate(changes)); err == nil {
			t.Errorf("stored %v", changes)
		}
	}
	good := rate(nil)
	if err := app.Save(good); err != nil {
		t.Fatal(err)
	}
	good.Set("rate_cents", -4302)
	if err := app.Save(good); err == nil {
		t.Error("turned into a negative rate")
	}
}
