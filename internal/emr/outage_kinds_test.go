package emr_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
)

// away makes everything ail between two moments from now.
func (w *ward) away(how ailment, from, to time.Duration) {
	begins, ends := time.Now().Add(from), time.Now().Add(to)
	state := func(at time.Time) ailment {
		if !at.Before(begins) && at.Before(ends) {
			return how
		}
		return well
	}
	w.hospital.set(func() { w.hospital.state = state })
}

// A line that comes and goes takes no slot of anybody.
func TestFlappingLine(t *testing.T) {
	inSimulatedTime(t, 5, func(w *ward) {
		draw := rand.New(rand.NewPCG(1, 2))
		began, kinds := time.Now(), []ailment{unplugged, broken, hanging, locked, expired}
		var turns []time.Time // of the line, from up to down and back
		for at, until := began, began.Add(4*time.Hour); at.Before(until); {
			at = at.Add(time.Duration(5+draw.IntN(170)) * time.Second)
			turns = append(turns, at)
		}
		state := func(at time.Time) ailment {
			n := 0
			for n < len(turns) && !at.Before(turns[n]) {
				n++
			}
			if n%2 == 1 {
				return kinds[n/2%len(kinds)]
			}
			return well
		}
		w.hospital.set(func() { w.hospital.state = state })
		for i := range 240 {
			w.read(i%5, 0)
			time.Sleep(50 * time.Second)
		}
		time.Sleep(time.Hour)
		if statuses, most := w.tally(); statuses["transmitted"] != 240 || most > 1 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		w.once(time.Now()) // in which order, a line that comes and goes within one delivery does not let us say
	})
}

// What the EMR cannot bear is its own fault: it goes by the table to its end, and holds up nobody, not even its patient's other readings.
func TestPoisonedRecord(t *testing.T) {
	for name, outage := range map[string]time.Duration{"while all is well": 0, "first in line after an outage": 3 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			inSimulatedTime(t, 3, func(w *ward) {
				w.away(broken, 0, outage)
				poisoned := w.read(0, time.Minute)
				w.hospital.set(func() { w.hospital.poison[poisoned] = http.StatusInternalServerError })
				time.Sleep(outage + time.Minute)
				var healthy []string
				for i := range 60 * 12 { // a reading a minute
					id := w.read(i%3, 0)
					healthy = append(healthy, id)
					time.Sleep(time.Minute)
					if r := w.row(id); r.Status != "transmitted" {
						w.t.Fatalf("a minute after it came, at %s, a healthy one is %+v", time.Now(), r)
					}
				}
				if r := w.row(poisoned); r.Status != "failed" || r.Next != "" || r.Attempts != 5 || r.Code != "emr_unavailable" {
					w.t.Errorf("the poisoned one is %+v", r)
				}
				if asked := w.posts(poisoned); asked < 5*4 || asked > 7*4 {
					w.t.Errorf("the poisoned one was sent %d times", asked)
				}
				if len(healthy) != 720 {
					w.t.Error("not all were there")
				}
			})
		})
	}
}

// posts counts how often an observation was sent.
func (w *ward) posts(observation string) (n int) {
	for _, r := range w.hospital.asked() {
		if r.of == observation {
			n++
		}
	}
	return n
}

// Several that the EMR cannot bear, all at once and of one patient, are not taken for an outage for long.
func TestPoisonedRecords(t *testing.T) {
	inSimulatedTime(t, 2, func(w *ward) {
		var poisoned []string
		for range 6 {
			id := w.read(0, time.Minute)
			w.hospital.set(func() { w.hospital.poison[id] = http.StatusInternalServerError })
			poisoned = append(poisoned, id)
		}
		for i := range 20 * 6 {
			id := w.read(0, 0)
			if i == 0 { // it has to be found among them
				time.Sleep(14 * time.Minute)
			}
			time.Sleep(time.Minute)
			if r := w.row(id); r.Status != "transmitted" {
				w.t.Fatalf("%d: after a minute, or fifteen, a healthy one is %+v", i, r)
			}
			time.Sleep(9 * time.Minute)
		}
		for _, id := range poisoned {
			if r := w.row(id); r.Status != "failed" || r.Next != "" {
				w.t.Errorf("a poisoned one is %+v", r)
			}
			delete(w.measured, id)
		}
		w.once(time.Now())
	})
}

// An EMR that says what it can do and takes nothing is down, too.
func TestWritesAlone(t *testing.T) {
	inSimulatedTime(t, 6, func(w *ward) {
		w.away(readOnly, 0, 6*time.Hour)
		for i := range 120 {
			w.read(i%6, 0)
			time.Sleep(3 * time.Minute)
		}
		time.Sleep(10 * time.Minute)
		statuses, most := w.tally()
		if statuses["transmitted"] != 120 || most > 2 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		for id := range w.measured {
			if n := w.hospital.has(id); n != 1 {
				w.t.Errorf("stored %d times", n)
			}
		}
		if len(w.told()) != 2 {
			w.t.Errorf("told: %v", w.told())
		}
	})
}

// A restart in the middle of an outage, and in the middle of what follows it, costs nothing: no slot, no reading, no second word.
func TestRestartsDuringAnOutage(t *testing.T) {
	inSimulatedTime(t, 4, func(w *ward) {
		w.away(unplugged, 0, 5*time.Hour)
		began := time.Now()
		for i := range 300 {
			w.read(i%4, 0)
			time.Sleep(time.Minute)
			if i%40 == 20 {
				w.die()
			}
		}
		time.Sleep(25 * time.Second)
		w.die() // in the middle of the delivery
		time.Sleep(10 * time.Minute)
		if statuses, most := w.tally(); statuses["transmitted"] != 300 || most > 1 {
			w.t.Errorf("%v, up to %d attempts", statuses, most)
		}
		w.once(began)
		if told := w.told(); len(told) != 2 {
			w.t.Errorf("told: %v", told)
		}
		if tried := w.hospital.count("POST", began) + w.hospital.count("GET", began); tried > 3000 {
			w.t.Errorf("%d requests", tried)
		}
	})
}

// die ends the worker as kill -9 does: what it had claimed is still in processing when the next one starts.
func (w *ward) die() {
	w.t.Helper()
	w.stop()
	_, err := w.DB().NewQuery(`UPDATE transmissions SET status = 'processing', claimed_at = {:now} WHERE id IN
		(SELECT id FROM transmissions WHERE status = 'pending' ORDER BY created_at LIMIT 2)`).
		Bind(dbx.Params{"now": collections.Instant(time.Now())}).Execute()
	if err != nil {
		w.t.Fatal(err)
	}
	w.start()
}

// What changes during an outage reaches the EMR after what it changes, or never leaves.
func TestWithdrawnDuringAnOutage(t *testing.T) {
	inSimulatedTime(t, 1, func(w *ward) {
		delivered := w.read(0, time.Minute)
		time.Sleep(time.Minute)
		w.away(broken, 0, 4*time.Hour)
		tried := w.read(0, 0)
		time.Sleep(time.Minute)
		waiting, kept := w.read(0, 0), w.read(0, 0)
		time.Sleep(time.Minute)
		w.withdraw(delivered)
		w.withdraw(tried)
		w.withdraw(waiting)
		time.Sleep(5 * time.Hour)
		var seen []string
		for _, a := range w.hospital.came() {
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

// The EMR's wish to be left alone is granted, up to a quarter of an hour.
func TestRetryAfterDuringAnOutage(t *testing.T) {
	for name, test := range map[string]struct {
		how   ailment
		after string
		hold  time.Duration
	}{
		"429":            {throttle, "", 12 * time.Second},
		"429, minutes":   {throttle, "300", 5 * time.Minute},
		"429, for hours": {throttle, "7200", 15 * time.Minute},
		"503, minutes":   {broken, "300", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inSimulatedTime(t, 2, func(w *ward) {
				w.away(test.how, 0, time.Minute)
				w.hospital.set(func() { w.hospital.retryAfter = test.after })
				first := w.read(0, time.Minute)
				time.Sleep(10 * time.Second)
				if r := w.row(first); r.Status != "failed" || r.Attempts != 1 || !r.Held || r.Next == "" {
					w.t.Errorf("the first: %+v", r)
				}
				told := w.hospital.asked()[len(w.hospital.asked())-1].at
				second := w.read(1, 0)
				time.Sleep(30 * time.Minute)
				for _, r := range w.hospital.asked() {
					if wait := r.at.Sub(told); wait > 0 && wait < test.hold {
						w.t.Errorf("%s after %s", r.what, wait)
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

// A person's wish during an outage is tried, tells how it ended, and makes nothing worse; what had been given up stays so.
func TestTransmitDuringAnOutage(t *testing.T) {
	inSimulatedTime(t, 3, func(w *ward) {
		final := w.read(0, time.Minute)
		w.hospital.set(func() { w.hospital.poison[final] = http.StatusUnprocessableEntity })
		time.Sleep(10 * time.Hour)
		if r := w.row(final); r.Next != "" || r.Attempts != 5 {
			w.t.Fatalf("not given up: %+v", r)
		}
		w.hospital.set(func() { delete(w.hospital.poison, final) })
		w.away(broken, 0, 2*time.Hour)
		w.read(1, 0)
		time.Sleep(10 * time.Minute)
		pending := w.read(2, 0)
		transmit := func(id string) row {
			if _, err := w.worker.Transmit(w, id, person, time.Now().UTC()); err != nil {
				w.t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return w.row(id)
		}
		for range 8 {
			if r := transmit(final); r.Status != "failed" || r.Next != "" || r.Attempts != 5 || r.Code != "emr_unavailable" {
				w.t.Errorf("what was given up: %+v", r)
			}
			if r := transmit(pending); r.Status != "failed" || r.Next == "" || r.Attempts != 1 || !r.Held {
				w.t.Errorf("what waits: %+v", r)
			}
		}
		time.Sleep(2 * time.Hour)
		if r := w.row(pending); r.Status != "transmitted" {
			w.t.Errorf("what waited: %+v", r)
		}
		if r := w.row(final); r.Status != "failed" || w.hospital.has(final) != 0 {
			w.t.Errorf("what was given up went by itself: %+v", r)
		}
		if r := transmit(final); r.Status != "transmitted" {
			w.t.Errorf("what was given up: %+v", r)
		}
	})
}

// A delivery that a person asked for and that succeeds shows that the line is back.
func TestTransmitFindsTheLineBack(t *testing.T) {
	inSimulatedTime(t, 2, func(w *ward) {
		w.hospital.set(func() { w.hospital.retryAfter = "600" })
		w.away(broken, 0, 2*time.Minute)
		waiting := w.read(0, 0)
		time.Sleep(3 * time.Minute)
		if r := w.row(waiting); r.Status != "failed" {
			w.t.Fatalf("it waits not: %+v", r)
		}
		asked := w.read(1, 0)
		if _, err := w.worker.Transmit(w, asked, person, time.Now().UTC()); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if a, b := w.row(asked), w.row(waiting); a.Status != "transmitted" || b.Status != "transmitted" {
			w.t.Errorf("%+v, %+v", a, b)
		}
	})
}
