package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// placeAt is the number of the last change before a time; complete is false when some of those after it may no longer be kept.
func placeAt(app core.App, at time.Time) (place int64, complete bool, err error) {
	var first string
	if err := app.DB().NewQuery(`SELECT COALESCE((SELECT seq FROM changes WHERE at < {:at} ORDER BY seq DESC LIMIT 1), 0),
		COALESCE((SELECT at FROM changes ORDER BY seq LIMIT 1), '')`).Bind(dbx.Params{"at": Instant(at)}).Row(&place, &first); err != nil {
		return 0, false, wrap(err, "find place of a time")
	}
	return place, place > 0 || ParseInstant(first).Before(at), nil
}

// apiID is the record id of what a change names.
const apiID = `CASE type WHEN 'device' THEN (SELECT id FROM devices WHERE device_id = record) ELSE record END`

// ChangedDuring are what was changed of a type at a time or after, and before another, by the clock of the commits.
func ChangedDuring(app core.App, noun string, from, until time.Time) ([]string, error) {
	place, _, err := placeAt(app, from)
	if err != nil {
		return nil, err
	}
	return queryColumn[string](app, "find what was changed", `SELECT DISTINCT `+apiID+` FROM changes
		WHERE seq > {:place} AND at >= {:from} AND at < {:until} AND type = {:noun} AND change != 'deleted' AND record != ''`,
		dbx.Params{"place": place, "from": Instant(from), "until": Instant(until), "noun": noun})
}

// DeletedSince are what was deleted of a type since a time, by the clock of the commits; what has come back is among it. complete is false when changes
// are no longer kept that long.
func DeletedSince(app core.App, noun string, since time.Time) (ids []string, complete bool, err error) {
	place, complete, err := placeAt(app, since)
	if err != nil {
		return nil, false, err
	}
	ids, err = queryColumn[string](app, "find what was deleted", `SELECT DISTINCT record FROM changes
		WHERE seq > {:place} AND at >= {:since} AND type = {:noun} AND change = 'deleted'`,
		dbx.Params{"place": place, "since": Instant(since), "noun": noun})
	return ids, complete, err
}

// rowsOfPatient are the tables whose rows are a patient's, by noun.
var rowsOfPatient = map[string]string{ChangeObservation: Observations, ChangeAlert: Alerts}

// RowsOfPatients are what there is of a type that is these patients'.
func RowsOfPatients(app core.App, noun string, patientIDs []string) ([]string, error) {
	table, known := rowsOfPatient[noun]
	if !known {
		return nil, nil
	}
	id := "id"
	if noun == ChangeAlert {
		id = "ltrim(id, '0')"
	}
	return queryColumn[string](app, "find what is of patients", `SELECT t.`+id+` FROM json_each({:patients}) p CROSS JOIN `+table+` t WHERE t.patient = p.value`,
		dbx.Params{"patients": jsonList(patientIDs)})
}
