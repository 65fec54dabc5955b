package routes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
)

const (
	stats    = "/dashboard/stats/"
	activity = "/dashboard/activity/"
)

// assignDevice assigned a blood pressure monitor to a patient the given days ago.
func (c *clinic) assignDevice(device, patient string, daysAgo int) {
	c.t.Helper()
	c.request(authz.Admin, "POST", "/devices/assign/", object{
		"device_id": device, "patient_id": patient, "device_type": "blood_pressure",
		"assigned_at": c.now.AddDate(0, 0, -daysAgo).Format(time.RFC3339),
	}).want(200)
}

// measure posts a blood pressure taken with a device the given hours ago.
func (c *clinic) measure(patient, device string, systolic, hoursAgo int) {
	c.t.Helper()
	c.request(authz.Admin, "POST", "/ingestion/blood-pressure/", object{
		"patient_id": patient, "systolic": systolic, "diastolic": 75, "device_id": device,
		"measured_at": c.now.Add(-time.Duration(hoursAgo) * time.Hour).Format(time.RFC3339),
	}).want(201)
}

// Source: docs/decisions/dashboard.md, "KPI details".
func TestDashboardFigures(t *testing.T) {
	c := newIngestingClinic(t)
	c.request(authz.Admin, "GET", stats, nil).want(200).wantAt(object{
		"patients_monitored": 0.0, "vital_alerts": 0.0, "transmission_rate": 0.0, "compliance_rate": 0.0, "avg_processing_time_ms": 0.0,
		"monthly_revenue": 0.0, "expected_today": 0.0, "scope": "all", "last_updated": "2026-01-15T13:45:00Z",
	})
	ada := c.enroll(nil)
	grace := c.enroll(object{"first_name": "Grace", "monitoring_schedule": object{"blood_pressure": object{"per_day": 2}}})
	c.enroll(object{"first_name": "Without"})
	gone := c.enroll(object{"first_name": "Archived"})
	c.assignDevice("BP-1", ada, 40)
	c.assignDevice("BP-2", grace, 40)
	c.assignDevice("BP-3", gone, 40)
	c.request(authz.Admin, "POST", "/patients/"+gone+"/archive/", object{"reason": "moved"}).want(200)
	c.measure(ada, "BP-1", 120, 1)
	c.measure(ada, "BP-1", 121, 2) // more than expected counts once
	c.measure(grace, "BP-2", 190, 1)
	for day := range 16 {
		c.insert("reading_days", dbx.Params{
			"patient": grace, "day": c.now.AddDate(0, 0, -10-day).Format(time.DateOnly), "observation_type": "blood_pressure",
			"first_observation": "x", "readings": 1, "device_readings": 1,
		})
	}
	c.insert(collections.BillingEntries, dbx.Params{
		"id": collections.NewUUID(), "patient": ada, "cpt_code": "99454", "service_date": "2026-01-02", "amount_cents": 5220, "units": 1,
		"lifecycle_status": "pending_review", "source": "manual",
	})
	// An answer is cached for at most half a minute.
	c.request(authz.Admin, "GET", stats, nil).want(200).wantAt(object{"patients_monitored": 0.0})
	c.now = c.now.Add(31 * time.Second)
	c.request(authz.Admin, "GET", stats, nil).want(200).wantAt(object{
		"patients_monitored": 2.0, "vital_alerts": 1.0, "received_today": 2.0, "expected_today": 3.0, "transmission_rate": 66.7,
		"compliance_rate": 33.3, "monthly_revenue": 52.2, "last_updated": "2026-01-15T13:45:31Z",
	})
	c.now = c.now.Add(time.Minute)
	id := c.request(authz.Admin, "GET", "/alerts/", nil).results()[0]["id"]
	c.request(authz.Admin, "POST", fmt.Sprintf("/alerts/%v/acknowledge/", id), object{}).want(200)
	c.request(authz.Admin, "GET", stats, nil).want(200).wantAt(object{"vital_alerts": 0.0})
	c.request(authz.Admin, "GET", stats+query("scope", "ours"), nil).wantFields("scope")
}

// Source: docs/decisions/dashboard.md, "Role-dependent sections".
func TestDashboardByRole(t *testing.T) {
	c := newIngestingClinic(t)
	mine, other := c.enroll(nil), c.enroll(object{"first_name": "Other"})
	c.assignDevice("BP-1", mine, 3)
	c.assignDevice("BP-2", other, 3)
	c.insert(collections.CareTeamMembers, dbx.Params{"id": "careteammember1", "patient": mine, "user": c.people[authz.Nurse].Id})
	for role, want := range map[authz.Role]struct {
		monitored         float64
		scope             string
		revenue, alerts   any
		sections, actions int
	}{
		authz.Admin:           {2, "all", 0.0, 0.0, 10, 6},
		authz.ClinicalManager: {2, "all", nil, 0.0, 4, 3},
		authz.Provider:        {2, "all", nil, 0.0, 4, 2},
		authz.Nurse:           {1, "mine", nil, 0.0, 4, 2},
		authz.MA:              {2, "all", nil, 0.0, 4, 2},
		authz.DataMonitor:     {2, "all", 0.0, nil, 3, 2},
	} {
		got := c.request(role, "GET", stats, nil).want(200).wantAt(object{
			"patients_monitored": want.monitored, "scope": want.scope, "monthly_revenue": want.revenue, "vital_alerts": want.alerts,
		})
		if s, q := len(got.at("sections").([]any)), len(got.at("quick_actions").([]any)); s != want.sections || q != want.actions {
			t.Errorf("%s: %d sections, %d quick actions", role, s, q)
		}
	}
	c.request(authz.Nurse, "GET", stats+query("scope", "all"), nil).want(200).wantAt(object{"patients_monitored": 2.0, "scope": "all"})
	c.request(authz.Provider, "GET", stats+query("scope", "mine"), nil).want(200).wantAt(object{"patients_monitored": 0.0, "scope": "mine"})
	all := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA, authz.DataMonitor}
	for _, path := range []string{stats, activity, stats + "transmissions/", stats + "processing/", stats + "volume/"} {
		c.wantRoles("GET", path, nil, all...)
	}
}

func entries(r reply) (list []object) {
	r.t.Helper()
	for _, item := range r.want(200).at("results").([]any) {
		list = append(list, item.(object))
	}
	return list
}

func types(list []object) (seen []string) {
	for _, e := range list {
		if kind := e["type"].(string); !slices.Contains(seen, kind) {
			seen = append(seen, kind)
		}
	}
	slices.Sort(seen)
	return seen
}

// Source: docs/decisions/dashboard.md, "Feed types and severities".
func TestActivity(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.assignDevice("BP-1", patient, 3)
	c.measure(patient, "BP-1", 190, 1)
	c.request(authz.Nurse, "POST", "/alerts/1/acknowledge/", object{}).want(200)
	c.request(authz.Nurse, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "as the physician says", "blood_pressure": object{"systolic_high": 150}}).want(200)
	c.request(authz.Admin, "POST", "/billing/run/", object{}).want(200)

	all := entries(c.request(authz.Admin, "GET", activity+query("limit", "100"), nil))
	for i := range len(all) - 1 {
		if all[i]["timestamp"].(string) < all[i+1]["timestamp"].(string) || all[i]["id"] == all[i+1]["id"] {
			t.Errorf("%v before %v", all[i], all[i+1])
		}
	}
	alert := all[slices.IndexFunc(all, func(e object) bool { return e["type"] == "vital_alert" })]
	if alert["severity"] != "critical" || alert["message"] != "Critical blood pressure alert for Ada Lovelace." || alert["user"] != nil ||
		alert["patient_id"] != patient || alert["object_id"] != "1" {
		t.Errorf("the alert reads %v", alert)
	}
	for role, want := range map[authz.Role]string{
		authz.Admin:       "alert_acknowledged billing escalation patient system threshold_change vital_alert",
		authz.Nurse:       "alert_acknowledged escalation patient system threshold_change vital_alert",
		authz.MA:          "patient system",
		authz.DataMonitor: "billing system",
	} {
		seen := entries(c.request(role, "GET", activity, nil))
		if got := strings.Join(types(seen), " "); got != want {
			t.Errorf("%s sees %s, want %s", role, got, want)
		}
		if named := strings.Contains(fmt.Sprint(seen), "Lovelace"); named == (role == authz.DataMonitor) {
			t.Errorf("%s reads a name: %t", role, named)
		}
	}
	critical := entries(c.request(authz.Admin, "GET", activity+query("severity", "critical"), nil))
	if got := strings.Join(types(critical), " "); got != "escalation vital_alert" {
		t.Errorf("critical are %s", got)
	}
	if only := entries(c.request(authz.Admin, "GET", stats+query("limit", "5", "type", "billing", "severity", "success"), nil)); len(only) != 1 {
		t.Errorf("billing: %v", only)
	}
	if events := c.events(patient); events[len(events)-1] != "patient.read" {
		t.Errorf("showing a name leaves no trace: %v", events)
	}
}

// Source: docs/decisions/dashboard.md, "Feed cursor". A sentence may begin with a name, which keeps its own
// capitalization.
func TestActivityKeepsNames(t *testing.T) {
	c := newClinic(t)
	for _, first := range []string{"Ängström", "van", "李"} {
		c.enroll(object{"first_name": first, "last_name": "Beeck"})
		newest := entries(c.request(authz.Admin, "GET", activity+query("limit", "1"), nil))[0]
		if newest["message"] != first+" Beeck was enrolled." {
			t.Errorf("%s reads %q", first, newest["message"])
		}
	}
}

func TestActivityPages(t *testing.T) {
	c := newIngestingClinic(t)
	for n := range 7 {
		c.enroll(object{"first_name": fmt.Sprint("P", n)})
	}
	whole := entries(c.request(authz.Admin, "GET", activity, nil))
	var paged []object
	path, pages := stats+query("limit", "3"), 0
	for path != "" {
		r := c.request(authz.Admin, "GET", path, nil)
		paged = append(paged, entries(r)...)
		if pages++; pages == 2 { // new entries sort before the pages already read
			c.enroll(object{"first_name": "Late"})
		}
		next, _ := r.at("next").(string)
		path = strings.TrimPrefix(next, "https://vigil.example.org/api/v1")
	}
	if fmt.Sprint(paged) != fmt.Sprint(whole) || pages != (len(whole)+2)/3 {
		t.Errorf("%d pages: %v, want %v", pages, paged, whole)
	}
	cursor := c.request(authz.Admin, "GET", stats+query("limit", "3"), nil).at("next_cursor").(string)
	c.request(authz.Nurse, "GET", stats+query("cursor", cursor), nil).want(200)
	flipped := []byte(cursor)
	flipped[len(flipped)/2] ^= 1
	for _, wrong := range []string{"", "x", string(flipped), cursor[:len(cursor)-2], cursor + "AA"} {
		c.request(authz.Admin, "GET", activity+query("cursor", wrong), nil).want(400, "invalid_cursor")
	}
	for _, wrong := range []string{"0", "-1", "many", ""} {
		c.request(authz.Admin, "GET", activity+query("limit", wrong), nil).wantFields("limit")
	}
	c.request(authz.Admin, "GET", activity+query("limit", "1000"), nil).want(200)
	c.request(authz.Admin, "GET", activity+query("type", "gossip", "severity", "huge"), nil).wantFields("type", "severity")
}

// A clinician's feed has the care team's patients and entries without a patient.
func TestActivityOfACareTeam(t *testing.T) {
	c := newIngestingClinic(t)
	mine := c.enroll(nil)
	c.enroll(object{"first_name": "Other"})
	c.insert(collections.CareTeamMembers, dbx.Params{"id": "careteammember1", "patient": mine, "user": c.people[authz.Nurse].Id})
	if own := entries(c.request(authz.Nurse, "GET", activity, nil)); len(own) != 1 || own[0]["patient_id"] != mine {
		t.Errorf("own: %v", own)
	}
	if all := entries(c.request(authz.Nurse, "GET", activity+query("scope", "all"), nil)); len(all) != 2 {
		t.Errorf("all: %v", all)
	}
}

// Source: docs/decisions/dashboard.md, "Series shapes".
func TestDashboardSeries(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(nil)
	c.assignDevice("BP-1", patient, 2)
	c.measure(patient, "BP-1", 120, 24)
	c.measure(patient, "BP-1", 121, 1)
	c.measure(patient, "BP-1", 122, 2)
	last := func(path string, size int) []object {
		t.Helper()
		rows := entries(c.request(authz.Nurse, "GET", stats+path, nil))
		if len(rows) != size {
			t.Fatalf("%s has %d rows", path, len(rows))
		}
		return rows[size-3:]
	}
	if got := fmt.Sprint(last("transmissions/", 30)); got != "[map[date:2026-01-13 expected:1 rate:0 received:0] "+
		"map[date:2026-01-14 expected:1 rate:100 received:1] map[date:2026-01-15 expected:1 rate:100 received:1]]" {
		t.Error(got)
	}
	volume := last("volume/", 90)
	if volume[1]["total"] != 1.0 || volume[2]["blood_pressure"] != 2.0 || volume[2]["weight"] != 0.0 || volume[2]["date"] != "2026-01-15" {
		t.Error(volume)
	}
	processing := last("processing/", 96)
	if now := processing[2]; now["timestamp"] != "2026-01-15T13:45:00Z" || now["count"] != 3.0 || now["avg_ms"] != 0.0 || processing[1]["avg_ms"] != nil {
		t.Error(processing)
	}
}
