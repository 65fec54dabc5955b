package emr_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
)

// failBetween makes every request fail between two times from now.
func (s *simulation) failBetween(how failureMode, from, to time.Duration) {
	begins, ends := time.Now().Add(from), time.Now().Add(to)
	state := func(at time.Time) failureMode {
		if !at.Before(begins) && at.Before(ends) {
			return how
		}
		return healthy
	}
	s.server.set(func() { s.server.state = state })
}

// An EMR that fails intermittently uses up at most one attempt of a delivery.
func TestFlappingEMR(t *testing.T) {
	inSimulatedTime(t, 5, func(w *simulation) {
		draw := rand.New(rand.NewPCG(1, 2))
		began, kinds := time.Now(), []failureMode{unplugged, broken, hanging, locked, expired}
		var turns []time.Time // when the EMR fails and recovers, in turn
		for at, until := began, began.Add(4*time.Hour); at.Before(until); {
			at = at.Add(time.Duration(5+draw.IntN(170)) * time.Second)
			turns = append(turns, at)
		}
		state := func(at time.Time) failureMode {
			n := 0
			for n < len(turns) && !at.Before(turns[n]) {
				n++
			}
			if n%2 == 1 {
				return kinds[n/2%len(kinds)]
			}
			return healthy
		}
		w.server.set(func() { w.server.state = state })
		for i := range 240 {
			w.addReading(i%5, 0)
			time.Sleep(50 * time.Second)
		}
		time.Sleep(time.Hour)
		if statuses, most := w.tally(); statuses["transmitted"] != 240 || most > 1 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		w.checkStoredOnce(time.Now()) // the order is not defined when the EMR fails within a delivery
	})
}

// A record that makes the EMR fail uses up its own attempts, and delays no other delivery, not even of its patient.
func TestPoisonedRecord(t *testing.T) {
	for name, outage := range map[string]time.Duration{"without an outage": 0, "first after an outage": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inSimulatedTime(t, 3, func(w *simulation) {
				w.failBetween(broken, 0, outage)
				bad := w.addReading(0, time.Minute)
				w.server.set(func() { w.server.poison[bad] = http.StatusInternalServerError })
				time.Sleep(outage + time.Minute)
				var healthy []string
				for i := range 60 * 12 { // a reading a minute
					id := w.addReading(i%3, 0)
					healthy = append(healthy, id)
					time.Sleep(time.Minute)
					if r := w.row(id); r.Status != "transmitted" {
						w.t.Fatalf("a minute after it was stored, at %s, a healthy one is %+v", time.Now(), r)
					}
				}
				if r := w.row(bad); r.Status != "failed" || r.Next != "" || r.Attempts != 5 || r.Code != "emr_unavailable" {
					w.t.Errorf("the bad record is %+v", r)
				}
				if posts := w.countPosts(bad); posts < 5*4 || posts > 7*4 {
					w.t.Errorf("the bad record was sent %d times", posts)
				}
				if len(healthy) != 720 {
					w.t.Error("not all were there")
				}
			})
		})
	}
}

// countPosts counts how often an observation was sent.
func (s *simulation) countPosts(observation string) (n int) {
	for _, r := range s.server.requestLog() {
		if r.observation == observation {
			n++
		}
	}
	return n
}

// Several records that make the EMR fail, at the same time and of one patient, are not mistaken for an outage for long.
func TestPoisonedRecords(t *testing.T) {
	inSimulatedTime(t, 2, func(w *simulation) {
		var bad []string
		for range 6 {
			id := w.addReading(0, time.Minute)
			w.server.set(func() { w.server.poison[id] = http.StatusInternalServerError })
			bad = append(bad, id)
		}
		for i := range 20 * 6 {
			id := w.addReading(0, 0)
			if i == 0 { // the breaker must find it among them
				time.Sleep(14 * time.Minute)
			}
			time.Sleep(time.Minute)
			if r := w.row(id); r.Status != "transmitted" {
				w.t.Fatalf("%d: after a minute, or fifteen, a healthy one is %+v", i, r)
			}
			time.Sleep(9 * time.Minute)
		}
		for _, id := range bad {
			if r := w.row(id); r.Status != "failed" || r.Next != "" {
				w.t.Errorf("a bad record is %+v", r)
			}
			delete(w.measured, id)
		}
		w.checkStoredOnce(time.Now())
	})
}

// An EMR that serves its CapabilityStatement and refuses all writes is down, too.
func TestReadOnlyEMR(t *testing.T) {
	inSimulatedTime(t, 6, func(w *simulation) {
		w.failBetween(readOnly, 0, 6*time.Hour)
		for i := range 120 {
			w.addReading(i%6, 0)
			time.Sleep(3 * time.Minute)
		}
		time.Sleep(10 * time.Minute)
		statuses, most := w.tally()
		if statuses["transmitted"] != 120 || most > 2 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		for id := range w.measured {
			if n := w.server.storedCount(id); n != 1 {
				w.t.Errorf("stored %d times", n)
			}
		}
		if len(w.announcementKeys()) != 2 {
			w.t.Errorf("announced %v", w.announcementKeys())
		}
	})
}

// Restarts during an outage and during recovery use up no attempt, lose no reading and announce nothing twice.
func TestRestartsDuringOutage(t *testing.T) {
	inSimulatedTime(t, 4, func(w *simulation) {
		w.failBetween(unplugged, 0, 5*time.Hour)
		began := time.Now()
		for i := range 300 {
			w.addReading(i%4, 0)
			time.Sleep(time.Minute)
			if i%40 == 20 {
				w.kill()
			}
		}
		time.Sleep(25 * time.Second)
		w.kill() // in the middle of the delivery
		time.Sleep(10 * time.Minute)
		if statuses, most := w.tally(); statuses["transmitted"] != 300 || most > 1 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		w.checkStoredOnce(began)
		if keys := w.announcementKeys(); len(keys) != 2 {
			w.t.Errorf("announced %v", keys)
		}
		if tried := w.server.countRequests("POST", began) + w.server.countRequests("GET", began); tried > 3000 {
			w.t.Errorf("%d requests", tried)
		}
	})
}

// kill ends the worker like kill -9: its leases are still in processing when the next one starts.
func (s *simulation) kill() {
	s.t.Helper()
	s.stop()
	_, err := s.DB().NewQuery(`UPDATE transmissions SET status = 'processing', claimed_at = {:now} WHERE id IN
		(SELECT id FROM transmissions WHERE status = 'pending' ORDER BY created_at LIMIT 2)`).
		Bind(dbx.Params{"now": collections.FormatInstant(time.Now())}).Execute()
	if err != nil {
		s.t.Fatal(err)
	}
	s.start()
}

// A change during an outage reaches the EMR after the reading, or cancels a delivery not yet sent.
func TestRetractedDuringOutage(t *testing.T) {
	inSimulatedTime(t, 1, func(w *simulation) {
		delivered := w.addReading(0, time.Minute)
		time.Sleep(time.Minute)
		w.failBetween(broken, 0, 4*time.Hour)
		tried := w.addReading(0, 0)
		time.Sleep(time.Minute)
		waiting, kept := w.addReading(0, 0), w.addReading(0, 0)
		time.Sleep(time.Minute)
		w.retract(delivered)
		w.retract(tried)
		w.retract(waiting)
		time.Sleep(5 * time.Hour)
		var seen []string
		for _, a := range w.server.writes() {
			seen = append(seen, map[string]string{delivered: "delivered", tried: "tried", waiting: "waiting", kept: "kept"}[a.observation]+" "+a.status)
		}
		want := []string{"delivered final", "delivered entered-in-error", "kept final"}
		if len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
			w.t.Errorf("the EMR was given %v, want %v", seen, want)
		}
		if r := w.row(delivered); r.Status != "transmitted" || r.Attempts > 1 {
			w.t.Errorf("what was delivered: %+v", r)
		}
		for _, id := range []string{tried, waiting} {
			if r := w.row(id); r.Status != "failed" || r.Code != "entered_in_error" || r.Next != "" {
				w.t.Errorf("what never left: %+v", r)
			}
		}
	})
}

// The EMR's Retry-After is followed, up to 15 minutes.
func TestRetryAfterDuringOutage(t *testing.T) {
	for name, test := range map[string]struct {
		how   failureMode
		after string
		hold  time.Duration
	}{
		"429":            {throttle, "", 12 * time.Second},
		"429, minutes":   {throttle, "300", 5 * time.Minute},
		"429, for hours": {throttle, "7200", 15 * time.Minute},
		"503, minutes":   {broken, "300", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulatedTime(t, 2, func(w *simulation) {
				w.failBetween(test.how, 0, time.Minute)
				w.server.set(func() { w.server.retryAfter = test.after })
				first := w.addReading(0, time.Minute)
				time.Sleep(10 * time.Second)
				if r := w.row(first); r.Status != "failed" || r.Attempts != 1 || !r.WaitsForEMR || r.Next == "" {
					w.t.Errorf("the first: %+v", r)
				}
				answeredAt := w.server.requestLog()[len(w.server.requestLog())-1].at
				second := w.addReading(1, 0)
				time.Sleep(30 * time.Minute)
				for _, r := range w.server.requestLog() {
					if wait := r.at.Sub(answeredAt); wait > 0 && wait < test.hold {
						w.t.Errorf("%s after %s", r.line, wait)
					}
				}
				for _, id := range []string{first, second} {
					if r := w.row(id); r.Status != "transmitted" || r.Attempts > 1 {
						w.t.Errorf("%+v", r)
					}
				}
			})
		})
	}
}

// A manual transmit during an outage is attempted, reports its result, and uses up at most one attempt; a dead letter stays one.
func TestTransmitDuringOutage(t *testing.T) {
	inSimulatedTime(t, 3, func(w *simulation) {
		final := w.addReading(0, time.Minute)
		w.server.set(func() { w.server.poison[final] = http.StatusUnprocessableEntity })
		time.Sleep(10 * time.Hour)
		if r := w.row(final); r.Next != "" || r.Attempts != 5 {
			w.t.Fatalf("not a dead letter: %+v", r)
		}
		w.server.set(func() { delete(w.server.poison, final) })
		w.failBetween(broken, 0, 2*time.Hour)
		w.addReading(1, 0)
		time.Sleep(10 * time.Minute)
		pending := w.addReading(2, 0)
		transmit := func(id string) row {
			if _, err := w.worker.Transmit(w, id, person, time.Now().UTC()); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return w.row(id)
		}
		for range 8 {
			if r := transmit(final); r.Status != "failed" || r.Next != "" || r.Attempts != 5 || r.Code != "emr_unavailable" {
				w.t.Errorf("the dead letter: %+v", r)
			}
			if r := transmit(pending); r.Status != "failed" || r.Next == "" || r.Attempts != 1 || !r.WaitsForEMR {
				w.t.Errorf("the queued delivery: %+v", r)
			}
		}
		time.Sleep(2 * time.Hour)
		if r := w.row(pending); r.Status != "transmitted" {
			w.t.Errorf("the queued delivery: %+v", r)
		}
		if r := w.row(final); r.Status != "failed" || w.server.storedCount(final) != 0 {
			w.t.Errorf("the dead letter was sent automatically: %+v", r)
		}
		if r := transmit(final); r.Status != "transmitted" {
			w.t.Errorf("the dead letter: %+v", r)
		}
	})
}

// A successful manual transmit closes the circuit breaker.
func TestTransmitClosesBreaker(t *testing.T) {
	inSimulatedTime(t, 2, func(w *simulation) {
		w.server.set(func() { w.server.retryAfter = "600" })
		w.failBetween(broken, 0, 2*time.Minute)
		waiting := w.addReading(0, 0)
		time.Sleep(3 * time.Minute)
		if r := w.row(waiting); r.Status != "failed" {
			w.t.Fatalf("it is not waiting: %+v", r)
		}
		manual := w.addReading(1, 0)
		if _, err := w.worker.Transmit(w, manual, person, time.Now().UTC()); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if a, b := w.row(manual), w.row(waiting); a.Status != "transmitted" || b.Status != "transmitted" {
			w.t.Errorf("%+v, %+v", a, b)
		}
	})
}
