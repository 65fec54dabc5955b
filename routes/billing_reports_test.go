package routes_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing/reports"
)

// createClaim creates a January entry manually and applies the moves to it.
func (c *clinic) createClaim(patient, code, day string, moves ...string) string {
	c.t.Helper()
	entry := c.request(authz.DataMonitor, "POST", "/billing/entries/manual-create/", object{"patient_id": patient, "cpt_code": code, "service_date": day, "duration_minutes": 20}).want(201)
	id := entry.object()["id"].(string)
	bodies := map[string]object{
		"deny": {"code": "CO-16", "description": "=Lacks information"}, "pay": {"amount": 40.5, "payment_date": "2026-01-15", "reference": "EFT"},
		"appeal": {"reason": "It is covered"}, "void": {"reason": "Twice"}, "review": {}, "submit": {},
	}
	for _, move := range moves {
		c.request(authz.DataMonitor, "POST", "/billing/entries/"+id+"/"+move+"/", bodies[move]).want(200)
	}
	return id
}

// clinicWithClaims is a clinic with a few claims: 47.87 paid with 40.50, 38.49 denied, 43.02 pending, and one voided.
func clinicWithClaims(t *testing.T) (c *clinic, patient string) {
	c = newClinic(t)
	patient = c.enroll(object{"icd10_codes": []string{"I10"}, "first_name": "=Ada", "primary_provider_id": c.people[authz.Provider].Number()})
	c.consent(patient)
	c.logCall(patient, "2026-01-04T14:00:00Z", 40)
	c.createClaim(patient, "99457", "2026-01-05", "review", "submit", "pay")
	c.createClaim(patient, "99458", "2026-01-06", "review", "submit", "deny")
	c.createClaim(patient, "99454", "2026-01-14")
	c.createClaim(patient, "99453", "2026-01-15", "void")
	return c, patient
}

const reportPath = "/billing/reports/"

func TestReports(t *testing.T) {
	c, patient := clinicWithClaims(t)
	for _, name := range reports.Names() {
		path := reportPath + string(name) + "/"
		c.wantRoles("GET", path, nil, authz.Admin, authz.DataMonitor)
		for _, query := range []string{"", "?date_from=2025-01-01&date_to=2025-02-10", "?payer_id=1", "?cpt_code=99454&patient_id=" + patient, "?refresh=true&format=json"} {
			status := 200
			if query == "?payer_id=1" {
				status = 404 // the payer does not exist
			}
			c.request(authz.DataMonitor, "GET", path+query, nil).want(status)
		}
		for query, field := range map[string]string{
			"date_from=x": "date_from", "date_from=2026-01-02&date_to=2026-01-01": "date_from", "cpt_code=1": "cpt_code", "export=xml": "export", "format=": "format",
			"date_from=2020-01-01&date_to=2025-01-01": "date_from", "refresh=2": "refresh", "patient_id=7": "patient_id", "payer_id=a": "payer_id", "date_from=2026-01-16": "date_from",
			"date_from=9999-01-01&date_to=9999-12-31": "", "date_to=9999-12-31": "date_to",
		} {
			if got := c.request(authz.Admin, "GET", path+"?"+query, nil); field != "" {
				got.wantFields(field)
			} else {
				got.wantFields("date_from", "date_to")
			}
		}
		c.request(authz.Admin, "GET", path+"?date_from=2020-01-02&date_to=2025-01-01", nil).want(200)
		c.request(authz.Admin, "GET", path+"?provider_id=99", nil).want(404)
		c.request(authz.Admin, "GET", path+"?patient_id="+collections.NewUUID(), nil).want(404)
		if paper := c.request(authz.Admin, "GET", path+"?export=pdf", nil).want(200); !strings.HasPrefix(paper.body, "%PDF-") {
			t.Errorf("%s is no PDF", name)
		}
		rows, err := csv.NewReader(strings.NewReader(c.request(authz.Admin, "GET", path+"?export=csv", nil).want(200).body)).ReadAll()
		if err != nil || len(rows) == 0 || slices.Contains(rows[0], "") {
			t.Errorf("%s as CSV is %v: %v", name, rows, err)
		}
	}
	c.request(authz.Admin, "GET", reportPath+"revenue/", nil).want(200).wantAt(object{"total_revenue": 129.38, "collected_revenue": 40.5, "date_from": "2025-12-17", "date_to": "2026-01-15", "cached": false})
	c.request(authz.Admin, "GET", reportPath+"quick-stats/", nil).want(200).wantAt(object{"total_revenue": 129.38, "claims_count": 3.0, "collection_rate": 0.469, "date_from": "2026-01-01", "as_of": "2026-01-15"})
	c.request(authz.Admin, "GET", reportPath+"tasks-summary/", nil).want(200).wantAt(object{"pending_reviews": 1.0, "denied_awaiting_resubmission": 1.0, "date_from": nil})
	c.request(authz.Admin, "GET", reportPath+"aging/", nil).want(200).wantAt(object{"total_amount": 0.0})
	if rows := c.request(authz.Admin, "GET", reportPath+"monthly-trend/", nil).want(200).object()["results"].([]any); len(rows) != 12 {
		t.Errorf("the trend has %d months", len(rows))
	}
	summary := c.request(authz.Admin, "GET", reportPath+"patient-summary/?patient_id="+patient, nil).results()
	if len(summary) != 1 || summary[0]["lifetime_revenue"] != 129.38 || summary[0]["eligible"] != true || len(summary[0]["history"].([]any)) != 3 || summary[0]["patient_name"] != "=Ada Lovelace" {
		t.Errorf("the summary is %v", summary)
	}
	c.request(authz.Admin, "GET", reportPath+"patient-summary/?page=2", nil).want(404)
	c.request(authz.Admin, "GET", reportPath+"patient-summary/?page=0", nil).wantFields("page")
}

func TestReportCache(t *testing.T) {
	c, patient := clinicWithClaims(t)
	path := reportPath + "monthly-trend/"
	revenue := func(query string, as authz.Role) (float64, bool) {
		body := c.request(as, "GET", path+query, nil).want(200).object()
		last := body["results"].([]any)[11].(object)
		return last["revenue"].(float64), body["cached"].(bool)
	}
	made := c.now
	for i, step := range []struct {
		query   string
		as      authz.Role
		wait    time.Duration
		revenue float64
		cached  bool
	}{
		{"", authz.Admin, 0, 129.38, false},
		{"", authz.Admin, 14 * time.Minute, 129.38, true}, // 43.02 more since, but the report is cached
		{"?refresh=false", authz.Admin, 0, 129.38, true},
		{"", authz.DataMonitor, 0, 172.4, false}, // another role has its own cache entry
		{"?cpt_code=99457", authz.Admin, 0, 47.87, false},
		{"?refresh=true", authz.Admin, 0, 172.4, false},
		{"", authz.Admin, 0, 172.4, true},
		{"", authz.Admin, 15 * time.Minute, 172.4, false},
	} {
		c.now = c.now.Add(step.wait)
		if got, cached := revenue(step.query, step.as); got != step.revenue || cached != step.cached {
			t.Errorf("step %d: %v, cached %v, want %v, %v", i, got, cached, step.revenue, step.cached)
		}
		if i == 0 {
			c.createClaim(patient, "99454", "2026-01-13")
		}
	}
	c.now = made.Add(31 * time.Minute)
	first := c.request(authz.Admin, "GET", path, nil).want(200).at("generated_at")
	if again := c.request(authz.Admin, "GET", path, nil).at("generated_at"); again != first {
		t.Errorf("the cached report is from %v, not %v", again, first)
	}
	c.request(authz.Admin, "GET", reportPath+"claims-status/", nil).want(200)
	c.request(authz.Admin, "GET", reportPath+"claims-status/", nil).want(200).wantAt(object{"cached": false})
}

func TestReportFiles(t *testing.T) {
	c, patient := clinicWithClaims(t)
	exported := c.request(authz.DataMonitor, "GET", reportPath+"export/", nil).want(200).body
	if want := "cpt_code,claims,units,revenue,collected\r\n99454,1,1,43.02,0.00\r\n99457,1,1,47.87,40.50\r\n99458,1,1,38.49,0.00\r\n"; exported != want {
		t.Errorf("revenue as CSV is %q", exported)
	}
	exported = c.request(authz.DataMonitor, "GET", reportPath+"export/?report=patient-summary&fields=patient_name,%20claims", nil).want(200).body
	if exported != "patient_name,claims\r\n'=Ada Lovelace,3\r\n" {
		t.Errorf("patients as CSV are %q", exported)
	}
	trend := c.request(authz.DataMonitor, "GET", reportPath+"export/?report=monthly-trend&fields=growth_rate&date_from=2025-12-01", nil).want(200).body
	if trend != "growth_rate\r\n\"\"\r\n\"\"\r\n" && trend != "growth_rate\r\n\r\n\r\n" {
		t.Errorf("growth as CSV is %q", trend)
	}
	tricky := c.request(authz.DataMonitor, "GET", reportPath+"export/?report=tasks-summary&fields=task,patient_name&cpt_code=99458", nil).want(200).body
	if tricky != "task,patient_name\r\nresubmit,'=Ada Lovelace\r\n" {
		t.Errorf("tasks as CSV are %q", tricky)
	}
	c.request(authz.DataMonitor, "GET", reportPath+"export/?fields=claims,secret", nil).wantFields("fields")
	c.request(authz.DataMonitor, "GET", reportPath+"export/?fields=", nil).wantFields("fields")
	c.request(authz.DataMonitor, "GET", reportPath+"export/?report=export", nil).wantFields("report")
	c.request(authz.DataMonitor, "GET", reportPath+"export/?format=json", nil).wantFields("format")
	if paper := c.request(authz.DataMonitor, "GET", reportPath+"export/?report=executive-dashboard&format=pdf&date_from=2025-02-01", nil).want(200); !strings.HasPrefix(paper.body, "%PDF-") {
		t.Error("the dashboard is no PDF")
	}
	c.wantRoles("GET", reportPath+"export/", nil, authz.Admin, authz.DataMonitor)
	if events := c.events(patient); !slices.Contains(events, "report.export") {
		t.Errorf("the export of a patient's revenue left %v", events)
	}
	var exports int
	if err := c.app.DB().Select("COUNT(*)").From(collections.AuditLog).Where(dbx.HashExp{"event": "report.export", "patient": ""}).Row(&exports); err != nil || exports < 7 {
		t.Errorf("%d exports are on record: %v", exports, err)
	}
}

func TestBillingStatistics(t *testing.T) {
	c, _ := clinicWithClaims(t)
	const stats, breakdown = "/reports/billing/stats/", "/reports/billing/"
	c.request(authz.Admin, "GET", stats, nil).want(200).wantAt(object{
		"period": "2026-01", "total_revenue": 129.38, "collected_revenue": 40.5, "total_claims": 3.0, "claims_by_status.paid": 1.0, "claims_by_status.denied": 1.0,
		"claims_by_status.pending": 1.0, "revenue_by_cpt.99457": 47.87, "collection_rate": 0.469, "avg_days_to_payment": 0.0,
	})
	c.request(authz.Admin, "GET", stats+"?period=2020-02", nil).want(200).wantAt(object{"total_claims": 0.0, "collection_rate": 0.0})
	c.request(authz.Admin, "GET", stats+"?period=2020-13", nil).wantFields("period")
	c.request(authz.Admin, "GET", stats+"?period=2200-12", nil).want(200).wantAt(object{"total_claims": 0.0})
	c.wantRoles("GET", stats, nil, authz.Admin, authz.DataMonitor)
	c.wantRoles("GET", breakdown+"?date_from=2026-01-01&date_to=2026-01-15", nil, authz.Admin, authz.DataMonitor)
	c.request(authz.Admin, "GET", breakdown, nil).wantFields("date_from", "date_to")
	c.request(authz.Admin, "GET", breakdown+"?date_from=2026-01-02&date_to=2026-01-01", nil).wantFields("date_from")
	c.request(authz.Admin, "GET", breakdown+"?date_from=2020-01-01&date_to=2026-01-01", nil).wantFields("date_from")
	for query, keys := range map[string][]string{
		"date_from=2026-01-05&date_to=2026-01-07":                {"2026-01-05", "2026-01-06", "2026-01-07"},
		"date_from=2025-12-28&date_to=2026-01-05&group_by=week":  {"2025-W52", "2026-W01", "2026-W02"},
		"date_from=2024-02-29&date_to=2024-03-01&group_by=month": {"2024-02", "2024-03"},
	} {
		body := c.request(authz.Admin, "GET", breakdown+"?"+query, nil).want(200).object()
		got := []string{}
		for _, row := range body["breakdown"].([]any) {
			got = append(got, row.(object)["period"].(string))
		}
		if !slices.Equal(got, keys) {
			t.Errorf("%s has the periods %v", query, got)
		}
	}
}
