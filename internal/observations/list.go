package observations

import (
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// Filter narrows a list of observations; zero values do not.
type Filter struct {
	PatientID, Kind, FHIRStatus string
	// From and To bound the time of measurement, both inclusive.
	From, To time.Time
	// Zone is the practice's, whose days are counted as readings come in.
	Zone *time.Location
	// OldestFirst orders by time of measurement upwards instead of downwards.
	OldestFirst bool
	// CareTeamOf keeps the patients whose care team this user (record id) belongs to.
	CareTeamOf string
}

// List returns a page of observations and how many there are in all.
func List(app core.App, f Filter, offset, limit int) (page []Observation, total int, err error) {
	order := "measured_at DESC, id DESC"
	if f.OldestFirst {
		order = "measured_at ASC, id ASC"
	}
	matching, err := f.count(app)
	if err != nil {
		return nil, 0, err
	}
	records, total, err := f.conditions().PageOfPatientsAmong(app, collections.Observations, order, offset, limit, matching)
	for _, record := range records {
		page = append(page, FromRecord(record))
	}
	return page, total, err
}

func (f Filter) conditions() collections.Conditions {
	c := collections.Conditions{}.Equal("patient", f.PatientID).Equal("observation_type", f.Kind).
		Equal("fhir_status", f.FHIRStatus).Between("measured_at", f.From, f.To).OnCareTeamOf(f.CareTeamOf)
	if f.PatientID == "" && f.FHIRStatus != "" && f.FHIRStatus != collections.FHIRTransmitted {
		return c.And(undelivered) // says what the status says already, so that the index of these few is used
	}
	return c
}

// undelivered is the condition of an index, word for word.
const undelivered = "fhir_status != '" + collections.FHIRTransmitted + "'"

// count is how many observations match, deleted patients' too. The totals of the days hold the answer for everything and for a
// kind, and for whole days of the practice; else the rows are counted.
func (f Filter) count(app core.App) (n int, err error) {
	first, last, whole := f.days()
	if !whole || f.PatientID != "" || f.CareTeamOf != "" || f.FHIRStatus != "" && f.FHIRStatus != collections.FHIRTransmitted {
		return f.conditions().Count(app, collections.Observations)
	}
	err = app.DB().NewQuery(`SELECT COALESCE(SUM(readings), 0) FROM daily_counts
		WHERE day BETWEEN {:first} AND {:last} AND ({:kind} = '' OR observation_type = {:kind})`).
		Bind(dbx.Params{"first": first, "last": last, "kind": f.Kind}).Row(&n)
	if err != nil {
		return 0, fmt.Errorf("add up daily counts: %w", err)
	}
	if f.FHIRStatus == collections.FHIRTransmitted {
		f.FHIRStatus = ""
		others, err := f.conditions().And(undelivered).Count(app, collections.Observations)
		return n - others, err
	}
	return n, nil
}

// days are the first and the last day of the practice that the filter lets through, if it lets through only whole ones.
func (f Filter) days() (first, last string, whole bool) {
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

// Find returns one observation, or a not-found fault.
func Find(app core.App, id string) (Observation, error) {
	record, err := collections.FindObservation(app, id)
	if collections.Missing(err) {
		return Observation{}, fault.Missing()
	}
	if err != nil {
		return Observation{}, err
	}
	return FromRecord(record), nil
}

// LoadFHIR reads what an observation's FHIR form is made from.
func LoadFHIR(app core.App, id string) (fhir.Stored, error) {
	o, err := Find(app, id)
	return o.FHIR(), err
}
