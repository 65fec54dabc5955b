package dashboard

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// DayRate is how much of what was expected on a day came.
type DayRate struct {
	Date     string  `json:"date"`
	Received int     `json:"received"`
	Expected int     `json:"expected"`
	Rate     float64 `json:"rate"`
}

// watched is a patient of whom readings are expected.
type watched struct {
	schedule collections.Schedule
	enrolled string // the day before the first that counts
	held     []holding
}

// holding is a device that a patient had; days are dates in the patient's zone.
type holding struct {
	kind        vitals.Kind
	after, last string // expected on the days after the one and up to the other; "" is until now
}

// dayRates counts, for ascending days, what was expected of the active patients and how much of it came, at most what was expected of each.
// Past days are judged by the schedule of today and the devices of then. Source: docs/decisions/dashboard.md, "KPI details".
func (b *Board) dayRates(app core.App, careTeamOf string, days []string) ([]DayRate, error) {
	first, last := days[0], days[len(days)-1]
	patients, err := b.watch(app, careTeamOf, first)
	if err != nil {
		return nil, err
	}
	received, err := readingsByDay(app, careTeamOf, first, last)
	if err != nil {
		return nil, err
	}
	rates := make([]DayRate, len(days))
	for i, day := range days {
		rates[i].Date = day
		for id, patient := range patients {
			wanted := patient.wanted(day)
			rates[i].Expected += wanted
			rates[i].Received += min(wanted, received[patientDay{id, day}])
		}
		rates[i].Rate = percent(rates[i].Received, rates[i].Expected)
	}
	return rates, nil
}

func (w *watched) wanted(day string) int {
	m := devices.Monitoring{Schedule: w.schedule, Enrolled: w.enrolled}
	for _, h := range w.held {
		if h.last == "" || day <= h.last {
			m.Devices = append(m.Devices, devices.Expected{Kind: h.kind, After: h.after})
		}
	}
	return m.Wanted(day)
}

// watch reads the active patients with a schedule or a device, and what they held since the first day.
func (b *Board) watch(app core.App, careTeamOf, first string) (map[string]*watched, error) {
	where := collections.Conditions{dbx.NewExp("active = TRUE AND deleted_at = ''")}
	if careTeamOf != "" {
		where = append(where, collections.OnCareTeam("id", careTeamOf))
	}
	var rows []struct {
		ID        string `db:"id"`
		Schedule  string `db:"schedule"`
		CreatedAt string `db:"created_at"`
		Zone      string `db:"time_zone"`
	}
	err := app.DB().Select("id", "COALESCE(monitoring_schedule, '') AS schedule", "created_at", "time_zone").From(collections.Patients).
		Where(collections.Every(where)).All(&rows)
	if err != nil {
		return nil, fmt.Errorf("list watched patients: %w", err)
	}
	patients := make(map[string]*watched, len(rows))
	zoneOf := make(map[string]*time.Location, len(rows))
	for _, row := range rows {
		zoneOf[row.ID] = collections.Zone(row.Zone, b.Zone)
		patient := &watched{enrolled: dayBefore(row.CreatedAt, zoneOf[row.ID])}
		if json.Unmarshal([]byte(row.Schedule), &patient.schedule) != nil {
			patient.schedule = nil // nothing stored
		}
		patients[row.ID] = patient
	}
	return patients, hold(app, patients, zoneOf, first)
}

// hold adds the devices that the patients held since the first day. One that was sent is expected from the day after it should arrive, unless
// it measured before; any other from the day of its assignment.
func hold(app core.App, patients map[string]*watched, zoneOf map[string]*time.Location, first string) error {
	var rows []struct {
		Patient   string `db:"patient"`
		Kind      string `db:"kind"`
		From      string `db:"assigned_at"`
		To        string `db:"unassigned_at"`
		Delivery  string `db:"delivery"`
		OrderedAt string `db:"ordered_at"`
		Read      bool   `db:"read"`
	}
	err := app.DB().NewQuery(`SELECT a.patient, d.kind, a.assigned_at, a.unassigned_at, COALESCE(o.estimated_delivery, '') AS delivery,
			COALESCE(o.created_at, '') AS ordered_at, d.last_reading_at >= a.assigned_at AS read
		FROM device_assignments a JOIN devices d ON d.device_id = a.device_id
		LEFT JOIN device_orders o ON o.id = (SELECT id FROM device_orders WHERE device_id = a.device_id AND patient = a.patient
			AND status != 'cancelled' ORDER BY created_at DESC LIMIT 1)
		WHERE d.kind != '' AND (a.unassigned_at = '' OR a.unassigned_at >= {:first})`).Bind(dbx.Params{"first": first}).All(&rows)
	if err != nil {
		return fmt.Errorf("list held devices: %w", err)
	}
	for _, row := range rows {
		patient := patients[row.Patient]
		if patient == nil {
			continue
		}
		zone, from := zoneOf[row.Patient], collections.ParseInstant(row.From)
		h := holding{kind: vitals.Kind(row.Kind), after: dayBefore(row.From, zone)}
		ordered := collections.ParseInstant(row.OrderedAt)
		if !row.Read && row.Delivery > h.after && ordered.Sub(from) < 24*time.Hour {
			h.after = row.Delivery
		}
		if to := collections.ParseInstant(row.To); !to.IsZero() {
			h.last = to.In(zone).Format(time.DateOnly)
		}
		patient.held = append(patient.held, h)
	}
	return nil
}

func dayBefore(instant string, zone *time.Location) string {
	year, month, day := collections.ParseInstant(instant).In(zone).Date()
	return time.Date(year, month, day-1, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
}

type patientDay struct{ patient, day string }

// readingsByDay walks the days of the patients asked about, not those of all times.
func readingsByDay(app core.App, careTeamOf, first, last string) (map[patientDay]int, error) {
	where := collections.Conditions{dbx.NewExp("p.active = TRUE AND p.deleted_at = ''")}
	if careTeamOf != "" {
		where = append(where, collections.OnCareTeam("p.id", careTeamOf))
	}
	rows, err := app.DB().Select("r.patient", "r.day", "SUM(r.readings)").From("patients p").
		Join("CROSS JOIN", "reading_days r", dbx.NewExp( // CROSS fixes the order: a search for each patient
			"r.patient = p.id AND r.day BETWEEN {:first} AND {:last}", dbx.Params{"first": first, "last": last})).
		Where(collections.Every(where)).GroupBy("r.patient", "r.day").Rows()
	if err != nil {
		return nil, fmt.Errorf("read reading days: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err below tells what went wrong
	received := map[patientDay]int{}
	for rows.Next() {
		var key patientDay
		var readings int
		if err := rows.Scan(&key.patient, &key.day, &readings); err != nil {
			return nil, fmt.Errorf("read a reading day: %w", err)
		}
		received[key] = readings
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read reading days: %w", err)
	}
	return received, nil
}
