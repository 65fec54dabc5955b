package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// emrTakes is how long the EMR thinks about each resource.
const emrTakes = 50 * time.Millisecond

// slowEMR says yes to everything, after a while, and remembers what it was sent.
type slowEMR struct {
	*httptest.Server
	lock sync.Mutex
	held map[string]int // creates by the identifier that a conditional create asks about
}

func newSlowEMR() *slowEMR {
	e := &slowEMR{held: map[string]int{}}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"bench","token_type":"bearer","expires_in":3600}`) // the caller will notice
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // so that the connection is used again
		time.Sleep(emrTakes)
		if r.Method == http.MethodPost {
			e.lock.Lock()
			e.held[r.Header.Get("If-None-Exist")]++
			e.lock.Unlock()
			w.Header().Set("Location", "/fhir/bench/Observation/o-1/_history/1")
			w.WriteHeader(http.StatusCreated)
		}
	}))
	return e
}

func (e *slowEMR) most() (distinct, times int) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for _, n := range e.held {
		times = max(times, n)
	}
	return len(e.held), times
}

// delivery empties a queue towards an EMR that takes its time, without pacing, and compares with a client that sends one
// resource after the other to the same EMR, and stores nothing.
func delivery(ctx context.Context, b built, p plan, t *table) error {
	emr := newSlowEMR()
	defer emr.Close()
	l := load{1, p.warmUp, p.length}
	alone := &target{addr: emr.Listener.Addr().String(), want: 201, next: func(int64) []byte {
		return wire("POST", "emr", "/fhir/bench/Observation", "", []byte(`{"resourceType":"Observation"}`))
	}}
	single, err := press(ctx, alone, l)
	if err != nil {
		return err
	}
	delete(emr.held, "")
	waiting := 400 * int(max(p.length.Seconds(), 5))
	b = b.with("VIGIL_EMR_FHIR_BASE_URL="+emr.URL+"/fhir/{practice_code}", "VIGIL_EMR_TOKEN_URL="+emr.URL+"/oauth/token", "VIGIL_EMR_CLIENT_ID=bench",
		"VIGIL_EMR_PRACTICE_CODE=bench", "VIGIL_EMR_ENVIRONMENT=staging", "VIGIL_EMR_RATE_LIMIT_PER_SECOND=0")
	candidate, err := b.candidate(ctx, wanted{content: content{patients: ingestPatients, pending: waiting}})
	if err != nil {
		return err
	}
	defer candidate.stop()
	began, sent := time.Now(), int64(0)
	first, _ := emr.most()
	for sent < int64(waiting) && time.Since(began) < time.Minute && ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		if sent, err = candidate.count(`SELECT COUNT(*) FROM transmissions WHERE status = 'transmitted'`); err != nil {
			return err
		}
	}
	took := time.Since(began)
	distinct, times := emr.most()
	if sent != int64(waiting) || distinct != waiting || times != 1 {
		return fmt.Errorf("of %d readings %d are transmitted; the EMR was sent %d, one of them %d times", waiting, sent, distinct, times)
	}
	f := figures{perSecond: float64(waiting-first) / took.Seconds()}
	t.add(row{
		path: "EMR delivery", figures: f, against: "one by one", other: single, value: byThroughput(f, single), unit: "×", aim: aim{30, 100},
		note: fmt.Sprintf("%d that waited, an EMR that takes %s", waiting, emrTakes),
	})
	return nil
}
