package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
)

// oneReading is the rows that a reading with a warning adds once notifications are sent, whatever its source: without a care
// team the administrator is notified. Source: docs/decisions/transmissions.md, "One record per observation" and
// docs/decisions/security.md, "Audit record".
var oneReading = map[string]int{
	"observations": 1, "alerts": 1, "announcements": 1, "notifications": 1, "transmissions": 1, "reading_days": 1, "daily_counts": 1, "audit_log": 3,
	"changes": 3, // the reading, its day and its alert
}

// A reading has the same effects from the gateway, from a nurse and from the dashboard.
func TestReadingFromEverySource(t *testing.T) {
	t.Parallel()
	p := newPractice(t).serve(t, "")
	db := p.database(t)
	day := time.Now().UTC().Truncate(24 * time.Hour).Add(15 * time.Hour) // the same date in New York
	warm := p.patient(t, nil)
	p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), bloodPressure(warm, 150, 85, day.AddDate(0, 0, -9))).expect(t, 201) // the first numbers of the sequences
	doors := []struct {
		name string
		send func(patient, device string, measuredAt time.Time) string
	}{
		{"webhook", func(_, device string, measuredAt time.Time) string {
			return text(t, p.signed(t, measurement("GW-"+device, device, 150, 85, measuredAt)).expect(t, 200), "observation_id")
		}},
		{"API", func(patient, device string, measuredAt time.Time) string {
			body := bloodPressure(patient, 150, 85, measuredAt)
			body["device_id"] = device
			return text(t, p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), body).expect(t, 201), "id")
		}},
		{"dashboard", func(patient, device string, measuredAt time.Time) string {
			return p.record(t, "observations", object{
				"patient": patient, "device_id": device, "observation_type": "blood_pressure", "systolic": 150,
				"diastolic": 85, "measured_at": measuredAt.Format("2006-01-02T15:04:05.000000Z"),
			})
		}},
	}
	p.Superuser(t)
	var events [][]string
	var patients, ids []string
	for i, door := range doors {
		device := fmt.Sprintf("BP-%d", i)
		patient := p.patient(t, object{"gateway_patient_id": "GW-" + device})
		p.giveDevice(t, device, patient)
		measuredAt := day.AddDate(0, 0, -1-i)
		awaitAnnouncements(t, db)
		before, audited := rowsBefore(t, db), auditEvents(t, db)
		id := door.send(patient, device, measuredAt)
		awaitAnnouncements(t, db)
		patients, ids = append(patients, patient), append(ids, id)
		if grown := added(before, rowsOf(t, db)); !maps.Equal(grown, oneReading) {
			t.Errorf("by %s, one reading adds %v, want %v", door.name, grown, oneReading)
		}
		events = append(events, auditEvents(t, db)[len(audited):])

		stored := p.get(t, "/api/v1/ingestion/observations/"+id+"/", p.Admin(t)).expect(t, 200)
		wantAt(t, stored, object{
			"patient_id": patient, "systolic": 150.0, "diastolic": 85.0, "device_id": device, "measured_at": measuredAt.Format(time.RFC3339),
			"fhir_status": "pending", "status": "final", "alert_triggered": true, "alert_details.level": "warning",
		})
		wantAt(t, p.get(t, "/api/v1/fhir/transmissions/?patient_id="+patient, p.Admin(t)), object{"count": 1.0, "results.0.status": "pending", "results.0.observation_id": id})
		wantAt(t, p.get(t, "/api/v1/fhir/observations/"+id+"/", p.Admin(t)).expect(t, 200), object{"subject.reference": "Patient/" + patient, "device.display": device})
	}
	for i := range doors {
		if !slices.Equal(events[i], events[0]) || len(events[i]) != 3 {
			t.Errorf("by %s the audit trail gains %v, by %s %v", doors[i].name, events[i], doors[0].name, events[0])
		}
	}

	// A stored reading stays one reading when it is sent again, from the same source or another.
	for i, door := range doors {
		before := rowsBefore(t, db)
		device, measuredAt := fmt.Sprintf("BP-%d", i), day.AddDate(0, 0, -1-i)
		wantAt(t, p.signed(t, measurement("GW-"+device, device, 150, 85, measuredAt)).expect(t, 200), object{"status": "duplicate", "observation_id": ids[i]})
		body := bloodPressure(patients[i], 150, 85, measuredAt)
		body["device_id"] = device
		wantAt(t, p.post(t, "/api/v1/ingestion/blood-pressure/", p.Admin(t), body).expect(t, 200), object{"duplicate": true, "id": ids[i]})
		if grown := added(before, rowsOf(t, db)); len(grown) != 0 {
			t.Errorf("repeating what came by %s adds %v", door.name, grown)
		}
	}
}

// giveDevice registers a device and assigns it to a patient through the dashboard.
func (p *practice) giveDevice(t testing.TB, device, patient string) {
	t.Helper()
	p.record(t, "devices", object{"device_id": device, "status": "assigned", "patient": patient})
	p.record(t, "device_assignments", object{"device_id": device, "patient": patient, "assigned_at": "2020-01-01T00:00:00.000000Z"})
}

// awaitAnnouncements waits until all announcements are sent, which happens after the commit.
func awaitAnnouncements(t testing.TB, db *dbx.DB) {
	t.Helper()
	eventually(t, 30*time.Second, "people are told", func() bool {
		var open int
		if err := db.NewQuery(`SELECT COUNT(*) FROM announcements WHERE told_at = ''`).Row(&open); err != nil {
			t.Fatal(err)
		}
		return open == 0
	})
}

// auditEvents lists the audit trail, oldest first, without actor, time and scheduled entries.
func auditEvents(t testing.TB, db *dbx.DB) (events []string) {
	t.Helper()
	if err := db.NewQuery(`SELECT event || ' ' || action || ' ' || outcome || ' ' || resource_type FROM audit_log WHERE ` + notByClock + ` ORDER BY id`).Column(&events); err != nil {
		t.Fatal(err)
	}
	return events
}
