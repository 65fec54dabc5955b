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

// changing is a reading that is changed while it is on its way.
type changing struct {
	t           testing.TB
	app         *tests.TestApp
	emr         *stubEMR
	clock       *ticking
	worker      *emr.Worker
	withdrawn   bool
	pulse       bool
	id, reading string // of the transmission, and of the observation
}

func newChanging(t testing.TB) *changing {
	c := &changing{t: t, app: newApp(t), emr: newEMR(), clock: &ticking{at: now}}
	c.worker = newWorker(c.emr, c.clock, func(o *emr.WorkerOptions) {
		o.Load = func(_ core.App, id string) (fhir.Stored, error) {
			r := vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: now}.With(vitals.Systolic, 120).With(vitals.Diastolic, 80)
			if c.pulse {
				r = r.With(vitals.Pulse, 64)
			}
			return fhir.Stored{ID: id, PatientID: patient, Reading: r, EnteredInError: c.withdrawn}, nil
		}
	})
	c.id, c.reading = queue(t, c.app, patient, now)
	return c
}

func (c *changing) withdraw() {
	c.t.Helper()
	c.withdrawn = true
	if err := emr.Withdraw(c.app, c.reading, patient, now, c.clock.now()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *changing) complete() {
	c.t.Helper()
	c.pulse = true
	if err := emr.Correct(c.app, c.reading, c.clock.now()); err != nil {
		c.t.Fatal(err)
	}
}

func (c *changing) send(after time.Duration) emr.Round {
	c.t.Helper()
	c.clock.advance(after)
	return sendDue(c.t, c.worker, c.app, 0)
}

// hold says what the EMR was given: creates, then the statuses of updates in order.
func (c *changing) hold(what string, creates int, updates ...string) {
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

func (c *changing) stands(what, status, code string) {
	c.t.Helper()
	check(c.t, c.app, collections.Transmissions, c.id, map[string]any{"status": status, "error_code": code})
	check(c.t, c.app, collections.Observations, c.reading, map[string]any{"fhir_status": status})
	if c.t.Failed() {
		c.t.Fatalf("after: %s", what)
	}
}

func (c *changing) told() (kinds []string) {
	c.t.Helper()
	if err := c.app.DB().NewQuery("SELECT kind FROM announcements ORDER BY kind").Column(&kinds); err != nil {
		c.t.Fatal(err)
	}
	return kinds
}

// Withdrawn before it is sent it is never sent, not even as withdrawn.
func TestWithdrawnBeforeDelivery(t *testing.T) {
	c := newChanging(t)
	c.withdraw()
	c.send(time.Minute)
	c.hold("withdrawn", 0)
	c.stands("withdrawn", "failed", "entered_in_error")

	c = newChanging(t) // claimed, and not yet read: what is read then says that it is withdrawn
	claim(t, c.app, 1, now)
	c.withdraw()
	if _, err := emr.Recover(c.app, nil, now); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	c.send(24 * time.Hour)
	c.hold("withdrawn while claimed", 0)
	c.stands("withdrawn while claimed", "failed", "entered_in_error")
}

// Withdrawn after it was sent the EMR's copy is marked, once, however often the round runs; and people are not sent there.
func TestWithdrawnAfterDelivery(t *testing.T) {
	c := newChanging(t)
	c.send(time.Minute)
	c.withdraw()
	c.stands("withdrawn", "pending", "")
	c.send(time.Minute)
	c.send(time.Hour)
	c.withdraw()
	c.send(time.Hour)
	c.hold("withdrawn", 1, "entered-in-error")
	c.stands("withdrawn", "transmitted", "")
	if told := c.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

// What came while it was under way is followed as soon as that has ended.
func TestWithdrawnUnderWay(t *testing.T) {
	c := newChanging(t)
	c.emr.onSend = func(string) { c.withdraw() }
	c.send(time.Minute)
	c.emr.onSend = nil
	c.stands("withdrawn under way", "pending", "")
	c.send(time.Minute)
	c.hold("withdrawn under way", 1, "entered-in-error")
	c.stands("withdrawn under way", "transmitted", "")
}

// After an end that nobody knows the EMR is asked: what it has is marked, what it has not stays away.
func TestWithdrawnWhileUnknown(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		c := newChanging(t)
		c.emr.refuse = func(id string, _ int) *emr.Error {
			if arrived {
				c.emr.stored[c.reading] = "obs-1"
			}
			return unavailable()
		}
		c.send(time.Minute)
		c.emr.refuse = nil
		c.withdraw()
		c.send(time.Second)
		if arrived {
			c.hold("arrived", 1, "entered-in-error")
			c.stands("arrived", "transmitted", "")
			continue
		}
		c.hold("not arrived", 1)
		c.stands("not arrived", "failed", "entered_in_error")
		c.send(24 * time.Hour)
		c.hold("not arrived", 1)
	}
}

// Refused while it was withdrawn there is nothing at the EMR, and nobody to be asked about it.
func TestWithdrawnWhileRefused(t *testing.T) {
	c := newChanging(t)
	c.emr.refuse = func(string, int) *emr.Error { return invalid() }
	c.emr.looking = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "forbidden"}
	c.emr.onSend = func(string) { c.withdraw() }
	c.send(time.Minute)
	c.send(24 * time.Hour)
	c.hold("refused", 1)
	c.stands("refused", "failed", "entered_in_error")
	if told := c.told(); len(told) != 0 {
		t.Errorf("told %v", told)
	}
}

// Completed after it was sent the EMR gets a new version; completed before, the reading is sent once as it is.
func TestCompletedReading(t *testing.T) {
	c := newChanging(t)
	c.complete()
	c.send(time.Minute)
	c.send(time.Minute)
	c.hold("before", 1)
	if !strings.Contains(string(c.emr.body), "8867-4") {
		t.Error("the pulse is missing")
	}

	c = newChanging(t)
	c.send(time.Minute)
	c.complete()
	c.send(time.Minute)
	c.withdraw()
	c.send(time.Minute)
	c.hold("after", 1, "amended", "entered-in-error")

	c = newChanging(t) // what was read for the first send has it already
	c.emr.onSend = func(string) { c.emr.onSend = nil; c.complete() }
	c.send(time.Minute)
	c.send(time.Minute)
	c.hold("under way", 1, "amended")
}

// What the EMR is known to say already is not said again.
func TestNothingChanged(t *testing.T) {
	c := newChanging(t)
	c.send(time.Minute)
	for range 3 {
		if err := emr.Correct(c.app, c.reading, c.clock.now()); err != nil {
			t.Fatal(err)
		}
		c.send(time.Minute)
	}
	c.hold("unchanged", 1)
	c.stands("unchanged", "transmitted", "")
}

// An update has the retries of a first send, looks before it puts anything a second time, and has people told when the EMR will not have it.
func TestUpdateIsRetried(t *testing.T) {
	c := newChanging(t)
	c.send(time.Minute)
	c.withdraw()
	c.emr.refuse = func(string, int) *emr.Error { return unavailable() }
	c.send(time.Minute)
	c.stands("unavailable", "failed", "emr_unavailable")
	if told := c.told(); len(told) != 0 {
		t.Errorf("told %v of what is tried again", told)
	}
	c.emr.refuse = nil
	c.send(24 * time.Hour)
	if n := len(c.emr.updates); n != 2 || c.emr.updates[0].ambiguous || !c.emr.updates[1].ambiguous {
		t.Errorf("updates %+v", c.emr.updates)
	}
	c.stands("back", "transmitted", "")

	c = newChanging(t)
	c.send(time.Minute)
	c.withdraw()
	c.emr.refuse = func(string, int) *emr.Error {
		return &emr.Error{Code: emr.CodeUpdateRefused, Status: 403, Message: "Update refused by EMR (403: insufficient scope)"}
	}
	for range 8 {
		c.send(24 * time.Hour)
	}
	if told := c.told(); !slices.Equal(told, []string{"delivery_given_up", "emr_copy_wrong"}) {
		t.Errorf("told %v", told)
	}
	if n := len(c.emr.updates); n != 6 {
		t.Errorf("%d updates were tried", n)
	}
	c.emr.refuse = nil // a person has it sent again
	if err := c.worker.Transform(c.app, c.reading, person, c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	c.stands("by hand", "transmitted", "")
}

// Where the EMR said no id its copy is found by the identifier, and where searching is forbidden people are told.
func TestUpdateWithoutID(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		c := newChanging(t)
		c.send(time.Minute)
		if _, err := c.app.DB().Update(collections.Transmissions, dbx.Params{"emr_resource_id": ""}, dbx.HashExp{"id": c.id}).Execute(); err != nil {
			t.Fatal(err)
		}
		if forbidden {
			c.emr.looking = &emr.Error{Code: emr.CodeAuth, Status: 403, Message: "forbidden"}
		}
		c.withdraw()
		c.send(time.Minute)
		if forbidden {
			c.hold("forbidden", 1)
			if told := c.told(); !slices.Equal(told, []string{"emr_copy_wrong"}) {
				t.Errorf("told %v", told)
			}
			continue
		}
		c.hold("found", 1, "entered-in-error")
	}
}

// A heart rate that is sent besides follows its reading, and says nothing of the reading's own delivery.
func TestHeartRateFollows(t *testing.T) {
	c := newChanging(t)
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
	c.withdraw()
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

// A mean is sent once, again when it has changed, and not for the asking.
func TestMeanIsSentWhenItChanges(t *testing.T) {
	c := newChanging(t)
	mean := fhir.Mean{Readings: 14, Systolic: 131.3, Diastolic: 80.9, From: now, To: now.AddDate(0, 0, 7)}
	c.worker.LoadMean = func(core.App, string, string, string) (fhir.Mean, error) { return mean, nil }
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
	mean.Readings, mean.Systolic, c.withdrawn = 13, 130, true
	if err := emr.Withdraw(c.app, c.reading, patient, time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC), c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.send(time.Minute)
	if len(c.emr.updates) != 4 { // the reading and the week in which it was
		t.Errorf("%d updates after a reading of the week was withdrawn", len(c.emr.updates))
	}
}
