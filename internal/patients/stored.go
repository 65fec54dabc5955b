package patients

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/triage"
)

// afterStored keeps what must go with every stored patient: one triage row, listed while the patient is active, days with data in
// the patient's time zone, and nothing open once the patient is deleted. before is what was stored; nil for a new patient.
func afterStored(tx core.App, p, before *collections.Patient, by audit.Actor, now time.Time, practice *time.Location) error {
	if err := keepListed(tx, p); err != nil {
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

func keepListed(tx core.App, p *collections.Patient) error {
	listed := p.Active() && !p.Deleted()
	row, err := tx.FindFirstRecordByData(collections.TriageScores, "patient", p.Id)
	if collections.Missing(err) {
		return triage.Enrol(tx, p.Id, p.CreatedAt())
	}
	if err != nil {
		return fmt.Errorf("find triage row: %w", err)
	}
	if row.GetBool("listed") == listed {
		return nil
	}
	row.Set("listed", listed)
	if err := tx.Save(row); err != nil {
		return fmt.Errorf("store triage row: %w", err)
	}
	return nil
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
	devices, err := takeDevices(tx, p.Id, p.DeletedBy(), now)
	if err != nil {
		return err
	}
	resolved, err := alerts.ResolveOpen(tx, p.Id, now)
	if err != nil {
		return err
	}
	cancelled, err := triage.CancelOpen(tx, p.Id, now)
	if err != nil {
		return err
	}
	if len(devices)+len(resolved)+len(cancelled) == 0 {
		return nil
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
		{audit.DeviceUnassign, "Device", by, devices},
		{audit.AlertResolve, "Alert", audit.System(), publicIDs(resolved)},
		{audit.EscalationUpdate, "Escalation", audit.System(), publicIDs(cancelled)},
	} {
		for _, id := range ended.ids {
			entry := audit.Entry{Event: ended.event, Actor: ended.by, ResourceType: ended.kind, ResourceID: id, PatientID: p.Id, Reason: "The patient was deleted."}
			if err := chain.Add(entry, now); err != nil {
				return err
			}
		}
	}
	if err := chain.Store(); err != nil {
		return err
	}
	_, err = triage.Rescore(tx, p.Id, now)
	return err
}

// takeDevices ends the patient's assignments and returns the ids of the devices.
func takeDevices(tx core.App, patientID, by string, now time.Time) (devices []string, err error) {
	params := dbx.Params{"patient": patientID, "by": by, "at": collections.Instant(now)}
	err = tx.NonconcurrentDB().NewQuery(`UPDATE device_assignments SET unassigned_at = {:at}, unassigned_by = {:by}
		WHERE patient = {:patient} AND unassigned_at = '' RETURNING device_id`).Bind(params).Column(&devices)
	if err != nil {
		return nil, fmt.Errorf("end device assignments: %w", err)
	}
	_, err = tx.NonconcurrentDB().NewQuery(`UPDATE devices SET patient = '', assigned_at = '', status = 'inventory'
		WHERE patient = {:patient} AND patient != ''`).Bind(params).Execute()
	if err != nil {
		return nil, fmt.Errorf("take devices back: %w", err)
	}
	return devices, nil
}

func publicIDs(recordIDs []string) []string {
	ids := make([]string, len(recordIDs))
	for i, id := range recordIDs {
		ids[i] = strconv.FormatInt(collections.Number(id), 10)
	}
	return ids
}
