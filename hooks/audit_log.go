package hooks

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
)

// writerKey is where a request of the dashboard leaves its actor on the record, for the handlers inside the transaction.
const writerKey = "@writer"

// traceDashboard notes who writes through PocketBase's own routes; only superusers can.
func traceDashboard(app core.App) {
	note := func(e *core.RecordRequestEvent) error {
		if e.Auth != nil && e.Auth.IsSuperuser() {
			e.Record.SetRaw(writerKey, audit.Superuser(e.Auth.Id, e.Auth.Email(), originOf(e.RequestEvent)))
		}
		return e.Next()
	}
	app.OnRecordCreateRequest(ours...).BindFunc(note)
	app.OnRecordUpdateRequest(ours...).BindFunc(note)
	app.OnRecordDeleteRequest(ours...).BindFunc(note)
}

// writerOf is the superuser who writes the record in the dashboard, else the system.
func writerOf(record *core.Record) audit.Actor {
	if actor, ok := record.GetRaw(writerKey).(audit.Actor); ok {
		return actor
	}
	return audit.System()
}

func (h *hooks) traceCreate(e *core.RecordEvent) error { return h.trace(e, "create") }
func (h *hooks) traceUpdate(e *core.RecordEvent) error { return h.trace(e, "update") }
func (h *hooks) traceDelete(e *core.RecordEvent) error { return h.trace(e, "delete") }

// fromDashboard reports whether a superuser writes the record in the dashboard.
func fromDashboard(record *core.Record) bool {
	_, known := record.GetRaw(writerKey).(audit.Actor)
	return known
}

// selfAudited are the collections whose rules audit every write themselves.
var selfAudited = []string{collections.Alerts, collections.Escalations, collections.Observations, collections.Patients, collections.Thresholds}

// trace audits what a superuser writes in the dashboard, and whoever writes superusers, in the transaction of the write, with what it changed.
// The API's engines audit their own writes.
func (h *hooks) trace(e *core.RecordEvent, verb string) error {
	before := e.Record.Original()
	if err := e.Next(); err != nil || !fromDashboard(e.Record) && !e.Record.IsSuperuser() || slices.Contains(selfAudited, e.Record.Collection().Name) {
		return err
	}
	after := e.Record
	if verb == "delete" {
		before, after = e.Record, core.NewRecord(e.Record.Collection())
	}
	entry := audit.Entry{
		Event: dashboardEvent(e.Record, verb), Actor: writerOf(e.Record), ResourceType: e.Record.Collection().Name,
		ResourceID: publicID(e.Record), PatientID: patientOf(e.Record), Changes: differences(before, after),
	}
	if verb == "update" && entry.ResourceType == collections.Users {
		return h.traceUser(e.App, entry)
	}
	return audit.Append(e.App, entry, h.Clock())
}

// traceUser records a change of an account as the API does: the role by itself, and what an account may do at all.
func (h *hooks) traceUser(app core.App, entry audit.Entry) error {
	if role, changed := entry.Changes["role"]; changed {
		of := entry
		of.Event, of.Changes = audit.UserRoleChange, audit.Changes{"role": role}
		delete(entry.Changes, "role")
		if err := audit.Append(app, of, h.Clock()); err != nil || len(entry.Changes) == 0 {
			return err
		}
	}
	if active, changed := entry.Changes["is_active"]; changed {
		entry.Event = audit.UserDeactivate
		if active.New == true {
			entry.Event = audit.UserActivate
		}
	}
	return audit.Append(app, entry, h.Clock())
}

// dashboardEvent names the write: patient.update and its like; everything without a noun of its own is a setting.
func dashboardEvent(record *core.Record, verb string) audit.Event {
	nouns := map[string]string{
		collections.Users: "user", collections.Clients: "client", collections.Webhooks: "webhook", collections.BillingEntries: "billing", core.CollectionNameSuperusers: "superuser",
	}
	if noun, known := nouns[record.Collection().Name]; known {
		return audit.Event(noun + "." + verb)
	}
	switch record.Collection().Name {
	case collections.CareTeamMembers:
		return audit.CareTeamUpdate
	case collections.Consents:
		if verb == "create" {
			return audit.ConsentGrant
		}
		return audit.ConsentRevoke
	}
	return audit.SettingsUpdate
}

func patientOf(record *core.Record) string {
	if record.Collection().Name == collections.Patients {
		return record.Id
	}
	return collections.PatientOf(record)
}

func publicID(record *core.Record) string {
	if n := collections.Number(record.Id); n != 0 {
		return strconv.FormatInt(n, 10)
	}
	return record.Id
}

// clockwork are columns that change with every write and say nothing of it.
var clockwork = []string{"created", "updated", "created_at", "updated_at"}

// differences are the fields in which two states of a record differ, with both values. Of a password or another secret, which are the hidden
// fields, the name alone is kept.
func differences(before, after *core.Record) audit.Changes {
	changes := audit.Changes{}
	for _, field := range after.Collection().Fields {
		name := field.GetName()
		if name == core.FieldNameId || slices.Contains(clockwork, name) || same(field, before, after) {
			continue
		}
		switch {
		case field.GetHidden() || field.Type() == core.FieldTypePassword:
			changes[name] = audit.Change{}
		case field.Type() == collections.PHIFieldType:
			changes[name] = audit.Change{Old: shown(before.GetString(name)), New: shown(after.GetString(name))}
		default:
			changes[name] = audit.Change{Old: before.Get(name), New: after.Get(name)}
		}
	}
	return changes
}

// same reports whether a field holds the same in both; of passwords their hashes are compared.
func same(field core.Field, before, after *core.Record) bool {
	old, failed := json.Marshal(held(field, before))
	fresh, err := json.Marshal(held(field, after))
	return failed == nil && err == nil && bytes.Equal(old, fresh)
}

func held(field core.Field, record *core.Record) any {
	if password, ok := field.(*core.PasswordField); ok {
		hash, _ := password.DriverValue(record) // it only reads
		return hash
	}
	return record.Get(field.GetName())
}

// shown is a sealed text for the entry, which seals it again; nil for none.
func shown(text string) any {
	if text == "" {
		return nil
	}
	return phi.Text(text)
}
