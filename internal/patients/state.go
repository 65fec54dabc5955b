package patients

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Archive ends the monitoring of an active patient; the record stays. A patient who is archived already is an
// invalid_state fault. Source: docs/decisions/patients.md, "`active` and `status`".
func Archive(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return alter(app, id, audit.PatientArchive, by, now, func(p *collections.Patient) error {
		if !p.Active() {
			return fault.State("invalid_state", "The patient is archived already.")
		}
		p.Set(collections.PatientActive, false)
		p.Set(collections.PatientArchivedAt, collections.Instant(now))
		p.Set(collections.PatientArchivedBy, authorOf(by))
		p.Set(collections.PatientArchiveReason, reason.Reveal())
		return nil
	})
}

// Unarchive takes an archived patient back. When and why the patient was archived stays on record.
// Source: docs/decisions/patients.md, "Unarchive and delete combinations".
func Unarchive(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return alter(app, id, audit.PatientUnarchive, by, now, func(p *collections.Patient) error {
		if p.Active() {
			return fault.State("invalid_state", "The patient is not archived.")
		}
		p.Set(collections.PatientActive, true)
		p.Set(collections.PatientUnarchivedAt, collections.Instant(now))
		p.Set(collections.PatientUnarchivedBy, authorOf(by))
		return nil
	})
}

// Delete hides a patient from everyone but administrators and ends what is open; nothing is erased. The hook on
// patients does the ending ([Guard]). Source: docs/decisions/patients.md, "Soft delete" and docs/decisions/retention.md, "Retention".
func Delete(app core.App, id string, by audit.Actor, now time.Time, conditions ...Condition) error {
	_, err := alterIf(app, id, audit.PatientDelete, by, now, conditions, func(p *collections.Patient) error {
		p.Set(collections.PatientDeletedAt, collections.Instant(now))
		p.Set(collections.PatientDeletedBy, authorOf(by))
		return nil
	})
	return err
}

// Restore takes a deletion back; the patient is active or archived as before. What the deletion ended stays ended.
func Restore(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return alter(app, id, audit.PatientRestore, by, now, func(p *collections.Patient) error {
		if !p.Deleted() {
			return fault.State("invalid_state", "The patient is not deleted.")
		}
		p.Set(collections.PatientDeletedAt, "")
		p.Set(collections.PatientDeletedBy, "")
		return nil
	})
}

// stateColumns say whether a patient is archived or deleted, since when and by whom.
var stateColumns = []string{
	collections.PatientArchivedAt, collections.PatientArchivedBy, collections.PatientArchiveReason, collections.PatientUnarchivedAt,
	collections.PatientUnarchivedBy, collections.PatientDeletedAt, collections.PatientDeletedBy,
}

// namedKey marks a record whose state columns an engine has written, names included, so that [guardState] leaves them.
const namedKey = "@named"

// guardState holds the columns of archiving and deleting together, whoever writes them: a change of state gets its time
// and its author unless the writer gave them, and neither changes without one.
func guardState(p, stored *collections.Patient, by audit.Actor, now time.Time, wrong validation.Errors) {
	if stored == nil {
		p.Set(collections.PatientActive, true)
		for _, column := range stateColumns {
			p.Set(column, "")
		}
		return
	}
	if named, _ := p.GetRaw(namedKey).(bool); named {
		p.SetRaw(namedKey, false) // for this save only
		return
	}
	archived, unarchived := stored.Active() && !p.Active(), !stored.Active() && p.Active()
	deleted, restored := !stored.Deleted() && p.Deleted(), stored.Deleted() && !p.Deleted()
	if restored {
		p.Set(collections.PatientDeletedBy, "")
	}
	for _, move := range []struct {
		made, free bool
		at, by     string
	}{
		{archived, false, collections.PatientArchivedAt, collections.PatientArchivedBy},
		{unarchived, false, collections.PatientUnarchivedAt, collections.PatientUnarchivedBy},
		{deleted, restored, collections.PatientDeletedAt, collections.PatientDeletedBy},
	} {
		for column, value := range map[string]string{move.at: collections.Instant(now), move.by: authorOf(by)} {
			touched := p.GetString(column) != stored.GetString(column)
			if move.made && !touched {
				p.Set(column, value)
			} else if touched && !move.made && !move.free {
				wrong[column] = validation.NewError("validation_follows_state", "Follows the state of the patient and cannot be set by itself.")
			}
		}
	}
	reason := p.ArchiveReason()
	switch changed := reason != stored.ArchiveReason(); {
	case !p.Active() && reason == "" && (archived || changed):
		wrong[collections.PatientArchiveReason] = validation.NewError("validation_required", "This field is required.")
	case p.ArchivedAt().IsZero() && changed && reason != "":
		wrong[collections.PatientArchiveReason] = validation.NewError("validation_follows_state", "Only an archived patient has a reason.")
	}
}

// authorOf is who is named in the columns of a change that came without a name.
func authorOf(by audit.Actor) string { return cmp.Or(by.Email, string(audit.BySystem)) }

// stateOf is the patient's state as the audit trail has it.
func stateOf(p *collections.Patient) string {
	if p.Deleted() {
		return "deleted"
	}
	return Status(p)
}

// eventOf names what a write did to a patient.
func eventOf(before, after *collections.Patient) audit.Event {
	switch was, is := stateOf(before), stateOf(after); {
	case was == is:
		return audit.PatientUpdate
	case after.Deleted():
		return audit.PatientDelete
	case before.Deleted():
		return audit.PatientRestore
	case after.Active():
		return audit.PatientUnarchive
	}
	return audit.PatientArchive
}

// alter changes a stored patient, who is not deleted unless restoring is the change, and records it, in one transaction.
func alter(app core.App, id string, event audit.Event, by audit.Actor, now time.Time,
	change func(p *collections.Patient) error,
) (*collections.Patient, error) {
	return alterIf(app, id, event, by, now, nil, change)
}

// alterIf is alter where conditions hold, which are asked for in the transaction.
func alterIf(app core.App, id string, event audit.Event, by audit.Actor, now time.Time, conditions []Condition,
	change func(p *collections.Patient) error,
) (p *collections.Patient, err error) {
	find := collections.FindPatient
	if event == audit.PatientRestore {
		find = collections.FindPatientAnyState
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if p, err = find(tx, id); err != nil {
			return fault.OrMissing(err)
		}
		for _, holds := range conditions {
			if err := holds(tx, p); err != nil {
				return err
			}
		}
		old := values(p)
		if err := change(p); err != nil {
			return err
		}
		p.Set(collections.ColumnUpdatedAt, collections.Instant(now))
		p.SetRaw(namedKey, true)
		if err := tx.Save(p); err != nil {
			return asFault(err)
		}
		return note(tx, event, p, old, by, now)
	})
	return p, err
}

// Create stores a new patient, with a triage row and an audit entry, in one transaction. The hooks on patients do the
// rest of the work ([Guard]). A value that another patient holds, or a reference to nobody, is a
// validation fault. Source: docs/decisions/patients.md, "MRN".
func Create(app core.App, draft Draft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return create(app, draft, audit.PatientCreate, by, now)
}

func create(app core.App, draft Draft, event audit.Event, by audit.Actor, now time.Time) (p *collections.Patient, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if p, err = collections.NewPatient(tx); err != nil {
			return err
		}
		draft.applyTo(p)
		p.Set(collections.ColumnCreatedAt, collections.Instant(now))
		if err := tx.Save(p); err != nil {
			return asFault(err)
		}
		return note(tx, event, p, audit.Changes{}, by, now)
	})
	if err != nil {
		return nil, fmt.Errorf("create patient: %w", err)
	}
	return p, nil
}

// Replace stores new values of a patient who is not deleted, and what they were in the audit log, in one transaction.
// The draft comes from [Body.ReadReplacement]. Whether the patient is archived stays as it is.
// Source: docs/decisions/patients.md, "PUT semantics".
func Replace(app core.App, id string, draft Draft, by audit.Actor, now time.Time, conditions ...Condition) (*collections.Patient, error) {
	p, err := update(app, id, by, now, conditions, func(p *collections.Patient) error {
		draft.applyTo(p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replace patient: %w", err)
	}
	return p, nil
}

// note appends the audit entry of a stored patient, with the values that differ from the old ones.
func note(tx core.App, event audit.Event, p *collections.Patient, old audit.Changes, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for name, value := range values(p) {
		before := old[name].New
		if value.New == before || (before == nil && value.New == phi.Text("")) {
			continue
		}
		changes[name] = audit.Change{Old: before, New: value.New}
	}
	entry := audit.Entry{Event: event, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: p.Id, PatientID: p.Id, Changes: changes}
	if event == audit.PatientArchive {
		entry.Reason = p.ArchiveReason()
	}
	return audit.Append(tx, entry, now)
}

// values are what a patient's record holds, under the names of the contract. Of a social security number only the
// last four digits are noted.
func values(p *collections.Patient) audit.Changes {
	held := audit.Changes{"status": {New: phi.Text(stateOf(p))}}
	for _, column := range bodyColumns {
		text := p.GetString(column)
		if column == collections.PatientSSN && text != "" {
			text = "***-**-" + lastFour(text)
		}
		held[nameOf(column)] = audit.Change{New: phi.Text(text)}
	}
	return held
}

func lastFour(ssn string) string { return ssn[max(0, len(ssn)-4):] }

// afterStored keeps what must go with every stored patient: one triage row, listed while the patient is active, days with data in
// the patient's time zone, and nothing open once the patient is deleted. before is what was stored; nil for a new patient.
func afterStored(tx core.App, p, before *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) error {
	if err := triage.SetListed(tx, p.Id, p.Active() && !p.Deleted(), p.CreatedAt()); err != nil {
		return err
	}
	if err := storeAgeGroup(tx, p, now, practice); err != nil {
		return err
	}
	if err := moveDays(tx, p, before, practice); err != nil {
		return err
	}
	if err := sendWhatWaited(tx, p, before, now); err != nil {
		return err
	}
	if !p.Deleted() {
		return nil
	}
	return endEverything(tx, p, by, now)
}

// moveDays counts a patient's days with data anew when the patient is in another time zone now. Source: docs/decisions/conventions.md,
// "Practice and time zone".
func moveDays(tx core.App, p, before *collections.Patient, practice *time.Location) error {
	if before == nil {
		return nil
	}
	zone := collections.Zone(p.TimeZone(), practice)
	if zone.String() == collections.Zone(before.TimeZone(), practice).String() {
		return nil
	}
	return ingest.RecountDays(tx, p.Id, zone, time.Time{})
}

// endEverything leaves a deleted patient without devices, open alerts and open escalations, each ending recorded.
// Source: docs/decisions/patients.md, "Soft delete".
func endEverything(tx core.App, p *collections.Patient, by audit.Actor, now time.Time) error {
	devices, err := collections.TakeDevices(tx, p.Id, p.DeletedBy(), now)
	if err != nil {
		return err
	}
	resolved, err := alerts.ResolveOpen(tx, p.Id, now)
	if err != nil {
		return err
	}
	cancelled, err := escalations.CancelOpen(tx, p.Id, now)
	if err != nil || len(devices)+len(resolved)+len(cancelled) == 0 {
		return err
	}
	chain, err := audit.NewChain(tx)
	if err != nil {
		return err
	}
	for _, ended := range []struct {
		event audit.Event
		kind  string
		by    audit.Actor
		ids   []string
	}{
		{audit.DeviceUnassign, audit.ResourceDevice, by, devices},
		{audit.AlertResolve, audit.ResourceAlert, audit.System(), publicIDs(resolved)},
		{audit.EscalationUpdate, audit.ResourceEscalation, audit.System(), publicIDs(cancelled)},
	} {
		for _, id := range ended.ids {
			entry := audit.Entry{Event: ended.event, Actor: ended.by, ResourceType: ended.kind, ResourceID: id, PatientID: p.Id, Reason: "The patient was deleted."}
			if err := chain.Add(entry, now); err != nil {
				return err
			}
		}
	}
	return triage.Change(tx, now, func(core.App) (string, error) { return p.Id, chain.Store() })
}

func publicIDs(recordIDs []string) []string {
	ids := make([]string, len(recordIDs))
	for i, id := range recordIDs {
		ids[i] = strconv.FormatInt(collections.Number(id), 10)
	}
	return ids
}
