package routes

import (
	"fmt"

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
	return showAll(app, rows, "patient", func(row *core.Record, names map[string]patients.Name) (any, error) {
		if !row.GetBool("listed") {
			return nil, nil
		}
		return viewTriage(row, names)
	})
}

// Alerts implements [live.Views].
func (LiveViews) Alerts(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := app.FindRecordsByIds(collections.Alerts, ids)
	if err != nil {
		return nil, fmt.Errorf("find alerts: %w", err)
	}
	return showAll(app, rows, "id", func(row *core.Record, names map[string]patients.Name) (any, error) {
		return viewAlert(row, names), nil
	})
}

// Escalations implements [live.Views].
func (LiveViews) Escalations(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := app.FindRecordsByIds(collections.Escalations, ids)
	if err != nil {
		return nil, fmt.Errorf("find escalations: %w", err)
	}
	views, _, err := viewEscalations(app, rows)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]live.View, len(rows))
	for i, row := range rows {
		shown[row.Id] = live.View{PatientID: row.GetString("patient"), Data: views[i]}
	}
	return shown, nil
}

// showAll shows records under the values of a column; what shows as nil is left out.
func showAll(
	app core.App, rows []*core.Record, key string, view func(*core.Record, map[string]patients.Name) (any, error),
) (map[string]live.View, error) {
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.GetString("patient")
	}
	names, err := patients.Names(app, ids)
	if err != nil {
		return nil, err
	}
	views := make(map[string]live.View, len(rows))
	for _, row := range rows {
		data, err := view(row, names)
		if err != nil {
			return nil, err
		}
		if data != nil {
			views[row.GetString(key)] = live.View{PatientID: row.GetString("patient"), Data: data}
		}
	}
	return views, nil
}
