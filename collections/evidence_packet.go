package collections

import "github.com/pocketbase/pocketbase/core"

// ObservationsByID are the observations with some ids, in no order.
func ObservationsByID(app core.App, ids []string) (found []*core.Record, err error) {
	err = app.RecordQuery(Observations).AndWhere(among(ids)).All(&found)
	return found, wrap(err, "fetch observations")
}
