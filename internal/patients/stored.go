package patients

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/ranking"
	"github.com/vigilhealth/vigil/internal/triage"
)

// afterStored keeps what must go with every stored patient: one triage row, listed while the patient is active, days with data in
// the patient's time zone, and nothing open once the patient is deleted. before is what was stored; nil for a new patient.
func afterStored(tx core.App, p, before *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) error {
	if err := triage.SetListed(tx, p.Id, p.Active() && !p.Deleted(), p.CreatedAt()); err != nil {
		return err
	}
	if err := moveDays(tx, p, before, practice); err != nil {
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
	return observations.RecountDays(tx, p.Id, zone, time.Time{})
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
	return ranking.Change(tx, now, func(core.App) (string, error) { return p.Id, chain.Store() })
}

func publicIDs(recordIDs []string) []string {
	ids := make([]string, len(recordIDs))
	for i, id := range recordIDs {
		ids[i] = strconv.FormatInt(collections.Number(id), 10)
	}
	return ids
}
