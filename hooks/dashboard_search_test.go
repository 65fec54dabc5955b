package hooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

type foundInDashboard struct {
	Filter string
	More   bool
}

// search sends a search as the dashboard does.
func (d *dashboard) search(collection, words string) (found foundInDashboard) {
	d.t.Helper()
	answer := d.as(d.token, http.MethodPost, "/_/search", fmt.Sprintf(`{"collection":%q,"words":%q}`, collection, words))
	if err := json.Unmarshal(answer.Body.Bytes(), &found); err != nil || answer.Code != http.StatusOK {
		d.t.Fatalf("%s in %s: %d %s", words, collection, answer.Code, answer.Body)
	}
	return found
}

// lists returns how many records the dashboard lists with a filter.
func (d *dashboard) lists(collection, filter string) (n int) {
	d.t.Helper()
	answer := d.as(d.token, http.MethodGet, "/api/collections/"+collection+"/records?filter="+strings.NewReplacer(`"`, "%22", "|", "%7C", "=", "%3D", "?", "%3F").Replace(filter), "")
	var page struct{ TotalItems int }
	if err := json.Unmarshal(answer.Body.Bytes(), &page); err != nil || answer.Code != http.StatusOK {
		d.t.Fatalf("%s: %d %s", filter, answer.Code, answer.Body)
	}
	return page.TotalItems
}

func TestDashboardSearch(t *testing.T) {
	d := newDashboard(t)
	ada := d.enrol(object{"phone": "(555) 010-0200", "ssn": "123-45-6789", "email": "ada@mail.test", "gateway_patient_id": "gw-ada_7", "address": `{"line1":"1 Secret St","city":"Springfield"}`})
	gone := d.enrol(object{"first_name": "Zoë", "last_name": "Quill"})
	d.do("PATCH", collections.Patients, gone, object{"deleted_at": "2026-01-15T13:45:00.000000Z"})
	nurse := vigiltest.User(t, d.app, authz.Nurse)
	for _, level := range []alerts.Level{alerts.Warning, alerts.Critical} {
		if _, err := alerts.Store(d.app, alerts.Draft{PatientID: ada, Finding: alerts.Finding{Type: "pulse", Level: level}}, vigiltest.Clock); err != nil {
			t.Fatal(err)
		}
	}
	idOf := func(id string) string { return fmt.Sprintf("id=%q", id) }
	for _, test := range []struct{ collection, words, want string }{
		{"patients", "lovel", idOf(ada)},
		{"patients", " LOVELACE  ada ", idOf(ada)},
		{"patients", "zoe quill", idOf(gone)}, // the dashboard also lists deleted patients
		{"patients", "mrn-00000001", idOf(ada)},
		{"patients", "123 45 6789", idOf(ada)},
		{"patients", "Ada@Mail.test", idOf(ada)},
		{"patients", "+1 555 0100200", idOf(ada)},
		{"patients", "gw-ada", idOf(ada)},
		{"patients", ada, idOf(ada)},
		{"patients", "000001", idOf(ada)}, // part of the MRN
		{"patients", "6789", `id=""`},     // part of an SSN
		{"patients", "Secret", `id=""`},   // addresses and ciphertext are not searched
		{"patients", "v2:", `id=""`},
		{"patients", "gw-ada_7", idOf(ada)},
		{"patients", "gw-ada_", idOf(ada)},
		{"patients", "gw_ada", `id=""`}, // not a pattern
		{"patients", "100%", `id=""`},
		{"patients", "\u0301", `id=""`}, // not a word
		{"patients", "female", `gender?="female"`},
		{"alerts", "lovelace", fmt.Sprintf("patient=%q", ada)},
		{"alerts", "critic", `level?="critical"`},
		{"alerts", "nobody", `id=""`},
		{"users", "test person", idOf(nurse.Id)},
		{"users", nurse.Email(), idOf(nurse.Id)},
		{"payers", "lovelace", `id=""`},
	} {
		found := d.search(test.collection, test.words)
		if found.Filter != test.want || found.More {
			t.Errorf("%q in %s found %+v, want %s", test.words, test.collection, found, test.want)
		}
		d.lists(test.collection, found.Filter) // PocketBase accepts the filter
	}
	if n := d.lists("alerts", d.search("alerts", "lovelace").Filter); n != 2 {
		t.Errorf("%d alerts of the patient are listed", n)
	}

	entries := trail(t, d.app, audit.PatientSearch)
	if len(entries) != 25 { // all except the search of payers, which has no patients
		t.Errorf("%d searches are on record", len(entries))
	}
	if first := entries[len(entries)-1]; first.ActorEmail != operator || first.ActorType != "superuser" || first.Patient != ada {
		t.Errorf("the first is %+v", first)
	}
	for _, entry := range entries {
		if raw, _ := json.Marshal(entry.AuditRow); strings.Contains(strings.ToLower(string(raw)), "lovel") {
			t.Errorf("an entry holds what was typed: %s", raw)
		}
	}
}

// A filter stays below PocketBase's limits and reports omitted matches.
func TestDashboardSearchLimit(t *testing.T) {
	d := newDashboard(t)
	for range 63 {
		d.enrol(object{"last_name": "Smith"})
	}
	found := d.search("patients", "smith")
	if n := d.lists("patients", found.Filter); n != 60 || !found.More {
		t.Errorf("%d of 63 are listed, and more is %t", n, found.More)
	}
}

func TestDashboardSearchRequiresSuperuser(t *testing.T) {
	d := newDashboard(t)
	d.enrol(nil)
	const request = `{"collection":"patients","words":"lovelace"}`
	if answer := d.as("", http.MethodPost, "/_/search", request); answer.Code != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d %s", answer.Code, answer.Body)
	}
	for body, want := range map[string]int{
		`{"collection":"patients","words":" "}`:                                  400,
		`{"collection":"patients","words":"` + strings.Repeat("é", 101) + `"}`:   400,
		`{"collection":"patients"`:                                               400,
		`{"collection":"nothing","words":"x"}`:                                   404,
		`{"collection":"patients","words":"` + strings.Repeat("x", 5<<10) + `"}`: 413,
	} {
		if answer := d.as(d.token, http.MethodPost, "/_/search", body); answer.Code != want {
			t.Errorf("%.60s is answered %d %s, want %d", body, answer.Code, answer.Body, want)
		}
	}
	d.directory.Close()
	if answer := d.as(d.token, http.MethodPost, "/_/search", request); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("without a directory the answer is %d %s", answer.Code, answer.Body)
	}
	if entries := trail(t, d.app, audit.PatientSearch); len(entries) != 0 {
		t.Errorf("what was refused is on record as %+v", entries)
	}
}

// A search of all observations stops when the browser leaves the page.
func TestDashboardSearchStopsWhenCanceled(t *testing.T) {
	d := newDashboard(t)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/_/search", strings.NewReader(`{"collection":"observations","words":"scale"}`))
	r.Header.Set("Authorization", d.token)
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	d.handler.ServeHTTP(answer, r)
	if answer.Code == http.StatusOK {
		t.Errorf("the canceled search was answered: %s", answer.Body)
	}
}

// Each line of an address has its own error message.
func TestDashboardAddressErrors(t *testing.T) {
	d := newDashboard(t)
	id := d.enrol(nil)
	status, answer := d.send("PATCH", collections.Patients, id, object{"address": `{"line1":"1 Main St","zip":"1"}`})
	raw, err := json.Marshal(answer["data"])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"address":{"city":{"code":"validation_invalid_value","message":"This field is required."},"zip":{"code":"validation_invalid_value","message":"Must be a ZIP code: 12345 or 12345-6789."}}}`
	if status != http.StatusBadRequest || string(raw) != want {
		t.Errorf("answered %d %s", status, raw)
	}
}
