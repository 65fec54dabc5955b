// Package hooks binds the rules that apply to every write of a record, from the API, the dashboard, a job or a script. One table lists all
// bindings in running order. A handler checks its own record and calls one engine function; it never accesses the network. The rules
// themselves are in internal/.
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
	ReadingStore *ingest.ReadingStore
	// ReportImplausible stores the implausible measurement of a record that was refused.
	ReportImplausible func(app core.App, record *core.Record, by audit.Actor, now time.Time) error
	Directory         *patients.Directory
	// Practice is its name.
	Practice string
	// Zone is the practice's time zone.
	Zone  *time.Location
	Clock func() time.Time
	// EvictUser removes a user from the cache of access tokens.
	EvictUser func(userRecordID string)
	// EvictClient removes a client from the cache of access tokens; it may be nil.
	EvictClient func(id string)
	// WebhookChanged notifies the webhook workers of a changed or deleted webhook; it may be nil.
	WebhookChanged func(id string)
	// Wake wakes the EMR worker, WakeMailer the mailer.
	Wake, WakeMailer func()
	// Realtime publishes changes to subscribers; Limits bounds the requests per address.
	Realtime *realtime.Publisher
	Limits   *ratelimit.Limiter
	// Auth signs superusers in and resolves access tokens.
	Auth *auth.Engine
	// Billing logs the time of resolved escalations.
	Billing *billing.Engine
}

type hooks struct{ Engines }

// moment is a point of a write at which a row runs.
type moment = func(app core.App, tags ...string) *hook.TaggedHook[*core.RecordEvent]

// Moments of a write.
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

// row binds one handler. Lower priorities run first, and outermost.
type row struct {
	moments     []moment
	collections []string
	priority    int
	handle      func(h *hooks, e *core.RecordEvent) error
}

// Running order. Ids are set before PocketBase sets its own at -99.
const (
	orderUnreadable  = -400 // refuses to change a record that cannot be opened
	orderReport      = -350 // runs after the refused write is rolled back
	orderTransaction = -300 // opens the transaction
	orderAudit       = -200 // audits dashboard writes in that transaction
	orderIDs         = -100 // ids
	orderRules       = 0    // the rules of the collection
)

// table lists all hooks on records.
var table = []row{
	{updating, collectionsWith(fullyReadable), orderUnreadable, (*hooks).rejectUnreadable},
	{creating, []string{collections.Observations}, orderReport, (*hooks).reportRejected},
	{writing, collectionsWith(audited), orderTransaction, (*hooks).inTransaction},
	{creating, collectionsWith(audited), orderAudit, (*hooks).auditCreate},
	{updating, collectionsWith(audited), orderAudit, (*hooks).auditUpdate},
	{deleting, collectionsWith(audited), orderAudit, (*hooks).auditDelete},
	{deleting, collectionsWith(undeletable), orderRules, reject("Records of this kind cannot be deleted.")},
	{saving, []string{collections.AuditLog}, orderTransaction, reject("Only the service writes the audit log.")}, // a foreign row would break the hash chain

	{creating, collections.UUIDs, orderIDs, (*hooks).setUUID},
	{creating, collections.Numbered, orderIDs, (*hooks).setNumber},
	{creating, collectionsWith(audited), orderIDs, (*hooks).setCreatedAt},
	{validating, []string{collections.Observations, collections.Transmissions}, orderRules, (*hooks).validateRow},

	{saving, []string{collections.Users}, orderRules, (*hooks).guardUser},
	{updating, []string{collections.Users}, orderRules, (*hooks).endSessions},
	{saving, []string{core.CollectionNameSuperusers}, orderRules, (*hooks).guardSuperuser},
	{saving, []string{collections.Patients}, orderRules, (*hooks).guardPatient},
	{saving, []string{collections.CareTeamMembers}, orderRules, check(patients.GuardMember)}, // only users with a care-team role
	{saving, []string{collections.Consents}, orderRules, (*hooks).guardConsent},
	{saving, []string{collections.Thresholds}, orderRules, (*hooks).guardThresholds},
	{deleting, []string{collections.Thresholds}, orderRules, (*hooks).deleteThresholds},
	{saving, []string{collections.ThresholdTemplates}, orderRules, (*hooks).guardTemplate},
	{deleting, []string{collections.ThresholdTemplates}, orderRules, (*hooks).deleteTemplate},
	{creating, []string{collections.Alerts}, orderRules, rejectDashboard("Alerts are raised by readings and devices.")},
	{updating, []string{collections.Alerts}, orderRules, (*hooks).guardAlert},
	{saving, []string{collections.Escalations}, orderRules, (*hooks).guardEscalation},
	{saving, []string{collections.DeviceAssignments}, orderRules, (*hooks).guardAssignment},
	{creating, []string{collections.TimeEntries}, orderRules, (*hooks).keepAuthorRole},
	{updating, []string{collections.TimeEntries}, orderRules, (*hooks).recheckTime},
	{saving, []string{collections.PayerRates}, orderRules, rejectIf(func(r *core.Record) string { return billing.CheckRate(collections.RateOf(r)) })},
	{saving, []string{collections.Orders}, orderRules, rejectDashboard("Orders are recorded through the API and cannot be changed.")},
	{saving, []string{collections.FeeSchedule}, orderRules, rejectIf(func(r *core.Record) string { return billing.CheckFee(collections.FeeOf(r)) })},
	{saving, collectionsWith(serviceOwned), orderRules, rejectDashboard("Only the service writes records of this kind.")},
	{creating, []string{collections.Observations}, orderRules, (*hooks).createObservation},
	{updating, []string{collections.Observations}, orderRules, (*hooks).refuseChange},

	{afterSave, []string{collections.Patients}, orderRules, (*hooks).refreshDirectory},
	{afterChange, []string{collections.Users}, orderRules, notify(func(h *hooks) func(string) { return h.EvictUser })},
	{afterSave, []string{collections.Caregivers}, orderRules, (*hooks).evictCaregiver},
	{afterChange, []string{collections.Clients}, orderRules, notify(func(h *hooks) func(string) { return h.EvictClient })},
	{afterChange, []string{collections.Webhooks}, orderRules, notify(func(h *hooks) func(string) { return h.WebhookChanged })},
	{afterCreate, []string{collections.Observations}, orderRules, wake(func(h *hooks) func() { return h.Wake })},
	{afterSave, []string{collections.Patients}, orderRules, (*hooks).wakeForLinked},
	{afterCreate, []string{collections.Mails}, orderRules, wake(func(h *hooks) func() { return h.WakeMailer })},
}

// Bind registers every row of the table and the guards of PocketBase's own routes.
func Bind(app core.App, engines Engines) {
	h := &hooks{engines}
	collections.SetPracticeZone(app, engines.Zone)
	auth.SetPracticeWords(app, engines.Practice)
	for _, r := range table {
		for _, moment := range r.moments {
			moment(app, r.collections...).Bind(&hook.Handler[*core.RecordEvent]{
				Priority: r.priority, Func: func(e *core.RecordEvent) error { return r.handle(h, e) },
			})
		}
	}
	auditDashboard(app)
	guardSchema(app, h)
	guardSettings(app, h)
	refuseUserTokens(app)
	guardUnreadable(app)
	guardSuperusers(app, h)
	disableExtensionCache(app)
	searchDashboard(app, h)
	guardRealtime(app, h)
}

// inTransaction runs the write and its handlers in one transaction.
func (h *hooks) inTransaction(e *core.RecordEvent) error {
	outer := e.App
	defer func() { e.App = outer }()
	return outer.RunInTransaction(func(tx core.App) error {
		e.App = tx
		return e.Next()
	})
}

// continueUnless continues the write unless there is an error.
func continueUnless(err error, e interface{ Next() error }) error {
	if err != nil {
		return err
	}
	return e.Next()
}
