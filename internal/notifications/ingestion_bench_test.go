package notifications_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// BenchmarkReadingsBesidePushes stores readings that come every ten milliseconds, each as durably as in the service, while nothing else
// happens and while a thousand people are pushed one event, by turns. It reports the 99th percentile of the time from a reading's arrival to its
// commit for both, in milliseconds, and by how much of itself the one exceeds the other.
func BenchmarkReadingsBesidePushes(b *testing.B) {
	const people, patients, every = 1000, 200, 10 * time.Millisecond
	w := newWard(b)
	if _, err := w.app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
		b.Fatal(err)
	}
	phone := newBrowser(b)
	for i := range people {
		w.register(vigiltest.User(b, w.app, access.Admin), "web_push_dev", "phone", phone.subscribe(fmt.Sprint(w.service.URL, "/", i)))
	}
	engine := observations.NewEngine(observations.Rules{PracticeZone: newYork, MaxFuture: time.Hour})
	writer := observations.NewWriter(engine, func() time.Time { return w.now }, slog.New(slog.DiscardHandler), func([]observations.Outcome) {})
	ctx, stop := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { writer.Run(ctx, w.app) })
	b.Cleanup(func() { stop(); running.Wait() })

	var ids []string
	for i := range patients {
		ids = append(ids, w.enrol("Quendolin", fmt.Sprint("Mummelsee", i), ""))
		if err := w.app.RunInTransaction(func(tx core.App) error { return triage.Enrol(tx, ids[i], w.now) }); err != nil {
			b.Fatal(err)
		}
	}
	number := 0
	next := func() observations.Submission {
		number++
		systolic, diastolic := 120.0, 80.0
		return observations.Submission{
			PatientID: ids[number%patients], Source: vitals.SourceAPI, ReceivedAt: w.now, By: audit.System(),
			Reading: vitals.Reading{
				Kind: vitals.BloodPressure, Systolic: &systolic, Diastolic: &diastolic, MeasuredAt: w.now.Add(time.Duration(number-1_000_000) * time.Second),
			},
		}
	}
	// during stores readings as they come, whether earlier ones are stored or not, until it is told to end, and returns how long each took.
	during := func(end <-chan struct{}) (took []time.Duration) {
		var mu sync.Mutex
		var under sync.WaitGroup
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-end:
				under.Wait()
				return took
			case <-tick.C:
				submission, came := next(), time.Now()
				under.Go(func() {
					if _, err := writer.Submit(ctx, submission); err != nil {
						b.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(came))
				})
			}
		}
	}
	var calm, pushing []time.Duration
	event := 0
	for b.Loop() {
		event++
		began := time.Now()
		done := make(chan struct{})
		w.announce(notifications.Announcement{Kind: notifications.ServiceTrouble, Severity: "warning", Body: "x", Key: fmt.Sprint(event)})
		go func() {
			defer close(done)
			if pushed, err := w.SendDue(ctx, w.app); err != nil || pushed.Sent != people {
				b.Errorf("%+v, %v", pushed, err)
			}
		}()
		pushing = append(pushing, during(done)...)
		asLong := make(chan struct{})
		time.AfterFunc(time.Since(began), func() { close(asLong) })
		calm = append(calm, during(asLong)...)
	}
	p99 := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(took[len(took)*99/100].Microseconds()) / 1000
	}
	b.ReportMetric(p99(calm), "ms-p99-calm")
	b.ReportMetric(p99(pushing), "ms-p99-pushing")
	b.ReportMetric(100*(p99(pushing)/p99(calm)-1), "%-more")
	b.ReportMetric(float64(len(calm)+len(pushing)), "readings")
}
