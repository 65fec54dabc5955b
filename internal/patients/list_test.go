package patients_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func built(t testing.TB, app core.App) *patients.Directory {
	t.Helper()
	directory := patients.NewDirectory()
	if err := directory.Build(app); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(directory.Close)
	return directory
}

func firstNames(t testing.TB, app core.App, directory *patients.Directory, q patients.Query) (names []string, total int) {
	t.Helper()
	page, total, err := patients.List(app, directory, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range page {
		names = append(names, p.FirstName().Reveal())
	}
	return names, total
}

func update(t testing.TB, app core.App, id string, columns dbx.Params) {
	t.Helper()
	if _, err := app.DB().Update(collections.Patients, columns, dbx.HashExp{"id": id}).Execute(); err != nil {
		t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	app := newPatientsApp(t)
	ids := map[string]string{}
	for i, name := range []string{"Cleo Ångström", "Ada Lovelace", "Bob O’Brien", "Dora angstroem", "Emil Weiß", "Fay Gone"} {
		first, last, _ := strings.Cut(name, " ")
		p, err := patients.Create(app, draftOf(t, object{"first_name": first, "last_name": last}), nurse, vigiltest.Clock.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		ids[first] = p.Id
	}
	update(t, app, ids["Emil"], dbx.Params{"active": false})
	update(t, app, ids["Fay"], dbx.Params{"active": false, "deleted_at": collections.FormatInstant(vigiltest.Clock)})
	directory := built(t, app)
	yes, no := true, false
	for name, test := range map[string]struct {
		query patients.Query
		names string
		total int
	}{
		"by last name":     {patients.Query{}, "Dora Cleo Ada Bob", 4},
		"active":           {patients.Query{Active: &yes}, "Dora Cleo Ada Bob", 4},
		"archived":         {patients.Query{Active: &no}, "Emil", 1},
		"deleted":          {patients.Query{Deleted: true}, "Fay", 1},
		"oldest first":     {patients.Query{Ordering: patients.ByCreation}, "Cleo Ada Bob Dora", 4},
		"newest first":     {patients.Query{Ordering: patients.ByCreationDescending}, "Dora Bob Ada Cleo", 4},
		"second page":      {patients.Query{Offset: 2, Limit: 1}, "Ada", 4},
		"beyond the end":   {patients.Query{Offset: 7}, "", 4},
		"accents":          {patients.Query{Search: "ANGSTR"}, "Dora Cleo", 2},
		"apostrophe":       {patients.Query{Search: "o'br"}, "Bob", 1},
		"first last":       {patients.Query{Search: "ada lovelace"}, "Ada", 1},
		"record number":    {patients.Query{Search: "mrn-00000003"}, "Bob", 1},
		"archived sharp s": {patients.Query{Search: "weiss", Active: &no}, "Emil", 1},
		"only own":         {patients.Query{Only: []string{ids["Bob"]}}, "Bob", 1},
		"only none":        {patients.Query{Only: []string{}}, "", 0},
		"only archived":    {patients.Query{Only: []string{ids["Emil"]}}, "", 0},
	} {
		if test.query.Limit == 0 {
			test.query.Limit = 20
		}
		got, total := firstNames(t, app, directory, test.query)
		if strings.Join(got, " ") != test.names || total != test.total {
			t.Errorf("%s: got %v of %d, want %s of %d", name, got, total, test.names, test.total)
		}
	}
}

func TestListWaitsForTheDirectory(t *testing.T) {
	app := newPatientsApp(t)
	var unavailable *fault.Error
	if _, _, err := patients.List(app, patients.NewDirectory(), patients.Query{}); !errors.As(err, &unavailable) || unavailable.Kind != fault.Unavailable {
		t.Error(err)
	}
}

func TestDirectoryFollowsCommits(t *testing.T) {
	app := newPatientsApp(t)
	p := create(t, app, object{"last_name": "Before"})
	early := patients.NewDirectory()
	if err := early.Refresh(app, p.Id); err != nil || early.Ready() {
		t.Error("refreshing before the first build should do nothing", err)
	}
	directory := built(t, app)
	count := func(search string) int {
		_, total := directory.Find(patients.DirectoryQuery{Search: search, Limit: 1})
		return total
	}
	late := create(t, app, object{"last_name": "Latecomer"})
	if count("latecomer") != 0 {
		t.Error("found before the refresh")
	}
	p.Set("last_name", "After")
	if err := app.Save(p); err != nil {
		t.Fatal(err)
	}
	if err := directory.Refresh(app, p.Id, late.Id); err != nil {
		t.Fatal(err)
	}
	if count("latecomer") != 1 || count("after") != 1 || count("before") != 0 || count("") != 2 {
		t.Error("the directory did not follow")
	}
	if _, err := app.DB().Delete(collections.Patients, dbx.HashExp{"id": late.Id}).Execute(); err != nil {
		t.Fatal(err)
	}
	if err := directory.Refresh(app, late.Id); err != nil || count("latecomer") != 0 || count("") != 1 {
		t.Error("a removed row is still found", err)
	}
}

func TestDamagedValues(t *testing.T) {
	app := newPatientsApp(t)
	everyone := fullBody(vigiltest.User(t, app, authz.Provider).Number(), payer(t, app))
	a := create(t, app, everyone)
	b := create(t, app, object{"first_name": "Bob", "last_name": "Whole", "phone": "555 010 0100"})
	var sealed dbx.NullStringMap
	if err := app.DB().NewQuery(`SELECT first_name, last_name, phone, address FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": a.Id}).One(&sealed); err != nil {
		t.Fatal(err)
	}
	update(t, app, b.Id, dbx.Params{"first_name": sealed["first_name"].String})                                     // another row's
	update(t, app, a.Id, dbx.Params{"last_name": sealed["first_name"].String, "phone": sealed["phone"].String[:20], // another column's, cut off
		"address": "plain text", "email": ""})

	directory := built(t, app)
	page, total, err := patients.List(app, directory, patients.Query{Limit: 20})
	if err != nil || total != 2 || len(page) != 2 {
		t.Fatal(page, total, err)
	}
	if whole, left := collections.ReadableOnly(page); len(whole) != 0 || left != 2 {
		t.Errorf("%d are shown, %d left out", len(whole), left)
	}
	for _, p := range page {
		_, err := patients.NewView(p, authz.Admin, vigiltest.Clock)
		if refused, ok := errors.AsType[*collections.UnreadableError](err); !ok || refused.ID != p.Id {
			t.Errorf("the patient is shown: %v", err)
		}
	}
	names, err := patients.Names(app, []string{a.Id, b.Id})
	if err != nil || names[b.Id].FullName() != collections.UnreadableText || names[a.Id].LastFirst() != collections.UnreadableText || names[a.Id].Readable() {
		t.Error("names", err)
	}

	// An unreadable record cannot be changed by any write.
	for _, changes := range []object{{"gender": "other"}, {"phone": "555 010 0199"}, {"phone": nil}, {"phone": "", "gender": "other"}} {
		damaged, err := collections.FindPatient(app, a.Id)
		if err != nil {
			t.Fatal(err)
		}
		damaged.Load(changes)
		if err := app.Save(damaged); !collections.IsUnreadable(err) || strings.Contains(err.Error(), "555") {
			t.Errorf("saved with %v: %v", changes, err)
		}
		var row dbx.NullStringMap
		if err := app.DB().NewQuery(`SELECT phone, gender FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": a.Id}).One(&row); err != nil ||
			row["phone"].String != sealed["phone"].String[:20] || row["gender"].String == "other" {
			t.Error("the row was rewritten", err)
		}
	}
}

func TestView(t *testing.T) {
	app := newPatientsApp(t)
	provider, payerID := vigiltest.User(t, app, authz.Provider).Number(), payer(t, app)
	p := create(t, app, fullBody(provider, payerID))
	view, err := patients.NewView(p, authz.Admin, vigiltest.Clock)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":"%s","first_name":"Markedfirst","last_name":"Markedlast","date_of_birth":"1955-12-10","gender":"female","mrn":"A-17",`+
		`"active":true,"phone":"+1 (555) 010-0199","email":"Marked@mail.test","address":{"line1":"1 Markedstreet","line2":"Markedfloor","city":"Markedcity",`+
		`"state":"IL","zip":"62701","country":"US"},"external_id":"e-1","created_at":"2026-01-15T13:45:00Z","updated_at":"2026-01-15T13:45:00Z",`+
		`"status":"active","archived_at":null,"archived_by":null,"archive_reason":null,"unarchived_at":null,"unarchived_by":null,`+
		`"time_zone":"America/Chicago","primary_provider_id":%d,"gateway_patient_id":"g-1","insurance":{"payer_id":%d,"member_id":"Markedmember","group_number":null,"relationship":null,"subscriber":null,"secondary":null,"self_pay":false},`+
		`"referring_provider":null,"monitoring_schedule":{"weight":{"per_day":1,"days":["monday","friday"]}},"icd10_codes":["I10","E11.9"],"programs":[],"ssn_last4":"6789",`+
		`"needs_thresholds":false,"needs_target_weight":false,"proposed_target_kg":null,"proposed_template":null,"proposed_templates":[],"provisional":[],"decide_by":null,"hold":null,"deceased_at":null,"effective_at":null,"preferred_language":null,"messaging":{"sms":true,"voice":false,"consent":false,"stopped_at":null},"reminder_at":null,"redacted_fields":[]}`, p.Id, provider, payerID)
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}

	bare := create(t, app, object{"address": object{"line1": "1 Main St", "city": "Springfield"}})
	if view, err = patients.NewView(bare, authz.Admin, vigiltest.Clock); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(view); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []string{
		`"phone":null,"email":null,"address":{"line1":"1 Main St","line2":null,"city":"Springfield","state":null,"zip":null,"country":"US"},"external_id":null`,
		`"time_zone":null,"primary_provider_id":null,"gateway_patient_id":null,"insurance":null,"referring_provider":null,"monitoring_schedule":null,"icd10_codes":[],"programs":[],"ssn_last4":null`,
	} {
		if !strings.Contains(string(raw), piece) {
			t.Errorf("%s lacks %s", raw, piece)
		}
	}
}

func TestViewHidesWhatTheRoleMayNotSee(t *testing.T) {
	app := newPatientsApp(t)
	p := create(t, app, fullBody(vigiltest.User(t, app, authz.Provider).Number(), payer(t, app)))
	p.Load(object{"active": false, "archived_at": collections.FormatInstant(vigiltest.Clock), "archived_by": "nurse@vigil.test", "archive_reason": "moved", "unarchived_by": "nurse@vigil.test"})
	for role, hidden := range map[authz.Role]string{
		authz.Admin: "", authz.ClinicalManager: "", authz.Provider: "ssn_last4", authz.Nurse: "ssn_last4", authz.MA: "ssn_last4",
		authz.DataMonitor: "phone email address",
		authz.Patient:     "archived_by unarchived_by ssn_last4",
		"stranger":        "phone email address archived_by unarchived_by ssn_last4",
	} {
		v, err := patients.NewView(p, role, vigiltest.Clock)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(v.RedactedFields, " "); got != hidden {
			t.Errorf("%s: redacted %q, want %q", role, got, hidden)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"phone", "email", "address", "archived_by", "unarchived_by", "ssn_last4", "first_name", "insurance", "archive_reason"} {
			if shown := members[name] != nil; shown == slices.Contains(strings.Fields(hidden), name) {
				t.Errorf("%s: %s shown: %v", role, name, shown)
			}
		}
		if v.Status != patients.StatusArchived {
			t.Errorf("status %s", v.Status)
		}
		for _, verb := range []string{"%v", "%+v", "%#v"} {
			if text := fmt.Sprintf(verb, v) + fmt.Sprintf(verb, &v) + fmt.Sprintf(verb, v.Address) + fmt.Sprintf(verb, v.Insurance); strings.Contains(text, "Marked") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}

func TestNames(t *testing.T) {
	app := newPatientsApp(t)
	p := create(t, app, object{"mrn": "A-1"})
	names, err := patients.Names(app, []string{p.Id, collections.NewUUID(), p.Id})
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	name := names[p.Id]
	if name.FullName() != "Ada Lovelace" || name.LastFirst() != "Lovelace, Ada" || name.MRN != "A-1" {
		t.Error(name.FullName(), name.LastFirst(), name.MRN)
	}
	for _, verb := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, names); strings.Contains(text, "Ada") || strings.Contains(text, "Love") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if raw, err := json.Marshal(names); err == nil {
		t.Errorf("encoded as %s", raw)
	}
	if none, err := patients.Names(app, nil); err != nil || len(none) != 0 {
		t.Error(none, err)
	}
}

func TestPatientsByIDKeepsTheOrder(t *testing.T) {
	app := newPatientsApp(t)
	a, b, c := create(t, app, nil), create(t, app, nil), create(t, app, nil)
	page, err := collections.PatientsByID(app, []string{c.Id, collections.NewUUID(), a.Id, b.Id})
	if err != nil || len(page) != 3 || page[0].Id != c.Id || page[1].Id != a.Id || page[2].Id != b.Id {
		t.Error(page, err)
	}
	if none, err := collections.PatientsByID(app, nil); err != nil || len(none) != 0 {
		t.Error(none, err)
	}
}
