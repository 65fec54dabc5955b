package emr_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// inSimulatedTime plays a test with so many patients in a time of its own, in which 60 hours take seconds. The app stands outside: it watches
// files, which no such time knows.
func inSimulatedTime(t *testing.T, patients int, play func(w *ward)) {
	t.Helper()
	app := vigiltest.NewApp(t)
	sandboxSigningKey()
	synctest.Test(t, func(t *testing.T) {
		w := newWard(t, app, patients)
		defer func() { w.stop() }()
		play(w)
	})
}

// Nothing is lost and nobody is needed: 60 hours without the EMR, 500 readings a day of 40 patients, and then all of them once, in order.
func TestOutageOfSixtyHours(t *testing.T) {
	inSimulatedTime(t, 40, func(w *ward) {
		t := w.t
		const readings, hours = 1250, 60
		first := w.read(0, time.Minute)
		time.Sleep(time.Minute)
		if w.row(first).Status != "transmitted" {
			t.Fatalf("before the outage: %+v", w.row(first))
		}
		fell := time.Now()
		over := fell.Add(hours * time.Hour)
		kinds := []ailment{unplugged, broken, locked, hanging, expired, throttle}
		state := func(at time.Time) ailment {
			if at.Before(over) {
				return kinds[int(at.Sub(fell)/(90*time.Minute))%len(kinds)]
			}
			return well
		}
		w.hospital.set(func() { w.hospital.state = state })
		for i := range readings {
			ago := time.Duration(i%7) * time.Minute
			if i%50 == 49 {
				ago = 5 * time.Hour // what a device kept
			}
			w.read(i%40, ago)
			time.Sleep(hours * time.Hour / readings)
			if i == readings/2 {
				w.midway(fell)
			}
		}
		asked := w.hospital.count("POST /fhir/Observation", fell)
		if asked > 1500 {
			t.Errorf("%d deliveries were tried while the EMR was away", asked)
		}
		if probes := w.hospital.count("GET /fhir/metadata", fell) + w.hospital.count("POST /token", fell); probes > 20000 || probes < 5000 {
			t.Errorf("%d probes in 60 hours", probes)
		}
		back := time.Now()
		time.Sleep(10 * time.Minute)
		statuses, most := w.tally()
		if statuses["transmitted"] != readings+1 || most > 1 {
			t.Errorf("10 minutes later: %v, up to %d attempts", statuses, most)
		}
		w.once(back)
		if _, down := w.worker.Outage(); down {
			t.Error("still down")
		}
		if told := w.told(); len(told) != 2 {
			t.Errorf("told: %v", told)
		}
		t.Logf("%d tries, %d probes", asked, w.hospital.count("GET /fhir/metadata", fell))
	})
}

// midway looks at the practice in the middle of an outage.
func (w *ward) midway(fell time.Time) {
	w.t.Helper()
	statuses, most := w.tally()
	if most > 1 || statuses["failed"] > 250 || statuses["pending"] < 370 || statuses["processing"] > 1 {
		w.t.Errorf("midway: %v, up to %d attempts", statuses, most)
	}
	since, down := w.worker.Outage()
	if !down || since.Sub(fell) > 10*time.Minute {
		w.t.Errorf("midway: down %t, since %s", down, since)
	}
	before := w.hospital.count("POST /fhir/Observation", fell)
	round, err := w.worker.SendDue(w.t.Context(), w, 100)
	if err != nil || round.Succeeded != 0 || round.Failed != 1 || round.Skipped < 500 {
		w.t.Errorf("asked for: %+v (%v)", round, err)
	}
	if n := w.hospital.count("POST /fhir/Observation", fell) - before; n > 8 {
		w.t.Errorf("a person's wish made %d requests", n)
	}
}
