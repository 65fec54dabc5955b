package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/lease"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

// Errors that end the process. Its supervisor starts it again, and it then waits for the lease.
var (
	errLapsed     = errors.New("the lease lapsed and is held again: the service restarts")
	errNotRenewed = errors.New("the lease could not be renewed for ten minutes")
)

// errBehind refuses to serve an old database.
var errBehind = errors.New("another process wrote this practice's database after this copy: restore its replica, or remove the folder and run vigil standby")

// heldLease is the process's lease.
type heldLease struct {
	*lease.Keeper
	held  lease.Held
	close func()
}

// takeLease waits for the practice's lease and renews it in the background. Without the setting it returns nil. While it waits, it answers health checks
// at the address.
func (p *Program) takeLease(ctx context.Context, settings config.Settings, log *slog.Logger, address string) (*heldLease, error) {
	if !settings.Lease.Required() {
		return nil, nil //nolint:nilnil // no lease is needed
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the host's name: %w", err)
	}
	e, node := settings.Events, cmp.Or(settings.Lease.Node, host)
	tenure, err := lease.LoadTenure(p.dir, node)
	if err != nil {
		return nil, err
	}
	stream, err := events.Connect(events.Options{URLs: e.URL, Credentials: []byte(e.Credentials.Reveal()), Name: "vigil lease of " + e.Practice, Log: log})
	if err != nil {
		return nil, err
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &heldLease{close: func() { stop(); stream.Close() }}
	l.Keeper = lease.NewKeeper(lease.Options{Store: lease.NewNATSStore(stream.JetStream(), e.Practice, e.Replicas), Node: node, Tenure: tenure, Log: log})
	go func() {
		if err := l.Run(renewing); err != nil {
			log.Error("the service does not write again", slog.Any("error", err))
		}
	}()
	if l.held, err = l.await(ctx, log, address, p.answerWaiting); err != nil {
		l.close()
		return nil, err
	}
	sqlite.GuardCommits(filepath.Join(p.dir, "data.db"), l.MayWrite)
	return l, lease.KeepTenure(p.dir, node, l.held.Tenure)
}

// await waits for the lease, a stop signal, or the end of ctx.
func (l *heldLease) await(ctx context.Context, log *slog.Logger, address string, answer http.HandlerFunc) (lease.Held, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", address) //nolint:noctx // closed below
	if err != nil {
		return lease.Held{}, fmt.Errorf("listen on %s: %w", address, err)
	}
	server := &http.Server{Handler: answer, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()                       //nolint:errcheck // its requests are repeated
	log.Info("waiting for the lease", slog.String("node", l.Node))
	select {
	case held := <-l.Taken():
		return held, nil
	case <-ctx.Done():
		return lease.Held{}, context.Cause(ctx)
	}
}

// answerWaiting answers that the process lives, and that it serves nothing else.
func (p *Program) answerWaiting(w http.ResponseWriter, r *http.Request) {
	waiting, status := dashboard.Check{Status: dashboard.Down, Detail: "waiting for the lease"}, http.StatusServiceUnavailable
	var body any
	switch r.URL.Path {
	case "/health/live", "/health/live/":
		body, status = map[string]string{"status": "ok"}, http.StatusOK
	case "/health/", "/health":
		body = routes.ViewHealth(dashboard.Report{Status: dashboard.Down, At: now(), Services: dashboard.Services{
			Database: waiting, EMR: waiting, FHIREngine: waiting, BackgroundWorker: dashboard.WorkerCheck{Status: dashboard.Down},
		}}, p.Version)
	default:
		body = map[string]string{"detail": "This server waits for the lease. Try again.", "code": "not_leader"}
	}
	encoded, err := web.Encode(body)
	if err != nil {
		panic(err) // these values can be encoded
	}
	w.Header().Set("Content-Type", web.JSONType)
	if status != http.StatusOK {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // a client that left needs no answer
}

// begin records the epoch in the database and then in the lease, before the first request. It refuses a database that is behind.
func (l *heldLease) begin(ctx context.Context, app core.App, now time.Time) error {
	newest, err := collections.NewestEpoch(app)
	if err != nil {
		return err
	}
	if newest < l.held.Wrote {
		return fmt.Errorf("epoch %d is the newest of this database, %d that of the practice: %w", newest, l.held.Wrote, errBehind)
	}
	if err := collections.BeginEpoch(app, l.held.Epoch, l.Node, now); err != nil {
		return err
	}
	return l.Begin(ctx)
}

// endWithoutLease stops the workers when the lease lapses, and ends the process when it is held again or ten minutes later. Until then reads are served.
func (s *Service) endWithoutLease(ctx context.Context, stopWorkers func()) {
	const poll, most = 100 * time.Millisecond, 10 * time.Minute
	lapsed, tick := false, time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch held := s.lease.MayWrite(); {
		case !held && !lapsed:
			lapsed = true
			stopWorkers()
		case held && lapsed:
			s.quit(errLapsed)
		case s.lease.LastHeld() > most:
			s.quit(errNotRenewed)
		}
	}
}

// mayWrite reports whether this process may write the database.
func (s *Service) mayWrite() bool { return s.lease == nil || s.lease.MayWrite() }

// startWorkers starts the background workers. Those that act on the outside end with the permission to write.
func (s *Service) startWorkers(ctx context.Context) {
	writing, stop := context.WithCancel(ctx)
	s.background.Go(func() {
		defer stop()
		if s.lease != nil {
			s.endWithoutLease(ctx, stop)
		}
		<-ctx.Done()
	})
	s.runWorker(func() { s.writer.Run(ctx, s.app) })
	s.runWorker(func() { s.publisher.Run(ctx, s.app) })
	workers := []interface {
		Run(context.Context, core.App)
	}{s.worker, s.mailer, s.dispatcher, s.webhooks, s.exports}
	if s.messages != nil {
		workers = append(workers, s.messages)
	}
	for _, worker := range workers {
		s.runWorker(func() { worker.Run(writing, s.app) })
	}
}
