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

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// BenchmarkReadingsBesidePushes stores a reading every ten milliseconds, as durably as the service does. It alternates between storing readings
// during pushes of one event to a thousand users, and for the same time without pushes. It reports the 99th percentile of the time from arrival to
// commit for both, in milliseconds, and the relative difference.
func BenchmarkReadingsBesidePushes(b *testing.B) {
	const people = 1000
	w := newPractice(b)
	if _, err := w.app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
		b.Fatal(err)
	}
	phone := newBrowser(b)
	for i := range people {
		w.register(vigiltest.User(b, w.app, authz.Admin), "web_push_dev", "phone", phone.subscribe(fmt.Sprint(w.service.URL, "/", i)))
	}
	s := newStream(b, w)
	var calm, pushing []time.Duration
	event := 0
	for b.Loop() {
		event++
		began := time.Now()
		done := make(chan struct{})
		w.announce(notifications.Announcement{Kind: notifications.ServiceTrouble, Severity: "warning", Body: "x", Key: fmt.Sprint(event)})
		go func() {
			defer close(done)
			if pushed, err := w.SendDue(b.Context(), w.app); err != nil || pushed.Sent != people {
				b.Errorf("%+v, %v", pushed, err)
			}
		}()
		pushing = append(pushing, s.during(done)...)
		asLong := make(chan struct{})
		time.AfterFunc(time.Since(began), func() { close(asLong) })
		calm = append(calm, s.during(asLong)...)
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

// stream produces readings of several patients.
type stream struct {
	b        *testing.B
	now      time.Time
	writer   *ingest.Writer
	patients []string
	number   int
}

func newStream(b *testing.B, w *practice) *stream {
	b.Helper()
	s := &stream{b: b, now: w.now}
	engine := ingest.NewReadingStore(ingest.Rules{PracticeZone: newYork, MaxFuture: time.Hour})
	s.writer = ingest.NewWriter(engine, func() time.Time { return w.now }, slog.New(slog.DiscardHandler), func([]ingest.Outcome) {})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.writer.Run(ctx, w.app) })
	b.Cleanup(func() { stop(); running.Wait() })
	for i := range 200 {
		s.patients = append(s.patients, w.enroll("Quendolin", fmt.Sprint("Mummelsee", i), ""))
		if err := w.app.RunInTransaction(func(tx core.App) error { return triage.AddRow(tx, s.patients[i], w.now) }); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// next returns a reading that notifies no user.
func (s *stream) next() ingest.Submission {
	s.number++
	systolic, diastolic := 120.0, 80.0
	return ingest.Submission{
		PatientID: s.patients[s.number%len(s.patients)], Source: vitals.SourceAPI, ReceivedAt: s.now, By: audit.System(),
		Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: s.now.Add(time.Duration(s.number-1_000_000) * time.Second)}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic),
	}
}

// during stores readings at a fixed rate until end is closed, and returns the latencies.
func (s *stream) during(end <-chan struct{}) (took []time.Duration) {
	var mu sync.Mutex
	var under sync.WaitGroup
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-end:
			under.Wait()
			return took
		case <-tick.C:
			submission, came := s.next(), time.Now()
			under.Go(func() {
				if _, err := s.writer.Submit(context.Background(), submission); err != nil {
					s.b.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(came))
			})
		}
	}
}
