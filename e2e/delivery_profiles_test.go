package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// retractedSystolic is the value of every reading that is retracted, and of no other.
const retractedSystolic = 205

// profileDrill is the built service with an EMR of a profile.
type profileDrill struct {
	drill
	emr                          *sandbox.EMR
	receives, updates, documents bool // what the profile makes the service do
}

// To each kind of EMR, through lost answers, server errors, restarts and kills, the built service delivers each reading once, or leaves it to a person
// with the reason, and makes later changes in the chart. No document that counts shows a retracted reading, unless a person is notified.
func TestDeliveryProfiles(t *testing.T) {
	if os.Getenv("VIGIL_TEST_ROUNDS") != "all" {
		t.Skip("make drills runs this")
	}
	for name, c := range map[string]struct {
		profile, way                 string
		receives, updates, documents bool
	}{
		"everything":           {"everything", "auto", true, true, false},
		"readings and reports": {"everything", "both", true, true, true},
		"no identifier search": {"no-identifier-search", "auto", true, false, false},
		"documents only":       {"documents-only", "auto", false, false, true},
		"nothing":              {"nothing", "auto", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newProfileDrill(t, c.profile, c.way)
			d.receives, d.updates, d.documents = c.receives, c.updates, c.documents
			early := d.all(1000)
			d.disturbed(t, 5, func() { d.applyChanges(t, d.pendingChanges(&stage{}, early)) })
			d.drain(t)
			if d.documents {
				if status := d.runJob(t, "emr-documents"); status != "succeeded" {
					t.Errorf("the job %s", status)
				}
				d.disturbed(t, 2, func() {})
				d.drain(t)
			}
			d.disturbed(t, 2, func() { d.applyChanges(t, d.pendingChanges(nil, nil)) })
			d.drain(t)
			d.wantReadings(t)
			d.wantDocuments(t)
		})
	}
}

func newProfileDrill(t *testing.T, profile, way string) *profileDrill {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String()
	p := newPractice(t, append(emrSettings(url), "VIGIL_EMR_DELIVERY="+way, "VIGIL_GATEWAY_TENOVI_SECRET="+password, "VIGIL_EMR_RATE_LIMIT_PER_SECOND=40",
		"VIGIL_EMR_RETRY_DELAYS=1s,2s,3s,4s,5s", "VIGIL_EMR_SEARCH_CACHE=1s", "VIGIL_EMR_PROBE_INTERVAL=1s", "VIGIL_EMR_TIMEOUT=10s")...)
	addr := freeAddr(t)
	options := sandbox.EMROptions{BaseURL: url, PracticeCode: practiceCode, ClientID: clientID, JWKSURL: "http://" + addr + "/.well-known/jwks.json", Now: now, Profile: profile}
	for i := range drillPatients {
		options.Patients = append(options.Patients, sandbox.EMRPatient{ID: fmt.Sprint("pat-", i), Family: "Lee", Given: []string{"Ann"}, Gender: "female", BirthDate: "1950-01-02"})
	}
	emr, err := sandbox.NewEMR(options)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = emr
	server.Start()
	t.Cleanup(server.Close)
	p.serve(t, addr)
	today := time.Now()
	lastMonth := time.Date(today.Year(), today.Month()-1, 2, 12, 0, 0, 0, time.UTC)
	d := &profileDrill{drill: drill{practice: p, url: p.URL, admin: p.Admin(t), began: lastMonth}, emr: emr}
	eventually(t, within, "the EMR's statement is read", func() bool {
		return at(t, p.get(t, "/api/v1/fhir/status/", d.admin).expect(t, 200), "delivery.statement_read_at") != nil
	})
	for i := range drillPatients {
		id := p.patient(t, object{"gateway_patient_id": fmt.Sprint("GW-", i), "external_id": fmt.Sprint("pat-", i)})
		p.giveDevice(t, fmt.Sprint("CUFF-", i), id)
	}
	const readings, documents = "POST /fhir/" + practiceCode + "/Observation", "POST /fhir/" + practiceCode + "/DocumentReference"
	for _, match := range []string{readings, documents} {
		emr.Fail(sandbox.Fault{Match: match, Percent: 10, Drop: sandbox.DropAfter})
	}
	for _, status := range []int{500, 502, 503} {
		for _, match := range []string{"/Observation", "/DocumentReference"} {
			emr.Fail(sandbox.Fault{Match: match, Percent: 2, Status: status})
		}
	}
	return d
}

// all returns new readings; those that are retracted have a value of their own.
func (d *profileDrill) all(many int) []*reading {
	for n := range many {
		r := &reading{n: n, systolic: float64(100 + n%30)}
		if r.isRetracted() {
			r.systolic = retractedSystolic
		}
		d.readings = append(d.readings, r)
	}
	return d.readings
}

// disturbed does something while the service is killed, and then stopped and started once.
func (d *profileDrill) disturbed(t *testing.T, kills int, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	for range kills {
		pause(t.Context(), time.Duration(200+rand.IntN(1500))*time.Millisecond)
		d.Kill()
		d.serve(t, strings.TrimPrefix(d.url, "http://"))
	}
	<-done
	if err := d.Stop(t); err != nil {
		t.Errorf("the service ended with: %v", err)
	}
	d.serve(t, strings.TrimPrefix(d.url, "http://"))
}

// drain waits until nothing is left that the service does by itself.
func (d *profileDrill) drain(t *testing.T) {
	t.Helper()
	pending := "status IN ('pending', 'processing')"
	if !d.receives {
		pending = "(status = 'processing' OR status = 'pending' AND form = 'document')"
	}
	db := d.database(t)
	left := `SELECT COUNT(*) FROM transmissions WHERE ` + pending + ` OR status = 'failed' AND next_retry_at != ''`
	for began := time.Now(); number(t, db, left) > 0; pause(t.Context(), 100*time.Millisecond) {
		if time.Since(began) > 2*drillLimit {
			t.Fatalf("still pending: %v", sums(t, db, `SELECT form || ' ' || status || ' ' || error_code || ' ' || error_message AS name, COUNT(*) AS n FROM transmissions GROUP BY 1`))
		}
	}
}

// chartReading is a copy at the EMR.
type chartReading struct {
	status string
	pulse  float64
}

// held returns the copies of each reading by its number.
func (d *profileDrill) held(t *testing.T) map[int][]chartReading {
	t.Helper()
	copies := map[int][]chartReading{}
	for _, o := range d.emr.Observations() {
		var resource storedObservation
		at, err := time.Parse(time.RFC3339, o.Effective)
		if err == nil {
			err = json.Unmarshal(o.Resource, &resource)
		}
		n := int(at.Sub(d.began) / time.Minute)
		if err != nil || n < 0 || n >= len(d.readings) || strings.TrimPrefix(o.Subject, "Patient/") != fmt.Sprint("pat-", d.readings[n].patient()) ||
			resource.value("8480-6") != d.readings[n].systolic {
			t.Errorf("the EMR has %+v (%v)", o, err)
			continue
		}
		copies[n] = append(copies[n], chartReading{o.Status, resource.value("8867-4")})
	}
	return copies
}

// wantReadings compares each reading with its delivery and the EMR's copies, and logs how many ended how.
func (d *profileDrill) wantReadings(t *testing.T) {
	t.Helper()
	ends, copies := map[string]int{}, d.held(t)
	for _, r := range d.readings {
		var row struct {
			Status, Code, Next, Message, Waits string
			Due                                bool
		}
		err := d.database(t).NewQuery(`SELECT status, error_code AS code, next_retry_at AS next, error_message AS message,
			correction_due_at != '' AND correction_closed_at = '' AS due FROM transmissions WHERE observation = {:id} AND form = ''`).Bind(dbx.Params{"id": r.id}).One(&row)
		if err != nil {
			t.Fatalf("reading %d: %v", r.n, err)
		}
		end := ""
		switch there := copies[r.n]; {
		case len(there) > 1:
			t.Errorf("reading %d is there %d times", r.n, len(there))
		case row.Code == "outcome_unknown" && row.Next == "" && row.Message != "":
			end = "waits for a person"
		case r.withdrawn && row.Code == "entered_in_error" && len(there) == 0:
			end = "never sent, retracted"
		case len(there) == 0 && !d.receives && row.Status == "pending":
			end = "waits for an EMR that takes it"
		case len(there) == 0 && !d.receives && d.documents && row.Status == "transmitted":
			end = "in a document"
		case len(there) == 0:
		case r.withdrawn && there[0].status == "entered-in-error" && row.Status == "transmitted":
			end = "there once, retracted"
		case !r.withdrawn && there[0].pulse == r.pulse && row.Status == "transmitted":
			end = "there once"
		case row.Due && !d.updates && (r.withdrawn || r.completed):
			end = "there once, a person is to correct it"
		}
		if ends[end]++; end == "" {
			t.Errorf("reading %d, withdrawn %v, completed %v: %+v, the EMR has %+v", r.n, r.withdrawn, r.completed, row, copies[r.n])
		}
	}
	t.Logf("%d requests met a fault: %v", d.emr.Stats().Faulted, ends)
	if d.documents && !d.receives && ends["in a document"] == 0 || d.receives && ends["there once"] < len(d.readings)/2 {
		t.Errorf("%v", ends)
	}
}

// wantDocuments checks the documents of each patient: the newest shows no retracted reading; where an earlier one still does, a person is notified.
func (d *profileDrill) wantDocuments(t *testing.T) {
	t.Helper()
	newest, showing, versions := map[string]string{}, map[string]bool{}, map[string]bool{}
	for _, document := range d.emr.Documents() {
		patient := document["subject"].(object)["reference"].(string)
		attachment := document["content"].([]any)[0].(object)["attachment"].(object)
		raw, err := base64.StdEncoding.DecodeString(attachment["data"].(string))
		if err != nil {
			t.Fatal(err)
		}
		version := fmt.Sprint(attachment["hash"], document["relatesTo"])
		if versions[version] {
			t.Errorf("%s has a version of a document twice", patient)
		}
		versions[version] = true
		_, text := vigiltest.PDFText(raw)
		if _, relates := document["relatesTo"]; newest[patient] != "" && !relates {
			t.Errorf("%s has two documents of a month", patient)
		}
		newest[patient] = text
		showing[patient] = showing[patient] || strings.Contains(text, fmt.Sprint(retractedSystolic))
	}
	const reported = drillPatients - 1 // all readings of one patient are retracted at once
	if want := map[bool]int{true: reported}[d.documents]; len(newest) != want {
		t.Errorf("%d patients have documents, want %d", len(newest), want)
	}
	notified := 0
	for patient, text := range newest {
		if strings.Contains(text, fmt.Sprint(retractedSystolic)) || !strings.Contains(text, "Ann") {
			t.Errorf("%s has a document that shows a retracted reading:\n%s", patient, text)
		}
		if !showing[patient] {
			continue
		}
		notified++
		due := number(t, d.database(t), `SELECT COUNT(*) FROM transmissions x JOIN patients p ON p.id = x.patient WHERE x.form = 'document'
			AND p.external_id = {:id} AND x.correction_due_at != '' AND x.correction_closed_at = ''`, dbx.Params{"id": strings.TrimPrefix(patient, "Patient/")})
		if due != 1 {
			t.Errorf("%s has an earlier document that shows a retracted reading, and no person is notified", patient)
		}
	}
	t.Logf("%d documents of %d patients; %d patients have an earlier one to be removed by a person", len(d.emr.Documents()), len(newest), notified)
}
