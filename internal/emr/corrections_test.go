package emr_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tests"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// changingReading is a reading that is changed during its delivery.
type changingReading struct {
	t           testing.TB
	app         *tests.TestApp
	emr         *stubEMR
	clock       *manualClock
	worker      *emr.Worker
	retracted   bool
	pulse       bool
	id, reading string // of the delivery, and of the observation
}

func newChangingReading(t testing.TB) *changingReading {
	c := &changingReading{t: t, app: newApp(t), emr: newEMR(), clock: &manualClock{at: now}}
	c.worker = newWorker(c.emr, c.clock, func(o *emr.WorkerOptions) {
		o.Load = func(_ core.App, id string) (fhir.StoredObservation, error) {
			r := vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: now}.With(vitals.Systolic, 120).With(vitals.Diastolic, 80)
			if c.pulse {
				r = r.With(vitals.Pulse, 64)
			}
			return fhir.StoredObservation{ID: id, PatientID: patient, Reading: r, EnteredInError: c.retracted}, nil
		}
	})
	c.id, c.reading = queueDelivery(t, c.app, patient, now)
	return c
}

func (c *changingReading) retract() {
	c.t.Helper()
	c.retracted = true
	if err := emr.Retract(c.app, c.reading, patient, now, c.clock.now()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *changingReading) complete() {
	c.t.Helper()
	c.pulse = true
	if err := emr.Correct(c.app, c.reading, c.clock.now()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *changingReading) send(after time.Duration) emr.SendCounts {
	c.t.Helper()
	c.clock.advance(after)
	return sendDue(c.t, c.worker, c.app, 0)
}

// checkSent checks what the EMR received: the number of creates, then the statuses of updates in order.
func (c *changingReading) checkSent(what string, creates int, updates ...string) {
	c.t.Helper()
	var got []string
	for _, update := range c.emr.updates {
		var root map[string]any
		if err := json.Unmarshal([]byte(update.resource), &root); err != nil {
			c.t.Fatal(err)
		}
		if root["id"] != update.emrID {
			c.t.Errorf("%s: %v was put under %s", what, root["id"], update.emrID)
		}
		got = append(got, root["status"].(string))
	}
	if n := c.emr.sends[c.reading]; n != creates || !slices.Equal(got, updates) {
		c.t.Errorf("%s: %d creates and updates %v, want %d and %v", what, n, got, creates, updates)
	}
}

func (c *changingReading) checkStatus(what, status, code string) {
	c.t.Helper()
	check(c.t, c.app, collections.Transmissions, c.id, map[string]any{"status": status, "error_code": code})
	check(c.t, c.app, collections.Observations, c.reading, map[string]any{"fhir_status": status})
	if c.t.Failed() {
		c.t.Fatalf("after: %s", what)
	}
}

func (c *changingReading) announcedKinds() (kinds []string) {
	c.t.Helper()
	if err := c.app.DB().NewQuery("SELECT kind FROM announcements ORDER BY kind").Column(&kinds); err != nil {
		c.t.Fatal(err)
	}
	return kinds
}

// A reading retracted before its delivery is never sent, not even as retracted.
func TestRetractedBeforeDelivery(t *testing.T) {
	c := newChangingReading(t)
	c.retract()
	c.send(time.Minute)
	c.checkSent("retracted", 0)
	c.checkStatus("retracted", "failed", "entered_in_error")

	c = newChangingReading(t) // claimed but not yet loaded: the loaded reading is retracted
	claim(t, c.app, 1, now)
	c.retract()
	if _, err := emr.RequeueInterrupted(c.app, nil, now); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	c.send(24 * time.Hour)
	c.checkSent("retracted while claimed", 0)
	c.checkStatus("retracted while claimed", "failed", "entered_in_error")
}

// After delivery, the EMR's copy is marked once, over any number of rounds, and no task is opened for a person.
func TestRetractedAfterDelivery(t *testing.T) {
	c := newChangingReading(t)
	c.send(time.Minute)
	c.retract()
	c.checkStatus("retracted", "pending", "")
	c.send(time.Minute)
	c.send(time.Hour)
	c.retract()
	c.send(time.Hour)
	c.checkSent("retracted", 1, "entered-in-error")
	c.checkStatus("retracted", "transmitted", "")
	if kinds := c.announcedKinds(); len(kinds) != 0 {
		t.Errorf("announced %v", kinds)
	}
}

// A retraction during the delivery is sent as soon as the delivery ends.
func TestRetractedDuringDelivery(t *testing.T) {
	c := newChangingReading(t)
	c.emr.onSend = func(string) { c.retract() }
	c.send(time.Minute)
	c.emr.onSend = nil
	c.checkStatus("retracted during delivery", "pending", "")
	c.send(time.Minute)
	c.checkSent("retracted during delivery", 1, "entered-in-error")
	c.checkStatus("retracted during delivery", "transmitted", "")
}

// After an unknown outcome the EMR is searched: an existing copy is marked, and none is created.
func TestRetractedAfterUnknownOutcome(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		c := newChangingReading(t)
		c.emr.refuse = func(id string, _ int) *emr.Error {
			if arrived {
				c.emr.stored[c.reading] = "obs-1"
			}
			return unavailable()
		}
		c.send(time.Minute)
		c.emr.refuse = nil
		c.retract()
		c.send(time.Second)
		if arrived {
			c.checkSent("arrived", 1, "entered-in-error")
			c.checkStatus("arrived", "transmitted", "")
			continue
		}
		c.checkSent("not arrived", 1)
		c.checkStatus("not arrived", "failed", "entered_in_error")
		c.send(24 * time.Hour)
		c.checkSent("not arrived", 1)
	}
}

// A reading that is retracted while the EMR refuses it has no copy, so no person is notified.
func TestRetractedAfterRefusal(t *testing.T) {
	c := newChangingReading(t)
	c.emr.refuse = func(string, int) *emr.Error { return invalid() }
	c.emr.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "forbidden"}
	c.emr.onSend = func(string) { c.retract() }
	c.send(time.Minute)
	c.send(24 * time.Hour)
	c.checkSent("refused", 1)
	c.checkStatus("refused", "failed", "entered_in_error")
	if kinds := c.announcedKinds(); len(kinds) != 0 {
		t.Errorf("announced %v", kinds)
	}
}

// A reading completed after delivery is updated at the EMR; one completed before is sent once.
func TestCompletedReading(t *testing.T) {
	c := newChangingReading(t)
	c.complete()
	c.send(time.Minute)
	c.send(time.Minute)
	c.checkSent("before", 1)
	if !strings.Contains(string(c.emr.body), "8867-4") {
		t.Error("the pulse is missing")
	}

	c = newChangingReading(t)
	c.send(time.Minute)
	c.complete()
	c.send(time.Minute)
	c.retract()
	c.send(time.Minute)
	c.checkSent("after", 1, "amended", "entered-in-error")

	c = newChangingReading(t) // the first attempt already has the complete reading
	c.emr.onSend = func(string) { c.emr.onSend = nil; c.complete() }
	c.send(time.Minute)
	c.send(time.Minute)
	c.checkSent("under way", 1, "amended")
}

// An update with unchanged content is not sent.
func TestUnchangedCopyIsNotUpdated(t *testing.T) {
	c := newChangingReading(t)
	c.send(time.Minute)
	for range 3 {
		if err := emr.Correct(c.app, c.reading, c.clock.now()); err != nil {
			t.Fatal(err)
		}
		c.send(time.Minute)
	}
	c.checkSent("unchanged", 1)
	c.checkStatus("unchanged", "transmitted", "")
}

// An update is retried like a create, reads the copy before it sends again, and notifies a person if the EMR refuses it.
func TestUpdateIsRetried(t *testing.T) {
	c := newChangingReading(t)
	c.send(time.Minute)
	c.retract()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.checkStatus("unavailable", "failed", "emr_unavailable")
	if kinds := c.announcedKinds(); len(kinds) != 0 {
		t.Errorf("announced %v before the last retry", kinds)
	}
	c.emr.refuse = nil
	c.send(24 * time.Hour)
	if n := len(c.emr.updates); n != 2 || c.emr.updates[0].ambiguous || !c.emr.updates[1].ambiguous {
		t.Errorf("updates %+v", c.emr.updates)
	}
	c.checkStatus("back", "transmitted", "")

	c = newChangingReading(t)
	c.send(time.Minute)
	c.retract()
	c.emr.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeUpdateRefused, Status: 403, Message: "Update refused by EMR (403: insufficient scope)"}
	}
	for range 8 {
		c.send(24 * time.Hour)
	}
	if kinds := c.announcedKinds(); !slices.Equal(kinds, []string{"delivery_given_up", "emr_copy_wrong"}) {
		t.Errorf("announced %v", kinds)
	}
	if n := len(c.emr.updates); n != 6 {
		t.Errorf("%d updates were tried", n)
	}
	c.emr.refuse = nil // a person sends it again
	if err := c.worker.Transform(c.app, c.reading, person, c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	c.checkStatus("by hand", "transmitted", "")
}

// Without an EMR id the copy is found by its identifier; if the EMR forbids searches, a person is notified.
func TestUpdateWithoutID(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		c := newChangingReading(t)
		c.send(time.Minute)
		if _, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"emr_resource_id": ""}, dbx.HashExp{"id": c.id}).Execute(); err != nil {
			t.Fatal(err)
		}
		if forbidden {
			c.emr.searchErr = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "forbidden"}
		}
		c.retract()
		c.send(time.Minute)
		if forbidden {
			c.checkSent("forbidden", 1)
			if kinds := c.announcedKinds(); !slices.Equal(kinds, []string{"emr_copy_wrong"}) {
				t.Errorf("announced %v", kinds)
			}
			continue
		}
		c.checkSent("found", 1, "entered-in-error")
	}
}

// A separate heart-rate observation follows its reading, and does not change the state of the reading's own delivery.
func TestHeartRateFollows(t *testing.T) {
	c := newChangingReading(t)
	c.pulse = true
	rate, err := emr.Queue(c.app, emr.Draft{
		ObservationID: c.reading, PatientID: patient, ObservationType: "blood_pressure", Form: collections.FormHeartRate,
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	part := fhir.PartID(c.reading, fhir.HeartRatePart)
	if c.emr.sends[part] != 1 || c.emr.sends[c.reading] != 1 {
		t.Fatalf("sent %v", c.emr.sends)
	}
	check(t, c.app, collections.Observations, c.reading, map[string]any{"emr_resource_id": c.emr.stored[c.reading]})
	c.retract()
	c.send(time.Minute)
	var put []string
	for _, update := range c.emr.updates {
		put = append(put, update.emrID)
	}
	slices.Sort(put)
	want := []string{c.emr.stored[c.reading], c.emr.stored[part]}
	if slices.Sort(want); !slices.Equal(put, want) {
		t.Errorf("put %v, want %v", put, want)
	}
	check(t, c.app, collections.Transmissions, rate, map[string]any{"status": "transmitted"})
}

// A mean is sent once, and again only after a change.
func TestMeanIsSentWhenItChanges(t *testing.T) {
	c := newChangingReading(t)
	mean := fhir.MeanBloodPressure{Readings: 14, Systolic: 131.3, Diastolic: 80.9, From: now, To: now.AddDate(0, 0, 7)}
	c.worker.LoadMean = func(core.App, string, string, string) (fhir.MeanBloodPressure, error) { return mean, nil }
	ask := func(fresh, want bool) {
		t.Helper()
		if queued, err := c.worker.QueueMean(c.app, patient, "2026-01-05", "2026-01-11", fresh, c.clock.now()); err != nil || queued != want {
			t.Errorf("queued %v (%v), want %v", queued, err, want)
		}
		c.send(time.Minute)
	}
	ask(false, false)
	ask(true, true)
	ask(true, false)
	mean.Systolic = 131.4
	ask(false, true)
	ask(true, false)
	mean.Readings = 0
	ask(true, true)
	ask(true, false)
	id := fhir.PartID(patient, "mean_blood_pressure/2026-01-05")
	if c.emr.sends[id] != 1 || len(c.emr.updates) != 2 {
		t.Errorf("%d creates, %d updates", c.emr.sends[id], len(c.emr.updates))
	}
	mean.Readings, mean.Systolic, c.retracted = 13, 130, true
	if err := emr.Retract(c.app, c.reading, patient, time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC), c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	if len(c.emr.updates) != 4 { // the reading, and its week
		t.Errorf("%d updates after a reading of the week was retracted", len(c.emr.updates))
	}
}
