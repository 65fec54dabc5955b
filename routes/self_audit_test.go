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
	"github.com/vigilhealth/vigil/routes"
)

// billedLine stores a claim in a given state and returns its id.
func (c *clinic) billedLine(patient, code, service, start, end, status string) string {
	c.t.Helper()
	id := collections.NewUUID()
	numbers, err := collections.NextClaimIDs(c.app, 2026, 1)
	if err != nil {
		c.t.Fatal(err)
	}
	c.insert(collections.BillingEntries, dbx.Params{
		"id": id, "claim_id": numbers[0], "patient": patient, "cpt_code": code, "service_date": service, "billing_period_start": start,
		"billing_period_end": end, "lifecycle_status": status, "source": "manual", "units": 1, "amount_cents": 4302, "created_at": collections.FormatInstant(c.now),
		"updated_at": collections.FormatInstant(c.now),
	})
	return id
}

// auditOf returns a month's finding of a pattern: its count and what it refers to; "" if there is none.
func (c *clinic) auditOf(month, pattern string) string {
	c.t.Helper()
	for _, found := range c.request(authz.DataMonitor, "GET", "/billing/self-audit/?month="+month, nil).want(200).at("findings").([]any) {
		if found := found.(object); found["pattern"] == pattern {
			ids := []string{}
			for _, id := range found["entry_ids"].([]any) {
				ids = append(ids, id.(string))
			}
			return fmt.Sprint(found["count"], " ", strings.Join(ids, " "), " ", found["time_entry_ids"])
		}
	}
	return ""
}

func (c *clinic) wantAudit(month, pattern string, count int, entries []string, times ...int) {
	c.t.Helper()
	slices.Sort(entries)
	want := ""
	if count > 0 {
		want = fmt.Sprint(count, " ", strings.Join(entries, " "), " ", times)
	}
	if got := c.auditOf(month, pattern); got != want {
		c.t.Errorf("%s of %s is %q, want %q", pattern, month, got, want)
	}
}

func TestSelfAuditOfLines(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	c.request(authz.Admin, "GET", "/billing/self-audit/", nil).want(200).wantAt(object{"month": "2026-01"})
	c.request(authz.Admin, "GET", "/billing/self-audit/?month=2026-13", nil).wantFields("month")
	c.wantRoles("GET", "/billing/self-audit/", nil, authz.Admin, authz.DataMonitor)

	visit := func(day string) {
		c.request(authz.Provider, "POST", "/patients/"+patient+"/orders/", object{"kind": "established_visit", "dated": day}).want(201)
	}
	c.billedLine(patient, "99457", "2025-10-31", "2025-10-01", "2025-10-31", "voided")
	first := c.billedLine(patient, "99454", "2025-11-10", "2025-10-12", "2025-11-10", "paid")
	visit("2025-11-10")
	c.wantAudit("2025-11", "no_established_visit", 1, []string{first})
	second := c.billedLine(patient, "99454", "2025-12-10", "2025-11-11", "2025-12-10", "submitted")
	c.wantAudit("2025-12", "no_established_visit", 1, []string{second})
	visit("2025-11-09")
	c.wantAudit("2025-11", "no_established_visit", 0, nil)
	c.wantAudit("2025-12", "no_established_visit", 0, nil)

	c.wantAudit("2025-12", "supply_without_management", 0, nil)
	third := c.billedLine(patient, "99445", "2026-01-09", "2025-12-11", "2026-01-09", "pending_review")
	c.wantAudit("2026-01", "supply_without_management", 1, []string{first, second, third})
	c.billedLine(patient, "99457", "2025-12-24", "2025-12-01", "2025-12-31", "refunded")
	c.wantAudit("2026-01", "supply_without_management", 1, []string{first, second, third})
	c.billedLine(patient, "99457", "2025-12-24", "2025-12-01", "2025-12-31", "refund_due")
	c.wantAudit("2026-01", "supply_without_management", 0, nil)

	c.wantAudit("2026-01", "several_devices", 0, nil)
	c.billedLine(patient, "99454", "2026-01-08", "2025-12-10", "2026-01-08", "voided")
	c.wantAudit("2026-01", "several_devices", 0, nil)
	again := c.billedLine(patient, "99454", "2026-01-08", "2025-12-10", "2026-01-08", "void_requested")
	c.wantAudit("2026-01", "several_devices", 1, []string{second, third, again})
	c.wantAudit("2025-12", "several_devices", 1, []string{second, again})
	c.wantAudit("2025-11", "several_devices", 0, nil)
}

// Ten first bills in a month are a spike unless there were eleven in the three months before.
func TestSelfAuditOfEnrollment(t *testing.T) {
	c := newClinic(t)
	bill := func(day, status string) string { return c.billedLine(c.enroll(nil), "99453", day, day, day, status) }
	january := []string{}
	for range 9 {
		january = append(january, bill("2026-01-31", "pending_review"))
	}
	bill("2026-01-31", "voided")
	c.wantAudit("2026-01", "enrolment_spike", 0, nil)
	january = append(january, bill("2026-01-01", "pending_review"))
	c.wantAudit("2026-01", "enrolment_spike", 10, january)
	for _, day := range []string{"2025-09-30", "2025-10-01", "2025-10-31", "2025-11-01", "2025-11-11", "2025-11-30", "2025-12-01", "2025-12-02", "2025-12-03", "2025-12-30", "2025-12-31"} {
		c.wantAudit("2026-01", "enrolment_spike", 10, january)
		bill(day, "paid")
	}
	c.wantAudit("2026-01", "enrolment_spike", 10, january) // ten in three months; September's does not count
	bill("2025-12-31", "paid")
	c.wantAudit("2026-01", "enrolment_spike", 0, nil)
}

func TestSelfAuditOfTime(t *testing.T) {
	c := newClinic(t)
	patient := c.enroll(nil)
	log := func(role authz.Role, started time.Time, seconds int) int {
		return int(c.request(role, "POST", "/time-entries/", object{
			"patient_id": patient, "category": "review", "started_at": started.Format(time.RFC3339), "duration_seconds": seconds,
		}).want(201).at("id").(float64))
	}
	day := time.Date(2026, 1, 13, 5, 0, 0, 0, time.UTC) // midnight in New York
	// Four equal entries, one different, and one of another user.
	same := []int{}
	for i := range 4 {
		same = append(same, log(authz.Nurse, day.Add(time.Duration(i)*time.Hour), 20*60+i))
	}
	log(authz.Nurse, day.Add(5*time.Hour), 21*60)
	log(authz.MA, day.Add(6*time.Hour), 20*60)
	c.wantAudit("2026-01", "same_minutes", 0, nil)
	line := c.billedLine(patient, "99457", "2026-01-13", "2026-01-01", "2026-01-31", "pending_review")
	same = append(same, log(authz.Nurse, day.Add(7*time.Hour), 20*60+59))
	if _, err := c.app.DB().NewQuery("UPDATE time_entries SET billing_entry = '" + line + "' WHERE id = '" + collections.NumberID(int64(same[4])) + "'").Execute(); err != nil {
		t.Fatal(err)
	}
	c.wantAudit("2026-01", "same_minutes", 5, []string{line}, same...)
	c.wantAudit("2025-12", "same_minutes", 0, nil)
	if _, err := c.app.DB().NewQuery("UPDATE billing_entries SET lifecycle_status = 'refunded'").Execute(); err != nil {
		t.Fatal(err)
	}
	c.wantAudit("2026-01", "same_minutes", 0, nil)

	c.wantAudit("2026-01", "late_entry", 0, nil)
	log(authz.Provider, c.now.Add(-72*time.Hour-10*time.Minute), 600)
	c.wantAudit("2026-01", "late_entry", 0, nil)
	late := log(authz.Provider, c.now.Add(-72*time.Hour-21*time.Minute), 659)
	c.wantAudit("2026-01", "late_entry", 1, nil, late)
	december := log(authz.Provider, time.Date(2026, 1, 1, 4, 59, 0, 0, time.UTC), 60) // still December in New York
	c.wantAudit("2026-01", "late_entry", 1, nil, late)
	c.wantAudit("2025-12", "late_entry", 1, nil, december)
}

// The longest day has 960 minutes, in the practice's time zone.
func TestSelfAuditOfImpossibleDays(t *testing.T) {
	for name, midnight := range map[string]time.Time{
		"UTC": time.Date(2026, 1, 13, 0, 0, 0, 0, time.UTC), "America/New_York": time.Date(2026, 1, 13, 5, 0, 0, 0, time.UTC),
		"Pacific/Auckland": time.Date(2026, 1, 12, 11, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			c := newClinic(t, func(e *routes.Engines) { e.Zone = zone })
			patient, ids := c.enroll(nil), []int{}
			log := func(started time.Time, minutes int) {
				ids = append(ids, int(c.request(authz.Nurse, "POST", "/time-entries/", object{
					"patient_id": patient, "category": "care_management", "started_at": started.Format(time.RFC3339), "duration_seconds": minutes * 60,
				}).want(201).at("id").(float64)))
			}
			log(midnight.Add(-time.Hour), 120) // an hour on each day
			for i := range 3 {
				log(midnight.Add(time.Duration(1+4*i)*time.Hour), 240)
			}
			log(midnight.Add(13*time.Hour), 180)
			c.wantAudit("2026-01", "impossible_day", 0, nil)
			log(midnight.Add(23*time.Hour+59*time.Minute), 2) // one of them on the next day
			c.wantAudit("2026-01", "impossible_day", 1, nil, ids...)
		})
	}
}

// A day counts as typed if only people sent its readings; a client's readings are not typed even without a known device.
func TestSelfAuditOfTypedDays(t *testing.T) {
	for name, first := range map[string]time.Time{
		"America/New_York": time.Date(2025, 12, 1, 5, 0, 0, 0, time.UTC), "Pacific/Auckland": time.Date(2025, 11, 30, 11, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t)
			patient := c.enroll(object{"time_zone": name})
			zone, err := time.LoadLocation(name)
			if err != nil {
				t.Fatal(err)
			}
			reading := func(day int, origin string) {
				at, device, byDevice := first.AddDate(0, 0, day), "", 0
				if origin == "device" {
					device, byDevice = "BP-1", 1
				}
				c.storedReading(patient, "weight", at, dbx.Params{"origin": origin, "source": "manual", "device_id": device, "weight_kg": 80})
				c.insert("reading_days", dbx.Params{
					"patient": patient, "day": at.In(zone).Format(time.DateOnly), "observation_type": "weight", "first_observation": "x", "readings": 1,
					"device_readings": byDevice,
				})
			}
			for day := range 8 {
				reading(day, "device")
			}
			for day := range 8 {
				reading(8+day, []string{"staff", "patient"}[day%2])
			}
			reading(-1, "staff") // in November
			reading(31, "staff") // in January
			line := c.billedLine(patient, "99454", "2025-12-30", "2025-12-01", "2025-12-30", "submitted")
			c.wantAudit("2025-12", "typed_days", 0, nil)
			reading(17, "machine")
			reading(18, "import")
			reading(19, "staff")
			reading(20, "staff")
			c.wantAudit("2025-12", "typed_days", 0, nil) // 10 of 20
			reading(30, "patient")
			c.wantAudit("2025-12", "typed_days", 1, []string{line}) // 11 of 21
			c.wantAudit("2026-01", "typed_days", 0, nil)            // no code is billed
		})
	}
}
