package routes_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// spo2Of48 is an implausible oximetry reading.
func spo2Of48(patient string, at time.Time) string {
	return measured("OX-1", patient, "pulse_oximetry", "%", at, `"spo2":48`)
}

// A reading typed by the patient does not suppress an earlier implausible device reading; a newer device reading of the
// same group does.
func TestStoryLateImplausibleAndNewerReading(t *testing.T) {
	for name, want := range map[string]struct {
		newer  string // source of the newer reading
		body   object
		late   func(patient string, at time.Time) string
		status string
	}{
		"typed by the patient": {"portal", object{"spo2": 97}, spo2Of48, "active"},
		"typed by staff":       {"staff", object{"spo2": 97}, spo2Of48, "auto_resolved"},
		"a pulse alone": {"staff", object{"spo2": 97, "pulse": 70}, func(patient string, at time.Time) string {
			return measured("BP-1", patient, "blood_pressure", "mmHg", at, `"systolic":190,"diastolic":122,"pulse":24`)
		}, "active"},
		"a pulse of the other device": {"staff", object{"spo2": 97, "pulse": 70}, func(patient string, at time.Time) string {
			return measured("BP-1", patient, "blood_pressure", "mmHg", at, `"systolic":124,"diastolic":82,"pulse":24`)
		}, "auto_resolved"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newIngestingClinic(t)
			c.t = t
			patient := c.enroll(object{"gateway_patient_id": "gw-1"})
			c.worked(patient, "OX-1", "BP-1")
			want.body["patient_id"], want.body["measured_at"] = patient, c.now.Format(time.RFC3339)
			if want.newer == "portal" {
				c.requestAs(vigiltest.User(t, c.app, authz.Patient, vigiltest.PortalOf(patient)), "POST", "/ingestion/pulse-oximetry/", want.body).want(201)
			} else {
				c.request(authz.Nurse, "POST", "/ingestion/pulse-oximetry/", want.body).want(201)
			}
			c.postEvent(t, want.late("gw-1", c.now.Add(-30*time.Hour))).want(400)
			wantIn(t, c.implausible(patient), object{"late": true, "status": want.status})
			kind := map[string]string{"active": "alert_raised", "auto_resolved": "reading_superseded"}[want.status]
			if notified := c.queryRows(t, `SELECT kind FROM announcements WHERE alert != ''`); !slices.Equal(notified, []string{kind}) || len(c.statEscalations(t)) != 0 {
				t.Errorf("notified: %q, escalations: %q", notified, c.statEscalations(t))
			}
		})
	}
}

// discard discards the patient's implausible events.
func (c *clinic) discard(patient string) {
	c.t.Helper()
	id := c.implausible(patient)["quarantine_id"].(string)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/discard/", object{"reason": "A loose clip."}).want(200)
}

// Retractions and discards in any order: the escalation is about the remaining values and closes with the last.
func TestStoryEscalationAfterRetractions(t *testing.T) {
	severe := func(c *clinic) string {
		return c.postEvent(c.t, strings.Replace(cuffEvent("BP-1", "gw-1", 190, c.now), `"diastolic":80`, `"diastolic":122`, 1)).want(200).at("observation_id").(string)
	}
	whole := func(c *clinic) []string {
		return c.queryRows(c.t, `SELECT e.priority || ' ' || e.status || ' ' || a.type FROM escalations e JOIN alerts a ON a.id = e.alert`)
	}
	withdrawn := func(c *clinic) int {
		return len(c.queryRows(c.t, `SELECT id FROM announcements WHERE kind = 'escalation_withdrawn' AND escalation != ''`))
	}
	begin := func(t *testing.T) (*clinic, string) {
		c := newIngestingClinic(t)
		c.t = t
		return c, c.enroll(object{"gateway_patient_id": "gw-1"})
	}
	t.Run("its first alert was resolved manually and retracted", func(t *testing.T) {
		c, patient := begin(t)
		id := severe(c)
		c.postEvent(t, spo2Of48("gw-1", c.now)).want(400)
		c.request(authz.Provider, "POST", "/alerts/"+formatID(c.alertsOf(patient, "blood_pressure")[0])+"/resolve/", object{"outcome": "medication"}).want(200)
		c.request(authz.Nurse, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "of the neighbour"}).want(200)
		if got := whole(c); !slices.Equal(got, []string{"stat open implausible_reading"}) {
			t.Errorf("of the rest: %q", got)
		}
		c.discard(patient)
		if got := c.statEscalations(t); !slices.Equal(got, []string{"stat cancelled system"}) || withdrawn(c) != 1 {
			t.Errorf("of nothing: %q, notified %d times", got, withdrawn(c))
		}
	})
	t.Run("its first event was discarded", func(t *testing.T) {
		c, patient := begin(t)
		c.postEvent(t, spo2Of48("gw-1", c.now)).want(400)
		severe(c)
		c.discard(patient)
		if got := whole(c); !slices.Equal(got, []string{"stat open blood_pressure"}) || withdrawn(c) != 0 {
			t.Errorf("of the rest: %q", got)
		}
		e := c.request(authz.Nurse, "GET", "/escalations/1/", nil).want(200)
		alert := c.alertsOf(patient, "blood_pressure")[0]
		e.wantAt(object{"reason": alert["message"], "alert_id": alert["id"]})
	})
	t.Run("no other reading", func(t *testing.T) {
		c, patient := begin(t)
		c.postEvent(t, spo2Of48("gw-1", c.now)).want(400)
		c.discard(patient)
		if got := c.statEscalations(t); !slices.Equal(got, []string{"stat cancelled system"}) || withdrawn(c) != 1 {
			t.Errorf("of nothing: %q, notified %d times", got, withdrawn(c))
		}
	})
	t.Run("it was less urgent before", func(t *testing.T) {
		c, patient := begin(t)
		missed, err := alerts.Raise(c.app, alerts.Draft{
			PatientID: patient, MeasuredAt: c.now.Add(-time.Hour), OmitsValue: true,
			Finding: alerts.Finding{Type: alerts.TypeMissedReading, Level: alerts.NoData, Message: "Missed on 2026-01-14: weight."},
		}, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := escalations.JoinOrOpen(c.app, escalations.Trigger{Draft: escalations.Draft{
			PatientID: patient, Priority: escalations.Urgent, Reason: "No measurement for 3 days", AlertID: missed,
		}}, c.now); err != nil {
			t.Fatal(err)
		}
		c.postEvent(t, spo2Of48("gw-1", c.now)).want(400)
		if got := whole(c); !slices.Equal(got, []string{"stat open missed_reading"}) {
			t.Errorf("joined: %q", got)
		}
		c.discard(patient)
		if got := whole(c); !slices.Equal(got, []string{"urgent open missed_reading"}) || withdrawn(c) != 0 {
			t.Errorf("of the rest: %q", got)
		}
		c.request(authz.Nurse, "GET", "/escalations/1/", nil).want(200).wantAt(object{"reason": "No measurement for 3 days"})
	})
}

// An event discarded after its alert was resolved manually no longer counts toward the score, also when the next reading
// is stored.
func TestStoryDiscardedAfterwards(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.postEvent(t, measured("W-1", "gw-1", "weight", "kg", c.now, `"weight":12`)).want(400) // no escalation; the writer caches the patient
	c.request(authz.Provider, "POST", "/alerts/"+formatID(c.implausible(patient))+"/resolve/", object{"outcome": "a child on the scale"}).want(200)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 128, c.now)).want(200)
	c.discard(patient)
	c.now = c.now.Add(time.Minute)
	c.postEvent(t, cuffEvent("BP-1", "gw-1", 127, c.now)).want(200)
	stored := c.queryRows(t, `SELECT risk_score || ' ' || risk_level FROM triage_scores`)
	if _, err := triage.Rescore(c.app, patient, c.now); err != nil {
		t.Fatal(err)
	}
	if anew := c.queryRows(t, `SELECT risk_score || ' ' || risk_level FROM triage_scores`); !slices.Equal(stored, anew) {
		t.Errorf("stored is %q, it should be %q", stored, anew)
	}
	if events := c.events(patient); !slices.Contains(events, "alert.note") {
		t.Errorf("the alert's trail has %q", events)
	}
}

// A person who confirms values does not confirm their measurement time.
func TestStoryConfirmedAndUndated(t *testing.T) {
	c := newIngestingClinic(t)
	patient := c.enroll(object{"gateway_patient_id": "gw-1"})
	c.postEvent(t, spo2Of48("gw-1", time.Date(1970, 1, 1, 0, 2, 0, 0, time.UTC))).want(400)
	id := c.implausible(patient)["quarantine_id"].(string)
	c.request(authz.Nurse, "POST", "/ingestion/quarantine/"+id+"/confirm/", object{"notes": "Seen on the display."}).want(201).wantAt(object{
		"spo2": 48.0, "review_state": "suspect", "suspect_reason": "device_clock", "confirmed_by": c.people[authz.Nurse].Email(), "fhir_status": nil,
	})
	wantIn(t, c.implausible(patient), object{"status": "resolved", "outcome": "confirmed"})
	wantSame(t, "open", c.openAlerts(patient), []string{"device_clock warning", "pulse_oximetry critical"})
	wantSame(t, "escalations", c.statEscalations(t), []string{"stat open system"})
	for _, nothing := range []string{`SELECT id FROM transmissions`, `SELECT day FROM reading_days`} {
		if got := c.queryRows(t, nothing); len(got) != 0 {
			t.Errorf("%s: %q", nothing, got)
		}
	}
	if latest := c.request(authz.Nurse, "GET", "/triage/patients/", nil).results()[0]["latest_vitals"].(object)["pulse_oximetry"]; latest != nil {
		t.Errorf("latest is %v", latest)
	}
}
