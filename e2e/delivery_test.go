package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/sandbox"
)

const createAtEMR = "POST /fhir/" + practiceCode + "/Observation"

// If the service is killed at any point between storing a reading and the EMR's acknowledgment, the EMR ends up with the
// reading exactly once.
func TestKilledBetweenStoreAndDelivery(t *testing.T) {
	t.Parallel()
	patience := "VIGIL_EMR_QUICK_RETRY_DELAYS=30s,30s,30s" // the process is killed long before
	for _, moment := range []struct {
		name  string
		fault sandbox.Fault
		env   []string
		// reached reports from the EMR's counts when to kill the service; held is the number of observations that the EMR
		// stores then.
		reached func(sandbox.EMRStats) bool
		held    int
	}{
		{"at some moment after the answer", sandbox.Fault{}, nil, func(sandbox.EMRStats) bool { return true }, -1},
		{"before it has an access token", sandbox.Fault{Match: "POST /oauth/token", DelayMS: 60000}, nil, faulted, 0},
		{"while it sends", sandbox.Fault{Match: createAtEMR, DelayMS: 60000}, nil, faulted, 0},
		{"after the line broke before the EMR stored", sandbox.Fault{Match: createAtEMR, Drop: sandbox.DropBefore}, []string{patience}, faulted, 0},
		{"after the EMR stored and the answer was lost", sandbox.Fault{Match: createAtEMR, Drop: sandbox.DropAfter}, []string{patience}, holdsOne, 1},
		{
			"after the same, at an EMR without conditional create",
			sandbox.Fault{Match: createAtEMR, Drop: sandbox.DropAfter},
			[]string{patience, "VIGIL_FHIR_CONDITIONAL_CREATE=false"},
			holdsOne, 1,
		},
	} {
		t.Run(moment.name, func(t *testing.T) {
			t.Parallel()
			p, emr, w := deliveringPractice(t, moment.fault, moment.env...)
			w.id = text(t, p.signed(t, measurement("GW-77", "BP-1", 150, 85, time.Now().Add(-time.Hour))).expect(t, 200), "observation_id")
			eventually(t, within, "the moment has come", func() bool {
				return moment.reached(emr.stats(t)) && (moment.held < 0 || p.transmission(t, w) == "processing")
			})
			p.Kill()
			if held := emr.stats(t).Observations; moment.held >= 0 && held != moment.held {
				t.Fatalf("killed too late or too early: the EMR holds %d observations, want %d", held, moment.held)
			}
			emr.clearFaults(t)
			p.serve(t, strings.TrimPrefix(p.URL, "http://"))
			wantDeliveredOnce(t, p, emr, w)
		})
	}
	t.Run("not at all, though the answer was lost", func(t *testing.T) {
		t.Parallel()
		p, emr, w := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, Drop: sandbox.DropAfter, Times: 1})
		w.id = text(t, p.signed(t, measurement("GW-77", "BP-1", 150, 85, time.Now().Add(-time.Hour))).expect(t, 200), "observation_id")
		wantDeliveredOnce(t, p, emr, w)
	})
}

func faulted(stats sandbox.EMRStats) bool  { return stats.Faulted > 0 }
func holdsOne(stats sandbox.EMRStats) bool { return stats.Observations == 1 }

// deliveringPractice returns a running practice and EMR with one patient that both have. The EMR has its fault from the
// start, because the first health check already requests an access token.
func deliveringPractice(t *testing.T, fault sandbox.Fault, extra ...string) (*practice, emrProcess, deliveredReading) {
	t.Helper()
	emrAddr, addr := freeAddr(t), freeAddr(t)
	p := newPractice(t, append(emrSettings("http://"+emrAddr), extra...)...)
	emr := launchEMR(t, emrAddr, "http://"+addr, p.Env)
	if fault != (sandbox.Fault{}) {
		emr.addFault(t, fault)
	}
	p.serve(t, addr)
	return p, emr, deliveredReading{patient: p.patient(t, object{"external_id": emrPatient, "gateway_patient_id": "GW-77"})}
}

func wantDeliveredOnce(t *testing.T, p *practice, emr emrProcess, w deliveredReading) {
	t.Helper()
	eventually(t, within, "the reading is transmitted", func() bool { return p.transmission(t, w) == "transmitted" })
	wantAt(t, p.get(t, "/api/v1/fhir/transmissions/", p.Admin(t)), object{"count": 1.0, "results.0.observation_id": w.id, "results.0.next_retry_at": nil})
	var resource struct{ ID string }
	if err := json.Unmarshal(emr.onlyObservation(t, p, w), &resource); err != nil {
		t.Fatal(err)
	}
	wantAt(t, p.get(t, "/api/v1/ingestion/observations/"+w.id+"/", p.Admin(t)), object{"fhir_status": "transmitted", "transmitted_resource_id": resource.ID})
	if stats := emr.stats(t); stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR stored one reading %d times", stats.MostPerIdentifier)
	}
}

// transmission returns the status of the patient's only transmission.
func (p *practice) transmission(t testing.TB, w deliveredReading) any {
	t.Helper()
	return at(t, p.get(t, "/api/v1/fhir/transmissions/?patient_id="+w.patient, p.Admin(t)).expect(t, 200), "results.0.status")
}

// addFault adds a fault rule at the EMR; clearFaults removes all of them.
func (e emrProcess) addFault(t testing.TB, fault sandbox.Fault) {
	t.Helper()
	sendEMR(t, http.MethodPost, e.URL+"/sandbox/faults", "", strings.NewReader(encode(t, fault)), "application/json").expect(t, http.StatusNoContent)
}

func (e emrProcess) clearFaults(t testing.TB) {
	t.Helper()
	sendEMR(t, http.MethodDelete, e.URL+"/sandbox/faults", "", nil, "").expect(t, http.StatusNoContent)
}

// A failed delivery reports its cause without PHI, uses one attempt, and waits for its next attempt.
// Source: docs/decisions/transmissions.md, "Delivery failure texts" and "Attempts versus delays".
func TestFailedDeliveries(t *testing.T) {
	t.Parallel()
	p, emr, _ := deliveringPractice(t, sandbox.Fault{}, "VIGIL_EMR_QUICK_RETRY_DELAYS=1ms,1ms,1ms", "VIGIL_EMR_TIMEOUT=1s")
	stranger := p.patient(t, object{"external_id": "nobody-there"})
	known := p.patient(t, object{"external_id": "pat-1002"})
	// A reading of a patient without an EMR link waits and does not count as a failure.
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(p.patient(t, nil), 120, 80, time.Now().AddDate(0, 0, -1))).expect(t, 201)
	eventually(t, within, "a reading that waits for a link", func() bool {
		return at(t, p.get(t, "/api/v1/fhir/status/", p.Admin(t)), "queue.unlinked") == 1.0
	})
	for i, c := range []struct {
		patient       string
		fault         sandbox.Fault
		code, message string
	}{
		{stranger, sandbox.Fault{}, "patient_not_found", "Patient not found in EMR"},
		{known, sandbox.Fault{Status: 503}, "emr_unavailable", "EMR unavailable (503)"},
		{known, sandbox.Fault{Status: 422}, "invalid_resource", "Invalid FHIR resource: invariant"},
		{known, sandbox.Fault{Status: 401}, "auth_error", "EMR authorization failed (401)"},
		{known, sandbox.Fault{Status: 403}, "auth_error", "EMR authorization failed (403: insufficient scope)"},
		{known, sandbox.Fault{DelayMS: 60000}, "timeout", "Connection timeout after 1s"},
		{known, sandbox.Fault{Status: 429, RetryAfter: 60}, "rate_limited", "EMR rate limit exceeded"}, // last: the EMR's Retry-After delays every request
	} {
		if c.fault != (sandbox.Fault{}) {
			c.fault.Match = createAtEMR
			emr.addFault(t, c.fault)
		}
		measuredAt := time.Now().AddDate(0, 0, -1-i)
		id := text(t, p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(c.patient, 120, 80, measuredAt)).expect(t, 201), "id")
		var list answer
		eventually(t, within, c.message, func() bool {
			list = p.get(t, "/api/v1/fhir/transmissions/?status=failed&page_size=100", p.Admin(t)).expect(t, 200)
			return at(t, list, "count") == float64(i+1)
		})
		emr.clearFaults(t)
		wantFailed(t, list, id, object{"status": "failed", "error_code": c.code, "error_message": c.message, "attempt_count": 1.0, "max_attempts": 5.0})
		wantAt(t, p.get(t, "/api/v1/ingestion/observations/"+id+"/", p.Admin(t)), object{"fhir_status": "failed", "transmitted_resource_id": nil})
	}
	wantAt(t, p.post(t, "/api/v1/fhir/process-pending/", p.Admin(t), object{}).expect(t, 200), object{"processed": 0.0, "succeeded": 0.0, "failed": 0.0})
	if held := emr.stats(t).Observations; held != 0 {
		t.Errorf("the EMR holds %d observations, want none", held)
	}
}

// wantFailed checks the observation's transmission in the list. The first retry is due 5 minutes after the failure, plus or
// minus 10 %.
func wantFailed(t *testing.T, list answer, observation string, want object) {
	t.Helper()
	for i := 0; at(t, list, fmt.Sprintf("results.%d", i)) != nil; i++ {
		row := fmt.Sprintf("results.%d.", i)
		if at(t, list, row+"observation_id") != observation {
			continue
		}
		for field, value := range want {
			wantAt(t, list, object{row + field: value})
		}
		wait := instantAt(t, list, row+"next_retry_at").Sub(instantAt(t, list, row+"last_attempted_at"))
		if slack := 10 * time.Second; wait < 270*time.Second || wait > 330*time.Second+slack {
			t.Errorf("the first retry comes after %v, want about 5 minutes", wait)
		}
		return
	}
	t.Errorf("no transmission of %s\n%s", observation, list.body)
}

func instantAt(t testing.TB, a answer, path string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text(t, a, path))
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

// After SIGTERM the service finishes its work: open requests get their answers, and the delivery is neither lost nor
// repeated.
func TestStopsGracefully(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, DelayMS: 1500})
	w.id = text(t, p.signed(t, measurement("GW-77", "BP-1", 150, 85, time.Now().Add(-time.Hour))).expect(t, 200), "observation_id")
	eventually(t, within, "the delivery is under way", func() bool { return faulted(emr.stats(t)) })

	other := p.patient(t, object{"gateway_patient_id": "GW-78"})
	var open []*openRequest
	for i := range 4 {
		measuredAt := time.Now().AddDate(0, 0, -1-i)
		event := encode(t, measurement("GW-78", "BP-2", 120, 80, measuredAt))
		open = append(open,
			p.open(t, webhook, event, 200, signature(p.WebhookSecret, event, time.Now())...),
			p.open(t, "/api/v1/ingestion/blood-pressure/", encode(t, bloodPressure(other, 121, 81, measuredAt)), 201, "Authorization", "Bearer "+p.Admin(t)))
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t) }()
	eventually(t, within, "no new connection is taken", func() bool {
		connection, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
		if err == nil {
			_ = connection.Close()
		}
		return err != nil
	})
	for _, request := range open {
		request.finish(t)
	}
	if err := <-stopped; err != nil {
		t.Fatalf("the service ended with: %v\n%s", err, p.Output())
	}
	if panicked := strings.Contains(p.Output(), "panic"); panicked {
		t.Errorf("the service panicked\n%s", p.Output())
	}

	emr.clearFaults(t)
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	wantAt(t, p.get(t, "/api/v1/ingestion/observations/?patient_id="+other, p.Admin(t)), object{"count": float64(len(open))})
	eventually(t, within, "the reading is transmitted", func() bool { return p.transmission(t, w) == "transmitted" })
	if stats := emr.stats(t); stats.Observations != 1 || stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR saw %+v, want one observation", stats)
	}
}

// openRequest is a request with a handler that waits for the second half of its body.
type openRequest struct {
	path   string
	want   int
	rest   string
	body   *io.PipeWriter
	answer chan answer
	err    chan error
}

// open starts a request and returns when its handler has begun to read the body, which the server confirms with 100
// Continue.
func (p *practice) open(t testing.TB, path, body string, want int, headers ...string) *openRequest {
	t.Helper()
	reader, writer := io.Pipe()
	half := len(body) / 2
	o := &openRequest{path: path, want: want, rest: body[half:], body: writer, answer: make(chan answer, 1), err: make(chan error, 1)}
	begun := make(chan struct{})
	trace := &httptrace.ClientTrace{Got100Continue: func() { close(begun) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, p.URL+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = int64(len(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	patient := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: within}
	go func() {
		response, err := patient.RoundTrip(request)
		if err != nil {
			o.err <- err
			return
		}
		defer response.Body.Close()
		read, err := io.ReadAll(response.Body)
		if err != nil {
			o.err <- err
			return
		}
		o.answer <- answer{"POST " + path, response.StatusCode, response.Header, read}
	}()
	select {
	case <-begun:
	case err := <-o.err:
		t.Fatal(err)
	case <-time.After(within):
		t.Fatal(errors.New("the server did not ask for the body of " + path))
	}
	if _, err := io.WriteString(writer, body[:half]); err != nil {
		t.Fatal(err)
	}
	return o
}

// finish sends the rest of the body and waits for the answer.
func (o *openRequest) finish(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(o.body, o.rest); err != nil {
		t.Fatal(err)
	}
	_ = o.body.Close()
	select {
	case a := <-o.answer:
		a.check(t, http.MethodPost, o.path)
		a.expect(t, o.want)
	case err := <-o.err:
		t.Fatalf("%s was cut off: %v", o.path, err)
	case <-time.After(within):
		t.Fatalf("%s was not answered", o.path)
	}
}

// An EMR that hangs does not keep the service from stopping, and the interrupted delivery is resumed later.
func TestStopsWithHangingEMR(t *testing.T) {
	t.Parallel()
	p, emr, w := deliveringPractice(t, sandbox.Fault{Match: createAtEMR, DelayMS: 600000}, "VIGIL_EMR_TIMEOUT=5m")
	w.id = text(t, p.signed(t, measurement("GW-77", "BP-1", 150, 85, time.Now().Add(-time.Hour))).expect(t, 200), "observation_id")
	eventually(t, within, "the delivery is under way", func() bool { return p.transmission(t, w) == "processing" && faulted(emr.stats(t)) })
	if err := p.Stop(t); err != nil {
		t.Fatalf("the service ended with: %v\n%s", err, p.Output())
	}
	emr.clearFaults(t)
	p.serve(t, strings.TrimPrefix(p.URL, "http://"))
	wantDeliveredOnce(t, p, emr, w)
}
