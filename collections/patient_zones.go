package collections

import (
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// PatientEarlierZones are the time zones of a patient before the present one.
const PatientEarlierZones = "earlier_zones"

// EarlierZone is a patient's time zone until a time.
type EarlierZone struct {
	Zone  string `json:"zone"`  // IANA name
	Until string `json:"until"` // stored instant
}

// EarlierZones are stored as JSON, oldest first.
type EarlierZones []EarlierZone

// Scan implements sql.Scanner. Damaged JSON gives none.
func (l *EarlierZones) Scan(stored any) error { scanJSON(stored, l); return nil }

// DatedZones are the time zones of a patient's days: a day keeps the zone in which it was. Source: docs/decisions/conventions.md, "Practice and
// time zone".
type DatedZones struct {
	Present *time.Location
	Earlier EarlierZones
}

// ZonesOf returns the zones by the name of the present one, "" for the practice's.
func ZonesOf(name string, earlier EarlierZones, practice *time.Location) DatedZones {
	return DatedZones{Zone(name, practice), earlier}
}

// Zones returns the patient's time zones; no earlier ones for damaged JSON.
func (p *Patient) Zones(practice *time.Location) DatedZones {
	var earlier EarlierZones
	if p.UnmarshalJSONField(PatientEarlierZones, &earlier) != nil {
		earlier = nil
	}
	return ZonesOf(p.TimeZone(), earlier, practice)
}

// ZonesOfPatient returns the time zones of a patient.
func ZonesOfPatient(app core.App, patientID string, practice *time.Location) (DatedZones, error) {
	var row struct {
		Zone    string       `db:"time_zone"`
		Earlier EarlierZones `db:"earlier_zones"`
	}
	err := app.DB().NewQuery(`SELECT time_zone, COALESCE(earlier_zones, '') AS earlier_zones FROM patients WHERE id = {:id}`).Bind(dbx.Params{"id": patientID}).One(&row)
	return ZonesOf(row.Zone, row.Earlier, practice), wrap(err, "find the patient's time zones")
}

// At returns the zone in force at a time.
func (z DatedZones) At(at time.Time) *time.Location {
	for _, e := range z.Earlier {
		if at.Before(ParseInstant(e.Until)) {
			return Zone(e.Zone, z.Present)
		}
	}
	return z.Present
}

// Day returns the date of a time where the patient was.
func (z DatedZones) Day(at time.Time) string { return at.In(z.At(at)).Format(time.DateOnly) }

// Bounds returns a half-open span that has every moment of some days, both inclusive, in any time zone of the world; "" is open.
func (DatedZones) Bounds(first, last string) (from, to time.Time) {
	if first != "" {
		from = ParseDay(first, time.UTC).Add(-14 * time.Hour)
	}
	if last != "" {
		to = ParseDay(last, time.UTC).Add((24 + 12) * time.Hour)
	}
	return from, to
}
