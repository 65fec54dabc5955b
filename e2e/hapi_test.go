package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/e2e/hapi"
)

const (
	drillPatients = 20
	drillLimit    = 3 * time.Minute // for one step; only a broken service takes that long
)

// reading is a sent reading and its later changes.
type reading struct {
	n         int // number among all readings; those of a patient differ by a multiple of the number of patients
	stage     *stage
	id        string // set once it was acknowledged
	systolic  float64
	pulse     float64 // 0 for none
	completed bool
	withdrawn bool
}

// patient returns the number of the reading's patient.
func (r *reading) patient() int { return r.n % drillPatients }

// isUnchanged reports whether the reading is not changed after it was sent.
func (r *reading) isUnchanged() bool { return !r.hasLatePulse() && !r.isRetracted() }

// hasLatePulse reports whether the pulse arrives later in a separate event, so that the EMR's copy has to be updated.
func (r *reading) hasLatePulse() bool { return r.patient()%5 == 3 && r.n%3 != 0 }

// isRetracted reports whether the reading is retracted: at once, later, or after its pulse.
func (r *reading) isRetracted() bool { return r.n%10 == 7 || r.n%50 == 13 }

// stage is a part of the drill: a number of readings, and the faults while they are sent.
type stage struct {
	name     string
	readings int
	faults   [][]string // for each new subject, in turn: the faults of its first requests
	refuse   bool       // refuse all token requests
	during   func(t *testing.T, d *drill, begin func())
	// outage marks a stage in which the whole EMR fails: no reading uses up attempts, and each patient's readings arrive in
	// order.
	outage bool
	// noAttemptsUsed marks a stage in which no reading needs more than the retries within one delivery.
	noAttemptsUsed bool
	drain          bool // deliver all readings before the next stage
}

// stages have 1,000 readings in all.
func stages() []*stage {
	hangs := [][]string{{lateAnswer}, {silence}, {}, {}, {lateAnswer, lostAnswer}, {lateRequest}, {}, {}, {}, {}}
	mixed := [][]string{{lostAnswer}, {}, {error500}, {}, {lostRequest, fine, lostAnswer}, {}, {error503, error503}, {tooMany}}
	return []*stage{
		{name: "calm", readings: 100, drain: true},
		{name: "two server errors for everything", readings: 100, faults: [][]string{{error500, error500}}, noAttemptsUsed: true},
		{name: "errors", readings: 120, faults: [][]string{{error500}, {}, {error503}, {tooMany}, {}, {error500, error503, error500}, {lostRequest}, {}}},
		{name: "lost answers", readings: 160, faults: [][]string{{lostAnswer}, {}, {lostRequest, fine, lostAnswer}, {lostAnswer, error500}, {lostRequest, lostAnswer}}},
		{name: "silence", readings: 120, faults: hangs},
		{name: "kills of Vigil", readings: 160, faults: mixed, during: killVigil},
		{name: "no connection", readings: 80, during: closeGate, outage: true, drain: true},
		{name: "no token", readings: 60, refuse: true, during: awaitRefusals, outage: true, drain: true},
		{name: "a kill of HAPI", readings: 100, faults: mixed, during: killHAPI},
	}
}

// drill is a practice with a HAPI FHIR server as its EMR.
type drill struct {
	*practice
	url      string // of the practice, the same across restarts
	admin    string
	gate     *gate
	hapi     *hapiServer
	readings []*reading
	refused  []rejectedReading
	began    time.Time
}

// A real HAPI FHIR server, a faulty gateway in front of it, kills on both sides, and 1,000 readings, some completed or
// retracted later. In the end HAPI has each reading once, in its current state, with and without conditional create.
func TestHAPI(t *testing.T) {
	kit := fetchHAPI(t)
	for name, conditional := range map[string]bool{"conditional create": true, "no conditional create": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrill(t, kit, conditional)
			d.sendRejected(t)
			var before *stage
			for _, s := range stages() {
				d.runStage(t, s, before)
				before = s
			}
			d.applyChanges(t, d.pendingChanges(before, nil))
			d.wantDelivered(t)
			t.Logf("met: %s", d.gate.counts())
			d.wantFailures(t)
			d.wantEachOnce(t)
			d.wantNoAttemptsUsed(t)
			d.wantOrder(t)
		})
	}
}

func newDrill(t *testing.T, kit hapi.Kit, conditional bool) *drill {
	t.Helper()
	p := newPractice(t, fmt.Sprint("VIGIL_FHIR_CONDITIONAL_CREATE=", conditional), "VIGIL_GATEWAY_TENOVI_SECRET="+password)
	d := &drill{practice: p, gate: newGate(t, p.Env), began: time.Now().AddDate(0, 0, -40).Truncate(time.Minute)}
	base := "http://" + d.gate.addr + "/fhir/" + practiceCode
	p.Env = append(p.Env, emrSettings("http://"+d.gate.addr)...)
	p.Env = append(p.Env, "VIGIL_EMR_RATE_LIMIT_PER_SECOND=30", "VIGIL_EMR_TIMEOUT=8s", "VIGIL_EMR_RETRY_DELAYS=1s,2s,3s,4s,5s",
		"VIGIL_EMR_QUICK_RETRY_DELAYS=50ms,100ms,200ms", "VIGIL_EMR_PROBE_INTERVAL=1s")
	d.hapi = newHAPI(t, kit, base)
	d.gate.upstream = d.hapi.url
	for i := range drillPatients {
		d.hapi.put(t, "Patient", fmt.Sprint("pat-", i), object{"name": []object{{"family": "Lee", "given": []string{"Ann"}}}})
	}
	d.gate.open(t)
	t.Cleanup(d.gate.shut)
	p.serve(t, "")
	d.url, d.admin = p.URL, p.Admin(t)
	for i := range drillPatients {
		id := p.patient(t, object{"gateway_patient_id": fmt.Sprint("GW-", i), "external_id": fmt.Sprint("pat-", i)})
		p.giveDevice(t, fmt.Sprint("CUFF-", i), id)
	}
	return d
}

// runStage sends a stage's readings, and makes the remaining changes to those of the stage before.
func (d *drill) runStage(t *testing.T, s, before *stage) {
	t.Helper()
	began := time.Now()
	d.gate.change(s.refuse, s.faults...)
	var fresh []*reading
	for range s.readings {
		n := len(d.readings)
		r := &reading{n: n, stage: s, systolic: float64(100 + n%30)}
		d.readings, fresh = append(d.readings, r), append(fresh, r)
	}
	var group sync.WaitGroup
	begin := func() {
		todo := d.pendingChanges(before, fresh)
		group.Go(func() { d.applyChanges(t, todo) })
	}
	if s.during == nil {
		begin()
	} else {
		s.during(t, d, begin)
	}
	group.Wait()
	if !s.outage { // most readings should meet the stage's faults
		for wait := time.Now(); d.gate.countSeen(fresh) < len(fresh)*3/4 && time.Since(wait) < 20*time.Second; {
			pause(t.Context(), 100*time.Millisecond)
		}
	}
	d.gate.change(false)
	if s.drain {
		d.drained(t, s.name)
	}
	t.Logf("%s: %v", s.name, time.Since(began).Round(time.Second))
}

// pendingChanges returns the changes to make for each patient, in order.
func (d *drill) pendingChanges(before *stage, fresh []*reading) map[int][]func(*testing.T) {
	todo := map[int][]func(*testing.T){}
	then := func(r *reading, what func(*testing.T, *reading)) {
		todo[r.patient()] = append(todo[r.patient()], func(t *testing.T) { what(t, r) })
	}
	for _, r := range d.readings {
		if r.stage != before {
			continue
		}
		if r.hasLatePulse() {
			then(r, d.complete)
		}
		if r.isRetracted() && !r.withdrawn {
			then(r, d.withdraw)
		}
	}
	for _, r := range fresh {
		then(r, d.send)
		if r.isRetracted() && r.n%20 == 7 {
			then(r, d.withdraw)
		}
	}
	return todo
}

// applyChanges makes the changes, patients in parallel.
func (d *drill) applyChanges(t *testing.T, todo map[int][]func(*testing.T)) {
	t.Helper()
	var group sync.WaitGroup
	for _, list := range todo {
		group.Go(func() {
			for _, do := range list {
				do(t)
			}
		})
	}
	group.Wait()
}

func (d *drill) measuredAt(r *reading) time.Time {
	return d.began.Add(time.Duration(r.n) * time.Minute)
}

// send sends a reading to the gateway's webhook, or to the vendor's that sends the pulse separately.
func (d *drill) send(t *testing.T, r *reading) {
	t.Helper()
	patient, device := fmt.Sprint("GW-", r.patient()), fmt.Sprint("CUFF-", r.patient())
	if r.hasLatePulse() {
		r.id = d.vendor(t, r, "blood_pressure", fmt.Sprintf(`"value_1":"%v","value_2":"70"`, r.systolic))
		return
	}
	event := encode(t, measurement(patient, device, r.systolic, 70, d.measuredAt(r)))
	r.id, _ = d.postUntilOK(t, webhook, event, func() []string { return signature(d.WebhookSecret, event, time.Now()) })["observation_id"].(string)
}

// complete sends the pulse.
func (d *drill) complete(t *testing.T, r *reading) {
	t.Helper()
	r.pulse, r.completed = float64(60+r.n%30), true
	d.vendor(t, r, "pulse", fmt.Sprintf(`"value_1":"%v","value_2":null`, r.pulse))
}

func (d *drill) vendor(t *testing.T, r *reading, metric, values string) (id string) {
	t.Helper()
	at := d.measuredAt(r).UTC().Format(time.RFC3339)
	event := fmt.Sprintf(`{"metric":%q,"device_name":"Tenovi BPM - L","hwi_device_id":"CUFF-%d","patient_id":"GW-%d","hardware_uuid":"A1B2C3D4E5F6","sensor_code":"10",%s,
		"created":%q,"timestamp":%q,"timezone_offset":0,"estimated_timestamp":false,"filter_params":{"measurement_index":1}}`, metric, r.patient(), r.patient(), values, at, at)
	became := d.postUntilOK(t, "/api/v1/gateway/tenovi/", event, func() []string { return []string{"Authorization", password} })
	if list, _ := became["results"].([]any); len(list) == 1 {
		became, _ = list[0].(object)
	}
	id, _ = became["observation_id"].(string)
	return id
}

func (d *drill) withdraw(t *testing.T, r *reading) {
	t.Helper()
	r.withdrawn = true
	d.postUntilOK(t, "/api/v1/ingestion/observations/"+r.id+"/entered-in-error/", `{"reason":"another person's arm"}`, func() []string { return []string{"Authorization", "Bearer " + d.admin} })
}

// postUntilOK repeats a request until the practice, which may be down, answers 200.
func (d *drill) postUntilOK(t *testing.T, path, body string, headers func() []string) object {
	t.Helper()
	var said string
	for began := time.Now(); time.Since(began) < drillLimit; {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return nil
		}
		request.Header.Set("Content-Type", "application/json")
		for list := headers(); len(list) > 0; list = list[2:] {
			request.Header.Set(list[0], list[1])
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			raw, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			var value object
			if said = string(raw); err == nil && answer.StatusCode == http.StatusOK && json.Unmarshal(raw, &value) == nil {
				return value
			}
		}
		pause(t.Context(), 50*time.Millisecond)
	}
	t.Errorf("%s was never answered 200: %s\n%s", path, said, body)
	return nil
}

// killVigil kills the service at random times.
func killVigil(t *testing.T, d *drill, begin func()) {
	begin()
	for range 5 {
		pause(t.Context(), time.Duration(200+rand.IntN(1500))*time.Millisecond)
		d.Kill()
		d.serve(t, strings.TrimPrefix(d.url, "http://"))
		d.gate.revoke()
	}
}

// killHAPI kills HAPI while readings are sent, and restarts it on the same database.
func killHAPI(t *testing.T, d *drill, begin func()) {
	begin()
	pause(t.Context(), time.Duration(200+rand.IntN(500))*time.Millisecond)
	d.hapi.Kill()
	d.hapi.start(t)
}

// closeGate refuses connections for longer than all retries within a delivery take.
func closeGate(t *testing.T, d *drill, begin func()) {
	d.gate.shut()
	begin()
	pause(t.Context(), 20*time.Second)
	d.gate.open(t)
}

// awaitRefusals refuses tokens for as long.
func awaitRefusals(t *testing.T, d *drill, begin func()) {
	begin()
	refused := d.gate.count("token refused")
	pause(t.Context(), 20*time.Second)
	if d.gate.count("token refused") == refused {
		t.Error("no token was refused")
	}
}
