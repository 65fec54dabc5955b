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
// -benchtime 5000x says how many.
func BenchmarkDeliver(b *testing.B) {
	b.Run("sandbox", func(b *testing.B) {
		p := newPractice(b, &sandboxSigningKey().PublicKey, func() {}, nil)
		benchmark(b, p.url, b.N)
		if stats := p.emr.Stats(); stats.Observations != b.N {
			b.Errorf("%d observations, want %d", stats.Observations, b.N)
		}
	})
	// The EMR takes 50 ms for each.
	b.Run("slow", func(b *testing.B) { benchmark(b, forgetful(b, 50*time.Millisecond), b.N) })
	// An EMR that keeps nothing, so that the memory seen is ours: it does not depend on what waits.
	b.Run("of 1,000", func(b *testing.B) { benchmark(b, forgetful(b, 0), 1000) })
	b.Run("of 100,000", func(b *testing.B) { benchmark(b, forgetful(b, 0), 100_000) })
}

// forgetful is an EMR that says yes to everything.
func forgetful(b *testing.B, delay time.Duration) (url string) {
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

// benchmark delivers b.N of what waits.
func benchmark(b *testing.B, url string, waiting int) {
	app := newApp(b)
	queueMany(b, app, max(waiting, b.N))
	if _, err := app.NonconcurrentDB().NewQuery("PRAGMA wal_checkpoint(TRUNCATE)").Execute(); err != nil { // of the making of the backlog
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
	before := heap()
	watch := newWatch(app)
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

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watch looks at the heap, and writes as ingestion does, while deliveries run.
type watch struct {
	done  chan struct{}
	group sync.WaitGroup
	peak  uint64
	waits []time.Duration
}

func newWatch(app core.App) *watch {
	w := &watch{done: make(chan struct{})}
	w.group.Go(func() {
		for {
			select {
			case <-w.done:
				return
			case <-time.After(10 * time.Millisecond):
			}
			w.peak = max(w.peak, heap())
			start := time.Now()
			_ = app.RunInTransaction(func(tx core.App) error {
				_, err := emr.Queue(tx, emr.Draft{ObservationID: time.Now().String(), PatientID: stranger, ObservationType: "weight"},
					time.Now().Add(time.Hour)) // pending, yet of a patient without an EMR id
				if err == nil {
					_, err = tx.DB().Delete("transmissions", dbx.HashExp{"patient": stranger}).Execute()
				}
				return err
			})
			w.waits = append(w.waits, time.Since(start))
		}
	})
	return w
}

func (w *watch) stop() (peak uint64, waits []time.Duration) {
	close(w.done)
	w.group.Wait()
	return w.peak, w.waits
}
