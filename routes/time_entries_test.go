package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/authz"
)

// timeOf logs time with a patient as the role's user.
func (c *clinic) timeOf(role authz.Role, patient, start string, minutes int, changes object) reply {
	body := object{
		"patient_id": patient, "category": "interactive", "contact_method": "phone", "started_at": start, "duration_seconds": minutes * 60, "notes": "Talked",
	}
	for k, v := range changes {
		body[k] = v
	}
	return c.request(role, "POST", "/time-entries/", body)
}

// countedOf returns the counted minutes of a patient's month.
func (c *clinic) countedOf(patient string) float64 {
	c.t.Helper()
	sums := c.request(authz.Admin, "GET", "/time-entries/summary/?month=2026-01&patient_id="+patient, nil).results()
	if len(sums) == 0 {
		return 0
	}
	return sums[0]["counted_minutes"].(float64)
}

// Two staff members log one call of 12 minutes: the second gets the first's entry in the refusal, and the patient has
// 12 minutes.
func TestTwoStaffOnOneCall(t *testing.T) {
	c := newClinic(t)
	id, other := c.enroll(object{"icd10_codes": []string{"I10"}}), c.enroll(nil)
	nurse := c.people[authz.Nurse]
	first := c.timeOf(authz.Nurse, id, "2026-01-15T10:00:00Z", 12, nil).want(201).object()
	for start, minutes := range map[string]int{"2026-01-15T10:00:00Z": 12, "2026-01-15T09:59:00Z": 2, "2026-01-15T10:11:59Z": 1, "2026-01-15T04:00:00-06:00": 1, "2026-01-15T09:00:00Z": 120} {
		c.timeOf(authz.MA, id, start, minutes, nil).want(400, "overlapping_time").wantAt(object{
			"time_entry_id": first["id"], "overlaps.id": first["id"], "overlaps.started_at": "2026-01-15T10:00:00Z", "overlaps.ended_at": "2026-01-15T10:12:00Z",
		})
	}
	if n := c.countedOf(id); n != 12 {
		t.Errorf("%v minutes count", n)
	}
	c.timeOf(authz.Nurse, other, "2026-01-15T10:05:00Z", 3, nil).want(400, "overlapping_time").wantAt(object{"time_entry_id": first["id"]}) // their own
	c.timeOf(authz.MA, other, "2026-01-15T10:05:00Z", 3, nil).want(201)
	c.timeOf(authz.MA, id, "2026-01-15T10:00:00Z", 12, object{"category": "review"}).want(201)
	before := c.timeOf(authz.MA, id, "2026-01-15T09:50:00Z", 10, nil).want(201).object()
	path := fmt.Sprintf("/time-entries/%.0f/", before["id"])
	c.request(authz.MA, "PATCH", path, object{"duration_seconds": 601}).want(400, "overlapping_time").wantAt(object{"time_entry_id": first["id"]})
	c.request(authz.MA, "PATCH", path, object{"notes": "Talked about salt"}).want(200).wantAt(object{"duration_seconds": 600.0})
	if n := c.countedOf(id); n != 22 {
		t.Errorf("%v minutes count", n)
	}
	// a timer does not bypass the check
	c.now = time.Date(2026, 1, 15, 14, 0, 0, 0, time.UTC)
	running := c.request(authz.Nurse, "POST", "/time-entries/start/", object{"patient_id": id, "category": "interactive", "contact_method": "phone"}).want(201).object()
	c.request(authz.MA, "POST", "/time-entries/start/", object{"patient_id": id, "category": "interactive"}).want(400, "overlapping_time").wantAt(object{"time_entry_id": running["id"]})
	read := c.request(authz.MA, "POST", "/time-entries/start/", object{"patient_id": id, "category": "review"}).want(201).object()
	c.now = c.now.Add(10 * time.Minute)
	stop := fmt.Sprintf("/time-entries/%.0f/stop/", read["id"])
	c.request(authz.MA, "POST", stop, object{"category": "interactive", "notes": "Talked"}).want(400, "overlapping_time")
	c.request(authz.MA, "POST", stop, object{"notes": "Listened"}).want(200).wantAt(object{"category": "review"})
	c.request(authz.Nurse, "POST", fmt.Sprintf("/time-entries/%.0f/stop/", running["id"]), object{"notes": "Talked"}).want(200).wantAt(object{"duration_seconds": 600.0, "user": float64(nurse.Number())})
}

// Which contact methods are live, and the default for a missing one.
func TestContactMethods(t *testing.T) {
	c := newClinic(t)
	for i, test := range []struct {
		body object
		as   any
		live bool
	}{
		{object{"contact_method": "phone"}, "phone", true},
		{object{"contact_method": "video"}, "video", true},
		{object{"contact_method": "in_person"}, "in_person", true},
		{object{"contact_method": "message"}, "message", false},
		{object{"contact_method": nil}, nil, false},
		{object{"contact_method": nil, "activity": "phone_call"}, nil, false},
		{object{"activity": "phone_call"}, "phone", true},
		{object{"activity": "video_call"}, "video", true},
		{object{"activity": "message"}, nil, false},
		{object{}, nil, false},
	} {
		id := c.enroll(nil)
		body := object{
			"patient_id": id, "category": "interactive", "notes": "Talked", "duration_seconds": 1200,
			"started_at": c.now.Add(time.Duration(-20*(i+1)) * time.Minute).Format(time.RFC3339),
		}
		for k, v := range test.body {
			body[k] = v
		}
		entry := c.request(authz.Nurse, "POST", "/time-entries/", body).want(201)
		entry.wantAt(object{"contact_method": test.as, "live": test.live, "recorded_at": c.now.UTC().Format(time.RFC3339), "needs_attestation": false})
		if n := c.countedOf(id); (n == 20) != test.live {
			t.Errorf("%v counts %v minutes", test.body, n)
		}
	}
	c.timeOf(authz.Nurse, c.enroll(nil), "2026-01-10T10:00:00Z", 5, object{"contact_method": "pigeon"}).wantFields("contact_method")
	entry := c.timeOf(authz.Nurse, c.enroll(nil), "2026-01-10T10:00:00Z", 20, object{"contact_method": "message"}).want(201).object()
	path := fmt.Sprintf("/time-entries/%.0f/", entry["id"])
	c.request(authz.Nurse, "PATCH", path, object{"contact_method": "video"}).want(200).wantAt(object{"live": true})
	c.request(authz.Nurse, "PATCH", path, object{"contact_method": nil}).want(200).wantAt(object{"live": false, "contact_method": nil})
}

// The minutes of two escalations resolved at once by one provider count as one interval; the provider attests to them,
// and no one else can review them first.
func TestEscalationMinutesAreAttested(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(object{"icd10_codes": []string{"I10"}, "primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(id)
	provider := c.people[authz.Provider].Email()
	var paths []string
	c.now = time.Date(2026, 1, 15, 16, 0, 0, 0, time.UTC)
	for range 2 {
		made := c.request(authz.Nurse, "POST", "/escalations/", object{"patient_id": id, "priority": "urgent", "reason": "High", "assigned_to": provider}).want(201).object()
		paths = append(paths, fmt.Sprintf("/escalations/%.0f/", made["id"]))
	}
	c.now = time.Date(2026, 1, 15, 17, 10, 0, 0, time.UTC) // 12:10 in New York
	for i, path := range paths {
		resolved := c.request(authz.Provider, "PATCH", path, object{"status": "resolved", "interaction_minutes": 25, "resolution_notes": "Called."}).want(200)
		if hasTime := strings.Contains(resolved.body, "time_logged"); hasTime != (i == 1) {
			t.Errorf("the history of escalation %d has %s", i, resolved.body)
		}
	}
	times := c.request(authz.Admin, "GET", "/time-entries/?patient_id="+id, nil).results()
	if len(times) != 1 || times[0]["started_at"] != "2026-01-15T16:45:00Z" || times[0]["duration_seconds"] != 1500.0 || times[0]["needs_attestation"] != true {
		t.Fatalf("logged %v", times)
	}
	entries := c.request(authz.Admin, "GET", "/billing/entries/?patient_id="+id, nil).results()
	if len(entries) != 1 || entries[0]["cpt_code"] != "99457" {
		t.Fatalf("billed %v", entries)
	}
	entry, attest := "/billing/entries/"+entries[0]["id"].(string)+"/", fmt.Sprintf("/time-entries/%.0f/attest/", times[0]["id"])
	for _, role := range []authz.Role{authz.Admin, authz.DataMonitor} {
		for _, attested := range []bool{false, true} {
			c.request(role, "POST", entry+"review/", object{"attested": attested}).want(403, "not_author")
		}
	}
	for _, role := range []authz.Role{authz.Admin, authz.Nurse, authz.MA} {
		c.request(role, "POST", attest, object{}).want(403, "not_author")
	}
	c.request(authz.DataMonitor, "POST", attest, object{}).want(403, "permission_denied")
	c.request(authz.Provider, "POST", attest, object{"contact_method": "message"}).wantFields("contact_method")
	c.request(authz.Provider, "POST", "/time-entries/9999/attest/", nil).want(404)
	c.request(authz.Provider, "POST", attest, object{"contact_method": "phone"}).want(200).
		wantAt(object{"attested_by": provider, "attested_at": "2026-01-15T17:10:00Z", "contact_method": "phone", "needs_attestation": false})
	c.request(authz.ClinicalManager, "POST", attest, nil).want(200).wantAt(object{"attested_by": provider})
	c.request(authz.DataMonitor, "POST", entry+"review/", nil).want(200).wantAt(object{"lifecycle_status": "reviewed", "attested": true})
	shown := c.request(authz.Admin, "GET", entry+"evidence/", nil).want(200).object()["time_entries"].([]any)[0].(object)
	if shown["recorded_at"] != "2026-01-15T17:10:00Z" || shown["started_at"] != "2026-01-15T16:45:00Z" || shown["attested_by"] != provider {
		t.Errorf("the evidence shows %v", shown)
	}
}
