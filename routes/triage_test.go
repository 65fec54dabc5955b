package routes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vitals"
	"github.com/vigilhealth/vigil/routes"
)

// rank gives a patient a latest reading and a triage row.
func (c *clinic) rank(patient string, columns dbx.Params) {
	c.t.Helper()
	if _, err := c.app.DB().Update(collections.TriageScores, columns, dbx.HashExp{"patient": patient}).Execute(); err != nil {
		c.t.Fatal(err)
	}
}

func TestListTriage(t *testing.T) {
	c := newClinic(t)
	var ids []string
	for _, columns := range []dbx.Params{
		{"risk_score": 80, "risk_level": "critical", "unacknowledged_alerts": 2, "unacknowledged_critical": 1, "oldest_unacknowledged_at": "2026-01-15T10:00:00.000000Z", "needs_review": true, "last_reading_at": "2026-01-15T10:00:00.000000Z"},
		{"risk_score": 60, "risk_level": "warning", "needs_review": true, "last_reading_at": "2026-01-15T12:00:00.000000Z"},
		{"risk_score": 20, "risk_level": "normal", "last_reading_at": "2026-01-15T11:00:00.000000Z"},
		{},
	} {
		id := c.enroll(nil)
		if len(columns) > 0 {
			c.rank(id, columns)
		}
		ids = append(ids, id)
	}
	c.insert(collections.CareTeamMembers, dbx.Params{"patient": ids[2], "user": c.people[authz.Nurse].Id})
	for filter, want := range map[string][]int{
		"": {0, 1, 2, 3}, "?ordering=risk_score": {3, 2, 1, 0}, "?ordering=last_reading_at": {3, 0, 2, 1}, "?ordering=-last_reading_at": {1, 2, 0, 3},
		"?risk_level=warning": {1}, "?has_unack_alerts=true": {0}, "?has_unack_alerts=false": {1, 2, 3}, "?needs_review=true": {0, 1},
		"?needs_review=true&risk_level=critical&has_unack_alerts=true": {0}, "?needs_review=false&has_unack_alerts=true": nil, "?mine=true": {2},
	} {
		var got []int
		for _, row := range c.request(authz.Nurse, "GET", "/triage/patients/"+filter, nil).results() {
			for i, id := range ids {
				if row["patient_id"] == id {
					got = append(got, i)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", filter, diff)
		}
	}
	first := c.request(authz.MA, "GET", "/triage/patients/?page_size=1", nil)
	first.wantAt(object{"count": 4.0})
	row := first.object()["results"].([]any)[0].(object)
	if row["unacknowledged_critical"] != 1.0 || row["oldest_unacknowledged_at"] != "2026-01-15T10:00:00Z" || row["patient_name"] != "Ada Lovelace" {
		t.Errorf("%v", row)
	}
	if events := c.events(ids[0]); events[len(events)-1] != "patient.read" {
		t.Errorf("the list is a read of its one patient: %v", events)
	}
	for _, query := range []string{"risk_level=high", "has_unack_alerts=perhaps", "ordering=name", "needs_review=", "mine=me"} {
		name, _, _ := strings.Cut(query, "=")
		c.request(authz.Nurse, "GET", "/triage/patients/?"+query, nil).wantFields(name)
	}
	c.wantRoles("GET", "/triage/patients/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)
}

func TestTriageTrends(t *testing.T) {
	c := newClinic(t)
	ill, other := c.enroll(object{"first_name": "Grace", "last_name": "Hopper"}), c.enroll(nil)
	for day := range 14 {
		c.observe(ill, float64(120+day), 14-day, "")
	}
	c.observe(other, 111, 1, "")
	found := c.request(authz.Nurse, "GET", "/triage/patients/?trends=true&search=hop+GRA", nil).results()
	if len(found) != 1 || found[0]["patient_id"] != ill {
		t.Fatalf("searching found %v", found)
	}
	want := []any{122.0, 123.0, 124.0, 125.0, 126.0, 127.0, 128.0, 129.0, 130.0, 131.0, 132.0, 133.0}
	if diff := cmp.Diff(object{"blood_pressure": want}, found[0]["trends"]); diff != "" {
		t.Error(diff)
	}
	for _, row := range c.request(authz.Nurse, "GET", "/triage/patients/?trends=true", nil).results() {
		if row["patient_id"] == other && !cmp.Equal(row["trends"], object{"blood_pressure": []any{111.0}}) {
			t.Errorf("the other has the trends %v", row["trends"])
		}
	}
	if rows := c.request(authz.Nurse, "GET", "/triage/patients/?patient_id="+other, nil).results(); len(rows) != 1 || rows[0]["patient_id"] != other {
		t.Errorf("requested one patient, got %v", rows)
	}
	c.request(authz.Nurse, "GET", "/triage/patients/?patient_id=nobody", nil).wantFields("patient_id")
	plain := c.request(authz.Nurse, "GET", "/triage/patients/?search=nobody", nil)
	plain.wantAt(object{"count": 0.0})
	if _, hasTrends := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["trends"]; hasTrends {
		t.Error("trends are returned without being requested")
	}
	c.request(authz.Nurse, "GET", "/triage/patients/?trends=many", nil).wantFields("trends")
}

func TestTriageStats(t *testing.T) {
	c := newClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true })
	c.request(authz.Admin, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{"total_patients": 0.0, "avg_risk_score": 0.0})
	midnight := time.Date(c.now.Year(), c.now.Month(), c.now.Day(), 5, 0, 0, 0, time.UTC) // in New York
	var ids []string
	for i, columns := range []dbx.Params{
		{"risk_score": 80, "risk_level": "critical", "unacknowledged_alerts": 2, "active_escalations": 1, "needs_review": true},
		{"risk_score": 60, "risk_level": "warning", "unacknowledged_alerts": 1, "needs_review": true, "last_reviewed_at": collections.FormatInstant(midnight.Add(-time.Microsecond))},
		{"risk_score": 21, "risk_level": "normal", "last_reviewed_at": collections.FormatInstant(midnight)},
		{"last_reviewed_at": collections.FormatInstant(c.now)},
	} {
		ids = append(ids, c.enroll(nil))
		c.rank(ids[i], columns)
	}
	c.request(authz.Admin, "POST", "/patients/"+c.enroll(nil)+"/archive/", object{"reason": "Moved away"}).want(200)
	c.insert(collections.CareTeamMembers, dbx.Params{"patient": ids[0], "user": c.people[authz.Nurse].Id})
	c.request(authz.Admin, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{
		"total_patients": 4.0, "patients_by_risk_level.critical": 1.0, "patients_by_risk_level.warning": 1.0, "patients_by_risk_level.normal": 1.0,
		"patients_by_risk_level.no_data": 1.0, "total_unacknowledged_alerts": 3.0, "active_escalations": 1.0, "avg_risk_score": 53.7,
		"patients_reviewed_today": 2.0, "patients_needing_review": 2.0,
	})
	c.request(authz.Nurse, "GET", "/triage/patients/stats/", nil).want(200).wantAt(object{
		"total_patients": 1.0, "patients_by_risk_level.critical": 1.0, "avg_risk_score": 80.0, "patients_reviewed_today": 0.0,
		"total_unacknowledged_alerts": 2.0, "patients_needing_review": 1.0,
	})
	c.wantRoles("GET", "/triage/patients/stats/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA)
}

// A review is undone by its reviewer within a minute, and only while it is the patient's last.
func TestUndoReview(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	path := "/triage/patients/" + id + "/review/"
	none := object{"last_reviewed_by": nil, "last_reviewed_at": nil}
	c.request(authz.Nurse, "POST", path+"undo/", nil).want(400, "invalid_state")

	c.request(authz.Nurse, "POST", path, nil).want(200)
	c.request(authz.Provider, "POST", path+"undo/", nil).want(400, "invalid_state")
	c.now = c.now.Add(50 * time.Second)
	c.request(authz.Nurse, "POST", path+"undo/", nil).want(200).wantAt(none)
	c.request(authz.Nurse, "POST", path+"undo/", nil).want(400, "invalid_state")

	c.request(authz.Provider, "POST", path, nil).want(200)
	first := c.now
	c.now = c.now.Add(time.Hour)
	c.request(authz.Nurse, "POST", path, nil).want(200)
	c.request(authz.Nurse, "POST", path+"undo/", nil).want(200).wantAt(object{
		"last_reviewed_by": c.people[authz.Provider].Email(), "last_reviewed_at": first.Format("2006-01-02T15:04:05Z"),
	})

	c.request(authz.Nurse, "POST", path, nil).want(200)
	c.now = c.now.Add(time.Second)
	c.request(authz.Provider, "POST", path, nil).want(200)
	c.request(authz.Nurse, "POST", path+"undo/", nil).want(400, "invalid_state")
	c.now = c.now.Add(61 * time.Second)
	c.request(authz.Provider, "POST", path+"undo/", nil).want(400, "invalid_state")
	if events := strings.Join(c.events(id), " "); strings.Count(events, "triage.review_undo") != 2 {
		t.Errorf("on record: %s", events)
	}
	c.wantRoles("POST", path+"undo/", nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse)
}

func TestReviewPatient(t *testing.T) {
	c := newClinic(t)
	id := c.enroll(nil)
	high, low := 150.0, 80.0
	latest := triage.Latest{}.With(vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: c.now.Add(-time.Hour)}.With(vitals.Systolic, high).With(vitals.Diastolic, low), vitals.OriginDevice)
	if err := triage.SaveRow(c.app, id, triage.ComputedRow{Latest: latest, Score: triage.Score{Level: triage.RiskNormal}}, c.now); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(48 * time.Hour)
	path := "/triage/patients/" + id + "/review/"
	c.request(authz.Nurse, "POST", path, object{"notes": "Called; feels well."}).want(200).wantAt(object{
		"patient_id": id, "last_reviewed_by": c.people[authz.Nurse].Email(), "last_reviewed_at": c.now.Format("2006-01-02T15:04:05Z"),
		"risk_score": 24.0, "latest_vitals.blood_pressure.systolic": 150.0, "latest_vitals.blood_pressure.measured_at": "2026-01-15T12:45:00Z",
	})
	c.request(authz.Provider, "POST", path, nil).want(200).wantAt(object{"last_reviewed_by": c.people[authz.Provider].Email()})
	if events := strings.Join(c.events(id), " "); strings.Count(events, "triage.review") != 2 {
		t.Errorf("on record: %s", events)
	}
	c.request(authz.Nurse, "POST", path, object{"notes": strings.Repeat("x", 2001)}).wantFields("notes")
	c.request(authz.Nurse, "POST", path, `{"notes":`).want(400)
	c.request(authz.Nurse, "POST", fmt.Sprintf("/triage/patients/%s/review/", collections.NewUUID()), nil).want(404)
	c.request(authz.Nurse, "POST", "/triage/patients/7/review/", nil).want(404)
	c.wantRoles("POST", path, nil, authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse)
}
