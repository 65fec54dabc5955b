package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

// screen is one screenshot of the console for its documentation. The actions before it are in console_screens.mjs, by name.
type screen struct {
	Name     string `json:"name"`
	View     string `json:"view"` // empty for pages without sign-in
	Tab      string `json:"tab"`  // empty for the first one
	Role     string `json:"role"`
	About    object `json:"about"`
	Look     string `json:"look"`     // desktop-light (the default), desktop-dark, phone-light or phone-dark
	Language string `json:"language"` // of the portal; its pages are shown in full length
}

func (s screen) file() string { return s.Name + "-" + s.Look + ".webp" }

// screenRoles are the roles that a view is shown to; the administrator if none is named.
var screenRoles = map[string]string{
	"triage": "nurse", "alerts": "nurse", "escalations": "nurse", "inbox": "nurse", "account": "nurse", "patients": "nurse",
	"patient": "provider", "enrolment": "provider", "billing": "billing", "entry": "billing", "reports": "billing", "my-health": "patient",
}

// moreScreens are shown beside one screenshot of each view: other looks, tabs and dialogs that a reader looks for.
var moreScreens = []screen{
	{Name: "sign-in"},
	{Name: "triage", View: "triage", Look: "desktop-dark"},
	{Name: "triage", View: "triage", Look: "phone-light"},
	{Name: "triage-panel", View: "triage"},
	{Name: "triage-panel", View: "triage", Look: "phone-dark"},
	{Name: "triage-find", View: "triage"},
	{Name: "alerts-chosen", View: "alerts"},
	{Name: "escalations-chosen", View: "escalations"},
	{Name: "patient", View: "patient", Look: "desktop-dark"},
	{Name: "patient", View: "patient", Look: "phone-light"},
	{Name: "patient-messages", View: "patient", Tab: "messages"},
	{Name: "patient-thresholds", View: "patient", Tab: "thresholds"},
	{Name: "patient-bill", View: "patient", Tab: "bill"},
	{Name: "enrolment-path", View: "enrolment"},
	{Name: "billing-denials", View: "billing", Tab: "denials"},
	{Name: "billing-remittances", View: "billing", Tab: "remittances"},
	{Name: "emr-connection", View: "emr", Tab: "connection"},
	{Name: "patient-people", View: "patient", Tab: "people"},
	{Name: "operations-settings", View: "operations", Tab: "settings"},
	{Name: "operations-users", View: "operations", Tab: "users"},
	{Name: "my-health-en", View: "my-health", Look: "phone-light", Language: "English"},
	{Name: "my-health-es", View: "my-health", Look: "phone-light", Language: "Español"},
	{Name: "my-health-questions", View: "my-health", Look: "phone-light", Language: "English"},
	{Name: "my-health-messages", View: "my-health", Tab: "messages", Look: "phone-light", Language: "Español"},
	{Name: "my-health-sharing", View: "my-health", Tab: "sharing", Look: "phone-light", Language: "Español"},
}

var viewLine = regexp.MustCompile(`(?m)^  "?([a-z-]+)"?: \(\) => import\("\./(views/[a-z_]+\.js)"\)`)

// screens returns all screens to show: each view of the router but the portal, and the others.
func screens(t *testing.T) []screen {
	t.Helper()
	var all []screen
	for _, view := range viewLine.FindAllStringSubmatch(source(t, "views.js"), -1) {
		if view[1] != "my-health" {
			all = append(all, screen{Name: view[1], View: view[1]})
		}
	}
	all = append(all, moreScreens...)
	for i, one := range all {
		all[i].Role = cmp.Or(screenRoles[one.View], "admin")
		all[i].Look = cmp.Or(one.Look, "desktop-light")
	}
	return all
}

// source returns the text of a console module.
func source(t *testing.T, module string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("pb_public/app", module))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// Every view has its screenshot in docs/screens, docs/console.md shows them, and there are none of removed views.
func TestConsoleScreenshotsComplete(t *testing.T) {
	var want []string
	page, err := os.ReadFile("docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := screens(t)
	if len(shown) < 30 || len(shown) > 40 {
		t.Fatalf("%d screenshots: a reader looks at up to 40, and each view has one", len(shown))
	}
	for _, one := range shown {
		want = append(want, one.file())
		if !strings.Contains(string(page), "(screens/"+one.file()+")") {
			t.Errorf("docs/console.md does not show the screenshot of %s", one.Name)
		}
	}
	entries, err := os.ReadDir("docs/screens")
	if err != nil {
		t.Fatal(err)
	}
	var size int64
	for _, entry := range entries {
		if !slices.Contains(want, entry.Name()) {
			t.Errorf("docs/screens/%s shows no view of the console: delete it", entry.Name())
		}
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		want = slices.DeleteFunc(want, func(name string) bool { return name == entry.Name() })
	}
	if len(want) > 0 {
		t.Errorf("run make screens for the new screens: %s", strings.Join(want, ", "))
	}
	if limit := int64(3 << 20); size > limit {
		t.Errorf("the screenshots take %d bytes, more than %d", size, limit)
	}
}

// make screens takes the screenshots for the documentation.
func TestConsoleScreens(t *testing.T) {
	folder := os.Getenv("VIGIL_SCREENS")
	if folder == "" {
		t.Skip("run make screens")
	}
	browser, p := newLocalConsole(t, 40)
	biller := p.signInWith(t, "billing@vigil.example", sandbox.Password)
	p.post(t, "/api/v1/billing/run/", biller, object{}).expect(t, 200)
	admin := p.signInWith(t, "admin@vigil.example", sandbox.Password)
	addPracticeData(t, p, admin)
	portal := p.signInWith(t, "patient@vigil.example", sandbox.Password)
	own := text(t, p.get(t, "/api/v1/patients/?page_size=1", portal).expect(t, 200), "results.0.id")
	p.post(t, "/api/v1/patients/"+own+"/questionnaires/", admin, object{"questionnaire": "phq-2"}).expect(t, 201)
	p.post(t, "/api/v1/patients/"+own+"/messages/", admin, object{"template": "free_text", "channel": "portal", "text": "Please loosen the cuff."}).expect(t, 201)
	p.post(t, "/api/v1/patients/"+own+"/caregivers/", admin, object{"email": "rosa@family.example", "relationship": "child", "scope": "enter"}).expect(t, 201)
	abouts := map[string]object{
		"patient": {"id": text(t, p.get(t, "/api/v1/triage/patients/?page_size=1", admin).expect(t, 200), "results.0.patient_id")},
		"entry":   {"id": text(t, p.get(t, "/api/v1/billing/entries/?page_size=1", biller).expect(t, 200), "results.0.id")},
	}
	unfinished := text(t, p.get(t, "/api/v1/enrolments/?page_size=1", admin).expect(t, 200), "results.0.patient_id")
	all := screens(t)
	for i, one := range all {
		all[i].About = abouts[one.View]
		if one.Name == "enrolment-path" {
			all[i].About = object{"id": unfinished}
		}
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	var taken struct{ Pictures int }
	browser.run(t, p, "console_screens.mjs", object{"password": sandbox.Password, "folder": folder, "screens": all}, &taken)
	t.Logf("%d pictures", taken.Pictures)
}

// addPracticeData gives the demo the data of a practice in use: a rota, note templates, and machine clients.
func addPracticeData(t *testing.T, p *practice, admin string) {
	t.Helper()
	users := map[string]any{}
	for _, user := range at(t, p.get(t, "/api/v1/users/?page_size=100", admin).expect(t, 200), "results").([]any) {
		users[user.(object)["role"].(string)] = user.(object)["id"]
	}
	var shifts []object
	for day := range 7 {
		shifts = append(shifts, object{"weekday": day, "start": "07:00", "end": "19:00", "user_id": users["provider"]})
		if day != 3 { // the gap that the rota warns about
			shifts = append(shifts, object{"weekday": day, "start": "19:00", "end": "07:00", "user_id": users["clinical_manager"]})
		}
	}
	p.send(t, "PUT", "/api/v1/on-call/", admin, encode(t, object{"time_zone": "America/New_York", "shifts": shifts, "overrides": []object{}})).expect(t, 200)
	for name, text := range map[string]string{
		"Called, feels well": "Called; feels well, no chest pain, no dizziness. Measures again at noon.",
		"No answer":          "Called twice, no answer; message left.",
	} {
		p.post(t, "/api/v1/note-templates/", admin, object{"name": name, "text": text}).expect(t, 201)
	}
	p.post(t, "/api/v1/clients/", admin, object{"name": "Device cloud", "scopes": []string{"ingest"}}).expect(t, 201)
	p.post(t, "/api/v1/webhooks/", admin, object{"url": "https://warehouse.example/vigil", "events": []string{"alert.raised"}, "active": false}).expect(t, 201)
}
