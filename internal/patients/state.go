package patients

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
)

// Archive ends the monitoring of an active patient; the record stays. The hook on patients ends the hold and closes what is open ([Guard]). An
// archived patient is an invalid_state fault, and an open stat escalation an open_stat conflict unless the caller confirms.
// Source: docs/decisions/patients.md, "`active` and `status`" and "Archiving and death".
func Archive(app core.App, id string, d ArchiveDraft, by audit.Actor, now time.Time) (*collections.Patient, error) {
	check := func(tx core.App, p *collections.Patient) error {
		if !p.Active() {
			return fault.State("invalid_state", "The patient is already archived.")
		}
		if stat, err := collections.HasOpenStat(tx, id); err != nil || !stat || d.Confirmed {
			return err
		}
		return fault.New(fault.Conflict, "open_stat", "A stat escalation of the patient is open. Send confirm true to cancel it and archive the patient.")
	}
	return modifyIf(app, id, audit.PatientArchive, by, now, []Precondition{check}, func(p *collections.Patient) error {
		p.Set(collections.PatientActive, false)
		p.Set(collections.PatientDeceasedAt, d.DeceasedAt)
		p.Set(collections.PatientEffectiveAt, collections.FormatInstant(d.EffectiveAt))
		p.Set(collections.PatientArchivedAt, collections.FormatInstant(now))
		p.Set(collections.PatientArchivedBy, authorOf(by))
		p.Set(collections.PatientArchiveReason, d.Reason.Reveal())
		return nil
	})
}

// Unarchive reactivates an archived patient. Time and reason of the archiving stay on record; the
// date of death is removed, and the effective end of monitoring no longer applies. Source:
// docs/decisions/patients.md, "Unarchive and delete combinations".
func Unarchive(app core.App, id string, by audit.Actor, now time.Time) (*collections.Patient, error) {
	return modify(app, id, audit.PatientUnarchive, by, now, func(p *collections.Patient) error {
		if p.Active() {
			return fault.State("invalid_state", "The patient is not archived.")
		}
		p.Set(collections.PatientActive, true)
		p.Set(collections.PatientUnarchivedAt, collections.FormatInstant(now))
		p.Set(collections.PatientUnarchivedBy, authorOf(by))
		return nil
	})
}

// Delete hides a patient from everyone but administrators and closes open work; nothing is erased. The hook on patients closes it
// ([Guard]).
// Source: docs/decisions/patients.md, "Soft delete" and docs/decisions/retention.md, "Retention".
func Delete(app core.App, id string, by audit.Actor, now time.Time, conditions ...Precondition) error {
	_, err := modifyIf(app, id, audit.PatientDelete, by, now, conditions, func(p *collections.Patient) error {
		p.Set(collections.PatientDeletedAt, collections.FormatInstant(now))
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

// apiColumns record holds, deaths and stopped messages. The dashboard cannot write them: a hold and
// an archiving have effects on alerts and escalations, and a stop is the patient's own decision.
var apiColumns = []string{
	collections.PatientHoldReason, collections.PatientHoldFrom, collections.PatientHoldUntil, collections.PatientHoldEndedAt,
	collections.PatientHoldBy, collections.PatientHoldNotes, collections.PatientDeceasedAt, collections.PatientEffectiveAt, collections.PatientInterruptions,
	collections.PatientEarlierZones, collections.PatientMessagingStoppedAt,
}

// stateSetKey marks a record with state columns set by this package, so that [guardState] keeps them. Its value is the author.
const stateSetKey = "@named"

// guardState keeps the columns of archiving and deletion consistent for any writer: a change of state gets its time and author unless the
// writer set them, and neither changes without one.
func guardState(p, stored *collections.Patient, by audit.Actor, now time.Time, practice *time.Location, wrong validation.Errors) {
	if stored == nil {
		p.Set(collections.PatientActive, true)
		for _, column := range slices.Concat(stateColumns, apiColumns) {
			p.Set(column, "")
		}
		p.Set(collections.PatientInterruptions, nil)
		p.Set(collections.PatientEarlierZones, nil)
		return
	}
	archived, unarchived := stored.Active() && !p.Active(), !stored.Active() && p.Active()
	if _, named := p.GetRaw(stateSetKey).(audit.Actor); named {
		p.SetRaw(stateSetKey, nil) // for this save only
		setConsequences(p, stored, archived, unarchived, now, practice)
		return
	}
	for _, column := range apiColumns {
		if p.GetString(column) != stored.GetString(column) {
			wrong[column] = validation.NewError("validation_api_only", "Can only be set in the console or with the API.")
		}
	}
	setConsequences(p, stored, archived, unarchived, now, practice)
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
		for column, value := range map[string]string{move.at: collections.FormatInstant(now), move.by: authorOf(by)} {
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

// setConsequences ends the hold of an archived patient and keeps the interruption before, because its columns are used again, from the archiving:
// the restoration took its effective date back. It removes the date of death of an unarchived one, and keeps the time zone of the days before a change.
func setConsequences(p, stored *collections.Patient, archived, unarchived bool, now time.Time, practice *time.Location) {
	if archived && p.Hold().InForce(now) {
		p.Set(collections.PatientHoldEndedAt, collections.FormatInstant(now))
	}
	if last := stored.ArchivedAt(); archived && !last.IsZero() && !stored.UnarchivedAt().Before(last) {
		p.Set(collections.PatientInterruptions, append(stored.Interruptions(),
			collections.Interruption{From: collections.FormatInstant(last), Until: collections.FormatInstant(stored.UnarchivedAt())}))
	}
	if unarchived {
		p.Set(collections.PatientDeceasedAt, "")
	}
	if was := stored.Zones(practice); was.Present.String() != collections.Zone(p.TimeZone(), practice).String() {
		p.Set(collections.PatientEarlierZones, append(was.Earlier, collections.EarlierZone{Zone: was.Present.String(), Until: collections.FormatInstant(now)}))
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

// afterSave updates what depends on a stored patient: the triage row, the age group, proposed templates, queued deliveries, and open work once a hold begins or the patient is archived or deleted. before is the stored patient; nil for a
// new one.
func afterSave(tx core.App, p, before *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) error {
	if err := triage.SetListed(tx, p.Id, p.Active() && !p.Deleted(), p.CreatedAt()); err != nil {
		return err
	}
	if err := storeAgeGroup(tx, p, now, practice); err != nil {
		return err
	}
	if err := templates.Reconsider(tx, p, before, now, practice); err != nil {
		return err
	}
	if err := releaseQueuedDeliveries(tx, p, before, now); err != nil {
		return err
	}
	switch {
	case p.Deleted():
		return closeDeleted(tx, p, by, now)
	case before != nil && before.Active() && !p.Active():
		return closeArchived(tx, p, by, now)
	case before != nil && p.Hold().InForce(now) && !before.Hold().InForce(now):
		return resolveMissing(tx, p, by, now)
	}
	return nil
}

// closeArchived resolves the alerts and cancels the escalations of an archived patient with the reason, so that the ladder stops.
// Source: docs/decisions/patients.md, "Archiving and death".
func closeArchived(tx core.App, p *collections.Patient, by audit.Actor, now time.Time) error {
	why := "The patient was archived: "
	if day := p.DeceasedAt(); day != "" {
		why = "The patient died on " + day + ". Archived: "
	}
	numbers, err := collections.OpenEscalationsOf(tx, p.Id)
	if err != nil {
		return err
	}
	return closeAlertsAndEscalations(tx, p.Id, nil, numbers, alerts.ReasonArchived, phi.Text(why)+p.ArchiveReason(), by, now)
}

// closeDeleted unassigns devices and closes open alerts and escalations of a deleted patient, each with an audit entry.
// Source: docs/decisions/patients.md, "Soft delete".
func closeDeleted(tx core.App, p *collections.Patient, by audit.Actor, now time.Time) error {
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
