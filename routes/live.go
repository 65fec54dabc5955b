package routes

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/live"
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
	views := make(map[string]live.View, len(rows))
	shown, err := viewTriagePage(app, slices.DeleteFunc(rows, func(row triage.Row) bool { return !row.Listed }))
	for _, view := range shown {
		views[view.PatientID] = live.View{PatientID: view.PatientID, Data: view}
	}
	return views, err
}

// Alerts implements [live.Views].
func (LiveViews) Alerts(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := collections.AlertsByID(app, ids)
	return liveViews(app, rows, err, named(viewAlert))
}

// Escalations implements [live.Views].
func (LiveViews) Escalations(app core.App, ids []string) (map[string]live.View, error) {
	rows, err := collections.EscalationsByID(app, ids)
	return liveViews(app, rows, err, viewEscalations)
}

// liveViews shows records by their ids, without those that cannot be read: whoever reads the list is told how many are left out.
func liveViews[R ofPatients, V any](app core.App, rows []R, err error, view func(core.App, []R) ([]V, error)) (map[string]live.View, error) {
	if err != nil {
		return nil, err
	}
	rows, _ = collections.ReadableOnly(rows)
	views, err := view(app, rows)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]live.View, len(rows))
	for i, row := range rows {
		shown[row.ProxyRecord().Id] = live.View{PatientID: row.PatientID(), Data: views[i]}
	}
	return shown, nil
}
