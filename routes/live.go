package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/live"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/triage"
)

// LiveViews shows the live list what the endpoints show.
type LiveViews struct{}

var _ live.Views = LiveViews{}

// Patients implements [live.Views].
func (LiveViews) Patients(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := triage.Find(app, ids...)
	if err != nil {
		return nil, err
	}
	names, err := patients.Names(app, ids)
	if err != nil {
		return nil, err
	}
	views := make(map[string]live.View, len(rows))
	for _, row := range rows {
		if row.Listed {
			views[row.PatientID] = live.View{PatientID: row.PatientID, Data: viewTriage(row, names)}
		}
	}
	return views, nil
}

// Alerts implements [live.Views].
func (LiveViews) Alerts(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := collections.AlertsByID(app, ids)
	if err != nil {
		return nil, err
	}
	rows, _ = collections.ReadableOnly(rows) // whoever reads the list is told how many are left out
	names, err := patients.Names(app, distinct(rows, (*collections.Alert).PatientID))
	if err != nil {
		return nil, err
	}
	views := make(map[string]live.View, len(rows))
	for _, alert := range rows {
		views[alert.Id] = live.View{PatientID: alert.PatientID(), Data: viewAlert(alert.ProxyRecord(), names)}
	}
	return views, nil
}

// Escalations implements [live.Views].
func (LiveViews) Escalations(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := collections.EscalationsByID(app, ids)
	if err != nil {
		return nil, err
	}
	rows, _ = collections.ReadableOnly(rows)
	views, _, err := viewEscalations(app, rows)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]live.View, len(rows))
	for i, e := range rows {
		shown[e.Id] = live.View{PatientID: e.PatientID(), Data: views[i]}
	}
	return shown, nil
}
