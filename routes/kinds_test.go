package routes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// dangerous returns a value at a critical bound, or the middle of the range if there is no critical bound.
func dangerous(p *vitals.Parameter) float64 {
	for _, bound := range []*float64{p.Defaults.Critical, p.Defaults.CriticalLow} {
		if bound != nil {
			return *bound
		}
	}
	return (p.Range.Min + p.Range.Max) / 2
}

// Every declared kind is ingested, listed, searched, bounded, ranked, charted, delivered and retracted like any other.
func TestEveryKindEndToEnd(t *testing.T) {
	for _, kind := range vitals.Definitions {
		t.Run(string(kind.Kind), func(t *testing.T) {
			c := newIngestingClinic(t)
			id, main := c.enroll(nil), kind.Main()
			at := c.now.Add(-time.Hour).UTC().Format(time.RFC3339)
			body := object{"patient_id": id, "measured_at": at, "device_id": "D-1"}
			shown := object{"observation_type": string(kind.Kind), "device_id": "D-1", "fhir_status": "pending"}
			for _, p := range kind.All {
				body[p.Column], shown[p.Column] = dangerous(p), dangerous(p)
			}
			answer := c.request(authz.MA, "POST", "/ingestion/"+kind.Kind.Path()+"/", body).want(201).wantAt(shown)
			observation := answer.text("id")
			c.request(authz.MA, "POST", "/ingestion/"+kind.Kind.Path()+"/", body).want(200).wantAt(object{"duplicate": true, "id": observation})
			c.request(authz.MA, "GET", "/ingestion/observations/"+observation+"/", nil).want(200).wantAt(shown)
			if found := c.request(authz.MA, "GET", "/ingestion/observations/?observation_type="+string(kind.Kind), nil).results(); len(found) != 1 {
				t.Errorf("the list finds %v", found)
			}
			record, err := c.app.FindRecordById("observations", observation)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range kind.All {
				if got := record.GetFloat(p.Column); got != dangerous(p) {
					t.Errorf("%s is stored as %v", p.Column, got)
				}
			}
			form := c.request(authz.MA, "GET", "/fhir/observations/"+observation+"/", nil).want(200).body
			for _, part := range []string{`"code":"` + kind.FHIR.Codes[0].Code + `"`, "/StructureDefinition/" + kind.FHIR.Profile + `"`} {
				if !strings.Contains(form, part) {
					t.Errorf("the FHIR form lacks %s: %s", part, form)
				}
			}
			row := c.request(authz.MA, "GET", "/triage/patients/?trends=true", nil).results()[0]
			latest, _ := row["latest_vitals"].(object)[string(kind.Kind)].(object)
			trend, _ := row["trends"].(object)[string(kind.Kind)].([]any)
			if latest[main.Column] != dangerous(main) || len(trend) != 1 || trend[0] != dangerous(main) {
				t.Errorf("the triage list has %v and %v", latest, trend)
			}
			volume := c.request(authz.Admin, "GET", "/dashboard/stats/volume/", nil).want(200).object()["results"].([]any)
			if today := volume[len(volume)-1].(object); today[string(kind.Kind)] != 1.0 || today["total"] != 1.0 {
				t.Errorf("the volume has %v", today)
			}
			if main.Change == nil {
				checkBounds(c, id, kind)
			}
			c.request(authz.Admin, "POST", "/ingestion/observations/"+observation+"/entered-in-error/", object{"reason": "Another person's"}).want(200)
			if rows := vigiltest.RowCounts(t, c.app)["observations"]; rows != 1 {
				t.Errorf("%d observations", rows)
			}
		})
	}
}

// checkBounds checks the alert of a dangerous reading, simulates other bounds, and sets them.
func checkBounds(c *clinic, id string, kind *vitals.Definition) {
	main := kind.Main()
	if raised := c.request(authz.MA, "GET", "/alerts/?type="+main.Group, nil).results(); len(raised) != 1 || raised[0]["level"] != string(alerts.Critical) {
		c.t.Errorf("alerts: %v", raised)
	}
	side := main.Prefix + string(main.Bounds[0])
	change := object{main.Group: object{side: main.Range.Min}}
	c.request(authz.Nurse, "POST", "/triage/simulate-thresholds/", object{"patient_id": id, main.Group: nil}).want(200).wantAt(object{"readings": 1.0})
	change["reason"] = "As usual for this person"
	c.request(authz.Nurse, "PUT", "/patients/"+id+"/vital-config/", change).want(200).wantAt(object{main.Group + "." + side: main.Range.Min})
	logged := c.request(authz.Nurse, "GET", "/threshold-changes/?field="+main.Name+"_"+string(main.Bounds[0]), nil).results()
	if len(logged) != 1 || logged[0]["old_value"] != *main.Defaults.Bound(main.Bounds[0]) {
		c.t.Errorf("the change log has %v", logged)
	}
}

// A new practice starts with the bounds that the kinds declare.
func TestPracticeStartsWithDeclaredBounds(t *testing.T) {
	c := newClinic(t)
	configured, err := alerts.Configured(c.app, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range vitals.ThresholdParameters {
		for _, side := range p.Bounds {
			if got, want := configured.InForce.Limits(p).Bound(side), p.Defaults.Bound(side); !cmp.Equal(got, want) {
				t.Errorf("%s %s is %v, want %v", p.Name, side, got, want)
			}
		}
		if p.Change == nil {
			continue
		}
		if rule := configured.InForce.Change(p); *rule.Change != p.Change.DefaultThreshold || rule.WindowDays != p.Change.DefaultWindow {
			t.Errorf("%s: %v within %d days", p.Name, *rule.Change, rule.WindowDays)
		}
		if rule := configured.InForce.Change(p); *rule.Daily != p.Change.DefaultDaily || *rule.Over != p.Change.DefaultOver || rule.Target != nil {
			t.Errorf("%s: %v a day, %v over %v", p.Name, *rule.Daily, *rule.Over, rule.Target)
		}
	}
}
