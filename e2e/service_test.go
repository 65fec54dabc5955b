package e2e

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/cmd"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/sandbox"
)

// within is how long a test waits for background work before it fails.
const within = 30 * time.Second

// emrSettings make a practice deliver to an EMR sandbox, with short retry delays within a delivery.
func emrSettings(emrURL string) []string {
	return []string{
		"VIGIL_EMR_FHIR_BASE_URL=" + emrURL + "/fhir/{practice_code}", "VIGIL_EMR_TOKEN_URL=" + emrURL + "/oauth/token",
		"VIGIL_EMR_CLIENT_ID=" + clientID, "VIGIL_EMR_PRACTICE_CODE=" + practiceCode, "VIGIL_EMR_ENVIRONMENT=staging",
		"VIGIL_EMR_RATE_LIMIT_PER_SECOND=0", "VIGIL_EMR_QUICK_RETRY_DELAYS=50ms,50ms,50ms",
	}
}

// A signed reading is stored as an observation, raises an alert, ranks in the triage list, and is delivered to the EMR once;
// here in one process.
func TestReadingToEMR(t *testing.T) {
	emrServer := httptest.NewUnstartedServer(nil)
	emrURL := "http://" + emrServer.Listener.Addr().String()
	p := newPractice(t, append(emrSettings(emrURL), "VIGIL_FHIR_SEND_INTERPRETATION=false")...) // the body of the interface's example
	addr := freeAddr(t)
	p.URL = "http://" + addr
	emr, err := sandbox.NewEMR(sandbox.EMROptions{BaseURL: emrURL, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: p.URL + "/.well-known/jwks.json", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	emrServer.Config.Handler = emr
	emrServer.Start()
	t.Cleanup(emrServer.Close)
	serveHere(t, p, addr)

	observation := sendCriticalReading(t, p)
	held := emr.Observations()
	if len(held) != 1 || held[0].Creates != 1 {
		t.Fatalf("the EMR holds %+v, want one observation", held)
	}
	wantDelivered(t, held[0].Resource, observation)
	if stats := emr.Stats(); stats.TokensIssued != 1 || stats.TokensRefused != 0 || stats.Refused != 0 {
		t.Errorf("the EMR saw %+v, want one access token and nothing refused", stats)
	}
}

// program is the service that runs inside a test.
var program = &cmd.Program{Version: "development", Pages: os.DirFS("pb_public")}

// serveHere runs the service inside the test until the test ends; prepare receives its app before it serves.
func serveHere(t *testing.T, p *practice, addr string, prepare ...func(core.App)) {
	t.Helper()
	settings, err := config.Load(p.Env)
	if err != nil {
		t.Fatal(err)
	}
	settings = settings.WithPublicURL(p.URL)
	app, err := cmd.NewApp(p.Dir, settings)
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := cmd.Open(app, settings)
	if err != nil {
		t.Fatal(err)
	}
	s, err := program.NewService(app, sealer, settings, slog.New(slog.DiscardHandler), clockwork.NewRealClock())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range prepare {
		f(app)
	}
	listening := make(chan string, 1)
	s.Listening = func(address string) { listening <- address }
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, addr, "") }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the service ended with: %v", err)
		}
	})
	select {
	case address := <-listening:
		if address != p.URL {
			t.Fatalf("the service listens on %s, want %s", address, p.URL)
		}
	case err := <-ended:
		ended <- err
		t.Fatalf("the service did not start: %v", err)
	}
}

// The same with the service and the EMR as two processes, set up by commands and checked by HTTP.
func TestReadingToEMRBinary(t *testing.T) {
	t.Parallel()
	emrAddr, addr := freeAddr(t), freeAddr(t)
	p := newPractice(t, append(emrSettings("http://"+emrAddr), "VIGIL_FHIR_SEND_INTERPRETATION=false")...)
	emr := launchEMR(t, emrAddr, "http://"+addr, p.Env)
	p.serve(t, addr)

	keys := p.get(t, "/.well-known/jwks.json", "").expect(t, 200)
	wantAt(t, keys, object{"keys.0.kty": "RSA", "keys.0.alg": "RS384", "keys.0.use": "sig", "keys.1": nil})
	observation := sendCriticalReading(t, p)
	wantDelivered(t, emr.onlyObservation(t, p, observation), observation)
}

// deliveredReading holds the ids and values of a reading after it was processed.
type deliveredReading struct {
	id, patient, emrID   string
	measuredAt, storedAt string
	effective            string // with the offset of the patient's time zone, which is the practice's
}

// sendCriticalReading sends one critical reading from the webhook to the EMR and checks every answer about it.
func sendCriticalReading(t *testing.T, p *practice) deliveredReading {
	t.Helper()
	measuredAt := time.Now().Add(-time.Hour).Truncate(time.Second)
	calm := p.patient(t, object{"first_name": "Calm", "mrn": "WAY-1"})
	p.post(t, "/api/v1/ingestion/weight/", p.Admin(t), object{"patient_id": calm, "weight_kg": 80, "measured_at": measuredAt.UTC().Format(time.RFC3339)}).expect(t, 201)
	p.patient(t, object{"first_name": "Silent", "mrn": "WAY-2"})
	patient := p.patient(t, object{"first_name": "Zoë", "last_name": "Critical", "mrn": "WAY-3", "external_id": "Patient/" + emrPatient, "gateway_patient_id": "GW-77"})

	event := measurement("GW-77", "BP-1001", 185, 85, measuredAt)
	event["values"] = object{"systolic": 185, "diastolic": 85, "pulse": 72, "irregular_heartbeat": false}
	accepted := p.signed(t, event).expect(t, 200)
	wantAt(t, accepted, object{"status": "accepted"})
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	w := deliveredReading{
		id: text(t, accepted, "observation_id"), patient: patient, measuredAt: measuredAt.UTC().Format(time.RFC3339), effective: measuredAt.In(zone).Format(time.RFC3339),
	}

	eventually(t, within, "the reading is transmitted", func() bool { return p.transmission(t, w) == "transmitted" })
	stored := p.get(t, "/api/v1/ingestion/observations/"+w.id+"/", p.Admin(t)).expect(t, 200)
	wantAt(t, stored, object{
		"id": w.id, "patient_id": patient, "observation_type": "blood_pressure", "systolic": 185.0, "diastolic": 85.0, "pulse": 72.0, "irregular_heartbeat": false,
		"device_id": "BP-1001", "measured_at": w.measuredAt, "source": "gateway", "status": "final", "fhir_status": "transmitted", "alert_triggered": true,
		"alert_details.level": "critical", "alert_details.message": "Systolic 185 mmHg is at or above the critical limit 180.",
	})
	w.emrID, w.storedAt = text(t, stored, "transmitted_resource_id"), text(t, stored, "created_at")

	transmission := p.get(t, "/api/v1/fhir/transmissions/?patient_id="+patient, p.Admin(t))
	wantAt(t, transmission, object{
		"count": 1.0, "results.0.observation_id": w.id, "results.0.patient_id": patient, "results.0.patient_name": "Zoë Critical", "results.0.attempt_count": 0.0,
		"results.0.max_attempts": 5.0, "results.0.error_message": nil, "results.0.next_retry_at": nil, "results.0.observation_type": "blood_pressure",
	})
	if text(t, transmission, "results.0.first_attempted_at") != text(t, transmission, "results.0.last_attempted_at") {
		t.Errorf("one attempt has two times\n%s", transmission.body)
	}
	wantFirstInTriage(t, p, w)
	wantServed(t, p, w)
	return w
}

func wantFirstInTriage(t *testing.T, p *practice, w deliveredReading) {
	t.Helper()
	triage := p.get(t, "/api/v1/triage/patients/", p.Admin(t)).expect(t, 200)
	wantAt(t, triage, object{
		"count": 3.0, "results.0.patient_id": w.patient, "results.0.patient_name": "Zoë Critical", "results.0.mrn": "WAY-3", "results.0.risk_level": "critical",
		"results.0.unacknowledged_alerts": 1.0, "results.0.active_escalations": 1.0, "results.0.latest_vitals.blood_pressure.systolic": 185.0,
		"results.0.latest_vitals.blood_pressure.diastolic": 85.0, "results.0.latest_vitals.blood_pressure.measured_at": w.measuredAt,
		"results.0.last_reviewed_at": nil, "results.1.mrn": "WAY-1", "results.1.risk_level": "normal", "results.2.mrn": "WAY-2", "results.2.risk_level": "no_data",
		"results.2.risk_score": 0.0,
	})
	if score, _ := at(t, triage, "results.0.risk_score").(float64); score < 76 || score > 100 {
		t.Errorf("a critical reading scores %v, want 76 to 100", score)
	}
	alerts := p.get(t, "/api/v1/alerts/?patient_id="+w.patient, p.Admin(t)).expect(t, 200)
	wantAt(t, alerts, object{
		"count": 1.0, "results.0.patient_id": w.patient, "results.0.patient_name": "Zoë Critical", "results.0.level": "critical", "results.0.type": "blood_pressure",
		"results.0.message": "Systolic 185 mmHg is at or above the critical limit 180.", "results.0.observation_id": w.id, "results.0.value": 185.0,
		"results.0.threshold": 180.0, "results.0.acknowledged": false, "results.0.status": "active",
	})
}

// wantServed checks the resource as the service returns it: it refers to the patient by id and name.
func wantServed(t *testing.T, p *practice, w deliveredReading) {
	t.Helper()
	wantAt(t, p.get(t, "/api/v1/fhir/observations/"+w.id+"/", p.Admin(t)).expect(t, 200), object{
		"resourceType": "Observation", "id": w.id, "meta.versionId": "1", "subject.reference": "Patient/" + w.patient, "subject.display": "Zoë Critical",
		"effectiveDateTime": w.effective, "component.0.valueQuantity.value": 185.0,
	})
}

// wantDelivered checks every field of the resource in the EMR: id, version and time are the EMR's, the rest Vigil's. The
// display texts of codes may vary. Source: docs/decisions/fhir.md, "Codes, units, profiles per type" and "Subject when
// served and when delivered".
func wantDelivered(t *testing.T, raw []byte, w deliveredReading) {
	t.Helper()
	quantity := func(code, unit, ucum string, value float64) object {
		return object{
			"code":          object{"coding": []any{object{"system": "http://loinc.org", "code": code}}},
			"valueQuantity": object{"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": ucum},
		}
	}
	want := object{
		"resourceType": "Observation",
		"id":           w.emrID,
		"meta": object{
			"profile": []any{"http://hl7.org/fhir/us/core/StructureDefinition/us-core-blood-pressure"},
			"tag":     []any{object{"system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue", "code": "DEVRPT"}},
		},
		"contained": []any{object{
			"resourceType": "Device", "id": "device", "identifier": []any{object{"system": "urn:rpm:device", "value": "BP-1001"}},
			"type": object{"coding": []any{object{"system": "http://snomed.info/sct", "code": "258057004"}}},
		}},
		"identifier": []any{object{"system": "urn:ietf:rfc:3986", "value": "urn:uuid:" + w.id}},
		"status":     "final",
		"category": []any{object{"coding": []any{object{
			"system": "http://terminology.hl7.org/CodeSystem/observation-category", "code": "vital-signs",
		}}}},
		"code":              object{"coding": []any{object{"system": "http://loinc.org", "code": "85354-9"}}},
		"subject":           object{"reference": "Patient/" + emrPatient},
		"performer":         []any{object{"reference": "Patient/" + emrPatient}},
		"effectiveDateTime": w.effective,
		"issued":            w.storedAt,
		"device":            object{"reference": "#device", "display": "BP-1001", "identifier": object{"system": "urn:rpm:device", "value": "BP-1001"}},
		"component": []any{
			quantity("8480-6", "mmHg", "mm[Hg]", 185), quantity("8462-4", "mmHg", "mm[Hg]", 85), quantity("8867-4", "beats/minute", "/min", 72),
			object{"code": object{"coding": []any{object{"system": "http://terminology.hl7.org/CodeSystem/ASN1ToHL7", "code": "8410608.2"}}}, "valueBoolean": false},
		},
	}
	var got object
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if meta, ok := got["meta"].(map[string]any); ok {
		delete(meta, "versionId")
		delete(meta, "lastUpdated")
	}
	if subject, ok := got["subject"].(map[string]any); ok && subject["display"] != nil {
		t.Errorf("the subject has a display: %v", subject)
	}
	dropTexts(got)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the EMR holds\n%s\nwant\n%s", encode(t, got), encode(t, want))
	}
}

// dropTexts removes display from codings and text from concepts.
func dropTexts(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			dropTexts(item)
		}
	case map[string]any:
		if _, coding := v["code"].(string); coding && v["system"] != nil {
			delete(v, "display")
		}
		if v["coding"] != nil {
			delete(v, "text")
		}
		for _, item := range v {
			dropTexts(item)
		}
	}
}

// emrProcess is the EMR sandbox in a separate process.
type emrProcess struct{ *process }

func launchEMR(t testing.TB, addr, serviceURL string, env []string) emrProcess {
	t.Helper()
	emr := begin(t, env, "emr-sandbox", "--http", addr, "--service", serviceURL)
	emr.URL = "http://" + addr
	emr.awaitAnswer(t, "/sandbox/stats")
	if told := "VIGIL_EMR_TOKEN_URL=" + emr.URL + "/oauth/token"; !strings.Contains(emr.Output(), told) {
		t.Errorf("the sandbox does not print its address: no %s in\n%s", told, emr.Output())
	}
	return emrProcess{emr}
}

// onlyObservation searches the EMR by the reading's identifier, as any authorized client can: there must be exactly one
// match, and nothing else stored.
func (e emrProcess) onlyObservation(t testing.TB, p *practice, w deliveredReading) []byte {
	t.Helper()
	der, err := base64.StdEncoding.DecodeString(valueOf(p.Env, "VIGIL_EMR_PRIVATE_KEY"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		t.Fatal(err)
	}
	claims := jwt.MapClaims{"iss": clientID, "sub": clientID, "aud": e.URL + "/oauth/token", "jti": uuid.NewString(), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix()}
	token := jwt.NewWithClaims(jwt.SigningMethodRS384, claims)
	token.Header["kid"] = text(t, p.get(t, "/.well-known/jwks.json", ""), "keys.0.kid")
	assertion, err := token.SignedString(key.(*rsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"grant_type": {"client_credentials"}, "scope": {"system/*.write system/Observation.read"}, "client_assertion": {assertion},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
	}
	granted := sendEMR(t, http.MethodPost, e.URL+"/oauth/token", "", strings.NewReader(form.Encode()), "application/x-www-form-urlencoded").expect(t, 200)
	found := sendEMR(t, http.MethodGet, e.URL+"/fhir/"+practiceCode+"/Observation?identifier="+url.QueryEscape("urn:ietf:rfc:3986|urn:uuid:"+w.id), text(t, granted, "access_token"), nil, "").expect(t, 200)
	wantAt(t, found, object{"total": 1.0, "entry.1": nil})
	if stats := e.stats(t); stats.Observations != 1 || stats.Refused != 0 {
		t.Errorf("the EMR saw %+v, want one observation and nothing refused", stats)
	}
	return []byte(encode(t, at(t, found, "entry.0.resource")))
}

func (e emrProcess) stats(t testing.TB) (stats sandbox.EMRStats) {
	t.Helper()
	a := sendEMR(t, http.MethodGet, e.URL+"/sandbox/stats", "", nil, "").expect(t, 200)
	if err := json.Unmarshal(a.body, &stats); err != nil {
		t.Fatal(err)
	}
	return stats
}

// identity is a made-up patient, in words that occur nowhere else.
var identity = object{
	"first_name": "Zyxomarka", "last_name": "Quvelhoorn", "date_of_birth": "1931-07-19", "phone": "+1 (413) 867-5309", "email": "zyx.quvel@marks.example",
	"ssn": "219-09-9977", "address": object{"line1": "77 Xylograph Yard", "city": "Wimblefont", "state": "VT", "zip": "05998"},
}

// sealedWords must not be in the data folder; unspoken ones must not be printed either.
var (
	sealedWords = []string{
		"Zyxomarka", "Quvelhoorn", "1931-07-19", "867-5309", "zyx.quvel", "219-09-9977", "219099977", "Xylograph", "Wimblefont",
		"critical limit", password,
	}
	unspoken = append([]string{"MRNMARK-7", "GWMARK-7", "Bearer ", "whsec_", "eyJ", "rt_", "$2a$"}, sealedWords...)
)

// Identifying data is not printed, not returned in errors, and not stored in the clear, even when it is sent in the wrong
// field.
func TestNoHealthInformationLeaks(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{}, "VIGIL_LOG_LEVEL=debug")
	marked := maps.Clone(identity)
	marked["mrn"], marked["gateway_patient_id"], marked["external_id"] = "MRNMARK-7", "GWMARK-7", "pat-1002"
	w.patient = p.patient(t, marked)
	p.signed(t, measurement("GWMARK-7", "BP-7", 186, 85, time.Now().Add(-time.Hour))).expect(t, 200)
	eventually(t, within, "the reading is transmitted", func() bool { return p.transmission(t, w) == "transmitted" })
	emr.addFault(t, sandbox.Fault{Match: createAtEMR, Status: 422})
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(w.patient, 186, 121, time.Now().Add(-2*time.Hour))).expect(t, 201)
	eventually(t, within, "the delivery has failed", func() bool { return p.transmission(t, w) == "failed" })
	found := p.get(t, "/api/v1/patients/?search=quvelhoorn", p.Admin(t)).expect(t, 200)
	wantAt(t, found, object{"count": 1.0, "results.0.first_name": "Zyxomarka", "results.0.phone": "+1 (413) 867-5309", "results.0.address.city": "Wimblefont"})
	wantAt(t, p.get(t, "/api/v1/alerts/?patient_id="+w.patient, p.Admin(t)).expect(t, 200), object{"results.1.patient_name": "Zyxomarka Quvelhoorn"})
	p.get(t, "/api/v1/triage/patients/", p.Admin(t)).expect(t, 200)
	p.amend(t, "patients", w.patient, object{"phone": "+1 (413) 867-5309 x2"})

	wrongPlaces := func(name string, a answer) {
		t.Helper()
		if a.status < 400 || a.status >= 500 {
			t.Errorf("%s answered %d", name, a.status)
		}
		for _, word := range unspoken {
			if strings.Contains(string(a.body), word) {
				t.Errorf("%s is answered with %q: %s", name, word, a.body)
			}
		}
	}
	wrongPlaces("wrong fields", p.post(t, "/api/v1/patients/", p.Admin(t), object{
		"first_name": "Zyxomarka", "gender": "Quvelhoorn", "date_of_birth": "1931-07-19T",
		"phone": "Xylograph", "email": "zyx.quvel", "ssn": "219-09-9977-1", "mrn": "MRNMARK-7",
	}))
	wrongPlaces("malformed", p.send(t, "POST", "/api/v1/patients/", p.Admin(t), `{"first_name": Zyxomarka`))
	wrongPlaces("query", p.get(t, "/api/v1/patients/?ordering=Quvelhoorn&page=Zyxomarka", p.Admin(t)))
	wrongPlaces("path", p.get(t, "/api/v1/patients/Quvelhoorn/", p.Admin(t)))
	wrongPlaces("unknown path", p.get(t, "/api/v1/nowhere/Zyxomarka/?born=1931-07-19", p.Admin(t)))
	wrongPlaces("login", p.post(t, "/api/v1/auth/login/", "", object{"email": "zyx.quvel@marks.example", "password": password}))
	wrongPlaces("token", p.get(t, "/api/v1/patients/", "Zyxomarka"))
	wrongPlaces("unsigned event", p.send(t, "POST", webhook, "", encode(t, identity)))
	wrongPlaces("signed event", p.signed(t, object{
		"event_type": "measurement.created", "device_id": "BP-7", "measurement_type": "blood_pressure",
		"unit": "Quvelhoorn", "timestamp": "1931-07-19", "values": identity,
	}))
	wrongPlaces("dashboard query", p.send(t, "GET", "/api/collections/patients/records?filter="+url.QueryEscape("(last_name='Quvelhoorn'"), p.Superuser(t), ""))
	wrongPlaces("dashboard record", p.send(t, "PATCH", "/api/collections/patients/records/"+w.patient, p.Superuser(t), `{"gender":"Zyxomarka","date_of_birth":"1931-07-19T"}`))
	if err := p.Stop(t); err != nil {
		t.Fatal(err)
	}

	printed := p.Output()
	for _, word := range unspoken {
		if strings.Contains(printed, word) {
			t.Errorf("%q is printed: %s", word, lineWith(printed, word))
		}
	}
	for _, control := range []string{`"route":"/api/v1/patients/"`, `"route":"` + webhook + `"`, `"status":400`} { // a control that the search works
		if !strings.Contains(printed, control) {
			t.Errorf("%s is not printed\n%s", control, printed)
		}
	}
	stored := contentOf(t, p.Dir)
	for _, word := range sealedWords {
		for name, content := range stored {
			if strings.Contains(content, word) {
				t.Errorf("%q is in %s", word, name)
			}
		}
	}
	if control := stored["data.db"]; !strings.Contains(control, "MRNMARK-7") || !strings.Contains(control, "GWMARK-7") { // stored in the clear by decision
		t.Error("data.db does not hold the MRN: nothing was looked at")
	}
}

func lineWith(output, word string) string {
	for line := range strings.Lines(output) {
		if strings.Contains(line, word) {
			return line
		}
	}
	return ""
}

// contentOf reads every file of a folder, by its path.
func contentOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(content)
		return err
	})
	if err != nil || files["data.db"] == "" || files["auxiliary.db"] == "" {
		t.Fatalf("reading the data folder: %v, %d files", err, len(files))
	}
	return files
}
