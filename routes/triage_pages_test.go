package routes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/routes"
)

// busyList is a practice with random activity from the API, the dashboard, a script and the clock.
type busyList struct {
	*clinic
	random *rand.Rand
	people []string
}

func (l *busyList) anyUser() string { return l.people[l.random.IntN(len(l.people))] }

// one returns one id that a query finds, or "".
func (l *busyList) one(query string) string {
	if found := l.queryColumn(query); len(found) > 0 {
		return found[l.random.IntN(len(found))]
	}
	return ""
}

func (l *busyList) update(table string, columns dbx.Params, where dbx.Expression) {
	l.t.Helper()
	if _, err := l.app.DB().Update(table, columns, where).Execute(); err != nil {
		l.t.Fatal(err)
	}
}

// act performs one random action and returns its name; a refused action is a step without a change.
func (l *busyList) act() (what string) {
	patient, n := l.anyUser(), l.random.IntN(100)
	staff := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse}
	role := staff[l.random.IntN(len(staff))]
	about := func(query, path string, body object) {
		if id := l.one(query); id != "" {
			l.request(role, "POST", fmt.Sprintf(path, collections.Number(id)), body)
		}
	}
	steps := []struct {
		what string
		do   func()
	}{
		{"a reading", func() {
			l.request(role, "POST", "/ingestion/blood-pressure/", object{
				"patient_id": patient, "systolic": 100 + n, "diastolic": 70, "pulse": 70, "measured_at": l.now.Add(-time.Duration(n) * time.Hour).Format(time.RFC3339),
			})
		}},
		{"an acknowledgment", func() {
			about("SELECT id FROM alerts WHERE acknowledged = FALSE", "/alerts/%d/acknowledge/", object{"notes": "Seen."})
		}},
		{"a resolution", func() {
			about("SELECT id FROM alerts WHERE status != 'resolved'", "/alerts/%d/resolve/", object{"notes": "Done.", "resolution_notes": "Done."})
		}},
		{"a retraction", func() {
			if id := l.one("SELECT id FROM observations WHERE status = 'final'"); id != "" {
				l.request(role, "POST", "/ingestion/observations/"+id+"/entered-in-error/", object{"reason": "Typed wrongly."})
			}
		}},
		{"an escalation", func() {
			l.request(role, "POST", "/escalations/", object{"patient_id": patient, "priority": "stat", "reason": "Look."})
		}},
		{"an escalation's end", func() {
			if id := l.one("SELECT id FROM escalations WHERE status IN ('open', 'in_progress')"); id != "" {
				l.request(role, "PATCH", fmt.Sprintf("/escalations/%d/", collections.Number(id)), object{"status": "resolved", "resolution_notes": "Done."})
			}
		}},
		{"a review", func() { l.request(role, "POST", "/triage/patients/"+patient+"/review/", nil) }},
		{"a snooze", func() {
			l.request(role, "POST", "/patients/"+patient+"/snoozes/", object{"alert_type": "blood_pressure", "ends_at": l.now.Add(time.Hour).Format(time.RFC3339), "reason": "At the dentist."})
		}},
		{"a name", func() {
			l.request(authz.Admin, "PUT", "/patients/"+patient+"/", patientBody(object{"last_name": fmt.Sprint("Murray", strings.Repeat("y", n%7))}))
		}},
		{"bounds", func() {
			l.request(role, "PUT", "/patients/"+patient+"/vital-config/", object{"reason": "Own", "blood_pressure": object{"systolic_high": 120 + n/4, "systolic_critical": 150 + n/4}})
		}},
		{"an archive", func() { l.request(authz.Admin, "POST", "/patients/"+patient+"/archive/", object{"reason": "Moved."}) }},
		{"a return", func() { l.request(authz.Admin, "POST", "/patients/"+patient+"/unarchive/", nil) }},
		{"a care team", func() {
			members := []object{{"user_id": l.clinic.people[authz.Nurse].Number(), "role": "nurse"}}
			l.request(authz.Admin, "PUT", "/patients/"+patient+"/care-team/", object{"members": members[:n%2]})
		}},
		{"a provider", func() {
			l.update(collections.Patients, dbx.Params{"primary_provider": []string{"", l.clinic.people[authz.Provider].Id}[n%2]}, dbx.HashExp{"id": patient})
		}},
		{"a patient", func() {
			if len(l.people) < 12 {
				l.people = append(l.people, l.enroll(object{"first_name": "Grace", "last_name": "Hopper"}))
			}
		}},
		{"the dashboard", func() {
			record, err := collections.FindTriageScore(l.app, patient)
			if err == nil {
				record.Set([]string{"last_reviewed_by", "risk_level"}[n%2], []string{fmt.Sprint("somebody", n, "@vigil.test"), "normal"}[n%2])
				record.Set("scored_at", collections.FormatInstant(l.now.Add(time.Duration(n))))
				err = l.app.Save(record)
			}
			if err != nil {
				l.t.Fatal(err)
			}
		}},
		{"a script", func() {
			l.update(collections.TriageScores, dbx.Params{"risk_score": n}, dbx.HashExp{"patient": patient})
		}},
		{"the clock", func() {
			l.now = l.now.Add(time.Duration(n) * time.Hour)
			if _, _, err := triage.RescoreAll(l.t.Context(), l.app, l.now, func([]string) {}); err != nil {
				l.t.Fatal(err)
			}
		}},
		{"half a change", func() {
			_ = l.app.RunInTransaction(func(tx core.App) error {
				_, _ = tx.DB().Update(collections.TriageScores, dbx.Params{"risk_score": 99}, dbx.HashExp{"patient": patient}).Execute()
				return fmt.Errorf("and none of it")
			})
		}},
		{"a look", func() { l.request(role, "GET", "/patients/"+patient+"/", nil) }},
	}
	step := steps[l.random.IntN(len(steps))]
	step.do()
	return step.what
}

// After any activity a cached page equals a page computed now, for every caller, and is audited like one.
func TestCachedTriagePages(t *testing.T) {
	l := &busyList{clinic: newIngestingClinic(t, func(e *routes.Engines) { e.RestrictToCareTeam = true }), random: rand.New(rand.NewPCG(3, 3))}
	for range 7 {
		l.people = append(l.people, l.enroll(nil))
	}
	queries := []string{
		"page_size=3", "page=2&page_size=3", "page_size=100", "risk_level=critical", "has_unack_alerts=true", "needs_review=false&page_size=2", "escalated=true",
		"mine=true", "ordering=risk_score", "ordering=-last_reading_at&page_size=4", "page=9&page_size=1",
	}
	roles := []authz.Role{authz.Admin, authz.ClinicalManager, authz.Provider, authz.Nurse, authz.MA}
	for i := range vigiltest.Rounds(400, 60) {
		did := l.act()
		for range 3 {
			role, query := roles[l.random.IntN(len(roles))], queries[l.random.IntN(len(queries))]
			first := l.request(role, "GET", "/triage/patients/?"+query, nil)
			fresh := l.request(role, "GET", "/triage/patients/?"+strings.Repeat("&", i+1)+query, nil) // another spelling, which no page is cached under
			again := l.request(role, "GET", "/triage/patients/?"+query, nil)
			for what, got := range map[string]reply{"": first, ", second request": again} {
				if got.status != fresh.status || got.status == 200 && got.body != fresh.body {
					t.Fatalf("step %d, after %s, %s of %s%s: %d %s\nwant %d %s", i, did, query, role, what, got.status, got.body, fresh.status, fresh.body)
				}
			}
			l.wantEqualAudit(3)
		}
	}
}

// wantEqualAudit checks that the last audit entries record the same caller and patients.
func (l *busyList) wantEqualAudit(n int) {
	l.t.Helper()
	var rows []struct{ ID, Said, Changes string }
	err := l.app.DB().NewQuery(`SELECT id, changes, json_array(event, outcome, actor_id, actor_role, resource_type, resource_id, patient, recorded_at) AS said
		FROM audit_log ORDER BY id DESC LIMIT +{:n}`).Bind(dbx.Params{"n": n}).All(&rows)
	if err != nil {
		l.t.Fatal(err)
	}
	distinct := map[string]bool{}
	for _, row := range rows {
		changes, err := collections.OpenValue(row.Changes, collections.AuditLog, "changes", row.ID)
		if err != nil {
			l.t.Fatal(err)
		}
		distinct[row.Said+changes] = true
	}
	if len(distinct) != 1 {
		l.t.Fatalf("the audit entries of equal pages differ: %v", distinct)
	}
}

// A page is computed once while nothing changes, and is not cached if a name cannot be decrypted.
func TestTriagePagesAreCached(t *testing.T) {
	c := newClinic(t)
	ada, grace := c.enroll(nil), c.enroll(object{"first_name": "Grace"})
	page := func() string { return c.request(authz.Nurse, "GET", "/triage/patients/", nil).want(200).body }
	before := page()
	c.withoutTrigger("triage_list_place", func() { c.rank(ada, dbx.Params{"risk_score": 77}) })
	if page() != before {
		t.Error("the page was computed again")
	}
	if c.request(authz.Nurse, "GET", "/triage/patients/?concern=true", nil).want(200).body == before {
		t.Error("the row details were left out")
	}
	c.request(authz.DataMonitor, "GET", "/triage/patients/", nil).want(403)
	c.rank(grace, dbx.Params{"risk_score": 50})
	if after := page(); !strings.Contains(after, `"risk_score":77`) || !strings.Contains(after, `"risk_score":50`) {
		t.Errorf("another state has the old page: %s", after)
	}
	var name string
	if err := c.app.DB().Select("first_name").From(collections.Patients).Where(dbx.HashExp{"id": ada}).Row(&name); err != nil {
		t.Fatal(err)
	}
	rename := func(sealed string) {
		if _, err := c.app.DB().Update(collections.Patients, dbx.Params{"first_name": sealed}, dbx.HashExp{"id": ada}).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	rename("damaged")
	if damaged := page(); !strings.Contains(damaged, collections.UnreadableText) {
		t.Errorf("a damaged name is shown: %s", damaged)
	}
	c.withoutTrigger("triage_list_patient", func() { rename(name) })
	if mended := page(); strings.Contains(mended, collections.UnreadableText) {
		t.Errorf("a page with a damaged name was kept: %s", mended)
	}
}

// withoutTrigger runs work without one of the triggers that record its changes.
func (c *clinic) withoutTrigger(trigger string, work func()) {
	c.t.Helper()
	var made string
	if err := c.app.DB().NewQuery("SELECT sql FROM sqlite_schema WHERE name = {:name}").Bind(dbx.Params{"name": trigger}).Row(&made); err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.app.DB().NewQuery("DROP TRIGGER " + trigger).Execute(); err != nil {
		c.t.Fatal(err)
	}
	work()
	if _, err := c.app.DB().NewQuery(made).Execute(); err != nil {
		c.t.Fatal(err)
	}
}
