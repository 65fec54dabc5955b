package routes_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/routes"
)

// bulk is a clinic that runs exports when the test starts them.
type bulk struct {
	*practice
	engine *fhirserver.BulkExporter
	token  string
}

func newBulk(t *testing.T, scopes ...string) *bulk {
	t.Helper()
	b := &bulk{}
	b.practice = newPractice(t, func(e *routes.Engines) {
		b.engine = fhirserver.NewBulkExporter(fhirserver.BulkExporterOptions{
			Resources: fhirserver.ExportSource{Engine: &fhirserver.Engine{Systems: e.FHIRSystems, Zone: e.Zone, Directory: e.Directory, PublicURL: e.PublicURL}},
			Retention: 24 * time.Hour, Clock: func() time.Time { return b.now }, Log: slog.New(slog.DiscardHandler),
		})
		e.Exports = b.engine
	})
	b.token = b.clinic.token(b.addClient(object{"scopes": scopes}), "")
	return b
}

const async = "respond-async"

func (b *bulk) do(method, path, body string, header ...string) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.requestFHIR(b.token, method, strings.TrimPrefix(path, "https://vigil.example.org/fhir/R4"), body, header...)
}

// wantRefused checks a refusal and its code.
func (b *bulk) wantRefused(rec *httptest.ResponseRecorder, status int, code string) {
	b.t.Helper()
	if rec.Code != status || outcomeCode(b.t, rec.Body.Bytes()) != code {
		b.t.Errorf("answered %d %s, want %d %s", rec.Code, rec.Body, status, code)
	}
}

// start begins an export and returns its status URL's path.
func (b *bulk) start(path string, header ...string) string {
	b.t.Helper()
	rec := b.do("GET", path, "", append([]string{"Prefer", async}, header...)...)
	if rec.Code != 202 {
		b.t.Fatalf("%s answered %d %s", path, rec.Code, rec.Body)
	}
	return rec.Header().Get("Content-Location")
}

// manifest runs the export and returns its manifest.
func (b *bulk) manifest(at string) object {
	b.t.Helper()
	if err := b.engine.RunQueued(b.t.Context(), b.app); err != nil {
		b.t.Fatal(err)
	}
	rec := b.do("GET", at, "")
	if rec.Code != 200 {
		b.t.Fatalf("%s answered %d %s", at, rec.Code, rec.Body)
	}
	return parsed(b.t, rec)
}

// lines returns the resources in a manifest's files of a kind, by type and id, and checks that there are no duplicates.
func (b *bulk) lines(manifest object, kind string) map[string]object {
	b.t.Helper()
	all := map[string]object{}
	files, ok := manifest[kind].([]any)
	if !ok {
		b.t.Fatalf("no %s in %v", kind, manifest)
	}
	for _, f := range files {
		file := f.(object)
		rec := b.do("GET", file["url"].(string), "")
		if rec.Code != 200 || rec.Header().Get("Content-Type") != "application/fhir+ndjson" {
			b.t.Fatalf("%s answered %d %s", file["url"], rec.Code, rec.Header())
		}
		count := 0
		for lines := bufio.NewScanner(rec.Body); lines.Scan(); count++ {
			var resource object
			if err := json.Unmarshal(lines.Bytes(), &resource); err != nil || resource["resourceType"] != file["type"] {
				b.t.Fatalf("%s holds %s (%v)", file["url"], lines.Text(), err)
			}
			name := fmt.Sprintf("%s/%v", file["type"], resource["id"])
			if resource["id"] == nil {
				name = fmt.Sprint(len(all))
			}
			if all[name] != nil {
				b.t.Errorf("%s twice", name)
			}
			all[name] = resource
		}
		if float64(count) != file["count"] {
			b.t.Errorf("%s has %d lines, not %v", file["url"], count, file["count"])
		}
	}
	return all
}

func namesOf(resources map[string]object) (names []string) {
	for name := range resources {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// An export contains the same resources as single reads.
func TestExport(t *testing.T) {
	b := newBulk(t, "system/*.rs")
	status := b.start("/$export?_type=Provenance,Flag,Practitioner,Patient,Observation,Device,CareTeam")
	waiting := b.do("GET", status, "")
	if waiting.Code != 202 || waiting.Header().Get("X-Progress") == "" || waiting.Header().Get("Retry-After") == "" {
		t.Fatalf("before the export runs: %d %v", waiting.Code, waiting.Header())
	}
	manifest := b.manifest(status)
	if manifest["transactionTime"] != b.now.Format(time.RFC3339Nano) || manifest["requiresAccessToken"] != true ||
		manifest["request"] != "https://vigil.example.org/fhir/R4/$export?_type=Provenance,Flag,Practitioner,Patient,Observation,Device,CareTeam" {
		t.Errorf("the manifest is %v", manifest)
	}
	output := b.lines(manifest, "output")
	for name, exported := range output {
		read := parsed(t, b.do("GET", "/"+name, ""))
		if fmt.Sprint(read) != fmt.Sprint(exported) {
			t.Errorf("%s is exported as %v and read as %v", name, exported, read)
		}
		if updated, err := time.Parse(time.RFC3339, exported["meta"].(object)["lastUpdated"].(string)); err != nil || updated.After(b.now) {
			t.Errorf("%s is of %s, after the moment of the export", name, updated)
		}
	}
	counts := map[string]int{}
	for name := range output {
		kind, _, _ := strings.Cut(name, "/")
		counts[kind]++
	}
	if got := fmt.Sprint(counts); got != "map[CareTeam:1 Device:1 Flag:5 Observation:10 Patient:2 Practitioner:6 Provenance:10]" {
		t.Errorf("exported %s", got)
	}
	// The other export operations return the same.
	for _, path := range []string{"/Patient/$export?_type=Patient", "/Group/all/$export?_type=Patient"} {
		if got := namesOf(b.lines(b.manifest(b.start(path)), "output")); len(got) != 2 || !slices.Contains(got, "Patient/"+b.ada) {
			t.Errorf("%s has %v", path, got)
		}
	}
	posted := b.do("POST", "/$export", `{"resourceType":"Parameters","parameter":[{"name":"_type","valueString":"Patient"}]}`, "Prefer", async, "Content-Type", "application/fhir+json")
	if got := namesOf(b.lines(b.manifest(posted.Header().Get("Content-Location")), "output")); posted.Code != 202 || len(got) != 2 {
		t.Errorf("posted: %d, %v", posted.Code, got)
	}
	// Everything except the audit trail, which grows with each export.
	everything := b.lines(b.manifest(b.start("/$export")), "output")
	if got := len(everything); got != len(output) {
		t.Errorf("everything is %d: %v", got, namesOf(everything))
	}
	if trail := b.lines(b.manifest(b.start("/$export?_type=AuditEvent")), "output"); len(trail) == 0 {
		t.Error("no AuditEvent")
	}
}

// A file is compressed for clients that accept it, identical on each download, removed at expiry, and its downloads are
// audited.
func TestExportFiles(t *testing.T) {
	b := newBulk(t, "system/*.rs")
	at := b.start("/$export?_type=Patient")
	manifest := b.manifest(at)
	url := manifest["output"].([]any)[0].(object)["url"].(string)
	plain := b.do("GET", url, "").Body.String()
	packed := b.do("GET", url, "", "Accept-Encoding", "br, gzip;q=0.5")
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil || packed.Header().Get("Content-Encoding") != "gzip" {
		t.Fatalf("packed: %v, %v", packed.Header(), err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != plain || !strings.HasSuffix(plain, "}\n") {
		t.Errorf("unpacked %q (%v), want %q", text, err, plain)
	}
	if again := b.do("GET", url, "", "Accept-Encoding", "gzip;q=0"); again.Body.String() != plain || again.Header().Get("Content-Encoding") != "" {
		t.Errorf("the second time %v %s", again.Header(), again.Body)
	}
	if head := b.do("HEAD", url, ""); head.Code != 200 || head.Body.Len() != 0 {
		t.Errorf("HEAD answered %d with %d bytes", head.Code, head.Body.Len())
	}
	events := b.queryColumn(`SELECT event FROM audit_log WHERE resource_type = 'Export' AND (actor_type = 'client' OR actor_type = 'system') ORDER BY id`)
	if got := strings.Join(events, " "); got != "export.start export.finish export.read export.read export.read" {
		t.Errorf("the audit trail has %s", got)
	}
	if expires := b.do("GET", at, "").Header().Get("Expires"); expires != b.now.Add(24*time.Hour).UTC().Format(http.TimeFormat) {
		t.Errorf("it expires %s", expires)
	}
	b.wantRefused(b.do("GET", strings.Replace(url, "Patient-1", "Patient-2", 1), ""), 404, "not_found")
	gone := b.do("DELETE", at, "")
	if gone.Code != 202 {
		t.Errorf("DELETE answered %d", gone.Code)
	}
	for _, path := range []string{at, url} {
		b.wantRefused(b.do("GET", path, ""), 404, "not_found")
	}
	b.wantRefused(b.do("DELETE", at, ""), 404, "not_found")
	// An expired export is gone, too; the token would expire first.
	at = b.start("/$export?_type=Patient")
	b.manifest(at)
	b.now = b.now.Add(24 * time.Hour)
	again := b.addClient(object{"scopes": []string{"system/*.rs"}})
	b.token = b.clinic.token(again, "")
	b.wantRefused(b.do("GET", at, ""), 404, "not_found")
}

// Each refusal states its reason.
func TestExportRefusals(t *testing.T) {
	b := newBulk(t, "system/Observation.rs", "system/Patient.read", "system/Group.rs")
	full := b.clinic.token(b.addClient(object{"scopes": []string{"system/*.rs"}}), "")
	narrow := b.token
	for _, role := range authz.Roles {
		b.token = b.tokenOf(role)
		b.wantRefused(b.do("GET", "/$export", "", "Prefer", async), 403, "permission_denied")
	}
	b.token = ""
	b.wantRefused(b.do("GET", "/$export", "", "Prefer", async), 401, "not_authenticated")
	b.token = b.clinic.token(b.addClient(object{"scopes": []string{"observations.read", "patients.read"}}), "")
	b.wantRefused(b.do("GET", "/$export", "", "Prefer", async), 403, "insufficient_scope")
	b.token = narrow
	for path, want := range map[string]struct {
		status       int
		code, prefer string
	}{
		"/$export":                                             {400, "invalid_parameter", ""},
		"/$export?_type=Flag":                                  {403, "insufficient_scope", async},
		"/$export?_type=Observation,Flag":                      {403, "insufficient_scope", async},
		"/$export?_type=Condition":                             {400, "unsupported_parameter", async},
		"/$export?_elements=id":                                {400, "unsupported_parameter", async},
		"/$export?_since=x":                                    {400, "invalid_parameter", async},
		"/Group/cardiology/$export":                            {404, "not_found", async},
		"/Patient/$export?_type=AuditEvent":                    {400, "unsupported_parameter", async},
		"/$export-status/1":                                    {404, "not_found", ""},
		"/$export-status/0199c0de-0000-7000-8000-000000000001": {404, "not_found", ""},
		"/$export-status/0199c0de-0000-7000-8000-000000000001/Patient-1.ndjson": {404, "not_found", ""},
	} {
		b.wantRefused(b.do("GET", path, "", "Prefer", want.prefer), want.status, want.code)
	}
	if head := b.do("HEAD", "/$export", "", "Prefer", async); head.Code != 405 {
		t.Errorf("HEAD answered %d", head.Code)
	}
	if left := b.queryColumn(`SELECT id FROM exports`); len(left) != 0 {
		t.Errorf("refusals left %d exports", len(left))
	}
	// Without _type the export has what the client's scopes cover; lenient handling drops unknown parameters and reports
	// them.
	at := b.start("/$export?_elements=id", "Prefer", "handling=lenient")
	manifest := b.manifest(at)
	if got := namesOf(b.lines(manifest, "output")); len(got) == 0 || strings.Contains(fmt.Sprint(got), "Provenance") {
		t.Errorf("exported %v", got)
	}
	if reported := fmt.Sprint(b.lines(manifest, "error")); !strings.Contains(reported, "_elements") {
		t.Errorf("passed over: %s", reported)
	}
	// Another client sees nothing of the export, and a narrower token of the same client cannot fetch files outside its
	// scopes.
	url := manifest["output"].([]any)[0].(object)["url"].(string)
	b.token = full
	for _, method := range []string{"GET", "DELETE"} {
		b.wantRefused(b.do(method, at, ""), 404, "not_found")
	}
	b.wantRefused(b.do("GET", url, ""), 404, "not_found")
	// Three exports may run at once, not four.
	for range 3 {
		b.start("/$export")
	}
	fourth := b.do("GET", "/$export", "", "Prefer", async)
	b.wantRefused(fourth, 429, "throttled")
	if fourth.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// A token with fewer scopes than the export fetches only the files that it covers.
func TestExportByNarrowToken(t *testing.T) {
	b := newBulk(t, "system/*.rs")
	m := b.addClient(object{"scopes": []string{"system/*.rs"}})
	b.token = b.clinic.token(m, "")
	at := b.start("/$export?_type=Patient")
	url := b.manifest(at)["output"].([]any)[0].(object)["url"].(string)
	b.token = b.clinic.token(m, "system/Observation.rs")
	if rec := b.do("GET", at, ""); rec.Code != 200 {
		t.Errorf("its state answered %d", rec.Code)
	}
	b.wantRefused(b.do("GET", url, ""), 403, "insufficient_scope")
	b.token = b.clinic.token(m, "system/Patient.read")
	if rec := b.do("GET", url, ""); rec.Code != 200 {
		t.Errorf("the file answered %d", rec.Code)
	}
}

// A client that passes the previous export's time as _since receives every state once, and deletions, including changes
// with an earlier timestamp that were committed after that export.
func TestExportSince(t *testing.T) {
	b := newBulk(t, "system/*.rs")
	kept, deleted := b.ada, b.enroll(object{"mrn": "A-2"})
	hers := b.request(authz.Admin, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": deleted, "systolic": 191, "diastolic": 121, "pulse": 80, "measured_at": b.now.Add(-time.Minute).Format(time.RFC3339),
	}).want(201).at("id").(string)
	var flags []string
	for _, id := range b.search("/Flag?patient=" + deleted) {
		flags = append(flags, "Flag/"+id)
	}
	if len(flags) == 0 {
		t.Fatal("no alert")
	}
	before := b.manifest(b.start("/$export?_type=Patient,Observation"))
	if got := namesOf(b.lines(before, "output")); len(got) < 10 {
		t.Fatalf("exported %v", got)
	}
	since := "&_since=" + before["transactionTime"].(string)
	nothing := b.manifest(b.start("/$export?_type=Patient,Observation" + since))
	if got := append(namesOf(b.lines(nothing, "output")), namesOf(b.lines(nothing, "deleted"))...); len(got) != 0 {
		t.Errorf("nothing was changed, and exported %v", got)
	}
	moment := b.now
	b.now = b.now.Add(time.Second)
	fresh := b.enroll(object{"mrn": "A-3"})
	reading := b.request(authz.Nurse, "POST", "/ingestion/weight/", object{"patient_id": fresh, "weight_kg": 81, "measured_at": b.now.Add(-time.Minute).Format(time.RFC3339)}).
		want(201).at("id").(string)
	b.request(authz.Admin, "DELETE", "/patients/"+deleted+"/", nil).want(204)
	after := b.manifest(b.start("/$export?_type=Patient,Observation" + since))
	if got, want := namesOf(b.lines(after, "output")), []string{"Observation/" + reading, "Patient/" + fresh}; !slices.Equal(got, want) {
		t.Errorf("exported %v, want %v", got, want)
	}
	if gone := fmt.Sprint(b.lines(after, "deleted")); !strings.Contains(gone, "Patient/"+deleted) || strings.Contains(gone, kept) {
		t.Errorf("deleted %s", gone)
	}
	// All types: a deleted patient takes along their resources, including the flags of their alerts.
	all := b.manifest(b.start("/$export?_since=" + before["transactionTime"].(string)))
	gone := fmt.Sprint(b.lines(all, "deleted"))
	for _, want := range append([]string{"Patient/" + deleted, "Observation/" + hers, "Provenance/" + hers}, flags...) {
		if !strings.Contains(gone, want+"]") {
			t.Errorf("%s is not deleted: %s", want, gone)
		}
	}
	// An earlier timestamp, committed later.
	if _, err := b.app.DB().Update("observations", dbx.Params{"updated_at": collections.FormatInstant(moment.Add(-time.Second))}, dbx.HashExp{"id": reading}).Execute(); err != nil {
		t.Fatal(err)
	}
	late := b.manifest(b.start("/$export?_type=Observation" + since))
	if got := namesOf(b.lines(late, "output")); !slices.Equal(got, []string{"Observation/" + reading}) {
		t.Errorf("committed late: %v", got)
	}
}

func TestSmartConfiguration(t *testing.T) {
	c := newClinic(t)
	rec := c.requestFHIR("", "GET", "/.well-known/smart-configuration", "")
	notified := parsed(t, rec)
	if rec.Code != 200 || notified["token_endpoint"] != tokenURL {
		t.Fatalf("answered %d %s", rec.Code, rec.Body)
	}
	scopes := fmt.Sprint(notified["scopes_supported"])
	for _, kind := range fhirserver.ResourceTypes {
		if !strings.Contains(scopes, "system/"+kind.Type+".rs") {
			t.Errorf("%s is not among %s", kind.Type, scopes)
		}
	}
	if strings.Contains(scopes, "ingest") {
		t.Errorf("the scopes of another interface: %s", scopes)
	}
	// Every listed scope and every listed sign-in method works.
	all := []string{}
	for _, scope := range notified["scopes_supported"].([]any) {
		all = append(all, scope.(string))
	}
	m := c.addClient(object{"scopes": all})
	c.token(m, strings.Join(all, " "))
	c.token(m, "system/Observation.read")
}
