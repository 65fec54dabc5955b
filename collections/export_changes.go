package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// placeAt is how far the changes had gone at a time; exact is for a time that was marked, as the moment of every export is.
func placeAt(app core.App, at time.Time) (place int64, exact bool, err error) {
	err = app.DB().NewQuery(`SELECT COALESCE(MAX(seq), 0), COALESCE(MAX(at) = {:at}, FALSE) FROM change_marks WHERE at <= {:at}`).
		Bind(dbx.Params{"at": Instant(at)}).Row(&place, &exact)
	return place, exact, wrap(err, "find place of a time")
}

// apiID is the record id of what a change names.
const apiID = `CASE type WHEN 'device' THEN (SELECT id FROM devices WHERE device_id = record) ELSE record END`

// ChangedAfter are what was committed of a type after a moment that was marked, until some time later; none when the moment was not.
func ChangedAfter(app core.App, noun string, moment, until time.Time) ([]string, error) {
	place, exact, err := placeAt(app, moment)
	if err != nil || !exact {
		return nil, err
	}
	return queryColumn[string](app, "find what was changed", `SELECT DISTINCT `+apiID+` FROM changes
		WHERE seq > {:place} AND seq <= COALESCE((SELECT MIN(seq) FROM change_marks WHERE at >= {:until}), (SELECT MAX(seq) FROM changes))
			AND type = {:noun} AND change != 'deleted' AND record != ''`,
		dbx.Params{"place": place, "until": Instant(until), "noun": noun})
}

// DeletedSince are what was deleted of a type since a time; what has come back is among it. complete is false when changes are not kept that long.
func DeletedSince(app core.App, noun string, since time.Time) (ids []string, complete bool, err error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, false, err
	}
	var kept bool
	err = app.DB().NewQuery(`SELECT COALESCE((SELECT MIN(seq) FROM changes) <= MAX({:place}, 1), FALSE)`).Bind(dbx.Params{"place": place}).Row(&kept)
	if err != nil {
		return nil, false, wrap(err, "find oldest change")
	}
	ids, err = queryColumn[string](app, "find what was deleted", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = {:noun} AND change = 'deleted'`,
		dbx.Params{"place": place, "exact": exact, "since": Instant(since), "noun": noun})
	return ids, kept, err
}

// RestoredSince are the patients who were deleted and came back since a time.
func RestoredSince(app core.App, since time.Time) ([]string, error) {
	place, exact, err := placeAt(app, since)
	if err != nil {
		return nil, err
	}
	return queryColumn[string](app, "find who was restored", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND ({:exact} OR at >= {:since}) AND type = 'patient' AND change = 'created' AND event != 'patient.created'`,
		dbx.Params{"place": place, "exact": exact, "since": Instant(since)})
}

// rowsOfPatient are the tables whose rows are a patient's, by noun.
var rowsOfPatient = map[string]string{ChangeObservation: Observations, ChangeAlert: Alerts}

// RowsOfPatients are what there is of a type that is these patients'.
func RowsOfPatients(app core.App, noun string, patientIDs []string) ([]string, error) {
	table, known := rowsOfPatient[noun]
	if !known {
		return nil, nil
	}
	id := "t.id"
	if noun == ChangeAlert {
		id = "ltrim(t.id, '0')"
	}
	return queryColumn[string](app, "find what is of patients", `SELECT `+id+` FROM json_each({:patients}) p CROSS JOIN `+table+` t WHERE t.patient = p.value`,
		dbx.Params{"patients": jsonList(patientIDs)})
}
