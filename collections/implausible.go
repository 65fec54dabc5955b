package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// AlertsOfQuarantine are the alerts about an event in the quarantine, in order.
func AlertsOfQuarantine(app core.App, eventID string) ([]*Alert, error) {
	return listOf[Alert](app, Alerts, dbx.NewExp(`quarantine_id = {:event} AND quarantine_id != ''
		OR id = (SELECT alert FROM gateway_events WHERE id = {:event} AND alert != '')`, dbx.Params{"event": eventID}), "id")
}

// PatientOfQuarantine is whose people know of an event in the quarantine; "" while nobody does.
func PatientOfQuarantine(app core.App, eventID string) (string, error) {
	patients, err := PatientsOfQuarantine(app, eventID)
	return patients[eventID], err
}

// PatientsOfQuarantine are those of several events, by event.
func PatientsOfQuarantine(app core.App, eventIDs ...string) (map[string]string, error) {
	if len(eventIDs) == 0 {
		return map[string]string{}, nil
	}
	told := app.DB().Select("quarantine_id", "patient").From(Alerts).Where(dbx.And(AnyOf("quarantine_id", eventIDs), dbx.NewExp("quarantine_id != ''")))
	return readMap[string]("find whose events are", told.Union(
		app.DB().Select("id", "patient").From(GatewayEvents).Where(dbx.And(AnyOf("id", eventIDs), dbx.NewExp("patient != ''"))).Build(),
	))
}

// NotePatientOf says whose an event in the quarantine is, where no alert need be about it alone.
func NotePatientOf(tx core.App, eventID, patientID string) error {
	return update(tx, "note whose an event is", GatewayEvents, dbx.Params{"patient": patientID}, dbx.HashExp{"id": eventID})
}

// NoteReadingOf says which reading became of what the alerts about an event in the quarantine are about: withdrawing it takes them back.
func NoteReadingOf(tx core.App, eventID, observationID string) error {
	return update(tx, "note what became of an event", Alerts, dbx.Params{"observation": observationID},
		dbx.NewExp("quarantine_id = {:event} AND quarantine_id != ''", dbx.Params{"event": eventID}))
}
