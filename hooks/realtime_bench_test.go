package hooks_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes"
)

// BenchmarkLive stores readings of 50 patients from 64 senders, each commit synced to disk, while browsers follow the triage list over their
// own connections. Then it reviews a patient and measures the time until the last browser receives the change.
func BenchmarkLive(b *testing.B) {
	for _, readers := range []int{0, 100, 1000} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			s := newStation(b, 0, routes.LiveViews{})
			if _, err := s.app.NonconcurrentDB().NewQuery("PRAGMA synchronous = FULL").Execute(); err != nil {
				b.Fatal(err)
			}
			var patients []string
			for range 51 {
				patients = append(patients, s.enrol())
			}
			ctx, stop := context.WithCancel(b.Context())
			var running sync.WaitGroup
			writer := ingest.NewWriter(s.readings, time.Now, s.publisher.Log, func([]ingest.Outcome) { s.publisher.Wake() })
			running.Go(func() { writer.Run(ctx, s.app) })
			running.Go(func() { s.publisher.Run(ctx, s.app) })
			token := vigiltest.Token(b, vigiltest.User(b, s.app, authz.Nurse), time.Now())
			reviewed := patients[50]
			var received sync.WaitGroup
			var messages atomic.Int64
			for range readers {
				s.follow(token, reviewed, &received, &messages)
			}
			b.ResetTimer()
			sendAll(b, writer, patients[:50])
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "readings/s")
			begun := time.Now()
			if err := triage.Review(s.app, reviewed, "", audit.System(), time.Now()); err != nil {
				b.Fatal(err)
			}
			received.Wait()
			b.ReportMetric(float64(time.Since(begun).Milliseconds()), "last-heard-ms")
			b.ReportMetric(float64(messages.Load()), "messages")
			stop()
			running.Wait()
		})
	}
}

// follow opens a stream and reads it until a change of a patient arrives.
func (s *station) follow(token, patient string, received *sync.WaitGroup, messages *atomic.Int64) {
	s.t.Helper()
	id, lines := s.open()
	if status, _ := s.subscribe(id, token, "triage"); status != http.StatusNoContent {
		s.t.Fatalf("answered %d", status)
	}
	received.Go(func() {
		for lines.Scan() {
			if bytes.HasPrefix(lines.Bytes(), []byte("event:")) {
				messages.Add(1)
			}
			if bytes.Contains(lines.Bytes(), []byte(patient)) {
				return
			}
		}
	})
}

// sendAll submits b.N readings from 64 senders.
func sendAll(b *testing.B, writer *ingest.Writer, patients []string) {
	var next atomic.Int64
	var senders sync.WaitGroup
	for range 64 {
		senders.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				systolic, diastolic, at := float64(110+i%45), 80.0, time.Now().Add(time.Duration(i-int64(b.N))*time.Minute)
				_, err := writer.Submit(b.Context(), ingest.Submission{
					PatientID: patients[i%int64(len(patients))], Source: vitals.SourceGateway, By: audit.System(), ReceivedAt: time.Now(),
					Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: at}.With(vitals.Systolic, systolic).With(vitals.Diastolic, diastolic),
				})
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	senders.Wait()
}

func (s *station) enrol() string {
	s.t.Helper()
	record, err := collections.NewRecord(s.app, collections.Patients)
	if err != nil {
		s.t.Fatal(err)
	}
	record.Load(map[string]any{"first_name": "Ada", "last_name": "Lovelace", "date_of_birth": "1950-12-10", "gender": "female", "active": true})
	if err := s.app.Save(record); err != nil {
		s.t.Fatal(err)
	}
	return record.Id
}
