package escalations

import (
	"fmt"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
)

// Filter narrows a list of escalations; zero values do not.
type Filter struct {
	PatientID, Priority, Status, AssignedTo string
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// List returns a page of escalations, newest first, and how many there are in all.
func List(app core.App, f Filter, offset, limit int) (page []*core.Record, total int, err error) {
	return collections.Conditions{}.Equal("patient", f.PatientID).Equal("priority", f.Priority).Equal("status", f.Status).
		Equal("assigned_to", f.AssignedTo).OnCareTeamOf(f.CareTeamOf).
		PageOfPatients(app, collections.Escalations, "created_at DESC, id DESC", offset, limit)
}

// AlertsOf are the record ids of the alerts that belong to escalations, by escalation and in order: those attached, and the
// one that each is about.
func AlertsOf(app core.App, page ...*core.Record) (map[string][]string, error) {
	ids, attached := make([]any, len(page)), map[string][]string{}
	for i, record := range page {
		ids[i] = record.Id
		if alert := record.GetString("alert"); alert != "" {
			attached[record.Id] = []string{alert}
		}
	}
	rows := []struct {
		ID         string `db:"id"`
		Escalation string `db:"escalation"`
	}{}
	err := app.DB().Select("id", "escalation").From(collections.Alerts).
		Where(dbx.And(dbx.In("escalation", ids...), dbx.NewExp("escalation != ''"))).OrderBy("id").All(&rows)
	if err != nil {
		return nil, fmt.Errorf("find alerts of escalations: %w", err)
	}
	for _, row := range rows {
		if known := attached[row.Escalation]; len(known) == 0 || known[0] != row.ID {
			attached[row.Escalation] = append(known, row.ID)
		}
	}
	return attached, nil
}

// attach makes an alert belong to an escalation, unless it belongs to one that is still open.
func attach(tx core.App, alert *core.Record, escalationID string) error {
	if current := alert.GetString("escalation"); current != "" {
		record, err := tx.FindRecordById(collections.Escalations, current)
		if err != nil && !collections.Missing(err) {
			return fmt.Errorf("find escalation of alert: %w", err)
		}
		if err == nil && !Status(record.GetString("status")).Closed() {
			return nil
		}
	}
	alert.Set("escalation", escalationID)
	return collections.Update(tx, alert, "escalation")
}

// ofSystem is the one that the system itself has open for a patient.
func ofSystem(patientID string) dbx.Expression {
	return dbx.NewExp(`patient = {:patient} AND created_by = {:system} AND status IN ('open', 'in_progress')`,
		dbx.Params{"patient": patientID, "system": alerts.System})
}
