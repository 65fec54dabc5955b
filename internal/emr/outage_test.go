package emr_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// inSimulatedTime runs a test with patients in a synctest bubble, where 60 hours take seconds. The app stays outside, because its file
// watcher uses real time.
func inSimulatedTime(t *testing.T, patients int, play func(w *simulation)) {
	t.Helper()
	app := vigiltest.NewApp(t)
	sandboxSigningKey()
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, app, patients)
		defer func() { w.stop() }()
		play(w)
	})
}

// After 60 hours without the EMR, with 500 readings a day of 40 patients, all readings are delivered once, in order, without a person.
func TestSixtyHourOutage(t *testing.T) {
	inSimulatedTime(t, 40, func(w *simulation) {
		t := w.t
		const readings, hours = 1250, 60
		first := w.addReading(0, time.Minute)
		time.Sleep(time.Minute)
		if w.row(first).Status != "transmitted" {
			t.Fatalf("before the outage: %+v", w.row(first))
		}
		fell := time.Now()
		over := fell.Add(hours * time.Hour)
		kinds := []failureMode{unplugged, broken, locked, hanging, expired, throttle}
		state := func(at time.Time) failureMode {
			if at.Before(over) {
				return kinds[int(at.Sub(fell)/(90*time.Minute))%len(kinds)]
			}
			return healthy
		}
		w.server.set(func() { w.server.state = state })
		for i := range readings {
			ago := time.Duration(i%7) * time.Minute
			if i%50 == 49 {
				ago = 5 * time.Hour // stored on the device
			}
			w.addReading(i%40, ago)
			time.Sleep(hours * time.Hour / readings)
			if i == readings/2 {
				w.checkMidOutage(fell)
			}
		}
		posts := w.server.countRequests("POST /fhir/Observation", fell)
		if posts > 1500 {
			t.Errorf("%d deliveries were tried during the outage", posts)
		}
		if probes := w.server.countRequests("GET /fhir/metadata", fell) + w.server.countRequests("POST /token", fell); probes > 20000 || probes < 5000 {
			t.Errorf("%d probes in 60 hours", probes)
		}
		back := time.Now()
		time.Sleep(10 * time.Minute)
		statuses, most := w.tally()
		if statuses["transmitted"] != readings+1 || most > 1 {
			t.Errorf("10 minutes later: %v, up to %d attempts", statuses, most)
		}
		w.checkStoredOnce(back)
		if _, down := w.worker.Outage(); down {
			t.Error("still down")
		}
		if keys := w.announcementKeys(); len(keys) != 2 {
			t.Errorf("announced %v", keys)
		}
		t.Logf("%d tries, %d probes", posts, w.server.countRequests("GET /fhir/metadata", fell))
	})
}

// checkMidOutage checks the worker in the middle of an outage.
func (s *simulation) checkMidOutage(fell time.Time) {
	s.t.Helper()
	statuses, most := s.tally()
	if most > 1 || statuses["failed"] > 250 || statuses["pending"] < 370 || statuses["processing"] > 1 {
		s.t.Errorf("midway: %v, up to %d attempts", statuses, most)
	}
	since, down := s.worker.Outage()
	if !down || since.Sub(fell) > 10*time.Minute {
		s.t.Errorf("midway: down %t, since %s", down, since)
	}
	before := s.server.countRequests("POST /fhir/Observation", fell)
	round, err := s.worker.SendDue(s.t.Context(), s, 100)
	if err != nil || round.Succeeded != 0 || round.Failed != 1 || round.Skipped < 500 {
		s.t.Errorf("manual round: %+v (%v)", round, err)
	}
	if n := s.server.countRequests("POST /fhir/Observation", fell) - before; n > 8 {
		s.t.Errorf("a manual request made %d requests", n)
	}
}
