package e2e

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The practice that the tests use: a data folder with its first accounts, the service on it, and HTTP requests. State that
// HTTP does not expose, such as row counts, is read from the database file.

const (
	adminEmail     = "admin@vigil.test"
	superuserEmail = "dashboard@vigil.test"
	password       = "Correct-Horse-42!"
	clientID       = "vigil-test"
	practiceCode   = "elm-street"
	emrPatient     = "pat-1001" // a patient of the EMR sandbox
)

// practice is a service with what is needed to send it requests.
type practice struct {
	URL, Dir      string
	Env           []string
	WebhookSecret string
	*process      // nil when the service runs inside the test
	admin, super  string
}

// firstFolder is created once with an operator's commands: keys, an administrator, a dashboard account.
var firstFolder = sync.OnceValues(func() (folder struct {
	dir string
	env []string
}, err error,
) {
	path, err := builtOnce()
	if err != nil {
		return folder, err
	}
	folder.dir = filepath.Join(filepath.Dir(path), "first")
	vigil := func(in string, args ...string) (string, error) {
		cmd := exec.Command(path, args...)
		cmd.Env, cmd.Stdin, cmd.Stderr = environ(folder.env), strings.NewReader(in), new(bytes.Buffer)
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("vigil %v: %w\n%s", args, err, cmd.Stderr)
		}
		return string(out), err
	}
	keys, err := vigil("", "keys", "generate")
	if err != nil {
		return folder, err
	}
	folder.env = strings.Split(strings.TrimSpace(keys), "\n")
	if _, err := vigil(password+"\n", "admin", "create", "--email", adminEmail, "--first-name", "Ada", "--last-name", "Minns", "--password-stdin", "--dir", folder.dir); err != nil {
		return folder, err
	}
	_, err = vigil("", "superuser", "upsert", superuserEmail, password, "--dir", folder.dir)
	return folder, err
})

// newPractice returns a copy of the first folder with request limits off; extra settings override others. The service is not
// started.
func newPractice(t testing.TB, extra ...string) *practice {
	t.Helper()
	first, err := firstFolder()
	if err != nil {
		t.Fatal(err)
	}
	p := &practice{Dir: filepath.Join(t.TempDir(), "data")}
	if err := os.CopyFS(p.Dir, os.DirFS(first.dir)); err != nil {
		t.Fatal(err)
	}
	p.Env = append(append([]string(nil), first.env...), "VIGIL_RATE_LIMIT_USER=0", "VIGIL_RATE_LIMIT_ANON=0", "VIGIL_RATE_LIMIT_AUTH=0", "VIGIL_RATE_LIMIT_WEBHOOK=0")
	p.Env = append(p.Env, extra...)
	p.WebhookSecret = valueOf(p.Env, "VIGIL_GATEWAY_WEBHOOK_SECRET")
	return p
}

// serve runs the built binary on the practice's folder; an empty addr means any.
func (p *practice) serve(t testing.TB, addr string) *practice {
	t.Helper()
	p.process = launchAt(t, cmp.Or(addr, freeAddr(t)), p.Dir, p.Env, "serve")
	p.URL = p.process.URL
	return p
}

// Admin returns an access token of the administrator, from one sign-in.
func (p *practice) Admin(t testing.TB) string {
	t.Helper()
	if p.admin == "" {
		p.admin = p.signIn(t, adminEmail)
	}
	return p.admin
}

func (p *practice) signIn(t testing.TB, email string) string {
	t.Helper()
	return text(t, p.post(t, "/api/v1/auth/login/", "", object{"email": email, "password": password}).expect(t, 200), "access")
}

// Superuser returns a token for PocketBase's own routes.
func (p *practice) Superuser(t testing.TB) string {
	t.Helper()
	if p.super == "" {
		p.super = text(t, p.post(t, "/api/collections/_superusers/auth-with-password", "", object{"identity": superuserEmail, "password": password}).expect(t, 200), "token")
	}
	return p.super
}

func now() time.Time { return time.Now().UTC() }

// valueOf returns a setting of an environment.
func valueOf(environ []string, name string) string {
	for _, pair := range environ {
		if value, found := strings.CutPrefix(pair, name+"="); found {
			return value
		}
	}
	return ""
}

type object = map[string]any

// answer is a response, read to its end.
type answer struct {
	request string
	status  int
	header  http.Header
	body    []byte
}

// expect ends the test unless the status is the expected one.
func (a answer) expect(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("%s answered %d, want %d\n%s", a.request, a.status, status, a.body)
	}
	return a
}

// at returns a value of a JSON answer by a path of names and list indexes separated by dots; nil if it is missing.
func at(t testing.TB, a answer, path string) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		t.Fatalf("%s did not answer with JSON: %v\n%s", a.request, err, a.body)
	}
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

func text(t testing.TB, a answer, path string) string {
	t.Helper()
	value, ok := at(t, a, path).(string)
	if !ok {
		t.Fatalf("%s has no text at %s\n%s", a.request, path, a.body)
	}
	return value
}

// wantAt compares values of an answer; numbers are float64, as in JSON.
func wantAt(t testing.TB, a answer, want object) {
	t.Helper()
	for path, value := range want {
		if got := at(t, a, path); got != value {
			t.Errorf("%s: %s is %#v, want %#v\n%s", a.request, path, got, value, a.body)
		}
	}
}

// send sends a request and checks its answer against the contract. headers alternate names and values.
func (p *practice) send(t testing.TB, method, path, token, body string, headers ...string) answer {
	t.Helper()
	return sendBody(t, p.URL, method, path, token, strings.NewReader(body), headers...)
}

func sendBody(t testing.TB, base, method, path, token string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, base+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if method != http.MethodGet && method != http.MethodDelete {
		request.Header.Set("Content-Type", "application/json")
	}
	switch {
	case strings.HasPrefix(path, "/api/collections/"):
		request.Header.Set("Authorization", token)
	case token != "":
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	a := sendRequest(t, request)
	a.check(t, method, path)
	return a
}

func sendRequest(t testing.TB, request *http.Request) answer {
	t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{request.Method + " " + request.URL.Path, response.StatusCode, response.Header, read}
}

// check checks the answer against the contract. An unsupported method is not in it; its answer must have the form of an
// error.
func (a answer) check(t testing.TB, method, path string) {
	t.Helper()
	if strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "/api/v1/") { // PocketBase's own
		return
	}
	if a.status == http.StatusMethodNotAllowed {
		method, _, _ = strings.Cut(a.header.Get("Allow"), ",")
	}
	path, _, _ = strings.Cut(path, "?")
	if a.status == http.StatusNotFound && at(t, a, "code") == "not_found" && !described(path) {
		path = "/api/v1/patients/00000000-0000-7000-8000-000000000000/" // unknown paths answer like a missing object
		method = http.MethodGet
	}
	vigiltest.CheckResponse(t, method, path, a.status, a.header, a.body)
}

// described reports whether the contract should have the path.
func described(path string) bool {
	return !strings.Contains(path, "nowhere") && !strings.Contains(path, "//")
}

func (p *practice) get(t testing.TB, path, token string) answer {
	t.Helper()
	return p.send(t, http.MethodGet, path, token, "")
}

func (p *practice) post(t testing.TB, path, token string, body any) answer {
	t.Helper()
	return p.send(t, http.MethodPost, path, token, encode(t, body))
}

func encode(t testing.TB, body any) string {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// record creates a record through PocketBase's dashboard API, and returns its id.
func (p *practice) record(t testing.TB, collection string, fields object) string {
	t.Helper()
	return text(t, p.post(t, "/api/collections/"+collection+"/records", p.Superuser(t), fields).expect(t, 200), "id")
}

// amend changes a record through PocketBase's dashboard API.
func (p *practice) amend(t testing.TB, collection, id string, fields object) {
	t.Helper()
	p.send(t, http.MethodPatch, "/api/collections/"+collection+"/records/"+url.PathEscape(id), p.Superuser(t), encode(t, fields)).expect(t, 200)
}

// user creates an account of a role through the dashboard and signs in to it.
func (p *practice) user(t testing.TB, role string, fields object) string {
	t.Helper()
	account := object{"email": role + "@vigil.test", "password": password, "passwordConfirm": password, "role": role, "is_active": true}
	for name, value := range fields {
		account[name] = value
	}
	p.record(t, "users", account)
	return p.signIn(t, role+"@vigil.test")
}

// patient enrolls a patient and returns the id; fields override the default body.
func (p *practice) patient(t testing.TB, fields object) string {
	t.Helper()
	body := object{"first_name": "Ann", "last_name": "Lee", "date_of_birth": "1950-01-02", "gender": "female"}
	for name, value := range fields {
		body[name] = value
	}
	return text(t, p.post(t, "/api/v1/patients/", p.Admin(t), body).expect(t, 201), "id")
}

// bloodPressure returns the body of an API reading.
func bloodPressure(patientID string, systolic, diastolic float64, measuredAt time.Time) object {
	return object{"patient_id": patientID, "systolic": systolic, "diastolic": diastolic, "measured_at": measuredAt.UTC().Format(time.RFC3339)}
}

// measurement returns a gateway event with a blood pressure.
func measurement(gatewayPatient, deviceID string, systolic, diastolic float64, measuredAt time.Time) object {
	return object{
		"event_type": "measurement.created", "device_id": deviceID, "patient_id": gatewayPatient, "measurement_type": "blood_pressure",
		"values": object{"systolic": systolic, "diastolic": diastolic}, "unit": "mmHg", "timestamp": measuredAt.UTC().Format(time.RFC3339),
	}
}

const webhook = "/api/v1/gateway/webhook/"

// signed sends an event as the gateway does.
func (p *practice) signed(t testing.TB, event any) answer {
	t.Helper()
	body, isText := event.(string)
	if !isText {
		body = encode(t, event)
	}
	return p.send(t, http.MethodPost, webhook, "", body, signature(p.WebhookSecret, body, time.Now())...)
}

// signature returns the gateway's headers. Source: specification, "Gateway webhook signature".
func signature(secret, body string, at time.Time) []string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return []string{"X-Gateway-Signature", "sha256=" + hex.EncodeToString(mac.Sum(nil)), "X-Gateway-Timestamp", strconv.FormatInt(at.Unix(), 10)}
}

// database opens the practice's database read-only while the service runs.
func (p *practice) database(t testing.TB) *dbx.DB {
	t.Helper()
	db := sqlite.File(filepath.Join(p.Dir, "data.db"), "busy_timeout(10000)", "query_only(ON)")
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// rowsOf counts the rows of every table of Vigil; those of PocketBase and SQLite begin with "_" and "sqlite_".
func rowsOf(t testing.TB, db *dbx.DB) map[string]int {
	t.Helper()
	var tables []string
	if err := db.NewQuery(`SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 1) != '_' AND substr(name, 1, 7) != 'sqlite_'`).Column(&tables); err != nil {
		t.Fatal(err)
	}
	if len(tables) < 30 {
		t.Fatalf("only %d tables: %v", len(tables), tables)
	}
	rows := map[string]int{}
	for _, table := range tables {
		where := ""
		if table == "audit_log" {
			where = " WHERE " + notByClock
		}
		var n int
		if err := db.NewQuery(`SELECT COUNT(*) FROM "` + table + `"` + where).Row(&n); err != nil {
			t.Fatal(err)
		}
		rows[table] = n
	}
	return rows
}

// rowsBefore is rowsOf before an action whose rows are counted. It waits while the jobs run, or are about to run, that send
// the hour's notifications.
func rowsBefore(t testing.TB, db *dbx.DB) map[string]int {
	t.Helper()
	const every, ahead, behind = 15 * time.Minute, 8 * time.Second, 4 * time.Second
	eventually(t, within, "the jobs of a quarter of an hour are done", func() bool { return time.Since(time.Now().Add(ahead).Truncate(every)) >= behind })
	return rowsOf(t, db)
}

// notByClock excludes the audit entries of scheduled jobs.
const notByClock = `event NOT IN ('billing.run', 'retention.purge', 'audit.verify', 'service.health_change')`

// added returns how many rows each table gained; unchanged tables are omitted.
func added(before, after map[string]int) map[string]int {
	grown := map[string]int{}
	for table, n := range after {
		if n != before[table] {
			grown[table] = n - before[table]
		}
	}
	delete(grown, "processing_times") // depends on timing
	delete(grown, "job_runs")         // written by the scheduler
	return grown
}

// sendEMR sends a request to the EMR sandbox, whose answers are not part of the contract.
func sendEMR(t testing.TB, method, address, token string, body io.Reader, contentType string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, body)
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	return sendRequest(t, request)
}
