package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
	"github.com/vigilhealth/vigil/internal/warehouse"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/jobs"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/metrics"
)

// drainTime bounds the wait for active requests when the service stops.
const drainTime = 20 * time.Second

// Service is the running program: the app, the engines and the background workers.
type Service struct {
	program  *Program
	settings config.Settings
	app      core.App
	log      *slog.Logger
	clock    clockwork.Clock

	auth            *auth.Engine
	clients         *auth.MachineClients
	webhooks        *webhooks.Engine
	mailer          *notifications.Mailer
	push            *notifications.Push
	dispatcher      *notifications.Dispatcher
	directory       *patients.Directory
	readings        *ingest.ReadingStore
	writer          *ingest.Writer
	pipeline        *ingest.Pipeline
	emr             *emr.Client
	emrContext      *emrcontext.Engine
	messages        *messaging.Worker // nil if no messages are sent
	devices         *devices.Engine
	worker          *emr.Worker
	inspector       *sqlite.Inspector
	monitor         *dashboard.Monitor
	board           *dashboard.Board
	metrics         *metrics.Metrics
	billing         *billing.Engine
	publisher       *realtime.Publisher
	exports         *fhirserver.BulkExporter
	warehouse       *warehouse.Engine // nil without warehouse exports
	limits          *ratelimit.Limiter
	connLimiter     *ratelimit.ConnLimiter
	Scheduler       *jobs.Schedule
	rescoreRequests rescoreRequests

	certificates *certificates // nil for plain HTTP
	logFile      *logFile      // nil if the log goes to standard output
	hangups      chan os.Signal
	lease        *heldLease // nil if none is needed
	quit         context.CancelCauseFunc

	// onStored and onFinished are the demo's callbacks for its output; they must not block.
	onStored   func([]ingest.Outcome)
	onFinished func(emr.Result)
	// Listening is called with the address when requests are accepted.
	Listening func(address string)

	background sync.WaitGroup
	running    atomic.Int32 // number of background workers
	stop       context.CancelFunc
}

// now returns the time of the service's clock.
func (s *Service) now() time.Time { return s.clock.Now().UTC() }

// NewService builds every engine on an open data folder and starts nothing. All engines use the clock.
func (p *Program) NewService(app core.App, sealer *phi.Sealer, settings config.Settings, log *slog.Logger, clock clockwork.Clock) (*Service, error) {
	collections.OnUnreadable(func(collection, id string) { // metrics only count such values, and lists omit their records
		log.Error("a stored value cannot be opened", slog.String("collection", collection), slog.String("id", id))
	})
	var err error
	s := &Service{
		program: p, settings: settings, app: app, log: log, clock: clock, directory: patients.NewDirectory(), metrics: metrics.New(p.Version),
		onStored: func([]ingest.Outcome) {}, onFinished: func(emr.Result) {}, Listening: func(string) {},
	}
	if err := refuseDemo(app, settings); err != nil {
		return nil, err
	}
	if err := checkIntegrity(app, log, s.now()); err != nil {
		return nil, err
	}
	if s.auth, err = newAuth(app, sealer, settings, s.now()); err != nil {
		return nil, err
	}
	s.clients, s.webhooks, s.mailer = newClients(sealer, settings), s.newWebhooks(), s.newMailer()
	s.billing = newBilling(settings, func() bool { return s.writer.Busy() })
	s.push = newPush(settings)
	s.dispatcher = notifications.NewDispatcher(notifications.DispatcherOptions{
		Push: s.push, Zone: settings.PracticeLocation, Clock: s.now, Log: log, OnAttempt: s.metrics.CountPush,
		NeverPushWarnings: settings.Clinical.WarningPush == string(alerts.PushNever),
	})
	s.dispatcher.Attach(app)
	s.readings = ingest.NewReadingStore(readingRules(settings))
	s.publisher, s.exports = s.newPublisher(), s.newExports()
	if s.warehouse, err = s.newWarehouse(sealer); err != nil {
		return nil, err
	}
	s.rescoreRequests, s.limits = newRescoreRequests(), newLimiter(settings.RateLimits)
	s.connLimiter, s.devices = newConnLimiter(settings, log), newDevices(settings)
	s.writer = ingest.NewWriter(s.readings, s.now, log, func(outcomes []ingest.Outcome) {
		s.readingsStored()
		s.metrics.CountStored(outcomes, s.now())
		s.onStored(outcomes)
	})
	s.pipeline = s.newPipeline()
	if s.emr, err = newEMRClient(app, settings, s.now); err != nil {
		return nil, err
	}
	s.emrContext, s.messages = newEMRContext(s.emr, settings), s.newMessages()
	s.worker = emr.NewWorker(emr.WorkerOptions{
		EMR: s.emr, ProbeInterval: settings.EMR.ProbeInterval, Schedule: settings.EMR.RetryDelays,
		Load: s.readings.LoadFHIR, HeartRate: settings.FHIR.SendHeartRate,
		Documents: s.documentOptions(), LoadMean: vitalsummary.NewReader(settings.PracticeLocation).LoadMean,
		Clock: s.now, Log: log, Finished: func(result emr.Result) {
			s.metrics.CountDelivery(result, s.now())
			s.onFinished(result)
		},
	})
	s.inspector = sqlite.NewInspector(filepath.Join(app.DataDir(), "data.db"))
	s.monitor = dashboard.NewMonitor(s.probes(), s.now, log)
	if s.board, err = newBoard(sealer, settings); err != nil {
		return nil, err
	}
	hooks.Bind(app, s.hookEngines())
	return s, nil
}

// refuseDemo refuses a demo's folder in production: the passwords of its accounts are published.
func refuseDemo(app core.App, settings config.Settings) error {
	if !settings.IsProduction() {
		return nil
	}
	_, err := app.FindAuthRecordByEmail(core.CollectionNameSuperusers, demoSuperuser)
	switch {
	case collections.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("look for the demo's account: %w", err)
	}
	return errors.New("this data folder was made by vigil demo, with published passwords: start production on a new folder")
}

func readingRules(settings config.Settings) ingest.Rules {
	return ingest.Rules{
		PracticeZone: settings.PracticeLocation, AutoTransform: settings.FHIR.AutoTransform, MaxFuture: settings.Clinical.MeasuredAtMaxFuture,
		SendHeartRate: settings.FHIR.SendHeartRate, SendDevice: settings.FHIR.SendDevice, SendInterpretation: settings.FHIR.SendInterpretation,
		NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: settings.Clinical.AutoResolveWarning, Critical: settings.Clinical.AutoResolveCritical},
		LateAfter:            settings.Clinical.LateReadingAfter, IrregularHeartbeats: settings.Clinical.IrregularHeartbeats,
		Suspect:         vitals.Tolerance{Percent: settings.Clinical.SuspectWeightPercent, Amount: settings.Clinical.SuspectWeightKg},
		ConfirmReadings: settings.Clinical.ConfirmReadings, WarningPush: alerts.WarningPush(settings.Clinical.WarningPush),
		EarlyWarning: settings.Clinical.EarlyWarning,
	}
}

func newDevices(settings config.Settings) *devices.Engine {
	return devices.NewEngine(devices.Rules{
		PracticeZone: settings.PracticeLocation, ManagedMode: settings.Devices.ManagedMode, DeliveryWorkingDays: settings.Devices.DeliveryWorkingDays,
		MissedDaysBeforeEscalation: settings.Clinical.MissedDaysBeforeEscalation,
	})
}

func newEMRClient(app core.App, settings config.Settings, now func() time.Time) (*emr.Client, error) {
	e := settings.EMR
	var vault emr.Vault // without a database, everything is kept in memory
	var capabilities emr.CapabilityStore
	var hasCopy func(patient, emrID string) (bool, error)
	if app != nil {
		vault, capabilities = emr.NewVault(app, now), emr.NewCapabilityStore(app)
		hasCopy = func(patient, emrID string) (bool, error) { return collections.HasEMRCopy(app, patient, emrID) }
	}
	client, err := emr.New(emr.Options{
		Delivery: emr.DeliverySetting(e.Delivery), Capabilities: capabilities, HasCopy: hasCopy,
		BaseURL: e.FHIRBaseURL, TokenURL: e.TokenURL, ClientID: e.ClientID, PrivateKey: e.PrivateKey,
		AuthorizeURL: e.AuthorizeURL, ClientSecret: e.ClientSecret.Reveal(), Scopes: e.Scopes, UserScopes: e.UserScopes, ExtraScopes: e.ExtraScopes,
		RedirectURL:     settings.PublicURL + "/api/v1/emr/auth/callback/",
		ApplicationType: emr.ApplicationType(e.ApplicationType), Auth: emr.ClientAuth(e.Auth), Vault: vault, Context: e.Context,
		RatePerSecond: float64(e.RateLimitPerSecond), QuickRetryDelays: e.QuickRetryDelays, Timeout: e.Timeout,
		ConditionalCreate: settings.FHIR.ConditionalCreate, SearchCache: e.SearchCache, Now: now,
	})
	if err != nil {
		return nil, fmt.Errorf("EMR settings: %w", err)
	}
	return client, nil
}

// Serve serves requests on the addresses until a signal or until ctx is done, and first finishes active requests.
func (s *Service) Serve(ctx context.Context, httpAddr, httpsAddr string) error {
	s.app.OnServe().Bind(&hook.Handler[*core.ServeEvent]{Id: "vigil", Func: func(e *core.ServeEvent) error { return s.onServe(e, httpAddr, httpsAddr) }})
	if httpsAddr != "" {
		httpAddr = "" // PocketBase would redirect plain HTTP; Vigil refuses it
	}
	if httpsAddr == "" && s.settings.TLS.Configured() {
		s.log.Warn("plain HTTP is served: the configured certificate is unused without --https")
	}
	ctx, s.quit = context.WithCancelCause(ctx)
	defer s.quit(nil)
	err := untilSignal(ctx, s.app, s.log, func() error {
		return apis.Serve(s.app, apis.ServeConfig{HttpAddr: httpAddr, HttpsAddr: httpsAddr, AllowedOrigins: []string{s.settings.PublicURL}})
	})
	if cause := context.Cause(ctx); errors.Is(cause, errLapsed) || errors.Is(cause, errNotRenewed) {
		err = errors.Join(cause, err)
	}
	return err
}

// onServe registers the routes and starts the background workers once the port is bound.
func (s *Service) onServe(e *core.ServeEvent, httpAddr, httpsAddr string) error {
	scheme, addr := "http", httpAddr
	if httpsAddr != "" {
		scheme, addr = "https", httpsAddr
	}
	listener, err := net.Listen("tcp", addr) //nolint:noctx // the listener lives as long as the process
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	e.Listener, e.InstallerFunc = s.connLimiter.Listen(listener, scheme == "https"), nil // PocketBase must not create an account
	// Requests outlive the stop signal: they are drained.
	e.Server.BaseContext = func(net.Listener) context.Context { return context.Background() }
	if httpsAddr != "" {
		if s.certificates, err = openCertificates(s.settings.TLS, s.log, s.now()); err != nil {
			return errors.Join(err, listener.Close())
		}
	}
	secure(e.Server.TLSConfig, s.settings.TLS, s.certificates)
	extensions, err := hooks.Dashboard()
	if err != nil {
		return fmt.Errorf("dashboard extension: %w", err)
	}
	e.UIExtensions = append(e.UIExtensions, extensions...)
	e.App.Cron().Remove("__pbDBOptimize__") // its checkpoint at midnight blocks every writer; Vigil's jobs replace it
	s.drainOnTerminate(e)
	if err := s.openRoutes(e); err != nil {
		return err
	}
	s.connLimiter.ConfigureServer(e.Server)
	if err := s.start(); err != nil {
		return err
	}
	s.Listening(localURL(scheme, listener.Addr()))
	return nil
}

// start starts the background workers and jobs.
func (s *Service) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.startWorkers(ctx)
	checkpointer := sqlite.NewCheckpointer(filepath.Join(s.app.DataDir(), "data.db"), s.app.NonconcurrentDB())
	s.background.Go(func() { checkpointer.Run(ctx, s.log) })
	s.background.Go(func() { s.inspector.Run(ctx, s.log) })
	s.background.Go(func() { s.reloadOnHangup(ctx) })
	s.background.Go(func() { s.inspectBackups(ctx) })
	if s.certificates != nil {
		s.background.Go(func() { s.certificates.watch(ctx, s.clock) })
	}
	s.background.Go(func() { s.monitor.Run(ctx, s.app) })
	s.background.Go(func() { s.rescoreOnRequest(ctx) })
	s.background.Go(func() {
		if err := s.directory.Build(s.app); err != nil {
			s.log.Error("the patient directory could not be built; patient searches read the database instead", slog.Any("error", err))
		}
	})
	if err := errors.Join(s.serveMetrics(ctx), s.startEvents(ctx)); err != nil {
		return err
	}
	var err error
	s.Scheduler, err = jobs.Start(s.app, jobs.Engines{
		Transmissions: s.worker, SendMeans: s.settings.FHIR.SendMeanPressure, EMR: s.emr, EMRContext: s.emrContext, Messages: s.messages, Reminders: s.reminders(), Mailer: s.mailer, Dispatcher: s.dispatcher, AuditHead: s.settings.Audit.HeadPath, Backup: s.nightlyBackup(), VerifyBackup: s.verifyNewest, Ladder: s.ladder(), OnRescored: s.publisher.Rescored,
		MayRun: s.mayWrite, OnRun: s.metrics.CountJobRun, Retention: s.retention(), Devices: s.devices, Billing: s.billing, ReadingStore: s.readings, Ingestion: s.pipeline, Exports: s.exports, Warehouse: s.warehouse, Zone: s.settings.PracticeLocation, Log: s.log, Clock: s.clock,
	})
	return err
}

// runWorker runs a background worker and counts it while it runs, for the health check.
func (s *Service) runWorker(run func()) {
	s.running.Add(1)
	s.background.Go(func() {
		defer s.running.Add(-1)
		run()
	})
}

// drainOnTerminate stops in order: streams, requests, jobs, background workers, database. PocketBase's own handler would close requests after one
// second.
func (s *Service) drainOnTerminate(e *core.ServeEvent) {
	server := e.Server
	e.App.OnTerminate().Bind(&hook.Handler[*core.TerminateEvent]{Id: "vigilDrain", Priority: -10000, Func: func(te *core.TerminateEvent) error {
		broker := te.App.SubscriptionsBroker()
		for id := range broker.Clients() {
			broker.Unregister(id) // ends the stream
		}
		ctx, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		errs := []error{server.Shutdown(ctx)}
		if s.Scheduler != nil {
			errs = append(errs, s.Scheduler.Shutdown())
		}
		if s.stop != nil {
			s.stop()
			s.background.Wait()
		}
		s.directory.Close()
		if err := errors.Join(errs...); err != nil {
			s.log.Warn("shutdown: some requests or jobs were still running and were cut off", slog.Any("error", err))
		}
		return te.Next()
	}})
}

// untilSignal runs work until it ends or the process receives a stop signal, then closes the app.
func untilSignal(ctx context.Context, app core.App, log *slog.Logger, work func() error) error {
	interrupted, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- work() }()
	var err error
	ended := false
	select {
	case <-interrupted.Done():
		log.Info("stopping", slog.Any("because", context.Cause(interrupted)))
	case err = <-done:
		ended = true
		if err != nil {
			log.Error("stopping", slog.Any("because", err))
		}
	}
	closing := app.OnTerminate().Trigger(&core.TerminateEvent{App: app}, func(e *core.TerminateEvent) error { return e.App.ClearBootstrap() })
	if !ended {
		err = <-done
	}
	log.Info("stopped")
	return errors.Join(err, closing)
}

func (s *Service) newWebhooks() *webhooks.Engine {
	w := s.settings.Webhooks
	return webhooks.New(webhooks.Options{
		Views: routes.WebhookViews{Zone: s.settings.PracticeLocation, Clock: s.now}, Timeout: w.Timeout, Schedule: w.RetryDelays, DisableAfter: w.DisableAfter,
		Client:    egress.New(egress.Options{Timeout: w.Timeout, DevHosts: s.settings.Outbound.DevAllowedHosts}),
		UserAgent: "Vigil/" + s.program.Version, ReadingsPending: func() bool { return s.writer.Busy() }, Clock: s.now, Log: s.log, OnAttempt: s.metrics.CountWebhookAttempt,
	})
}

// readingsStored wakes the workers that deliver or publish stored readings.
func (s *Service) readingsStored() {
	s.worker.Wake()
	s.publisher.Wake()
	s.webhooks.Wake()
}
