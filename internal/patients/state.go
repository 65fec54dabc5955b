package patients

import (
	"cmp"
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

// Archive ends the monitoring of an active patient; the record stays. An archived patient is an invalid_state fault.
// Source: docs/decisions/patients.md, "`active` and `status`".
func Archive(app core.App, id string, reason phi.Text, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientArchive, by, now, func(p *collections.Patient) error {
		if !p.Active() {
			return fault.State("invalid_state", "The patient is already archived.")
		}
		p.Set(collections.PatientActive, false)
		p.Set(collections.PatientArchivedAt, collections.Instant(now))
		p.Set(collections.PatientArchivedBy, authorOf(by))
		p.Set(collections.PatientArchiveReason, reason.Reveal())
		return nil
	})
}

// Unarchive reactivates an archived patient. Time and reason of the archiving stay on record.
// Source: docs/decisions/patients.md, "Unarchive and delete combinations".
func Unarchive(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientUnarchive, by, now, func(p *collections.Patient) error {
		if p.Active() {
			return fault.State("invalid_state", "The patient is not archived.")
		}
		p.Set(collections.PatientActive, true)
		p.Set(collections.PatientUnarchivedAt, collections.Instant(now))
		p.Set(collections.PatientUnarchivedBy, authorOf(by))
		return nil
	})
}

// Delete hides a patient from everyone but administrators and closes open work; nothing is erased. The hook on patients closes it
// ([Guard]).
// Source: docs/decisions/patients.md, "Soft delete" and docs/decisions/retention.md, "Retention".
func Delete(app core.App, id string, by audit.Actor, now time.Time, conditions ...Precondition) error {
	_, err := modifyIf(app, id, audit.PatientDelete, by, now, conditions, func(p *collections.Patient) error {
		p.Set(collections.PatientDeletedAt, collections.Instant(now))
		p.Set(collections.PatientDeletedBy, authorOf(by))
		return nil
	})
	return err
}

// Restore reverses a deletion; the patient is active or archived as before. Work closed by the deletion stays closed.
func Restore(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientRestore, by, now, func(p *collections.Patient) error {
		if !p.Deleted() {
			return fault.State("invalid_state", "The patient is not deleted.")
		}
		p.Set(collections.PatientDeletedAt, "")
		p.Set(collections.PatientDeletedBy, "")
		return nil
	})
}

// stateColumns record the time and author of archiving and deletion.
var stateColumns = []string{
	collections.PatientArchivedAt, collections.PatientArchivedBy, collections.PatientArchiveReason, collections.PatientUnarchivedAt,
	collections.PatientUnarchivedBy, collections.PatientDeletedAt, collections.PatientDeletedBy,
}

// stateSetKey marks a record with state columns set by this package, so that [guardState] keeps them.
const stateSetKey = "@named"

// guardState keeps the columns of archiving and deletion consistent for any writer: a change of state gets its time and author unless the
// writer set them, and neither changes without one.
func guardState(p, stored *collections.Patient, by audit.Actor, now time.Time, wrong validation.Errors) {
	if stored == nil {
		p.Set(collections.PatientActive, true)
		for _, column := range stateColumns {
			p.Set(column, "")
		}
		return
	}
	if named, _ := p.GetRaw(stateSetKey).(bool); named {
		p.SetRaw(stateSetKey, false) // for this save only
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
				wrong[column] = validation.NewError("validation_follows_state", "Follows the state of the patient and cannot be set alone.")
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

// authorOf returns the author of a change for its columns.
func authorOf(by audit.Actor) string { return cmp.Or(by.Email, string(audit.BySystem)) }

// stateOf returns the patient's state as the audit trail records it.
func stateOf(p *collections.Patient) string {
	if p.Deleted() {
		return "deleted"
	}
	return Status(p)
}

// auditEventOf returns the audit event of a write.
func auditEventOf(before, after *collections.Patient) audit.Event {
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

// afterSave updates what depends on a stored patient: the triage row, the age group, days with data in the patient's time zone, queued
// deliveries, and open work once the patient is deleted. before is the stored patient; nil for a new one.
func afterSave(tx core.App, p, before *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) error {
	if err := triage.SetListed(tx, p.Id, p.Active() && !p.Deleted(), p.CreatedAt()); err != nil {
		return err
	}
	if err := storeAgeGroup(tx, p, now, practice); err != nil {
		return err
	}
	if err := recountDays(tx, p, before, practice); err != nil {
		return err
	}
	if err := releaseQueuedDeliveries(tx, p, before, now); err != nil {
		return err
	}
	if !p.Deleted() {
		return nil
	}
	return endOpenWork(tx, p, by, now)
}

// recountDays recounts a patient's days with data after a change of time zone. Source: docs/decisions/conventions.md, "Practice and time
// zone".
func recountDays(tx core.App, p, before *collections.Patient, practice *time.Location) error {
	if before == nil {
		return nil
	}
	zone := collections.Zone(p.TimeZone(), practice)
	if zone.String() == collections.Zone(before.TimeZone(), practice).String() {
		return nil
	}
	return ingest.RecountDays(tx, p.Id, zone, time.Time{})
}

// endOpenWork unassigns devices and closes open alerts and escalations of a deleted patient, each with an audit entry.
// Source: docs/decisions/patients.md, "Soft delete".
func endOpenWork(tx core.App, p *collections.Patient, by audit.Actor, now time.Time) error {
	devices, err := collections.UnassignDevices(tx, p.Id, p.DeletedBy(), now)
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
	return triage.UpdateAndRescore(tx, now, func(core.App) (string, error) { return p.Id, chain.Store() })
}

func publicIDs(recordIDs []string) []string {
	ids := make([]string, len(recordIDs))
	for i, id := range recordIDs {
		ids[i] = strconv.FormatInt(collections.Number(id), 10)
	}
	return ids
}
