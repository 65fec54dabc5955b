package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// ObservationFilter narrows a list of observations; zero values do not narrow.
type ObservationFilter struct {
	PatientID, Kind, FHIRStatus string
	// From and To bound the time of measurement, both inclusive.
	From, To time.Time
	// Zone is the practice's time zone, which the stored daily totals use.
	Zone *time.Location
	// OldestFirst orders by ascending instead of descending time of measurement.
	OldestFirst bool
	// CareTeamOf selects the patients of a user's care teams (record id).
	CareTeamOf string
}

// undelivered is the exact condition of a partial index.
const undelivered = "fhir_status != '" + FHIRTransmitted + "'"

func (f ObservationFilter) conditions() Conditions {
	c := Conditions{}.Equal("patient", f.PatientID).Equal("observation_type", f.Kind).
		Equal("fhir_status", f.FHIRStatus).Between("measured_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if f.PatientID == "" && f.FHIRStatus != "" && f.FHIRStatus != FHIRTransmitted {
		return c.And(undelivered) // redundant, but makes SQLite use the partial index
	}
	return c
}

// PageOfObservations returns columns of a page of observations, and the total.
func PageOfObservations(app core.App, f ObservationFilter, columns []string, offset, limit int) (page []ScannedRow, total int, err error) {
	order := []string{"measured_at DESC", "id DESC"}
	if f.OldestFirst {
		order = []string{"measured_at ASC", "id ASC"}
	}
	list := func(matching Conditions, offset int) ([]ScannedRow, error) {
		return scanRows("list observations", app.DB().Select(columns...).From(Observations).Where(AllOf(matching)).OrderBy(order...).
			Offset(int64(offset)).Limit(int64(limit)))
	}
	if f.PatientID != "" && f.Kind == "" {
		kinds, total, err := f.countKinds(app)
		if err != nil || total == 0 {
			return nil, 0, err
		}
		page, err = list(Conditions{mergedKinds{kinds, AllOf(f.conditions()), order, offset, limit}}, 0)
		return page, total, err
	}
	if total, err = f.count(app); err != nil {
		return nil, 0, err
	}
	deleted, err := f.conditions().countDeleted(app, Observations)
	if err != nil {
		return nil, 0, err
	}
	page, err = list(f.conditions().And(notDeleted), offset)
	return page, total - deleted, err
}

// countKinds counts a patient's matching readings of each kind, along one index, and returns the kinds with any. A deleted patient has none.
func (f ObservationFilter) countKinds(app core.App) (kinds []string, total int, err error) {
	matching := f.conditions().And(anyKind(app))
	matching = append(matching, dbx.NewExp("NOT EXISTS (SELECT 1 FROM patients WHERE id = {:deleted} AND deleted_at != '')", dbx.Params{"deleted": f.PatientID}))
	err = eachRow("count a patient's readings", app.DB().Select("observation_type", "COUNT(*)").From(Observations).Where(AllOf(matching)).
		GroupBy("observation_type"), func(rows *dbx.Rows) error {
		kind, n := "", 0
		err := rows.Scan(&kind, &n)
		kinds, total = append(kinds, kind), total+n
		return err
	})
	return kinds, total, err
}

// count counts matching observations, including deleted patients'. Stored daily totals give the count for everything, a kind, and whole days
// of the practice; otherwise it counts rows.
func (f ObservationFilter) count(app core.App) (n int, err error) {
	first, last, whole := f.days()
	if !whole || f.PatientID != "" || f.CareTeamOf != "" || f.FHIRStatus != "" && f.FHIRStatus != FHIRTransmitted {
		return f.conditions().Count(app, Observations)
	}
	if n, err = TotalReadings(app, first, last, f.Kind); err != nil || f.FHIRStatus == "" {
		return n, err
	}
	f.FHIRStatus = ""
	others, err := f.conditions().And(undelivered).Count(app, Observations)
	return n - others, err
}

// days returns the first and last day of the practice that the filter covers; whole is false if it cuts a day.
func (f ObservationFilter) days() (first, last string, whole bool) {
	first, last = "", "~" // before and after every date
	if f.Zone == nil {
		return first, last, f.From.IsZero() && f.To.IsZero()
	}
	day := func(at time.Time) string { return at.In(f.Zone).Format(time.DateOnly) }
	if !f.From.IsZero() {
		if first = day(f.From); first == day(f.From.Add(-time.Microsecond)) {
			return "", "", false
		}
	}
	if !f.To.IsZero() {
		if last = day(f.To); last == day(f.To.Add(time.Microsecond)) {
			return "", "", false
		}
	}
	return first, last, true
}
