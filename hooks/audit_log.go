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

// writerKey stores the actor of a dashboard request on the record, for the handlers inside the transaction.
const writerKey = "@writer"

// auditDashboard records the writer of requests to PocketBase's own routes, which only superusers can use.
func auditDashboard(app core.App) {
	note := func(e *core.RecordRequestEvent) error {
		if e.Auth != nil && e.Auth.IsSuperuser() {
			e.Record.SetRaw(writerKey, audit.Superuser(e.Auth.Id, e.Auth.Email(), originOf(e.RequestEvent)))
		}
		return e.Next()
	}
	app.OnRecordCreateRequest(collectionsWith(audited)...).BindFunc(note)
	app.OnRecordUpdateRequest(collectionsWith(audited)...).BindFunc(note)
	app.OnRecordDeleteRequest(collectionsWith(audited)...).BindFunc(note)
}

// writerOf returns the superuser who writes the record in the dashboard, else the system.
func writerOf(record *core.Record) audit.Actor {
	if actor, ok := record.GetRaw(writerKey).(audit.Actor); ok {
		return actor
	}
	return audit.System()
}

func (h *hooks) auditCreate(e *core.RecordEvent) error { return h.auditWrite(e, "create") }
func (h *hooks) auditUpdate(e *core.RecordEvent) error { return h.auditWrite(e, "update") }
func (h *hooks) auditDelete(e *core.RecordEvent) error { return h.auditWrite(e, "delete") }

// fromDashboard reports whether a superuser writes the record in the dashboard.
func fromDashboard(record *core.Record) bool {
	_, ok := record.GetRaw(writerKey).(audit.Actor)
	return ok
}

// auditWrite audits dashboard writes, and every write of superusers, in the transaction of the write, with the changed values. The API's
// engines audit their own writes.
func (h *hooks) auditWrite(e *core.RecordEvent, verb string) error {
	before := e.Record.Original()
	if err := e.Next(); err != nil || !fromDashboard(e.Record) && !e.Record.IsSuperuser() || policies[e.Record.Collection().Name]&auditedByEngine != 0 {
		return err
	}
	after := e.Record
	if verb == "delete" {
		before, after = e.Record, core.NewRecord(e.Record.Collection())
	}
	entry := audit.Entry{
		Event: dashboardEvent(e.Record, verb), Actor: writerOf(e.Record), ResourceType: e.Record.Collection().Name,
		ResourceID: publicID(e.Record), PatientID: patientOf(e.Record), Changes: diffRecords(before, after),
	}
	if verb == "update" && entry.ResourceType == collections.Users {
		return h.auditUserChange(e.App, entry)
	}
	return audit.Append(e.App, entry, h.Clock())
}

// auditUserChange records a changed account with the API's events: a separate entry for the role, and activation or deactivation.
func (h *hooks) auditUserChange(app core.App, entry audit.Entry) error {
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

// dashboardEvent names the event of a write, such as patient.update; a collection without a noun of its own is a setting.
func dashboardEvent(record *core.Record, verb string) audit.Event {
	nouns := map[string]string{
		collections.Users: "user", collections.Clients: "client", collections.Webhooks: "webhook", collections.BillingEntries: "billing", core.CollectionNameSuperusers: "superuser",
	}
	if noun, ok := nouns[record.Collection().Name]; ok {
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

// ignoredColumns change with every write and are not audited.
var ignoredColumns = []string{"created", "updated", "created_at", "updated_at"}

// diffRecords returns the changed fields with both values. For passwords and other hidden fields it returns only the name.
func diffRecords(before, after *core.Record) audit.Changes {
	changes := audit.Changes{}
	for _, field := range after.Collection().Fields {
		name := field.GetName()
		if name == core.FieldNameId || slices.Contains(ignoredColumns, name) || equalField(field, before, after) {
			continue
		}
		switch {
		case field.GetHidden() || field.Type() == core.FieldTypePassword:
			changes[name] = audit.Change{}
		case field.Type() == collections.PHIFieldType:
			changes[name] = audit.Change{Old: optionalText(before.GetString(name)), New: optionalText(after.GetString(name))}
		default:
			changes[name] = audit.Change{Old: before.Get(name), New: after.Get(name)}
		}
	}
	return changes
}

// equalField reports whether a field has the same value in both records; passwords are compared by hash.
func equalField(field core.Field, before, after *core.Record) bool {
	old, failed := json.Marshal(fieldValue(field, before))
	fresh, err := json.Marshal(fieldValue(field, after))
	return failed == nil && err == nil && bytes.Equal(old, fresh)
}

func fieldValue(field core.Field, record *core.Record) any {
	if password, ok := field.(*core.PasswordField); ok {
		hash, _ := password.DriverValue(record) // never fails
		return hash
	}
	return record.Get(field.GetName())
}

// optionalText returns a text for the audit entry, which seals it, or nil for "".
func optionalText(text string) any {
	if text == "" {
		return nil
	}
	return phi.Text(text)
}
