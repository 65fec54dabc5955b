package routes_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/routes"
)

// A delivery that succeeds after the last connection check overrides its result, until the next check.
func TestConnectedAsSoonAsDelivered(t *testing.T) {
	var d *delivering
	monitor := dashboard.NewMonitor(dashboard.Probes{
		Database: func(context.Context, core.App) error { return nil }, EMR: func(context.Context) error { return errors.New("gone") },
		FHIR: func() error { return nil }, Workers: func(core.App) (int, int, error) { return 1, 0, nil },
	}, func() time.Time { return *d.at.Load() }, slog.New(slog.DiscardHandler))
	d = newDelivering(t, func(e *routes.Engines) { e.Monitor = monitor })
	status := func(want string) {
		t.Helper()
		d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"emr_connection": want})
	}
	monitor.Check(t.Context(), d.app)
	status("disconnected")
	d.advance(time.Second)
	d.send()
	if s := <-d.finished; s.Failed() {
		t.Fatalf("%+v", s)
	}
	status("connected")
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"emr_away_since": nil, "status": "operational"})
	d.advance(time.Second)
	monitor.Check(t.Context(), d.app)
	status("disconnected")
}

// The queue of deliveries includes those that wait for an earlier one, as the status does.
func TestQueueIncludesOrderedDeliveries(t *testing.T) {
	d := newDelivering(t)
	d.stopWorker()
	for n, waits := range []string{"", "turn", "turn", "link"} {
		d.insert(collections.Transmissions, dbx.Params{
			"id": collections.NumberID(int64(n + 1)), "observation": collections.NewUUID(), "patient": d.patient, "observation_type": "weight", "status": "pending", "waits_for": waits,
			"created_at": collections.FormatInstant(clock.Add(-time.Duration(n) * time.Minute)),
		})
	}
	for _, q := range collections.Queues {
		want, since := map[string]int{"transmissions": 3, "transmissions_unlinked": 1}[q.Name], map[string]time.Time{
			"transmissions": clock.Add(-2 * time.Minute), "transmissions_unlinked": clock.Add(-3 * time.Minute),
		}[q.Name]
		if got, first, err := q.Depth(d.app); err != nil || got != want || !first.Equal(since) {
			t.Errorf("%s: %d since %s, want %d since %s (%v)", q.Name, got, first, want, since, err)
		}
	}
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.pending": 3.0, "queue.unlinked": 1.0})
}

// The list of unlinked patients and the status have the same count, for every delivery form.
func TestUnlinkedCountsEveryForm(t *testing.T) {
	d := newDelivering(t)
	d.stopWorker()
	patient := d.enroll(object{"last_name": "Unlinked"})
	for n, form := range []string{"", "heart_rate", "mean_blood_pressure"} {
		d.insert(collections.Transmissions, dbx.Params{
			"id": collections.NumberID(int64(n + 1)), "patient": patient, "observation_type": "blood_pressure", "status": "pending", "waits_for": "link", "form": form,
			"created_at": collections.FormatInstant(clock),
		})
	}
	d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"queue.unlinked": 3.0})
	if list := d.request(authz.Admin, "GET", "/emr/unlinked-patients/", nil).results(); len(list) != 1 || list[0]["waiting_readings"] != 3.0 {
		t.Errorf("list %v", list)
	}
}
