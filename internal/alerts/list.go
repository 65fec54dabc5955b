package alerts

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Filter narrows a list of alerts; zero values do not.
type Filter struct {
	PatientID, Level, Status, Type string
	Acknowledged                   *bool
	// From and To bound the creation, both inclusive.
	From, To time.Time
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// List returns a page of alerts, newest first, and how many there are in all.
func List(app core.App, f Filter, offset, limit int) (page []*core.Record, total int, err error) {
	const newestFirst = "created_at DESC, id DESC"
	kind := collections.Conditions{}.Equal("level", f.Level).Equal("status", f.Status).Equal("type", f.Type).Is("acknowledged", f.Acknowledged)
	if (f != Filter{Level: f.Level, Status: f.Status, Type: f.Type, Acknowledged: f.Acknowledged}) {
		return kind.Equal("patient", f.PatientID).Between("created_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf).
			PageOfPatients(app, collections.Alerts, newestFirst, offset, limit)
	}
	err = app.DB().Select("COALESCE(SUM(alerts), 0)").From("alert_totals").Where(collections.Every(kind)).Row(&total)
	if err != nil {
		return nil, 0, fmt.Errorf("count alerts: %w", err)
	}
	return kind.PageOfPatientsAmong(app, collections.Alerts, newestFirst, offset, limit, total)
}

// OfObservations returns the alerts that the given observations raised, by observation, in order of creation; those that only
// inform are left out.
func OfObservations(app core.App, observationIDs ...string) (map[string][]*core.Record, error) {
	var records []*core.Record
	ids := make([]any, len(observationIDs))
	for i, id := range observationIDs {
		ids[i] = id
	}
	err := app.RecordQuery(collections.Alerts).AndWhere(dbx.In("observation", ids...)).AndWhere(dbx.NewExp("observation != ''")).
		AndWhere(dbx.In("level", string(Critical), string(Warning))).OrderBy("id").All(&records)
	if err != nil {
		return nil, fmt.Errorf("find alerts of observations: %w", err)
	}
	alerts := map[string][]*core.Record{}
	for _, record := range records {
		alerts[record.GetString("observation")] = append(alerts[record.GetString("observation")], record)
	}
	return alerts, nil
}
