package devices_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func connected(device string, at time.Time) gateway.Event {
	return gateway.Event{Type: gateway.DeviceConnected, DeviceID: device, At: at}
}

func repeat(n int, text string) (list []string) {
	for range n {
		list = append(list, text)
	}
	return list
}

func newProvider(w *fixture, email string) string {
	w.Helper()
	return vigiltest.User(w.T, w.app, authz.Provider, vigiltest.Email(email)).Id
}

// After any order of assignments, returns and replacements, now and in the past, and any rejections: no moment has two holders, the history
// stays, and the registry names the current holder.
func TestAssignmentHistory(t *testing.T) {
	w := newFixture(t)
	random := rand.New(rand.NewPCG(7, 11))
	people := []string{w.patient(nil), w.patient(nil), w.patient(nil)}
	ids := []string{"D-1", "D-2", "D-3"}
	start := w.now
	type moment struct {
		device string
		at     time.Time
	}
	known := map[moment]string{}
	done := 0
	for range 300 {
		w.now = w.now.Add(time.Duration(1+random.IntN(600)) * time.Second)
		device := ids[random.IntN(len(ids))]
		var err error
		switch random.IntN(4) {
		case 0, 1:
			at := time.Time{}
			if random.IntN(2) == 0 {
				at = w.now.Add(-time.Duration(random.IntN(3600)) * time.Second)
			}
			_, err = w.engine.Assign(w.app, devices.Assignment{DeviceID: device, PatientID: people[random.IntN(3)], Type: "weight", At: at}, nurse, w.now)
		case 2:
			_, err = devices.Unassign(w.app, device, "Any", nurse, w.now)
		default:
			_, err = w.engine.Replace(w.app, device, devices.Replacement{NewDeviceID: ids[random.IntN(3)], Reason: "Any"}, nurse, w.now)
			if _, clean := w.app.DB().NewQuery(`UPDATE devices SET status = 'inventory' WHERE status = 'replaced'`).Execute(); clean != nil {
				t.Fatal(clean)
			}
		}
		var refused *fault.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if err == nil {
			done++
		}
		checkNoOverlap(w, ids)
		for at, holder := range known {
			got, err := collections.DeviceHolder(w.app, at.device, at.at)
			w.ok(err)
			if holder != "" && got != holder {
				t.Fatalf("%s at %s belonged to %s and now to %s", at.device, at.at, holder, got)
			}
		}
		for _, id := range ids {
			holder, err := collections.DeviceHolder(w.app, id, w.now)
			w.ok(err)
			if registered, err := collections.FindDevice(w.app, id); err == nil && registered.PatientID() != holder {
				t.Fatalf("%s is with %q, the history has %q", id, registered.PatientID(), holder)
			}
			if random.IntN(10) == 0 {
				known[moment{id, w.now}] = holder
			}
		}
	}
	if done < 50 || w.now.Before(start) {
		t.Errorf("only %d of the moves were made", done)
	}
}

func checkNoOverlap(w *fixture, ids []string) {
	w.Helper()
	for _, id := range ids {
		history, err := collections.AssignmentsOf(w.app, id)
		w.ok(err)
		for i, one := range history {
			for _, other := range history[i+1:] {
				if one.Overlaps(other.From(), other.To()) {
					w.Fatalf("%s was in two hands at once", id)
				}
			}
		}
	}
}

// The rule also holds in the dashboard.
func TestGuardAssignment(t *testing.T) {
	w := newFixture(t)
	first, second := w.patient(nil), w.patient(nil)
	w.assign("D-1", first, "scale", w.now.Add(-time.Hour))
	write := func(from, to time.Time) error {
		assignment, err := collections.NewDeviceAssignment(w.app, "D-1", second, from, "")
		w.ok(err)
		assignment.Set("unassigned_at", collections.FormatInstant(to))
		return w.app.Save(assignment)
	}
	for name, test := range map[string]struct {
		from, to time.Time
		ok       bool
	}{
		"no start":    {time.Time{}, w.now, false},
		"backwards":   {w.now.Add(-2 * time.Hour), w.now.Add(-3 * time.Hour), false},
		"overlapping": {w.now.Add(-2 * time.Hour), w.now, false},
		"inside":      {w.now, w.now.Add(time.Hour), false},
		"before":      {w.now.Add(-2 * time.Hour), w.now.Add(-time.Hour), true},
	} {
		if err := write(test.from, test.to); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func BenchmarkRecordSighting(b *testing.B) {
	app := vigiltest.NewApp(b)
	kg := 80.0
	at := vigiltest.Clock
	b.ResetTimer()
	err := app.RunInTransaction(func(tx core.App) error {
		tx = collections.WithStatementCache(tx)
		for i := range b.N {
			_, err := devices.RecordSighting(tx, weightReading("S-1", &kg, at.Add(time.Duration(i)*time.Second)), devices.GatewayReport{ByGateway: true, BatteryLevel: level(80)}, at)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

// Devices report whole seconds: a reading in the second of the assignment belongs to the new holder, unless another patient had the device
// within that second.
func TestAssignmentStartsAtWholeSecond(t *testing.T) {
	w := newFixture(t)
	first, second := w.patient(nil), w.patient(nil)
	start := w.now.Truncate(time.Second)
	for _, step := range []struct {
		after   time.Duration
		patient string // "" unassigns the device
		from    time.Duration
	}{
		{400 * time.Millisecond, first, 0},
		{1600 * time.Millisecond, "", 0},
		{1900 * time.Millisecond, second, 1600 * time.Millisecond},
	} {
		w.now = start.Add(step.after)
		if step.patient == "" {
			_, err := devices.Unassign(w.app, "W-1", "Returned", nurse, w.now)
			w.ok(err)
			continue
		}
		w.assign("W-1", step.patient, "scale", time.Time{})
		holder, since, err := collections.CurrentHolder(w.app, "W-1")
		w.ok(err)
		if holder != step.patient || !since.Equal(start.Add(step.from)) {
			t.Errorf("after %s: held since %s", step.after, since.Sub(start))
		}
	}
}
