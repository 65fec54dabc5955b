package hooks_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

type object = map[string]any

const operator = "operator@vigil.test"

// dashboard is PocketBase's own API with Vigil's hooks, as its dashboard uses it.
type dashboard struct {
	t         *testing.T
	app       *tests.TestApp
	handler   http.Handler
	token     string
	directory *patients.Directory
}

func newDashboard(t *testing.T) *dashboard {
	t.Helper()
	d := &dashboard{t: t, app: vigiltest.NewApp(t), directory: patients.NewDirectory()}
	t.Cleanup(d.directory.Close)
	engines := hooks.Engines{
		Billing: billing.New(billing.Settings{Zone: time.UTC, EscalationTimeCap: time.Hour}), Directory: d.directory, Zone: time.UTC, Clock: func() time.Time { return vigiltest.Clock }, EvictUser: func(string) {}, Wake: func() {},
		Auth: auth.New(vigiltest.Sealer(), auth.Options{}),
	}
	hooks.Bind(d.app, engines)
	if err := d.directory.Build(d.app); err != nil {
		t.Fatal(err)
	}
	superuser, err := collections.NewRecord(d.app, core.CollectionNameSuperusers)
	if err != nil {
		t.Fatal(err)
	}
	superuser.SetEmail(operator)
	superuser.SetPassword(vigiltest.Password)
	if err := d.app.Save(superuser); err != nil {
		t.Fatal(err)
	}
	if d.token, err = engines.Auth.SignSuperuser(superuser, vigiltest.Clock, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	router, err := apis.NewRouter(d.app)
	if err != nil {
		t.Fatal(err)
	}
	err = d.app.OnServe().Trigger(&core.ServeEvent{App: d.app, Router: router}, func(e *core.ServeEvent) error {
		e.Router.Bind(hooks.Guard(engines)...)
		d.handler, err = e.Router.BuildMux()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// send writes a record and returns the status and the body.
func (d *dashboard) send(method, collection, id string, body object) (int, object) {
	d.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	path := "/api/collections/" + collection + "/records"
	if id != "" {
		path += "/" + id
	}
	r := httptest.NewRequestWithContext(d.t.Context(), method, path, strings.NewReader(string(raw)))
	r.Header.Set("Authorization", d.token)
	r.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, r)
	answer := object{}
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
			d.t.Fatal(err)
		}
	}
	return rec.Code, answer
}

// do is send for requests that must succeed.
func (d *dashboard) do(method, collection, id string, body object) object {
	d.t.Helper()
	status, answer := d.send(method, collection, id, body)
	if status != http.StatusOK && status != http.StatusNoContent {
		d.t.Fatalf("%s %s answered %d: %v", method, collection, status, answer)
	}
	return answer
}

// refused is send for requests that must fail; column is the column with the error, or "".
func (d *dashboard) refused(method, collection, id, column string, body object) {
	d.t.Helper()
	status, answer := d.send(method, collection, id, body)
	complaints, _ := answer["data"].(object)
	if status != http.StatusBadRequest || (column != "" && complaints[column] == nil) {
		d.t.Errorf("%s %s with %v answered %d: %v", method, collection, body, status, answer)
	}
}

func (d *dashboard) enrol(changes object) string {
	d.t.Helper()
	body := object{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female"}
	for column, value := range changes {
		body[column] = value
	}
	return d.do("POST", collections.Patients, "", body)["id"].(string)
}

func (d *dashboard) events(patientID string) (events []string) {
	d.t.Helper()
	err := d.app.DB().NewQuery(`SELECT event || ' ' || actor_email FROM audit_log WHERE patient = {:patient} ORDER BY id`).Bind(dbx.Params{"patient": patientID}).Column(&events)
	if err != nil {
		d.t.Fatal(err)
	}
	return events
}

func TestPatientInDashboard(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(object{"active": false, "archived_by": "forged@vigil.test", "deleted_at": "2026-01-01T00:00:00.000000Z"})
	p, err := collections.FindPatient(d.app, id)
	if err != nil || !p.Active() || p.ArchivedBy() != "" || p.MRN() != "MRN-00000001" {
		t.Fatalf("a new patient is not simply active: %v", err)
	}
	patch := func(body object) object { t.Helper(); return d.do("PATCH", collections.Patients, id, body) }
	refused := func(column string, body object) {
		t.Helper()
		d.refused("PATCH", collections.Patients, id, column, body)
	}

	refused("archive_reason", object{"active": false})
	refused("archived_at", object{"archived_at": "2026-01-01T00:00:00.000000Z"})
	refused("archived_by", object{"archived_by": "forged@vigil.test"})
	refused("unarchived_at", object{"unarchived_at": "2026-01-01T00:00:00.000000Z"})
	refused("deleted_by", object{"deleted_by": "forged@vigil.test"})
	refused("archive_reason", object{"archive_reason": "For later"})
	refused("email", object{"email": "no address"})
	refused("mrn", object{"mrn": ""})

	archived := patch(object{"active": false, "archive_reason": "Moved away"})
	if archived["archived_at"] != "2026-01-15T13:45:00.000000Z" || archived["archived_by"] != operator || archived["archive_reason"] != "Moved away" {
		t.Errorf("the archived patient is %v", archived)
	}
	refused("archive_reason", object{"archive_reason": ""})
	patch(object{"archive_reason": "Moved to Ohio"})
	if active := patch(object{"active": true}); active["unarchived_by"] != operator || active["archived_by"] != operator || active["archive_reason"] != "Moved to Ohio" {
		t.Errorf("the active patient is %v", active)
	}

	if _, err := alerts.Store(d.app, alerts.Draft{PatientID: id, Finding: alerts.Finding{Type: "pulse", Level: alerts.Warning}}, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	deleted := patch(object{"deleted_at": "2026-01-15T13:45:00.000000Z"})
	if deleted["deleted_by"] != operator {
		t.Errorf("the deleted patient is %v", deleted)
	}
	refused("deleted_at", object{"deleted_at": "2026-01-01T00:00:00.000000Z"})
	open, err := d.app.FindAllRecords(collections.Alerts, dbx.HashExp{"patient": id, "acknowledged": false})
	if err != nil || len(open) != 0 {
		t.Errorf("a deleted patient has open alerts: %v, %v", open, err)
	}
	if ids, _ := d.directory.Find(patients.DirectoryQuery{Search: "lovelace", Limit: 9}); len(ids) != 0 {
		t.Error("a deleted patient is found")
	}
	if restored := patch(object{"deleted_at": "", "last_name": "King"}); restored["deleted_by"] != "" || restored["version"] != 6.0 {
		t.Errorf("the restored patient is %v", restored)
	}
	patch(object{"deleted_at": "2026-01-15T13:45:00.000000Z"})
	if both := patch(object{"deleted_at": "", "active": false}); both["archived_by"] != operator || both["deleted_by"] != "" {
		t.Errorf("the patient restored and archived at once is %v", both)
	}
	patch(object{"active": true})
	if ids, _ := d.directory.Find(patients.DirectoryQuery{Search: "king", Limit: 9}); len(ids) != 1 {
		t.Error("a restored patient is not found under the new name")
	}
	d.refused("DELETE", collections.Patients, id, "", nil)

	want := []string{
		"patient.create", "patient.archive", "patient.update", "patient.unarchive", "alert.resolve", "patient.delete", "patient.restore",
		"patient.delete", "patient.restore", "patient.unarchive",
	}
	for i := range want {
		if want[i] += " "; want[i] != "alert.resolve " {
			want[i] += operator
		}
	}
	if events := d.events(id); !slices.Equal(events, want) {
		t.Errorf("the audit trail has %q, want %q", events, want)
	}
}

// The database has ciphertext, the dashboard shows plain text.
func TestDashboardShowsPlainText(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(object{"phone": "555-0100-200", "ssn": "123-45-6789", "address": `{"line1":"1 Main St","city":"Springfield"}`})
	columns := dbx.NullStringMap{}
	if err := d.app.DB().Select("first_name", "last_name", "date_of_birth", "phone", "ssn", "address").From(collections.Patients).Where(dbx.HashExp{"id": id}).One(columns); err != nil {
		t.Fatal(err)
	}
	for name, value := range columns {
		if !strings.HasPrefix(value.String, "v2:test:") {
			t.Errorf("%s is stored as %q", name, value.String)
		}
	}
	if shown := d.do("GET", collections.Patients, id, nil); shown["first_name"] != "Ada" || shown["phone"] != "555-0100-200" || shown["ssn"] != "123456789" {
		t.Errorf("the dashboard shows %v", shown)
	}
}

func TestThresholdsInDashboard(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(nil)
	d.refused("POST", collections.Thresholds, "", "bounds", object{"patient": id, "bounds": object{"pulse": object{"high": 20}}})
	d.refused("POST", collections.Thresholds, "", "bounds", object{"patient": id, "bounds": object{"pulse": object{"high": 90, "low": 95}}})
	d.refused("POST", collections.Thresholds, "", "bounds", object{"patient": id, "bounds": object{"temperature": object{"high": 39}}})
	d.refused("POST", collections.Thresholds, "", "bounds", object{"patient": id, "bounds": object{"pulse": object{"tall": 90}}})
	d.refused("POST", collections.Thresholds, "", "bounds", object{"patient": id, "bounds": []int{1}})
	row := d.do("POST", collections.Thresholds, "", object{"patient": id, "bounds": object{"pulse": object{"high": 100}}})
	if row["updated_by"] != operator || row["updated_at"] == "" {
		t.Errorf("the row is %v", row)
	}
	rowID := row["id"].(string)
	d.refused("PATCH", collections.Thresholds, rowID, "patient", object{"patient": d.enrol(nil)})
	d.do("PATCH", collections.Thresholds, rowID, object{"bounds": object{"pulse": object{"high": 105}, "weight": nil}})
	d.do("PATCH", collections.Thresholds, rowID, object{"updated_by": "forged@vigil.test"})
	d.do("DELETE", collections.Thresholds, rowID, nil)
	d.refused("DELETE", collections.Thresholds, "practicedefault", "", nil)

	log, total, err := collections.PageOfThresholdChanges(d.app, collections.ThresholdChangeFilter{PatientID: id}, 0, 20)
	if err != nil {
		t.Fatal(err)
	}
	var fields []string
	for _, entry := range log {
		fields = append(fields, entry.Field())
		if entry.ChangedBy() != operator || entry.Reason() == "" {
			t.Errorf("an entry of the change log is by %q", entry.ChangedBy())
		}
	}
	slices.Reverse(fields)
	window := []string{
		"weight_change_threshold_kg", "weight_critical_change_kg", "weight_change_window_days", "weight_daily_change_kg", "weight_over_target_kg",
		"weight_loss_30_days_percent", "weight_loss_90_days_percent",
	}
	if want := slices.Concat([]string{"pulse_high", "pulse_high"}, window, []string{"pulse_high"}, window); !slices.Equal(fields, want) || total != len(want) {
		t.Errorf("the change log has %v, want %v", fields, want)
	}
	if events := d.events(id); !slices.Equal(events[1:], slices.Repeat([]string{"threshold.update " + operator}, 3)) {
		t.Errorf("the audit trail has %v", events)
	}
	d.refused("PATCH", collections.ThresholdChanges, log[0].Id, "", object{"field": "forged"})
	d.refused("POST", collections.ThresholdChanges, "", "", object{"field": "forged", "changed_by": operator})
	d.refused("DELETE", collections.ThresholdChanges, log[0].Id, "", nil)
}

func TestCareTeamInDashboard(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(nil)
	nurse, admin := vigiltest.User(t, d.app, authz.Nurse), vigiltest.User(t, d.app, authz.Admin)
	gone := vigiltest.User(t, d.app, authz.Nurse, vigiltest.Inactive())
	for _, user := range []string{admin.Id, gone.Id} {
		d.refused("POST", collections.CareTeamMembers, "", "user", object{"patient": id, "user": user})
	}
	member := d.do("POST", collections.CareTeamMembers, "", object{"patient": id, "user": nurse.Id})
	if member["role"] != "nurse" || member["created_at"] == "" {
		t.Errorf("the member is %v", member)
	}
	d.refused("POST", collections.CareTeamMembers, "", "", object{"patient": id, "user": nurse.Id})
	d.refused("PATCH", collections.Patients, id, "primary_provider", object{"primary_provider": nurse.Id})
	d.do("DELETE", collections.CareTeamMembers, member["id"].(string), nil)
	if events := d.events(id); !slices.Equal(events[1:], []string{"care_team.update " + operator, "care_team.update " + operator}) {
		t.Errorf("the audit trail has %v", events)
	}
}

func TestConsentInDashboard(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(nil)
	const granted, later = "2026-01-10T00:00:00.000000Z", "2026-01-11T00:00:00.000000Z"
	valid := func(changes object) object {
		body := object{"patient": id, "type": "rpm", "method": "written", "granted_at": granted}
		for column, value := range changes {
			body[column] = value
		}
		return body
	}
	for column, changes := range map[string]object{
		"notes": {"method": "verbal"}, "granted_at": {"granted_at": "2027-01-01T00:00:00.000000Z"}, "expires_at": {"expires_at": granted},
		"revoked_at": {"revoke_reason": "Never"},
	} {
		d.refused("POST", collections.Consents, "", column, valid(changes))
	}
	d.refused("POST", collections.Consents, "", "granted_at", valid(object{"granted_at": ""}))
	consent := d.do("POST", collections.Consents, "", valid(nil))
	if consent["recorded_by"] != operator || consent["id"] != "000000000000001" {
		t.Errorf("the consent is %v", consent)
	}
	consentID := consent["id"].(string)
	d.refused("PATCH", collections.Consents, consentID, "type", object{"type": "ccm"})
	d.refused("PATCH", collections.Consents, consentID, "granted_at", object{"granted_at": later})
	d.refused("PATCH", collections.Consents, consentID, "notes", object{"notes": "Added later"})
	d.refused("PATCH", collections.Consents, consentID, "revoke_reason", object{"revoked_at": later})
	d.refused("PATCH", collections.Consents, consentID, "revoked_at", object{"revoke_reason": "Why not"})
	if revoked := d.do("PATCH", collections.Consents, consentID, object{"revoked_at": later, "revoke_reason": "Changed her mind"}); revoked["revoked_by"] != operator {
		t.Errorf("the revoked consent is %v", revoked)
	}
	d.refused("PATCH", collections.Consents, consentID, "revoked_at", object{"revoked_at": ""})
	d.refused("DELETE", collections.Consents, consentID, "", nil)
	if events := d.events(id); !slices.Equal(events[1:], []string{"consent.grant " + operator, "consent.revoke " + operator}) {
		t.Errorf("the audit trail has %v", events)
	}
}

func TestDashboardCannotChangeServiceOwned(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(nil)
	row, err := d.app.FindFirstRecordByData(collections.TriageScores, "patient", id)
	if err != nil {
		t.Fatal(err)
	}
	d.refused("PATCH", collections.TriageScores, row.Id, "", object{"listed": false})
}
