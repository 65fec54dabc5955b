// Package hooks is the door for writes: what must hold whoever writes, be it the API, the dashboard, a job or a
// script. All bindings are rows of one table, in running order. A handler guards its own record, calls one engine
// function and stops there; consequences only flow forward, and nothing here touches the network.
package hooks

import (
	"time"

	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/hook"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/realtime"
)

// Engines is what the handlers call, built once in cmd.
type Engines struct {
	Observations *ingest.Evaluator
	// Report keeps the implausible measurement in a record that could not be created.
	Report    func(app core.App, record *core.Record, by audit.Actor, now time.Time) error
	Directory *patients.Directory
	// Zone is the practice's time zone.
	Zone  *time.Location
	Clock func() time.Time
	// Forget drops a user from the cache of the access tokens.
	Forget func(userRecordID string)
	// ForgetClient drops a client from the cache of the access tokens; it may be nil.
	ForgetClient func(id string)
	// WebhookChanged tells whoever serves webhooks that one was changed or removed; it may be nil.
	WebhookChanged func(id string)
	// Wake tells the transmission worker to look now, WakeMailer the mailer.
	Wake, WakeMailer func()
	// Live tells who subscribes what changes; Limits bounds how often one address may.
	Live   *realtime.Publisher
	Limits *ratelimit.Limiter
	// Auth signs superusers in, and knows whose a token is.
	Auth *auth.Engine
	// Billing bills the time of escalations that are resolved.
	Billing *billing.Engine
}

type hooks struct{ Engines }

// moment is a point of a write at which a row runs.
type moment = func(app core.App, tags ...string) *hook.TaggedHook[*core.RecordEvent]

// When rows run.
var (
	creating    = []moment{core.App.OnRecordCreate}
	validating  = []moment{core.App.OnRecordValidate}
	updating    = []moment{core.App.OnRecordUpdate}
	deleting    = []moment{core.App.OnRecordDelete}
	saving      = []moment{core.App.OnRecordCreate, core.App.OnRecordUpdate}
	writing     = append(saving, core.App.OnRecordDelete)
	afterCreate = []moment{core.App.OnRecordAfterCreateSuccess}
	afterSave   = []moment{core.App.OnRecordAfterCreateSuccess, core.App.OnRecordAfterUpdateSuccess}
	afterChange = []moment{core.App.OnRecordAfterUpdateSuccess, core.App.OnRecordAfterDeleteSuccess}
)

// row binds one handler. Lower priorities run first, and outside.
type row struct {
	moments     []moment
	collections []string
	priority    int
	handle      func(h *hooks, e *core.RecordEvent) error
}

// Running order. Ids are given out before PocketBase would make its own, at -99.
const (
	untouched = -400 // what cannot be read stays as it is
	reported  = -350 // what was refused is undone by then
	outermost = -300 // opens the transaction
	traced    = -200 // writes of the dashboard are audited in it
	numbered  = -100 // ids
	ruled     = 0    // the rules of the collection
)

// table is every hook on records.
var table = []row{
	{updating, whole, untouched, (*hooks).refuseUnreadable},
	{creating, []string{collections.Observations}, reported, (*hooks).reportImplausible},
	{writing, ours, outermost, (*hooks).inTransaction},
	{creating, ours, traced, (*hooks).traceCreate},
	{updating, ours, traced, (*hooks).traceUpdate},
	{deleting, ours, traced, (*hooks).traceDelete},
	{deleting, kept, ruled, refuse("Records of this kind are kept and cannot be deleted.")},
	{saving, []string{collections.AuditLog}, outermost, refuse("The audit log is written by the service alone.")}, // another's row would break the chain

	{creating, collections.UUIDs, numbered, (*hooks).giveUUID},
	{creating, collections.Numbered, numbered, (*hooks).giveNumber},
	{creating, ours, numbered, (*hooks).giveTime},
	{validating, []string{collections.Observations, collections.Transmissions}, ruled, (*hooks).validateRow},

	{saving, []string{collections.Users}, ruled, (*hooks).guardUser},
	{updating, []string{collections.Users}, ruled, (*hooks).endSessions},
	{saving, []string{core.CollectionNameSuperusers}, ruled, (*hooks).guardSuperuser},
	{saving, []string{collections.Patients}, ruled, (*hooks).guardPatient},
	{saving, []string{collections.CareTeamMembers}, ruled, (*hooks).guardMember},
	{saving, []string{collections.Consents}, ruled, (*hooks).guardConsent},
	{saving, []string{collections.Thresholds}, ruled, (*hooks).guardThresholds},
	{deleting, []string{collections.Thresholds}, ruled, (*hooks).dropThresholds},
	{saving, []string{collections.ThresholdTemplates}, ruled, (*hooks).guardTemplate},
	{creating, []string{collections.Alerts}, ruled, refuseByHand("Alerts are raised by readings and devices.")},
	{updating, []string{collections.Alerts}, ruled, (*hooks).guardAlert},
	{saving, []string{collections.Escalations}, ruled, (*hooks).guardEscalation},
	{saving, []string{collections.DeviceAssignments}, ruled, (*hooks).guardAssignment},
	{updating, []string{collections.TimeEntries}, ruled, (*hooks).followTime},
	{saving, []string{collections.PayerRates}, ruled, (*hooks).guardRate},
	{saving, []string{collections.Orders}, ruled, refuseByHand("Orders are recorded through the API, and stay as they are.")},
	{saving, []string{collections.FeeSchedule}, ruled, (*hooks).guardFee},
	{saving, derived, ruled, refuseByHand("Records of this kind are written by the service alone.")},
	{creating, []string{collections.Observations}, ruled, (*hooks).adoptObservation},
	{updating, []string{collections.Observations}, ruled, (*hooks).refuseChange},

	{afterSave, []string{collections.Patients}, ruled, (*hooks).refreshDirectory},
	{afterChange, []string{collections.Users}, ruled, (*hooks).forgetUser},
	{afterChange, []string{collections.Clients}, ruled, (*hooks).forgetClient},
	{afterChange, []string{collections.Webhooks}, ruled, (*hooks).webhookChanged},
	{afterCreate, []string{collections.Observations}, ruled, (*hooks).wakeWorker},
	{afterSave, []string{collections.Patients}, ruled, (*hooks).wakeForLinked},
	{afterCreate, []string{collections.Mails}, ruled, (*hooks).wakeMailer},
}

// ours are the collections whose writes are transactions of ours and, from the dashboard, audited.
var ours = []string{
	collections.Alerts, collections.BillingEntries, collections.CareTeamMembers, collections.Consents, collections.DeviceAssignments,
	collections.DeviceOrders, collections.Devices, collections.Escalations, collections.GatewayEvents, collections.Hubs, collections.ICD10Codes,
	collections.Observations, collections.Passkeys, collections.Patients, collections.PayerRates, collections.Payers, collections.Snoozes, collections.ThresholdChanges, collections.Thresholds,
	collections.ThresholdTemplates, collections.TimeEntries, collections.Transmissions, collections.TriageScores, collections.Users, core.CollectionNameSuperusers,
	collections.EscalationEvents, collections.NoteTemplates, collections.OnCallRota, collections.Orders, collections.FeeSchedule, collections.Payments,
	collections.ClaimBatches, collections.ClaimLines, collections.ClaimResponses, collections.Clients, collections.Webhooks, collections.WebhookDeliveries,
}

// whole are the collections whose records people change, and change only when all of it can be read. In others the service notes what it does itself,
// such as that a device was heard of, which must go on; the dashboard asks for all of them.
var whole = []string{
	collections.Alerts, collections.BillingEntries, collections.Consents, collections.Escalations, collections.Patients, collections.TimeEntries,
	collections.Users,
}

// kept are the collections that nobody deletes from: records are retained by law, or stand for what happened.
var kept = []string{
	collections.Alerts, collections.AuditLog, collections.BillingEntries, collections.Consents, collections.DeviceAssignments, collections.Escalations,
	collections.GatewayEvents, collections.Observations, collections.Patients, collections.Snoozes, collections.ThresholdChanges, collections.TimeEntries,
	collections.Transmissions, collections.TransmissionAttempts, collections.TriageScores, collections.Users,
	collections.EscalationEvents, collections.OnCallRota, collections.Orders, collections.Payments,
	collections.ClaimBatches, collections.ClaimLines, collections.ClaimResponses,
}

// Bind opens the door: every row of the table, and what guards PocketBase's own doors.
func Bind(app core.App, engines Engines) {
	h := &hooks{engines}
	collections.SetPracticeZone(app, engines.Zone)
	for _, r := range table {
		for _, moment := range r.moments {
			moment(app, r.collections...).Bind(&hook.Handler[*core.RecordEvent]{
				Priority: r.priority, Func: func(e *core.RecordEvent) error { return r.handle(h, e) },
			})
		}
	}
	traceDashboard(app)
	guardSchema(app, h)
	guardSettings(app, h)
	closeNative(app)
	guardUnreadable(app)
	guardSuperusers(app, h)
	refreshDashboard(app)
	searchDashboard(app, h)
	guardRealtime(app, h)
}

// inTransaction makes the write and all that its handlers add one transaction.
func (h *hooks) inTransaction(e *core.RecordEvent) error {
	outer := e.App
	defer func() { e.App = outer }()
	return outer.RunInTransaction(func(tx core.App) error {
		e.App = tx
		return e.Next()
	})
}

// unless goes on with a write that nothing speaks against.
func unless(err error, e interface{ Next() error }) error {
	if err != nil {
		return err
	}
	return e.Next()
}
