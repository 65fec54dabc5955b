package patients_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/pocketbase/dbx"
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var nurse = audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{})

// newPatientsApp is an app with the hooks that patients need.
func newPatientsApp(t testing.TB) *tests.TestApp {
	app := vigiltest.NewApp(t)
	save := func(e *core.RecordEvent) error {
		outer := e.App
		defer func() { e.App = outer }()
		return outer.RunInTransaction(func(tx core.App) error {
			e.App = tx
			return patients.Guard(tx, e.Record, audit.System(), false, vigiltest.Clock, newYork, e.Next)
		})
	}
	app.OnRecordCreate(collections.Patients).BindFunc(save)
	app.OnRecordUpdate(collections.Patients).BindFunc(save)
	return app
}

func draftOf(t testing.TB, changes object) patients.Draft {
	t.Helper()
	c := validate.NewChecks()
	draft := bodyWith(t, changes).Read(c, vigiltest.Clock, newYork)
	if c.Err() != nil {
		t.Fatal(c.Fields)
	}
	return draft
}

func create(t testing.TB, app core.App, changes object) *collections.Patient {
	t.Helper()
	p, err := patients.Create(app, draftOf(t, changes), nurse, vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func payer(t testing.TB, app core.App) int64 {
	t.Helper()
	id, err := collections.NextID(app, collections.Payers)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().Insert(collections.Payers, dbx.Params{"id": id, "name": "Acme Health", "payer_code": "ACME"}).Execute(); err != nil {
		t.Fatal(err)
	}
	return collections.Number(id)
}

// fullBody has all members; marked values must not be found outside of ciphertext.
func fullBody(provider, payer int64) object {
	return object{
		"first_name": "Markedfirst", "last_name": "Markedlast", "date_of_birth": "1955-12-10", "gender": "female", "mrn": "A-17",
		"phone": "+1 (555) 010-0199", "email": "Marked@mail.test", "ssn": "123-45-6789",
		"address":     object{"line1": "1 Markedstreet", "line2": "Markedfloor", "city": "Markedcity", "state": "il", "zip": "62701"},
		"external_id": "Patient/e-1", "gateway_patient_id": "g-1", "time_zone": "America/Chicago", "primary_provider_id": provider,
		"insurance": object{"payer_id": payer, "member_id": "Markedmember"}, "icd10_codes": []any{"i10", "I10", "e11.9"},
		"monitoring_schedule": object{"weight": object{"per_day": 1, "days": []any{"Friday", "monday"}}},
	}
}

func TestCreateStoresEverything(t *testing.T) {
	app := newPatientsApp(t)
	provider, payerID := vigiltest.User(t, app, authz.Provider).Number(), payer(t, app)
	before := vigiltest.RowCounts(t, app)
	created := create(t, app, fullBody(provider, payerID))
	want := map[string]int{"patients": 1, "triage_scores": 1, "audit_log": 1}
	if diff := cmp.Diff(want, vigiltest.RowsAdded(t, app, before)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	p, err := collections.FindPatient(app, created.Id)
	if err != nil {
		t.Fatal(err)
	}
	who := p.Demographics()
	got := []any{
		who.FirstName, who.LastName, who.DateOfBirth, who.SSN, who.Phone, who.Email, who.Address.Line1, who.Address.Line2, who.Address.City,
		who.Address.State, who.Address.Zip, who.Address.Country, p.Gender(), p.MRN(), p.ExternalID(), p.GatewayPatientID(), p.TimeZone(),
		p.PrimaryProviderID(), p.InsurancePayerID(), p.InsuranceMemberID().Reveal(), p.ICD10Codes(), p.MonitoringSchedule(),
		p.Active(), p.Deleted(), p.Version(), p.CreatedAt(), p.UpdatedAt(),
	}
	wanted := []any{
		"Markedfirst", "Markedlast", "1955-12-10", "123456789", "+1 (555) 010-0199", "Marked@mail.test", "1 Markedstreet", "Markedfloor", "Markedcity",
		"IL", "62701", "US", "female", "A-17", "e-1", "g-1", "America/Chicago",
		provider, payerID, "Markedmember",
		[]string{"I10", "E11.9"},
		collections.Schedule{"weight": {PerDay: 1, Days: []string{"monday", "friday"}}},
		true, false, 1, vigiltest.Clock, vigiltest.Clock,
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for column, value := range map[string]string{"ssn": "123456789", "phone": "5550100199", "email": "marked@mail.test"} {
		if index, _ := collections.BlindIndex(column, value); p.GetString(column+"_index") != index || index == "" {
			t.Errorf("blind index of %s is not that of %s", column, value)
		}
	}
	if id, err := uuid.Parse(p.Id); err != nil || id.Version() != 7 {
		t.Errorf("id %s is no version 7 UUID", p.Id)
	}
	for name, find := range map[string]func() (*collections.Patient, error){
		"mrn":      func() (*collections.Patient, error) { return collections.FindPatientByMRN(app, "a-17") },
		"gateway":  func() (*collections.Patient, error) { return collections.FindPatientByGatewayID(app, "g-1") },
		"external": func() (*collections.Patient, error) { return collections.FindPatientByExternalID(app, "e-1") },
	} {
		if found, err := find(); err != nil || found.Id != p.Id {
			t.Errorf("not found by %s: %v", name, err)
		}
	}
	row, err := app.FindFirstRecordByData(collections.TriageScores, "patient", p.Id)
	if err != nil {
		t.Fatal(err)
	}
	if !row.GetBool("listed") || row.GetInt("risk_score") != 0 || row.GetString("risk_level") != "no_data" || row.GetString("enrolled_at") != collections.FormatInstant(vigiltest.Clock) {
		t.Errorf("triage row %v", row.FieldsData())
	}
}

// onDisk returns the contents of the database files, in lower case.
func onDisk(t *testing.T, app core.App) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(app.DataDir(), "*.db*"))
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.ToLower(string(content)) + "\n")
	}
	return all.String()
}

func TestPHIIsNotReadableOnDisk(t *testing.T) {
	app := newPatientsApp(t)
	found := onDisk(t, app) // random ids and keys may contain the four digits by chance
	p := create(t, app, fullBody(vigiltest.User(t, app, authz.Provider).Number(), payer(t, app)))
	if _, err := patients.Replace(app, p.Id, draftOf(t, object{"first_name": "Markedsecond", "phone": "555 010 0198"}), nurse, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	content := onDisk(t, app)
	for _, mark := range []string{"marked", "1955-12-10", "123456789", "123-45", "6789", "010-01", "010 01"} {
		if strings.Contains(content, mark) && (len(mark) > 4 || !strings.Contains(found, mark)) {
			t.Errorf("%q is readable", mark)
		}
	}
	var entries []struct{ ID, Event, Changes string }
	err := app.DB().NewQuery(`SELECT id, event, changes FROM audit_log ORDER BY id`).All(&entries)
	if err != nil || len(entries) != 2 || entries[0].Event != "patient.create" || entries[1].Event != "patient.update" {
		t.Fatal(entries, err)
	}
	opened, err := collections.Open(entries[1].Changes, "audit_log.changes", entries[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{`"first_name":{"old":"Markedfirst","new":"Markedsecond"}`, `"last_name":{"old":"Markedlast","new":"Lovelace"}`, `"email":{"old":"Marked@mail.test"`} {
		if !strings.Contains(opened, piece) {
			t.Errorf("changes lack %s", piece)
		}
	}
	if created, _ := collections.Open(entries[0].Changes, "audit_log.changes", entries[0].ID); strings.Contains(created, "12345") || !strings.Contains(created, "***-**-6789") {
		t.Error("the audit entry holds more than four digits of the social security number, or not even them")
	}
}

func TestMRNsAreSequentialAndSkipTaken(t *testing.T) {
	app := newPatientsApp(t)
	create(t, app, object{"mrn": "mrn-00000002"})
	for _, want := range []string{"MRN-00000001", "MRN-00000003"} {
		if p := create(t, app, nil); p.MRN() != want {
			t.Errorf("got %s, want %s", p.MRN(), want)
		}
	}
}

func TestTakenValuesAndUnknownReferences(t *testing.T) {
	app := newPatientsApp(t)
	other := create(t, app, object{"mrn": "A-1", "gateway_patient_id": "g-1", "external_id": "e-1"})
	if err := deleted(app, other); err != nil {
		t.Fatal(err)
	}
	clerk := vigiltest.User(t, app, authz.Nurse).Number()
	gone := vigiltest.User(t, app, authz.Provider, vigiltest.Inactive()).Number()
	taken := fault.Fields{
		"mrn": {"A patient with this MRN already exists."}, "gateway_patient_id": {"A patient with this gateway patient id already exists."},
		"external_id": {"A patient with this external id already exists."},
	}
	provider := fault.Fields{"primary_provider_id": {"Must be the id of an active provider."}}
	for name, test := range map[string]struct {
		changes object
		want    fault.Fields
	}{
		"taken, even by a deleted patient": {object{"mrn": "a-1", "gateway_patient_id": "g-1", "external_id": "Patient/e-1"}, taken},
		"nurse as provider":                {object{"primary_provider_id": clerk}, provider},
		"inactive provider":                {object{"primary_provider_id": gone}, provider},
		"unknown provider":                 {object{"primary_provider_id": 4711}, provider},
		"unknown payer":                    {object{"insurance": object{"payer_id": 4711}}, fault.Fields{"insurance.payer_id": {"Must be the id of a known payer."}}},
	} {
		before := vigiltest.RowCounts(t, app)
		_, err := patients.Create(app, draftOf(t, test.changes), nurse, vigiltest.Clock)
		checkFields(t, name, err, test.want)
		if added := vigiltest.RowsAdded(t, app, before); len(added) > 0 {
			t.Errorf("%s: left rows behind: %v", name, added)
		}
	}
}

func deleted(app core.App, p *collections.Patient) error {
	p.Set("deleted_at", collections.FormatInstant(vigiltest.Clock))
	return app.Save(p)
}

func checkFields(t *testing.T, name string, err error, want fault.Fields) {
	t.Helper()
	var refused *fault.Error
	if !errors.As(err, &refused) {
		t.Errorf("%s: got %v, want a fault", name, err)
		return
	}
	if diff := cmp.Diff(want, refused.Fields); diff != "" || refused.Code != "validation_error" {
		t.Errorf("%s: %s (-want +got):\n%s", name, refused.Code, diff)
	}
}

// Without hooks nothing is checked beforehand, as when another process is first: the indexes decide.
func TestUniqueIndexesAreTranslated(t *testing.T) {
	app := vigiltest.NewApp(t)
	create(t, app, object{"mrn": "A-1", "gateway_patient_id": "g-1", "external_id": "e-1"})
	for column, test := range map[string]struct {
		changes object
		message string
	}{
		"mrn":                {object{"mrn": "a-1"}, "A patient with this MRN already exists."},
		"gateway_patient_id": {object{"mrn": "A-2", "gateway_patient_id": "g-1"}, "A patient with this gateway patient id already exists."},
		"external_id":        {object{"mrn": "A-3", "external_id": "e-1"}, "A patient with this external id already exists."},
	} {
		_, err := patients.Create(app, draftOf(t, test.changes), nurse, vigiltest.Clock)
		checkFields(t, column, err, fault.Fields{column: {test.message}})
	}
}

func TestParallelCreates(t *testing.T) {
	app := newPatientsApp(t)
	const callers = 8
	var group sync.WaitGroup
	var won, refused atomic.Int32
	given := make([]string, callers)
	for i := range callers {
		same, own := draftOf(t, object{"mrn": fmt.Sprintf("%c-1", "aA"[i%2])}), draftOf(t, nil)
		group.Go(func() {
			var f *fault.Error
			if _, err := patients.Create(app, same, nurse, vigiltest.Clock); err == nil {
				won.Add(1)
			} else if errors.As(err, &f) && f.Fields["mrn"] != nil {
				refused.Add(1)
			} else {
				t.Error(err)
			}
			p, err := patients.Create(app, own, nurse, vigiltest.Clock)
			if err != nil {
				t.Error(err)
				return
			}
			given[i] = p.MRN()
		})
	}
	group.Wait()
	if won.Load() != 1 || refused.Load() != callers-1 {
		t.Errorf("%d won and %d were refused", won.Load(), refused.Load())
	}
	checked := map[string]bool{}
	for _, mrn := range given {
		if checked[mrn] {
			t.Errorf("%s was given out twice", mrn)
		}
		checked[mrn] = true
	}
	counts := vigiltest.RowCounts(t, app)
	if counts["patients"] != callers+1 || counts["triage_scores"] != callers+1 || counts["audit_log"] != callers+1 {
		t.Errorf("rows %v", counts)
	}
}

// A record saved as the dashboard does, without this package's functions.
func TestGuardAppliesTheSameRules(t *testing.T) {
	app := newPatientsApp(t)
	record, err := collections.NewRecord(app, collections.Patients)
	if err != nil {
		t.Fatal(err)
	}
	record.Load(object{
		"first_name": "  Ada ", "last_name": "Lovelace", "date_of_birth": "1955-12-10", "gender": "female", "ssn": "123-45-6789",
		"email": "Ada@x.test", "external_id": "Patient/e-1", "address": `{"line1":"1 Main St","city":"Springfield","state":"il","zip":"62701"}`,
		"icd10_codes": `["i10"]`, "active": false,
	})
	if err := app.Save(record); err != nil {
		t.Fatal(err)
	}
	p, err := collections.FindPatient(app, record.Id)
	if err != nil {
		t.Fatal(err)
	}
	who := p.Demographics()
	got := []any{who.FirstName, who.SSN, who.Address.State, p.ExternalID(), p.MRN(), p.Active(), p.Version(), p.ICD10Codes(), p.CreatedAt(), p.MonitoringSchedule() == nil}
	if diff := cmp.Diff([]any{"Ada", "123456789", "IL", "e-1", "MRN-00000001", true, 1, []string{"I10"}, vigiltest.Clock, true}, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	if counts := vigiltest.RowCounts(t, app); counts["triage_scores"] != 1 {
		t.Error("no triage row")
	}

	index := p.GetString("email_index")
	p.Load(object{"phone": "1", "email": "", "gender": "x", "address": `{"line1":"1 Main St","zip":"1"}`, "icd10_codes": "I10", "mrn": "", "primary_provider": "000000000004711"})
	var wrong validation.Errors
	if err := app.Save(p); !errors.As(err, &wrong) {
		t.Fatal(err)
	}
	messages := map[string]string{}
	for column, complaint := range wrong {
		messages[column] = complaint.Error()
	}
	want := map[string]string{
		"phone":  "Must be a phone number of 7 to 20 characters with at least 7 digits; only digits, spaces and + ( ) - . x are allowed.",
		"gender": "Must be one of: male, female, other, unknown.", "address": "city: This field is required.; zip: Must be a ZIP code: 12345 or 12345-6789..",
		"icd10_codes": "Must be a list of codes.", "mrn": "This field may not be blank.", "primary_provider": "Must be the id of an active provider.",
	}
	if diff := cmp.Diff(want, messages); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
	if index == "" {
		t.Error("no blind index")
	}
}

func TestTriageRowFollowsThePatient(t *testing.T) {
	app := newPatientsApp(t)
	p := create(t, app, nil)
	listed := func() bool {
		row, err := app.FindFirstRecordByData(collections.TriageScores, "patient", p.Id)
		if err != nil {
			t.Fatal(err)
		}
		return row.GetBool("listed")
	}
	for _, active := range []bool{false, true} {
		p.Set("archive_reason", "Moved away")
		p.Set("active", active)
		if err := app.Save(p); err != nil {
			t.Fatal(err)
		}
		if listed() != active {
			t.Errorf("listed %v for active %v", !active, active)
		}
	}
	if err := deleted(app, p); err != nil || listed() {
		t.Error("a deleted patient is listed", err)
	}
	if p.Version() != 4 {
		t.Errorf("version %d after three changes", p.Version())
	}
	if _, err := collections.FindPatient(app, p.Id); !collections.IsNotFound(err) {
		t.Error("a deleted patient was found:", err)
	}
}

func TestReplace(t *testing.T) {
	app := newPatientsApp(t)
	provider, payerID := vigiltest.User(t, app, authz.Provider).Number(), payer(t, app)
	p := create(t, app, fullBody(provider, payerID))
	later := vigiltest.Clock.Add(time.Hour)
	replace := func(changes object) *collections.Patient {
		t.Helper()
		c := validate.NewChecks()
		draft := bodyWith(t, changes).ReadReplacement(c, later, newYork)
		if c.Err() != nil {
			t.Fatal(c.Fields)
		}
		if _, err := patients.Replace(app, p.Id, draft, nurse, later); err != nil {
			t.Fatal(err)
		}
		found, err := collections.FindPatient(app, p.Id)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}

	got := replace(nil)
	who := got.Demographics()
	if who.FirstName != "Ada" || who.Phone != "" || who.Email != "" || who.Address != nil || got.GetString("phone_index") != "" {
		t.Error("left-out fields of the contract were not cleared")
	}
	if who.SSN != "123456789" || got.MRN() != "A-17" || got.ExternalID() != "e-1" || got.GatewayPatientID() != "g-1" || got.TimeZone() != "America/Chicago" ||
		got.PrimaryProviderID() != provider || got.InsurancePayerID() != payerID || len(got.ICD10Codes()) != 2 || len(got.MonitoringSchedule()) != 1 {
		t.Error("fields that are kept when left out were not")
	}
	if got.Version() != 2 || !got.UpdatedAt().Equal(later) || !got.CreatedAt().Equal(vigiltest.Clock) || !got.Active() {
		t.Error("version or times", got.Version(), got.UpdatedAt(), got.CreatedAt())
	}

	got = replace(object{"ssn": nil, "external_id": nil, "gateway_patient_id": nil, "time_zone": nil, "primary_provider_id": nil, "insurance": nil, "icd10_codes": nil, "monitoring_schedule": nil})
	if got.Demographics().SSN != "" || got.GetString("ssn_index") != "" || got.ExternalID() != "" || got.GatewayPatientID() != "" || got.TimeZone() != "" ||
		got.PrimaryProviderID() != 0 || got.InsurancePayerID() != 0 || got.InsuranceMemberID() != "" || len(got.ICD10Codes()) != 0 || got.MonitoringSchedule() != nil {
		t.Error("null did not clear")
	}

	if err := deleted(app, got); err != nil {
		t.Fatal(err)
	}
	var missing *fault.Error
	for _, id := range []string{p.Id, collections.NewUUID(), "nonsense"} {
		if _, err := patients.Replace(app, id, draftOf(t, nil), nurse, later); !errors.As(err, &missing) || missing.Kind != fault.NotFound {
			t.Errorf("replaced %s: %v", id, err)
		}
	}
}
