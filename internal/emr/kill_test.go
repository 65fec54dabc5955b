package emr_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var person = audit.User(1, "manager@vigil.test", "clinical_manager", audit.Origin{})

// With these environment variables the test binary is a worker process that the tests can kill.
const (
	workerDir = "VIGIL_TEST_WORKER_DIR"
	workerURL = "VIGIL_TEST_WORKER_URL"
	workerKey = "VIGIL_TEST_WORKER_KEY"
	// workerCache is how long the EMR caches searches; when set, conditional create is off.
	workerCache = "VIGIL_TEST_WORKER_CACHE"
	// deliveries is the environment variable with the number of deliveries; 300 when unset.
	deliveries = "VIGIL_TEST_DELIVERIES"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerDir); dir != "" {
		if err := workUntilDone(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// workUntilDone is the worker process: it recovers what its predecessor left and ends when all is delivered.
func workUntilDone(dir string) error {
	der, err := base64.StdEncoding.DecodeString(os.Getenv(workerKey))
	if err != nil {
		return err
	}
	key, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return err
	}
	collections.UseSealer(vigiltest.Sealer())
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: dir, DBConnect: sqlite.Connect})
	if err := app.Bootstrap(); err != nil {
		return err
	}
	keeps, unconditional := time.ParseDuration(os.Getenv(workerCache))
	client, err := sandboxClient(os.Getenv(workerURL), key, unconditional != nil, keeps)
	if err != nil {
		return err
	}
	w := sandboxWorker(client, nil)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.Run(ctx, app) }()
	for left := 1; left > 0; {
		w.Wake()
		time.Sleep(5 * time.Millisecond)
		if left, err = requeueDeadLetters(w, app); err != nil {
			break
		}
	}
	cancel()
	<-ended
	return err
}

// After any faults, and however often the worker is killed, the EMR has each observation once.
func TestExactlyOnceThroughFaultsAndKills(t *testing.T) {
	checkExactlyOnce(t, 300, 10, 0)
}

// The same holds without conditional create, with an EMR that answers searches from its cache despite no-cache.
func TestExactlyOnceThroughStubbornCache(t *testing.T) {
	checkExactlyOnce(t, vigiltest.Rounds(60, 20), int64(vigiltest.Rounds(6, 3)), 400*time.Millisecond)
}

func checkExactlyOnce(t *testing.T, n int, kills int64, cache time.Duration) {
	if text := os.Getenv(deliveries); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	app := newApp(t)
	queueMany(t, app, n)
	var stored, killed atomic.Int64
	var victim atomic.Pointer[os.Process]
	died := int64(0)
	p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {
		// In the middle of a delivery: the EMR has it, and no response was sent.
		if at, done := stored.Add(1), killed.Load(); done < kills && at >= (done+1)*int64(n)/(kills+1) {
			if process := victim.Load(); process != nil && killed.CompareAndSwap(done, done+1) {
				victim.CompareAndSwap(process, nil)
				_ = process.Kill()
			}
		}
	}, injectFaults(0.3, 7), func(o *sandbox.EMROptions) { o.SearchCache, o.StubbornCache = cache, true })
	for {
		worker := exec.CommandContext(t.Context(), os.Args[0])
		worker.Env = append(os.Environ(), workerDir+"="+app.DataDir(), workerURL+"="+p.url,
			workerKey+"="+base64.StdEncoding.EncodeToString(x509.MarshalPKCS1PrivateKey(sandboxSigningKey())))
		if cache > 0 {
			worker.Env = append(worker.Env, workerCache+"="+cache.String())
		}
		var stderr strings.Builder
		worker.Stderr = &stderr
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		victim.Store(worker.Process)
		err := worker.Wait()
		if err == nil {
			break
		}
		if worker.ProcessState.ExitCode() != -1 {
			t.Fatalf("the worker failed: %v: %s", err, stderr.String())
		}
		died++
	}
	if died != kills {
		t.Errorf("%d kills, want %d", died, kills)
	}
	checkDelivered(t, app, p, n)
}

// Without conditional create only the search before each retry prevents duplicates.
func TestExactlyOnceWithoutConditionalCreate(t *testing.T) {
	const n = 200
	app := newApp(t)
	queueMany(t, app, n)
	p := newSandboxEMR(t, &sandboxSigningKey().PublicKey, func() {}, func(next http.Handler) http.Handler {
		return injectFaults(0.3, 11)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("If-None-Exist")
			next.ServeHTTP(w, r)
		}))
	})
	client, err := sandboxClient(p.url, sandboxSigningKey(), true)
	if err != nil {
		t.Fatal(err)
	}
	deliverAll(t, sandboxWorker(client, nil), app)
	checkDelivered(t, app, p, n)
}

func checkDelivered(t *testing.T, app core.App, p *sandboxEMR, n int) {
	t.Helper()
	if stats := p.emr.Stats(); stats.Observations != n || stats.MostPerIdentifier != 1 {
		t.Errorf("the EMR holds %d observations, at most %d of each; want %d, 1", stats.Observations, stats.MostPerIdentifier, n)
	}
	var transmitted, withEMRID, ambiguous int
	err := app.DB().NewQuery(`SELECT COUNT(*), SUM(o.fhir_status = 'transmitted'), SUM(t.ambiguous)
		FROM transmissions t JOIN observations o ON o.id = t.observation WHERE t.status = 'transmitted'`).Row(&transmitted, &withEMRID, &ambiguous)
	if err != nil || transmitted != n || withEMRID != n || ambiguous != 0 {
		t.Errorf("%d transmitted, %d observations with an EMR id, %d ambiguous (%v)", transmitted, withEMRID, ambiguous, err)
	}
	if result, err := audit.Verify(app, nil); err != nil || !result.Valid {
		t.Errorf("audit chain: %+v (%v)", result, err)
	}
}
