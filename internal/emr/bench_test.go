package emr_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/emr"
)

// BenchmarkDeliver delivers a backlog over HTTP without pacing; an operation is one delivery, from claim to commit.
// -benchtime 5000x sets how many.
func BenchmarkDeliver(b *testing.B) {
	b.Run("sandbox", func(b *testing.B) {
		p := newSandboxEMR(b, &sandboxSigningKey().PublicKey, func() {}, nil)
		benchmark(b, p.url, b.N)
		if stats := p.emr.Stats(); stats.Observations != b.N {
			b.Errorf("%d observations, want %d", stats.Observations, b.N)
		}
	})
	// Each response of the EMR takes 50 ms.
	b.Run("slow", func(b *testing.B) { benchmark(b, newDiscardingEMR(b, 50*time.Millisecond), b.N) })
	// An EMR that stores nothing, so that the measured memory is the worker's. It must not depend on the backlog.
	b.Run("of 1,000", func(b *testing.B) { benchmark(b, newDiscardingEMR(b, 0), 1000) })
	b.Run("of 100,000", func(b *testing.B) { benchmark(b, newDiscardingEMR(b, 0), 100_000) })
}

// newDiscardingEMR serves an EMR that accepts everything and stores nothing.
func newDiscardingEMR(b *testing.B, delay time.Duration) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"access_token":"a","token_type":"bearer","expires_in":3600}`))
			return
		}
		time.Sleep(delay)
		w.Header().Set("Location", "/fhir/demo/Observation/o-1/_history/1")
		w.WriteHeader(http.StatusCreated)
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// benchmark delivers b.N deliveries of a backlog.
func benchmark(b *testing.B, url string, waiting int) {
	app := newApp(b)
	queueMany(b, app, max(waiting, b.N))
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(TRUNCATE)").Execute(); err != nil { // clear the writes that made the backlog
		b.Fatal(err)
	}
	client, err := sandboxClient(url, sandboxSigningKey(), true)
	if err != nil {
		b.Fatal(err)
	}
	w := sandboxWorker(client, nil)
	if _, err := client.SignIn(b.Context()); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	before := heapBytes()
	watch := newHeapWatch(app)
	b.ResetTimer()
	round, err := w.SendDue(b.Context(), app, b.N)
	b.StopTimer()
	peak, waits := watch.stop()
	if err != nil || round.Succeeded != b.N {
		b.Fatalf("%+v (%v)", round, err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(max(0, float64(peak)-float64(before))/1e6, "MB-peak")
	if len(waits) > 0 {
		slices.Sort(waits)
		b.ReportMetric(float64(waits[len(waits)/2].Microseconds())/1000, "ms-write-p50")
		b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "ms-write-p99")
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// heapWatch samples the heap, and writes as ingestion does, while deliveries run.
type heapWatch struct {
	done  chan struct{}
	group sync.WaitGroup
	peak  uint64
	waits []time.Duration
}

func newHeapWatch(app core.App) *heapWatch {
	w := &heapWatch{done: make(chan struct{})}
	w.group.Go(func() {
		for {
			select {
			case <-w.done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			w.peak = max(w.peak, heapBytes())
			start := time.Now()
			_ = app.RunInTransaction(func(tx core.App) error {
				_, err := emr.Queue(tx, emr.Draft{ObservationID: time.Now().String(), PatientID: unlinkedPatient, ObservationType: "weight"},
					time.Now().Add(time.Hour)) // pending, but of a patient without an EMR id
				if err == nil {
					_, err = tx.DB().Delete("transmissions", dbx.HashExp{"patient": unlinkedPatient}).Execute()
				}
				return err
			})
			w.waits = append(w.waits, time.Since(start))
		}
	})
	return w
}

func (w *heapWatch) stop() (peak uint64, waits []time.Duration) {
	close(w.done)
	w.group.Wait()
	return w.peak, w.waits
}
