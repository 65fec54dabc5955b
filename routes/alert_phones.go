package routes

import (
	"slices"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/patients"
)

// calledAbout are the types of alerts that somebody deals with by calling the patient: nothing comes, or nothing that can be relied on.
var calledAbout = []string{alerts.TypeMissedReading, alerts.TypeNoReading24h, alerts.TypeStaleReading, alerts.TypeDeviceBattery}

// toCall reports whether an alert that is not over is about something to call the patient for.
func toCall(alert *collections.Alert) bool {
	status := alerts.Status(alert.Status())
	return slices.Contains(calledAbout, alert.Type()) && (status == alerts.StatusActive || status == alerts.StatusAcknowledged)
}

// viewAlerts shows alerts to a reader of the role, with the patient's phone where somebody is to call and the role may see it.
// Source: docs/decisions/devices.md, "Whom to call".
func viewAlerts(role access.Role) func(core.App, []*collections.Alert) ([]alertView, error) {
	return func(app core.App, page []*collections.Alert) ([]alertView, error) {
		views, err := named(viewAlert)(app, page)
		if err != nil {
			return nil, err
		}
		phones, err := patients.Phones(app, distinct(slices.DeleteFunc(slices.Clone(page), func(a *collections.Alert) bool { return !toCall(a) }),
			(*collections.Alert).PatientID), role)
		if err != nil {
			return nil, err
		}
		for i, alert := range page {
			if toCall(alert) {
				views[i].PatientPhone = orNull(phones[alert.PatientID()].Reveal())
			}
		}
		return views, countReported(app, page, views)
	}
}

// viewLiveAlerts shows alerts to whoever may follow the triage list; all of them may see the phone.
var viewLiveAlerts = viewAlerts(access.Nurse)
