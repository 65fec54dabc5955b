package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/cmd"
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// phiMarks must not appear anywhere outside ciphertext: everything that identifies a patient, and every text in which a
// user may enter a name. Each is a word that occurs nowhere else, in the forms in which it may be stored.
var phiMarks = map[string][]string{
	"first name":         {"Xavrielle"},
	"last name":          {"Quillbrandt"},
	"birth date":         {"1937-08-29"},
	"phone":              {"555-731-9042", "5557319042"},
	"e-mail":             {"xq.marker@postfach.example"},
	"street":             {"4711 Zyzwick Lane"},
	"second line":        {"Rückgebäude Vier"},
	"city":               {"Blorpington"},
	"SSN":                {"219-09-8765", "219098765"},
	"member id":          {"MEMBERWQ77"},
	"archive reason":     {"moved-in-with-sister-Ottilie"},
	"threshold reason":   {"asked-for-by-uncle-Balthasar"},
	"consent notes":      {"signed-by-daughter-Kunigunde"},
	"revocation":         {"withdrawn-by-son-Ferdinandus"},
	"document":           {"scan-of-Quendolin-Mummel"},
	"emergency":          {"found-by-neighbour-Adelgunde"},
	"replaced last name": {"Trampelbach"},
	"alert notes":        {"called-niece-Wilhelmine"},
	"webhook payload":    {"payload-of-Eulalia-Grobschmied"},
	"staff first name":   {"Nepomuzena"},
	"staff phone":        {"555-864-2097"},
	"password":           {"Unutterable-Word-93!"},
}

// neverStored are phiMarks that are not stored at all, so that they are not found in the clear either.
var neverStored = []string{"password", "refused name", "searched name"}

// refusedMarks are phiMarks that only occur in rejected requests or in searches.
var refusedMarks = map[string][]string{
	"refused name":  {"Abgelehntia"},
	"searched name": {"Suchwortia"},
}

// PHI is in no file, log line, mail or push, in any common encoding. As a control, every column is then decrypted in place,
// and the same search finds each telltale.
func TestNoHealthInformationInTheClear(t *testing.T) {
	t.Parallel()
	mail, err := sandbox.NewMailCatcher(now, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mail.Close() })
	var delivered bytes.Buffer
	var lock sync.Mutex
	emr := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		lock.Lock()
		delivered.Write(body)
		lock.Unlock()
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(emr.Close)
	pushes := newPushCatcher(t, now)
	p := newPractice(t, append(append(emrSettings(emr.URL), pushes.settings...), "VIGIL_LOG_LEVEL=debug", "VIGIL_RESTRICT_TO_CARE_TEAM=true", "VIGIL_SMTP_HOST=127.0.0.1",
		"VIGIL_SMTP_PORT="+mailPort(mail), "VIGIL_SMTP_FROM=vigil@vigil.test")...)
	p.serve(t, "")
	pushes.subscribe(t, p, p.user(t, "clinical_manager", nil), "/browser")
	useMarkedData(t, p)
	pushes.want(t, "Stat escalation: ", "Reminder: ", "System notice")
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}

	haystacks := folder(t, p.Dir)
	if p.Output() == "" {
		t.Error("the service logged nothing")
	}
	haystacks["what the service printed"] = newHaystack([]byte(p.Output()))
	haystacks["what the EMR was sent"] = newHaystack(delivered.Bytes()) // the service has stopped
	haystacks["pushes, opened"] = newHaystack(pushes.opened())
	for i, message := range mail.Messages() {
		haystacks[fmt.Sprint("mail ", i)] = newHaystack([]byte(message.Subject + message.Text + message.HTML))
	}
	for _, set := range []map[string][]string{phiMarks, refusedMarks} {
		for name, forms := range set {
			for _, place := range search(haystacks, forms) {
				t.Errorf("the %s is in %s", name, place)
			}
		}
	}

	switchEncryptionOff(t, p)
	haystacks = folder(t, p.Dir)
	for name, forms := range phiMarks {
		if found := search(haystacks, forms); (len(found) == 0) != slices.Contains(neverStored, name) {
			t.Errorf("without encryption the %s is in %v", name, found)
		}
	}
}

// The search finds every telltale in every encoding.
func TestPrivacySearch(t *testing.T) {
	const mark = "Rückgebäude & <Vier>"
	for name, content := range map[string]string{
		"plain": "xx" + mark + "yy", "upper case": "xx" + strings.ToUpper(mark), "hex": hex.EncodeToString([]byte("a" + mark)),
		"upper hex": strings.ToUpper(hex.EncodeToString([]byte(mark))), "query": url.QueryEscape(mark), "path": url.PathEscape(mark),
		"base64": base64.StdEncoding.EncodeToString([]byte(mark + "tail")), "base64, shifted once": base64.StdEncoding.EncodeToString([]byte("a" + mark + "tail")),
		"base64url, shifted twice": base64.RawURLEncoding.EncodeToString([]byte("ab" + mark + "tail")),
		"base64 of lower case":     base64.StdEncoding.EncodeToString([]byte("abc" + strings.ToLower(mark))),
	} {
		if found := search(map[string]haystack{"x": newHaystack([]byte("before " + content + " after"))}, []string{mark}); len(found) == 0 {
			t.Errorf("%s is not found in %q", name, content)
		}
	}
	if found := search(map[string]haystack{"x": newHaystack([]byte("nothing of the kind"))}, []string{mark}); len(found) > 0 {
		t.Error("the search found a word that is not there")
	}
}

// useMarkedData uses every function of the service that handles people, with marked data.
func useMarkedData(t *testing.T, p *practice) {
	t.Helper()
	mark := func(name string) string { return phiMarks[name][0] }
	admin := p.Admin(t)
	body := object{
		"first_name": mark("first name"), "last_name": mark("last name"), "date_of_birth": mark("birth date"), "gender": "female",
		"phone": mark("phone"), "email": mark("e-mail"), "ssn": mark("SSN"), "external_id": "ext-1", "gateway_patient_id": "GW-77",
		"address":   object{"line1": mark("street"), "line2": mark("second line"), "city": mark("city"), "state": "IL", "zip": "62701"},
		"insurance": object{"member_id": mark("member id")},
	}
	id := text(t, p.post(t, "/api/v1/patients/", admin, body).expect(t, 201), "id")
	patient := "/api/v1/patients/" + id + "/"
	put := func(path string, body object) answer { return p.send(t, http.MethodPut, path, admin, encode(t, body)) }

	// Read and search.
	p.get(t, patient, admin).expect(t, 200)
	for _, name := range []string{mark("last name"), mark("first name"), refusedMarks["searched name"][0]} {
		p.get(t, "/api/v1/patients/?search="+url.QueryEscape(name), admin).expect(t, 200)
	}
	p.get(t, "/api/v1/fhir/patients/"+id+"/", admin).expect(t, 200)

	// Rejected requests, by body and by path.
	no := refusedMarks["refused name"][0]
	p.post(t, "/api/v1/patients/", admin, object{"first_name": strings.Repeat(no, 12), "gender": no, "email": no, "mrn": "?" + no, "ssn": no}).expect(t, 400)
	p.send(t, http.MethodPost, "/api/v1/patients/", admin, `{"first_name":"`+no+`"`).expect(t, 400)
	p.get(t, "/api/v1/patients/?ordering="+no+"&page="+no, admin).expect(t, 400)
	p.get(t, "/api/v1/patients/"+no+"/", admin).expect(t, 404)
	p.send(t, http.MethodPost, "/api/v1/auth/login/", "", encode(t, object{"email": adminEmail, "password": phiMarks["password"][0]})).expect(t, 401)
	put(patient, body).expect(t, 200)

	// Readings, one high and one critical; gateway events that match no patient and malformed ones.
	p.signed(t, measurement("GW-77", "BP-1", 150, 85, time.Now().Add(-2*time.Minute))).expect(t, 200)
	p.signed(t, measurement("GW-77", "BP-1", 215, 130, time.Now().Add(-time.Minute))).expect(t, 200)
	p.post(t, "/api/v1/ingestion/weight/", admin, object{"patient_id": id, "weight_kg": 80, "measured_at": time.Now().UTC().Format(time.RFC3339)}).expect(t, 201)
	stray := measurement("GW-0", "BP-9", 120, 80, time.Now().Add(-time.Minute))
	stray["patient_name"] = mark("webhook payload")
	p.signed(t, stray).expect(t, 200)
	stray["values"] = object{"systolic": mark("webhook payload")}
	p.signed(t, stray).expect(t, 400)
	p.get(t, "/api/v1/triage/patients/", admin).expect(t, 200)
	alerts := p.get(t, "/api/v1/alerts/", admin).expect(t, 200)
	if number, ok := at(t, alerts, "results.0.id").(float64); !ok {
		t.Fatalf("the critical reading raised no alert: %s", alerts.body)
	} else {
		p.amend(t, collections.Alerts, collections.NumberID(int64(number)), object{"notes": mark("alert notes")})
	}

	// Thresholds, consents, care teams, break-glass.
	put(patient+"vital-config/", object{"pulse": object{"high": 100}, "reason": mark("threshold reason")}).expect(t, 200)
	consent := p.post(t, patient+"consents/", admin, object{
		"type": "rpm", "method": "verbal", "granted_at": "2026-01-10", "notes": mark("consent notes"),
		"document_reference": mark("document"),
	}).expect(t, 201)
	number := int64(at(t, consent, "id").(float64))
	p.post(t, patient+"consents/"+collections.NumberID(number)[14:]+"/revoke/", admin, object{"reason": mark("revocation")}).expect(t, 200)
	nurse := p.user(t, "nurse", object{"first_name": mark("staff first name"), "phone": mark("staff phone")})
	p.get(t, patient, nurse).expect(t, 403)
	p.send(t, http.MethodGet, patient, nurse, "", "X-Emergency-Access", mark("emergency")).expect(t, 200)

	// Dashboard edits, then archiving and deletion.
	p.amend(t, collections.Patients, id, object{"last_name": mark("replaced last name")})
	p.send(t, http.MethodPatch, "/api/collections/patients/records/"+id, p.Superuser(t), encode(t, object{"email": no, "date_of_birth": no})).expect(t, 400)
	p.send(t, http.MethodGet, "/api/collections/patients/records?filter="+url.QueryEscape("(last_name~'"+refusedMarks["searched name"][0]+"')"), p.Superuser(t), "").expect(t, 200)
	p.amend(t, collections.Patients, id, object{"last_name": mark("last name"), "phone": mark("phone")})
	second := p.patient(t, object{"last_name": mark("replaced last name")})
	p.post(t, patient+"archive/", admin, object{"reason": mark("archive reason"), "confirm": true}).expect(t, 200)
	p.send(t, http.MethodDelete, "/api/v1/patients/"+second+"/", admin, "").expect(t, 204)
}

func mailPort(mail *sandbox.MailCatcher) string {
	_, port, _ := strings.Cut(mail.Addr(), ":")
	return port
}

// haystack is text to search, as it is and in lower case.
type haystack struct{ content, folded []byte }

func newHaystack(content []byte) haystack { return haystack{content, bytes.ToLower(content)} }

// folder reads every file below a folder.
func folder(t *testing.T, dir string) map[string]haystack {
	t.Helper()
	files := map[string]haystack{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = newHaystack(content)
		return err
	})
	if err != nil || len(files["/data.db"].content) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// search returns the names of the texts that contain one of the words, in any case, in the clear, in hex, in URLs, or in
// base64 at any offset.
func search(haystacks map[string]haystack, words []string) (found []string) {
	var folded, exact [][]byte
	for _, word := range words {
		for _, variant := range []string{word, strings.ToLower(word), strings.ToUpper(word)} {
			for _, spelling := range []string{variant, url.QueryEscape(variant), url.PathEscape(variant), hex.EncodeToString([]byte(variant))} {
				folded = append(folded, []byte(strings.ToLower(spelling)))
			}
			for shift := range 3 {
				for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
					exact = append(exact, []byte(inBase64(encoding, variant, shift)))
				}
			}
		}
	}
	folded, exact = distinct(folded), distinct(exact)
	for place, h := range haystacks {
		holds := func(content []byte) func([]byte) bool {
			return func(needle []byte) bool { return bytes.Contains(content, needle) }
		}
		if slices.ContainsFunc(folded, holds(h.folded)) || slices.ContainsFunc(exact, holds(h.content)) {
			found = append(found, place)
		}
	}
	slices.Sort(found)
	return found
}

func distinct(needles [][]byte) [][]byte {
	slices.SortFunc(needles, bytes.Compare)
	return slices.CompactFunc(needles, bytes.Equal)
}

// inBase64 returns the part of a word's encoding that does not depend on the shift bytes before it and the bytes after it.
func inBase64(encoding *base64.Encoding, word string, shift int) string {
	encoded := encoding.EncodeToString([]byte(strings.Repeat("x", shift) + word))
	first := []int{0, 2, 3}[shift]
	whole := (shift + len(word)) * 8 / 6
	return encoded[first:whole]
}

// switchEncryptionOff replaces every encrypted value with its plaintext, as without encryption.
func switchEncryptionOff(t *testing.T, p *practice) {
	t.Helper()
	settings, err := config.Load(p.Env)
	if err != nil {
		t.Fatal(err)
	}
	app, err := cmd.NewApp(p.Dir, settings.WithPublicURL(p.URL))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := cmd.Open(app, settings.WithPublicURL(p.URL))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := app.FindAllCollections(core.CollectionTypeBase, core.CollectionTypeAuth)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := app.DB().NewQuery("DROP TRIGGER audit_log_no_update").Execute(); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		for _, field := range table.Fields {
			column, encrypted := field.(*collections.PHIField)
			if !encrypted {
				continue
			}
			var rows []struct {
				ID     string `db:"id"`
				Sealed string `db:"sealed"`
			}
			err := app.DB().Select("id", column.Name+" AS sealed").From(table.Name).Where(dbx.NewExp("[[" + column.Name + "]] != ''")).All(&rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				plain, err := sealer.Open(row.Sealed, column.Purpose, row.ID)
				if err == nil {
					_, err = app.DB().Update(table.Name, dbx.Params{column.Name: plain}, dbx.HashExp{"id": row.ID}).Execute()
				}
				if err != nil {
					t.Fatal(table.Name, column.Name, err)
				}
			}
		}
	}
	if err := app.ClearBootstrap(); err != nil {
		t.Fatal(err)
	}
}
