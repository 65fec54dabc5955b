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
	drillLimit    = 3 * time.Minute // for one thing to happen; only a broken service comes near it
)

// reading is one that was sent, and what was done with it since.
type reading struct {
	n         int // of all readings; those of a patient are as many apart as there are patients
	stage     *stage
	id        string // once it was acknowledged
	systolic  float64
	pulse     float64 // 0 without one
	completed bool
	withdrawn bool
}

// patient is the number of the patient whose reading it is.
func (r *reading) patient() int { return r.n % drillPatients }

// plain says that nothing is done with it after it was sent.
func (r *reading) plain() bool { return !r.parts() && !r.wrong() }

// parts says that its pulse comes by itself, later, so that the EMR's copy has to follow.
func (r *reading) parts() bool { return r.patient()%5 == 3 && r.n%3 != 0 }

// wrong says that it is withdrawn: some at once, some later, some after their pulse.
func (r *reading) wrong() bool { return r.n%10 == 7 || r.n%50 == 13 }

// stage is a part of the drill: what goes wrong while so many readings come.
type stage struct {
	name     string
	readings int
	faults   [][]string // of each thing that is sent, in turn: what becomes of its first requests
	refuse   bool       // no tokens
	during   func(t *testing.T, d *drill, begin func())
	// outage says that the line as a whole failed: that used up nobody's retries, and each patient's readings arrive in their order.
	outage bool
	// slotless says that no reading needed more than the retries within one delivery.
	slotless bool
	drain    bool // all that came is delivered before the next stage begins
}

// stages are 1,000 readings in all.
func stages() []*stage {
	hangs := [][]string{{lateAnswer}, {silence}, {}, {}, {lateAnswer, lostAnswer}, {lateRequest}, {}, {}, {}, {}}
	mixed := [][]string{{lostAnswer}, {}, {error500}, {}, {lostRequest, fine, lostAnswer}, {}, {error503, error503}, {tooMany}}
	return []*stage{
		{name: "calm", readings: 100, drain: true},
		{name: "two server errors for everything", readings: 100, faults: [][]string{{error500, error500}}, slotless: true},
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
	url      string // of the practice, over all kills
	admin    string
	gate     *gate
	hapi     *hapiServer
	readings []*reading
	refused  []unwelcome
	began    time.Time
}

// A real HAPI FHIR server, a gateway before it that fails in every way, kills on both sides, and 1,000 readings, some completed or
// withdrawn later: in the end HAPI has each once and as it is now, with and without conditional create.
func TestHAPI(t *testing.T) {
	kit := fetchHAPI(t)
	for name, conditional := range map[string]bool{"conditional create": true, "no conditional create": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDrill(t, kit, conditional)
			d.sendWhatFails(t)
			var before *stage
			for _, s := range stages() {
				d.play(t, s, before)
				before = s
			}
			d.act(t, d.later(before, nil))
			d.wantDelivered(t)
			t.Logf("met: %s", d.gate.counts())
			d.wantFailures(t)
			d.wantEachOnce(t)
			d.wantNoSlotsUsed(t)
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
	d.gate.behind = d.hapi.url
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

// play sends a stage's readings, and what is still to be done about those of the stage before.
func (d *drill) play(t *testing.T, s, before *stage) {
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
		todo := d.later(before, fresh)
		group.Go(func() { d.act(t, todo) })
	}
	if s.during == nil {
		begin()
	} else {
		s.during(t, d, begin)
	}
	group.Wait()
	if !s.outage { // most of what came meets what the stage has for it
		for wait := time.Now(); d.gate.seen(fresh) < len(fresh)*3/4 && time.Since(wait) < 20*time.Second; {
			pause(t.Context(), 100*time.Millisecond)
		}
	}
	d.gate.change(false)
	if s.drain {
		d.drained(t, s.name)
	}
	t.Logf("%s: %v", s.name, time.Since(began).Round(time.Second))
}

// later is what there is to do for each patient, in turn.
func (d *drill) later(before *stage, fresh []*reading) map[int][]func(*testing.T) {
	todo := map[int][]func(*testing.T){}
	then := func(r *reading, what func(*testing.T, *reading)) {
		todo[r.patient()] = append(todo[r.patient()], func(t *testing.T) { what(t, r) })
	}
	for _, r := range d.readings {
		if r.stage != before {
			continue
		}
		if r.parts() {
			then(r, d.complete)
		}
		if r.wrong() && !r.withdrawn {
			then(r, d.withdraw)
		}
	}
	for _, r := range fresh {
		then(r, d.send)
		if r.wrong() && r.n%20 == 7 {
			then(r, d.withdraw)
		}
	}
	return todo
}

// act does it, all patients at once.
func (d *drill) act(t *testing.T, todo map[int][]func(*testing.T)) {
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

// send brings a reading by the gateway's webhook, or by that of the vendor whose pulses come by themselves.
func (d *drill) send(t *testing.T, r *reading) {
	t.Helper()
	patient, device := fmt.Sprint("GW-", r.patient()), fmt.Sprint("CUFF-", r.patient())
	if r.parts() {
		r.id = d.vendor(t, r, "blood_pressure", fmt.Sprintf(`"value_1":"%v","value_2":"70"`, r.systolic))
		return
	}
	event := encode(t, measurement(patient, device, r.systolic, 70, d.measuredAt(r)))
	r.id, _ = d.until(t, webhook, event, func() []string { return signature(d.WebhookSecret, event, time.Now()) })["observation_id"].(string)
}

// complete brings the pulse.
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
	became := d.until(t, "/api/v1/gateway/tenovi/", event, func() []string { return []string{"Authorization", password} })
	if list, _ := became["results"].([]any); len(list) == 1 {
		became, _ = list[0].(object)
	}
	id, _ = became["observation_id"].(string)
	return id
}

func (d *drill) withdraw(t *testing.T, r *reading) {
	t.Helper()
	r.withdrawn = true
	d.until(t, "/api/v1/ingestion/observations/"+r.id+"/entered-in-error/", `{"reason":"another person's arm"}`, func() []string { return []string{"Authorization", "Bearer " + d.admin} })
}

// until sends something again until the practice, which may just be dead, says yes.
func (d *drill) until(t *testing.T, path, body string, headers func() []string) object {
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

// killVigil kills it at moments that nobody chose.
func killVigil(t *testing.T, d *drill, begin func()) {
	begin()
	for range 5 {
		pause(t.Context(), time.Duration(200+rand.IntN(1500))*time.Millisecond)
		d.Kill()
		d.serve(t, strings.TrimPrefix(d.url, "http://"))
		d.gate.revoke()
	}
}

// killHAPI kills it while readings come, and starts it on the same database.
func killHAPI(t *testing.T, d *drill, begin func()) {
	begin()
	pause(t.Context(), time.Duration(200+rand.IntN(500))*time.Millisecond)
	d.hapi.Kill()
	d.hapi.start(t)
}

// closeGate has connections refused for longer than all retries of a record take.
func closeGate(t *testing.T, d *drill, begin func()) {
	d.gate.shut()
	begin()
	pause(t.Context(), 20*time.Second)
	d.gate.open(t)
}

// awaitRefusals lets tokens be refused for as long.
func awaitRefusals(t *testing.T, d *drill, begin func()) {
	begin()
	refused := d.gate.count("token refused")
	pause(t.Context(), 20*time.Second)
	if d.gate.count("token refused") == refused {
		t.Error("no token was refused")
	}
}
