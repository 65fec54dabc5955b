package billing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// answers is all that stands on worklists, as text; filters are asked for in turns.
func answers(app core.App, e *billing.Engine, now time.Time, user string) (lines []string, err error) {
	payer, none := fmt.Sprintf("%015d", 1), ""
	month := billing.Span{Start: now.In(newYork).Format("2006-01") + "-01"}
	month, _ = billing.MonthSpan(month.Start[:7])
	before, _ := billing.MonthSpan(billing.AddDays(month.Start, -1)[:7])
	for name, f := range map[string]billing.UnbilledFilter{
		"all": {}, "code": {CPTCode: billing.DeviceSupply}, "dates": {From: before.Start, To: before.End}, "payer": {Payer: &payer}, "self": {Payer: &none}, "provider": {Provider: &user},
	} {
		list, err := e.Unbilled(app, f, now)
		if err != nil {
			return nil, err
		}
		for i, u := range list {
			days, minutes := -1, -1
			if u.TransmissionDays != nil {
				days = *u.TransmissionDays
			}
			if u.Minutes != nil {
				minutes = *u.Minutes
			}
			u.TransmissionDays, u.Minutes = nil, nil
			lines = append(lines, fmt.Sprintf("unbilled %s %03d %+v %d %d", name, i, u, days, minutes))
		}
	}
	for _, byWorth := range []bool{false, true} {
		near, total, err := e.NearBillable(app, now, billing.NearFilter{ByWorth: byWorth}, 0, 1000)
		if err != nil {
			return nil, err
		}
		for i, n := range near {
			reached := ""
			if n.Reached != nil {
				reached = *n.Reached
			}
			n.Reached = nil
			lines = append(lines, fmt.Sprintf("near %t %d of %d %+v %s", byWorth, i, total, n, reached))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// Whatever happens, in whatever order and by whatever way, what stands on a worklist is what a plan that nothing was remembered for comes to; and so it is inside a transaction,
// which may be rolled back.
func TestWorklistsAreFresh(t *testing.T) {
	tried, moved := map[string]int{}, map[string]int{}
	for seed := range uint64(vigiltest.Rounds(4, 2)) {
		h := newHistory(t, seed)
		steps := h.steps()
		var names []string
		for name := range steps {
			names = append(names, name)
		}
		slices.Sort(names)
		for n := range vigiltest.Rounds(220, 110) {
			name := names[h.dice.IntN(len(names))]
			patient := h.people[h.dice.IntN(len(h.people))]
			var refused *fault.Error
			if err := steps[name](patient); err != nil && !errors.As(err, &refused) {
				t.Fatalf("seed %d, step %d, %s: %v", seed, n, name, err)
			}
			tried[name]++
			if h.compare(t, fmt.Sprintf("seed %d, after step %d, %s of %s", seed, n, name, patient)) {
				moved[name]++
			}
		}
		if patients, wrong, err := h.recount(t); err != nil || wrong != 0 || patients < 5 {
			t.Errorf("the nightly recount of %d patients finds %d wrong: %v", patients, wrong, err)
		}
	}
	t.Log(moved)
	for name := range newHistory(t, 1).steps() {
		if tried[name] == 0 && vigiltest.Rounds(1, 0) == 1 { // under the race detector there are too few steps for all
			t.Errorf("%q was never tried: what was?", name)
		}
	}
	if len(moved) < 15 {
		t.Errorf("only %d kinds of steps moved anything", len(moved))
	}
}

// compare holds worklists against plans that nothing was remembered for, and reports whether it is another than the last time.
func (h *history) compare(t *testing.T, when string) (moved bool) {
	t.Helper()
	listed, err := answers(h.app, h.e, h.now, h.user)
	if err != nil {
		t.Fatal(when, err)
	}
	fresh, err := answers(h.app, h.fresh(), h.now, h.user)
	if err != nil {
		t.Fatal(when, err)
	}
	if slices.Equal(listed, fresh) {
		moved, h.last = !slices.Equal(listed, h.last), listed
		return moved
	}
	only := func(a, b []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) }), "\n")
	}
	t.Fatalf("%s\nlisted alone:\n%s\nfresh alone:\n%s", when, only(listed, fresh), only(fresh, listed))
	return false
}

// A set-up counts for whoever held the device then: it is another's once the device was set up anew, and nobody's once the device has another name.
func TestWorklistsOfSetUps(t *testing.T) {
	h := newHistory(t, 77)
	first, second, device := h.people[0], h.people[1], "HIST-set-up"
	set := func() int {
		h.compare(t, "set-ups")
		list, err := h.e.Unbilled(h.app, billing.UnbilledFilter{CPTCode: billing.Setup}, h.now)
		h.must(t, err)
		return len(list)
	}
	before := set()
	h.must(t, h.assign(first, device, h.now.AddDate(0, 0, -70)))
	for day := range 70 {
		h.must(t, h.read(first, device, h.now.AddDate(0, 0, -day)))
	}
	complete := func(at time.Time) {
		_, err := devices.CompleteSetUp(h.app, device, devices.SetUp{CompletedAt: at}, h.by, h.now)
		h.must(t, err)
	}
	complete(h.now.AddDate(0, 0, -69))
	if got := set(); got != before+1 {
		t.Fatalf("%d set-ups wait, and %d did before there was one more", got, before)
	}
	_, err := devices.Unassign(h.app, device, "Handed on", h.by, h.now)
	h.must(t, err)
	h.now = h.now.Add(time.Hour)
	h.must(t, h.assign(second, device, h.now))
	h.must(t, h.exec(`UPDATE devices SET setup_completed_at = {:at} WHERE device_id = {:d}`, dbx.Params{"at": collections.Instant(h.now), "d": device}))
	set()
	h.must(t, h.exec(`UPDATE devices SET setup_completed_at = {:at} WHERE device_id = {:d}`, dbx.Params{"at": collections.Instant(h.now.AddDate(0, 0, -60)), "d": device}))
	set()
	h.must(t, h.exec(`UPDATE devices SET device_id = 'HIST-renamed' WHERE device_id = {:d}`, dbx.Params{"d": device}))
	set()
}

// Days that are counted anew are other days, whoever counts them, and whatever else of the patient stays.
func TestWorklistsOfDays(t *testing.T) {
	h := newHistory(t, 31)
	patient := h.people[0]
	h.must(t, h.assign(patient, "HIST-days", h.now.AddDate(0, 0, -70)))
	for day := range 70 {
		h.must(t, h.read(patient, "HIST-days", h.now.AddDate(0, 0, -day)))
	}
	h.compare(t, "at first")
	h.must(t, h.exec(`DELETE FROM reading_days WHERE patient = {:p}`, dbx.Params{"p": patient})) // leaves no trace
	h.must(t, h.exec(`UPDATE patients SET primary_provider = iif(primary_provider = '', {:u}, '') WHERE id = {:p}`, dbx.Params{"p": patient, "u": h.user}))
	if !h.compare(t, "without days") {
		t.Error("nobody notices that days are gone")
	}
	h.must(t, h.night(""))
	if !h.compare(t, "after the night") {
		t.Error("nobody notices that they are back")
	}
}

// While readings come in, time is logged and billing runs, several ask at once; when it is quiet the worklists say what was stored.
func TestWorklistsBesideWriters(t *testing.T) {
	h := newHistory(t, 99)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	now := h.now
	var writers, readers sync.WaitGroup
	readers.Go(func() {
		h.e.RefreshWorklists(ctx, h.app, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	})
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				if _, err := answers(h.app, h.e, now, h.user); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	rounds := vigiltest.Rounds(60, 20)
	writers.Go(func() {
		for i := range rounds {
			for n, patient := range h.people {
				when := now.AddDate(0, 0, -(i+n)%60).Add(-time.Duration(i) * time.Minute)
				_, err := h.writer.Submit(t.Context(), observations.Submission{
					PatientID: patient, Source: vitals.SourceGateway, By: h.by, ReceivedAt: now,
					Reading: vitals.Reading{Kind: vitals.Weight, MeasuredAt: when, DeviceID: h.device(n)}.With(vitals.WeightKg, 70),
				})
				var refused *fault.Error
				if err != nil && !errors.As(err, &refused) {
					t.Error(err)
				}
			}
		}
	})
	writers.Go(func() {
		for range rounds / 10 {
			if err := errors.Join(h.run(billing.AllJobs), h.fees(), h.move("lifecycle_status = 'pending_review'", h.e.Void("Not worn", now))); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	cancel()
	readers.Wait()
	h.compare(t, "after everything")
	if _, wrong, err := h.recount(t); err != nil || wrong != 0 {
		t.Errorf("the nightly recount finds %d wrong: %v", wrong, err)
	}
}

// In a transaction the answer is that of the transaction, and it is gone with it.
func TestWorklistsInTransaction(t *testing.T) {
	h := newHistory(t, 12)
	all := func(app core.App) []string {
		lines, err := answers(app, h.e, h.now, h.user)
		h.must(t, err)
		return lines
	}
	before, rolledBack := all(h.app), errors.New("rolled back")
	err := h.app.RunInTransaction(func(tx core.App) error {
		if _, err := tx.DB().NewQuery(`DELETE FROM consents`).Execute(); err != nil {
			return err
		}
		if slices.Equal(all(tx), before) {
			t.Error("nobody notices that all consents are gone")
		}
		return rolledBack
	})
	if !errors.Is(err, rolledBack) || !slices.Equal(all(h.app), before) {
		t.Errorf("what was rolled back is remembered: %v", err)
	}
}

// recount is the nightly one; wrong are the lists and patients that differed.
func (h *history) recount(t *testing.T) (patients, wrong int, err error) {
	t.Helper()
	patients, err = h.e.RecountWorklists(t.Context(), h.app, h.now, func(list, patientID string) {
		if wrong++; list == "" || !slices.Contains(h.people, patientID) {
			t.Errorf("wrong is %q of %q", list, patientID)
		}
	})
	return patients, wrong, err
}

// A fault that nobody was told of is found in the night, and put right.
func TestWorklistsRecounted(t *testing.T) {
	h := newHistory(t, 21)
	h.must(t, h.e.RefreshForTest(h.app, h.now))
	if _, wrong, err := h.recount(t); err != nil || wrong != 0 {
		t.Fatalf("%d are wrong from the start: %v", wrong, err)
	}
	h.must(t, h.exec(`DELETE FROM reading_days WHERE patient = {:p}`, dbx.Params{"p": h.people[0]})) // leaves no trace
	if listed, err := answers(h.app, h.e, h.now, h.user); err != nil {
		t.Fatal(err)
	} else if fresh, err := answers(h.app, h.fresh(), h.now, h.user); err != nil || slices.Equal(listed, fresh) {
		t.Fatalf("this fault cannot be seen: %v", err)
	}
	patients, wrong, err := h.recount(t)
	if err != nil || wrong == 0 || patients < len(h.people) {
		t.Errorf("of %d patients %d are wrong: %v", patients, wrong, err)
	}
	h.compare(t, "after the recount")
	if _, wrong, err := h.recount(t); err != nil || wrong != 0 {
		t.Errorf("%d are wrong still: %v", wrong, err)
	}
}
