package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"
	"path/filepath"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/hooks"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/realtime"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/jobs/retention"
	"github.com/vigilhealth/vigil/routes"
	"github.com/vigilhealth/vigil/routes/web"
)

// openRoutes registers the API, the console's pages, and the remaining routes of PocketBase.
func (s *Service) openRoutes(e *core.ServeEvent) error {
	e.Router.Bind(hooks.Guard(s.hookEngines())...)
	routes.ServePages(e.Router, s.program.Pages, s.settings.FrameAncestors)
	return routes.Register(e, s.routeEngines())
}

func (s *Service) routeEngines() routes.Engines {
	var required web.Lease
	if s.lease != nil {
		required = s.lease
	}
	return routes.Engines{
		Options: web.Options{
			Lease: required, StaleReads: audit.NewStaleReads(filepath.Join(s.app.DataDir(), "stale-reads.jsonl")),
			PublicURL: s.settings.PublicURL, Zone: s.settings.PracticeLocation, AllowedOrigins: s.settings.CORSAllowedOrigins, Log: s.log, Clock: s.now,
			AccessTokens: auth.TokenAuthenticator{Users: s.auth, Clients: s.clients}, Limits: s.limits, Observer: web.Observer{Answered: s.metrics.CountRequest, Rejected: s.metrics.CountRejection},
		},
		Jobs: s.jobs(), Settings: s.settings.List(),
		Auth: s.auth, Clients: s.clients, Webhooks: s.webhooks, Exports: s.exports, Push: s.push, Directory: s.directory, ReadingStore: s.readings, Writer: s.writer, DeliveryWorker: s.worker, Monitor: s.monitor,
		Dashboard:       s.board,
		IngestPipeline:  s.pipeline,
		DefaultsChanged: s.rescoreRequests.Changed,
		Devices:         s.devices,
		Billing:         s.billing,
		Reports:         reports.New(s.billing, s.settings.Billing.ReportCache),
		GatewaySources:  s.settings.Gateway.AllowedCIDRs, MaxFuture: s.settings.Clinical.MeasuredAtMaxFuture,
		ProcessPendingLimit: s.settings.FHIR.ProcessPendingLimit, Version: s.program.Version,
		FHIRSystems:        s.fhirSystems(),
		PracticeName:       s.settings.Practice.Name,
		PortalAdvice:       map[string]string{messaging.English: s.settings.Portal.Advice, messaging.Spanish: s.settings.Portal.AdviceSpanish},
		Ladder:             s.ladder(),
		Messages:           s.messages,
		Letterhead:         s.settings.Practice.Letterhead(),
		RestrictToCareTeam: s.settings.Clinical.RestrictToCareTeam,
		EMR:                routes.EMR{Client: s.emr, ReturnURL: s.settings.EMR.ConnectReturnURL, RequireSearchTerm: s.settings.EMR.RequireSearchTerm, Context: s.emrContext},
		FrameAncestors:     s.settings.FrameAncestors,
		DisplayUnits:       routes.DisplayUnits(s.settings.Display),
		JWKS:               emr.JWKS(s.settings.EMR.PrivateKey, s.settings.EMR.PrivateKeyPrevious),
	}
}

func (s *Service) hookEngines() hooks.Engines {
	return hooks.Engines{
		ReadingStore: s.readings, ReportImplausible: s.pipeline.ReportImplausibleRecord, Directory: s.directory, Zone: s.settings.PracticeLocation, Clock: s.now,
		Practice:  s.settings.Practice.Name,
		EvictUser: s.auth.Evict, EvictClient: s.clients.Evict, WebhookChanged: s.webhooks.EndpointChanged, Wake: s.worker.Wake, WakeMailer: s.mailer.Wake, Auth: s.auth, Realtime: s.publisher, Limits: s.limits,
		Billing: s.billing,
	}
}

func newAuth(app core.App, sealer *phi.Sealer, settings config.Settings, now time.Time) (*auth.Engine, error) {
	signOn, err := newSignOn(sealer, settings)
	if err != nil {
		return nil, err
	}
	launcher, err := newLauncher(sealer, settings)
	if err != nil {
		return nil, err
	}
	since, err := collections.FirstStart(app, now)
	if err != nil {
		return nil, err
	}
	required := auth.TwoFactorPolicy{Since: since}
	required.Roles, required.Grace = settings.RolesNeedingTwoFactor()
	return auth.New(sealer, auth.Options{
		RefreshFamilyLife: settings.Auth.RefreshFamilyLife, IdleLogout: settings.Auth.IdleLogout, TOTPIssuer: settings.Auth.TOTPIssuer,
		FreshSignIn: settings.Auth.FreshSignIn, RequireTwoFactor: required, SuperuserTwoFactor: settings.SuperuserNeedsTwoFactor(),
		ResetURL: settings.FrontendResetURL, SignInURL: settings.PublicURL, SignOn: signOn, RequireSignOn: settings.OIDC.Require, Launcher: launcher,
	}), nil
}

func newClients(sealer *phi.Sealer, settings config.Settings) *auth.MachineClients {
	return auth.NewMachineClients(sealer, auth.MachineClientOptions{
		TokenURL: settings.PublicURL + web.BasePath + "/oauth/token/", Outbound: auth.NewOutbound(settings.Outbound.DevAllowedHosts),
	})
}

func newBoard(sealer *phi.Sealer, settings config.Settings) (*dashboard.Board, error) {
	key, err := sealer.DeriveKey("feed cursor")
	if err != nil {
		return nil, fmt.Errorf("derive the feed cursor key: %w", err)
	}
	return dashboard.NewBoard(dashboard.Options{Zone: settings.PracticeLocation, CursorKey: key}), nil
}

func newBilling(settings config.Settings, readingsWait func() bool) *billing.Engine {
	b := settings.Billing
	return billing.New(billing.Settings{
		Zone: settings.PracticeLocation, Enable2026Codes: b.Enable2026Codes, MaxUnits99458: b.MaxUnits99458, RequireConsent: b.RequireConsent,
		RequireOrder: b.RequireOrder, RequireSecondReviewer: b.RequireSecondPerson, EscalationTimeCap: b.EscalationTimeCap,
		LiveContactFrom: b.LiveContactFrom, TimeRule: b.TimeRule, TimeRuleFrom: b.TimeRuleFrom,
		Locality: b.Locality, Claims: newClaimsLoader(settings), ReadingsPending: readingsWait,
	})
}

func newClaimsLoader(settings config.Settings) claims.Loader {
	c := settings.Claims
	return claims.Loader{
		Zone:     settings.PracticeLocation,
		Practice: claims.Practice(settings.Practice),
		Submitter: claims.Submitter{
			ID: c.SubmitterID, Name: c.SubmitterName, Contact: c.SubmitterContact, Phone: c.SubmitterPhone, ReceiverID: c.ReceiverID, ReceiverName: c.ReceiverName,
			Usage: c.Usage, PlaceOfService: c.PlaceOfService,
		},
	}
}

func (s *Service) newPipeline() *ingest.Pipeline {
	g := s.settings.Gateway
	return ingest.NewPipeline(ingest.PipelineOptions{
		Adapters: gateway.NewAdapters(g, s.settings.Clinical.MeasuredAtMaxFuture), Readings: s.readings, Writer: s.writer, Devices: s.devices,
		AllowDuplicates: !g.DedupEnabled, RecheckBilling: s.billing.Recheck, Log: s.log,
	})
}

func (s *Service) newMailer() *notifications.Mailer {
	from, err := mail.ParseAddress(s.settings.SMTP.From)
	if err != nil {
		from = &mail.Address{} // no mail server: the settings are validated
	}
	return notifications.NewMailer(notifications.MailerOptions{
		Configured: s.settings.SMTP.Configured(), From: *from, Resolve: s.auth.ResolveMail,
		Clock: s.now, Log: s.log,
	})
}

func newEMRContext(client *emr.Client, settings config.Settings) *emrcontext.Engine {
	e := settings.EMR
	return emrcontext.New(emrcontext.Options{Client: client, Enabled: e.Context, AutoHold: e.AutoHold, Stale: e.ContextStale, Zone: settings.PracticeLocation})
}

func (s *Service) newPublisher() *realtime.Publisher {
	return realtime.NewPublisher(realtime.Options{
		Views: routes.LiveViews{Clock: s.now}, Authenticate: s.auth.AuthenticatePassively, RestrictToCareTeam: s.settings.Clinical.RestrictToCareTeam,
		Zone: s.settings.PracticeLocation, Clock: s.now, Log: s.log,
	})
}

// ladder returns the settings of the escalation ladder.
func (s *Service) ladder() escalations.Ladder {
	c := s.settings.Clinical
	return escalations.Ladder{
		Zone: s.settings.PracticeLocation,
		Overdue: map[escalations.Priority]time.Duration{
			escalations.Stat: c.EscalationOverdueStat, escalations.Urgent: c.EscalationOverdueUrgent, escalations.Routine: c.EscalationOverdueRoutine,
		},
		Tiers: map[escalations.Priority]escalations.Deadlines{
			escalations.Stat:    escalations.Deadlines(c.EscalationTiersStat),
			escalations.Urgent:  escalations.Deadlines(c.EscalationTiersUrgent),
			escalations.Routine: escalations.Deadlines(c.EscalationTiersRoutine),
		},
	}
}

func newPush(settings config.Settings) *notifications.Push {
	keys := func(v config.VAPID) notifications.PushKeys {
		return notifications.PushKeys{Public: v.PublicKey, Private: v.PrivateKey.Reveal(), Subject: v.Subject}
	}
	return notifications.NewPush(notifications.PushOptions{
		Keys: keys(settings.VAPID), DevKeys: keys(settings.VAPIDDev), Hosts: settings.WebPush.AllowedHosts, DevHosts: settings.WebPush.DevAllowedHosts,
	})
}

func newLimiter(r config.RateLimits) *ratelimit.Limiter {
	if r.User.IsUnlimited() { // unlimited users imply unlimited machine clients
		r.Client = config.RateLimit{}
	}
	if r.Auth.IsUnlimited() {
		r.SignIn = config.RateLimit{}
	}
	policies := map[ratelimit.Class]ratelimit.Policy{}
	for class, limit := range map[ratelimit.Class]config.RateLimit{
		ratelimit.User: r.User, ratelimit.Client: r.Client, ratelimit.Anon: r.Anon, ratelimit.Auth: r.Auth, ratelimit.SignIn: r.SignIn, ratelimit.Refresh: r.Refresh, ratelimit.Webhook: r.Webhook, ratelimit.Realtime: r.Realtime,
	} {
		policies[class] = ratelimit.Policy{Requests: limit.Limit, Window: limit.Window}
	}
	return ratelimit.NewLimiter(policies)
}

// retention returns the retention periods.
func (s *Service) retention() retention.Periods {
	r := s.settings.Retention
	return retention.Periods{
		WebhookRaw: r.WebhookRaw, Quarantine: r.Quarantine, PushDeliveries: r.PushDeliveries, Notifications: r.Notifications,
		RefreshTokens: r.RefreshTokens, PushTokens: r.PushTokens, WebhooksOut: r.WebhooksOut, Changes: r.Changes,
	}
}

// probes returns the health checks.
func (s *Service) probes() dashboard.Probes {
	probes := dashboard.Probes{
		Database: collections.Ping, Writes: s.probeWrite, Damaged: s.inspector.Damaged, HasDiskSpace: s.hasDiskSpace, FHIR: probeFHIR, Store: dashboard.StoreHealth,
		Workers: func(app core.App) (running, queued int, err error) {
			running, queued = int(s.running.Load()), s.writer.QueueDepth()
			if !s.emr.Configured() || !s.emr.CanReceive() { // queued deliveries that the EMR does not receive do not count
				return running, queued, nil
			}
			pending, _, _, err := emr.Backlog(app)
			return running, queued + pending, err
		},
	}
	if s.emr.Configured() {
		probes.DeadLetters = collections.CountDeadLetters
		probes.EMR = func(ctx context.Context) error {
			if _, down := s.worker.Outage(); down { // already probed by the worker
				return errors.New("the EMR is down")
			}
			return s.emr.Probe(ctx) // an EMR need not publish its capabilities
		}
	}
	return probes
}

// probeFHIR renders an observation as a delivery does.
func probeFHIR() error {
	_, err := fhir.Observation(fhir.StoredObservation{
		ID: "00000000-0000-7000-8000-000000000000", PatientID: "00000000-0000-7000-8000-000000000001",
		Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: time.Unix(0, 0).UTC()}.With(vitals.Systolic, 120).With(vitals.Diastolic, 80),
	}, "").Encode()
	return err
}

// rescoreRequests rescores all patients after a change of the practice's default thresholds, which takes too long for the request that changes them.
type rescoreRequests struct{ waiting chan struct{} }

func newRescoreRequests() rescoreRequests { return rescoreRequests{make(chan struct{}, 1)} }

// Changed requests a run; a pending request already covers it.
func (r rescoreRequests) Changed() {
	select {
	case r.waiting <- struct{}{}:
	default:
	}
}

func (s *Service) rescoreOnRequest(ctx context.Context) {
	if err := templates.ProposeMissing(ctx, s.app, s.now(), s.settings.PracticeLocation); err != nil && ctx.Err() == nil {
		s.log.Error("templates not proposed after an upgrade; the daily job retries", slog.Any("error", err))
	}
	if err := triage.RescoreOutdated(ctx, s.app, s.now(), s.publisher.Rescored); err != nil && ctx.Err() == nil {
		s.log.Error("triage could not rescore patients after an upgrade; the hourly job retries", slog.Any("error", err))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.rescoreRequests.waiting:
		}
		if _, _, err := triage.RescoreAll(ctx, s.app, s.now(), s.publisher.Rescored); err != nil && ctx.Err() == nil {
			s.log.Error("triage could not rescore patients after a change of the default thresholds; the hourly job retries", slog.Any("error", err))
		}
	}
}

func (s *Service) fhirSystems() fhir.Systems {
	return fhir.Systems{MRN: s.settings.FHIR.MRNSystem, EMRID: s.settings.FHIR.EMRIDSystem}
}

func (s *Service) newExports() *fhirserver.BulkExporter {
	return fhirserver.NewBulkExporter(fhirserver.BulkExporterOptions{
		Resources: fhirserver.ExportSource{Engine: s.newFHIREngine()}, Retention: s.settings.FHIR.ExportKeep, Clock: s.now, Log: s.log,
	})
}

func (s *Service) newFHIREngine() *fhirserver.Engine {
	return &fhirserver.Engine{
		Systems: s.fhirSystems(), Zone: s.settings.PracticeLocation, Directory: s.directory, Practice: s.settings.Practice.Name, PublicURL: s.settings.PublicURL,
	}
}

// readingPages is more than the pages that the WAL needs for a reading with all its effects.
const readingPages = 64

// probeWrite writes one page, or as many as readings need if the disk is almost full: a single page still fits when every reading is rejected.
func (s *Service) probeWrite(ctx context.Context, app core.App) error {
	if !s.mayWrite() {
		return dashboard.ErrNoLease
	}
	pages := 1
	if !s.hasDiskSpace() {
		pages = readingPages
	}
	return collections.ProbeWrite(ctx, app, pages)
}

// hasDiskSpace reports whether the disk has space for more than the next few readings, or its free space is unknown.
func (s *Service) hasDiskSpace() bool {
	free, known := diskFree(s.app.DataDir())
	return !known || free >= minDiskSpace
}

// newSignOn returns a client of the practice's identity provider, or nil without one. It does not contact the provider.
func newSignOn(sealer *phi.Sealer, settings config.Settings) (*auth.OIDCProvider, error) {
	key, err := sealer.DeriveKey("sign-on state")
	if err != nil {
		return nil, fmt.Errorf("sign-on: %w", err)
	}
	o := settings.OIDC
	roles := make([]auth.GroupRole, len(o.RoleMap))
	for i, pair := range o.RoleMap {
		roles[i] = auth.GroupRole(pair)
	}
	return auth.NewOIDCProvider(auth.OIDCOptions{
		Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: phi.Text(o.ClientSecret.Reveal()), RedirectURL: settings.PublicURL + web.BasePath + "/auth/oidc/callback/",
		RoleClaim: o.RoleClaim, Roles: roles, TrustMFA: o.TrustMFA, MaxAge: o.MaxAge, Key: key, CenterClientIDs: settings.Center.ClientIDs,
	}), nil
}

// newLauncher returns a client of the EMRs that may launch this service, or nil without one. It does not contact them.
func newLauncher(sealer *phi.Sealer, settings config.Settings) (*auth.Launcher, error) {
	key, err := sealer.DeriveKey("launch state")
	if err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	issuers := make([]auth.LaunchIssuer, len(settings.SMART.Issuers))
	for i, issuer := range settings.SMART.Issuers {
		issuers[i] = auth.LaunchIssuer(issuer)
	}
	options := auth.LauncherOptions{
		Issuers: issuers, RedirectURL: settings.PublicURL + "/launch/callback", PatientIssuer: settings.EMR.FHIRBaseURL, TrustMFA: settings.SMART.TrustMFA, Key: key,
	}
	if private := settings.EMR.PrivateKey; private != nil {
		options.Assert = func(clientID, tokenURL string, now time.Time) (string, error) {
			return emr.Assertion(clientID, tokenURL, private, now)
		}
	}
	return auth.NewLauncher(options), nil
}
