package reports_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The practice of a random case as plain values, the input of the oracle.
type (
	claim struct {
		id, patient, code, day, status, payer, payerName, provider string
		units, cents, paid                                         int
		charge, adjusted, share, refunded                          int
		paidOn, submitted, deniedOn, denial, words                 string
		created, reviewed                                          string
		attest                                                     bool
	}
	person struct {
		id                                  string
		active, deleted, diagnosis, consent bool
		zone                                string
		days                                map[string]bool // with data
	}
	stretch struct {
		user, patient, category string
		start                   time.Time
		seconds                 int
	}
	practice struct {
		begin, now time.Time
		claims     []claim
		people     []person
		time       []stretch
		payers     map[string]string // by record id; entries may have others
		providers  map[string]string // "Last, First"
	}
)

var (
	begins  = []string{"2020-11-20", "2023-12-28", "2024-02-20", "2025-10-25", "2025-12-03"} // ISO week 53, leap days, changes of daylight saving time
	zones   = []string{"", "America/New_York", "Asia/Kolkata", "Pacific/Auckland"}
	codes   = []string{"99453", "99454", "99457", "99458", "99091"}
	states  = []string{"pending_review", "reviewed", "submitted", "paid", "denied", "appealed", "voided", "void_requested", "refund_due", "refunded"}
	denials = [][2]string{{"CO-16", "Lacks information"}, {"CO-16", "Incomplete"}, {"CO-50", "Not covered"}, {"PR-1", "Deductible"}, {"CO-97", "Included"}, {"CO-29", "Late"}, {"OA-23", "Prior payer"}}
)

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000000Z") }

// invent creates a random practice of 14 months.
func invent(seed uint64, providers map[string]string) practice {
	r := rand.New(rand.NewPCG(seed, 11))
	begin, err := time.ParseInLocation(time.DateOnly, begins[r.IntN(len(begins))], newYork)
	if err != nil {
		panic(err)
	}
	p := practice{begin: begin, now: begin.AddDate(0, 14, 0).Add(time.Duration(r.IntN(86400)) * time.Second), providers: providers}
	p.payers = map[string]string{"000000000000001": "Acme", "000000000000002": "Zeta"}
	for i := range 1 + r.IntN(9) {
		one := person{
			id: fmt.Sprintf("00000000-0000-7000-8000-%012d", i+1), active: r.IntN(5) > 0, deleted: r.IntN(8) == 0, diagnosis: r.IntN(5) > 0,
			consent: r.IntN(5) > 0, zone: zones[r.IntN(len(zones))], days: map[string]bool{},
		}
		for range r.IntN(40) {
			one.days[p.now.AddDate(0, 0, 1-r.IntN(34)).Format(time.DateOnly)] = true
		}
		p.people = append(p.people, one)
	}
	users := append([]string{""}, slices.Sorted(maps.Keys(providers))...)
	for i := range r.IntN(140) {
		p.claims = append(p.claims, p.inventClaim(r, i, users[r.IntN(len(users))]))
	}
	for range r.IntN(40) {
		p.time = append(p.time, stretch{
			users[r.IntN(len(users))], p.people[r.IntN(len(p.people))].id, []string{"interactive", "review"}[r.IntN(2)],
			begin.Add(time.Duration(r.IntN(14*30*24*60)) * time.Minute), 1 + r.IntN(3000),
		})
	}
	return p
}

func (p practice) inventClaim(r *rand.Rand, i int, provider string) claim {
	at := p.begin.AddDate(0, 0, r.IntN(426)).Add(time.Duration(r.IntN(86400)) * time.Second)
	c := claim{
		id: fmt.Sprintf("10000000-0000-7000-8000-%012d", i+1), patient: p.people[r.IntN(len(p.people))].id, code: codes[r.IntN(len(codes))],
		day: at.Format(time.DateOnly), status: states[r.IntN(len(states))], provider: provider, units: 1 + r.IntN(3), cents: r.IntN(9000), created: stamp(at.Add(time.Hour)),
	}
	if r.IntN(6) == 0 { // near the ends of months and years
		first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		c.day = first.AddDate(0, 0, -r.IntN(2)).Format(time.DateOnly)
	}
	c.payer = []string{"", "000000000000001", "000000000000002", "000000000000009"}[r.IntN(4)]
	c.payerName = map[string]string{"": "Self-pay", "000000000000001": "Acme", "000000000000002": "Zeta", "000000000000009": "Gone"}[c.payer]
	sent := at.Add(time.Duration(r.IntN(60*24)) * time.Hour)
	switch c.status {
	case "voided":
	case "pending_review":
		c.attest = r.IntN(3) == 0
	case "reviewed":
		c.reviewed = stamp(sent)
	default:
		c.reviewed, c.submitted = stamp(at.Add(2*time.Hour)), stamp(sent)
	}
	if c.status == "denied" || c.status == "appealed" || c.status == "paid" && r.IntN(3) == 0 || c.status == "submitted" && r.IntN(4) == 0 {
		reason := denials[r.IntN(len(denials))]
		c.denial, c.words, c.deniedOn = reason[0], reason[1], sent.AddDate(0, 0, r.IntN(20)).Format(time.DateOnly)
	}
	c.charge = c.cents + r.IntN(3)*r.IntN(5000)
	if c.status == "paid" || c.status == "refund_due" || c.status == "refunded" {
		c.paid, c.paidOn = r.IntN(c.cents+1), sent.AddDate(0, 0, r.IntN(60)-1).Format(time.DateOnly)
	}
	if c.status == "paid" || c.status == "denied" {
		c.adjusted, c.share = r.IntN(2000)-500, r.IntN(1000)
	}
	switch c.status {
	case "refund_due":
		c.refunded = r.IntN(c.paid + 1)
	case "refunded":
		c.refunded = c.paid
	}
	return c
}

// row returns the claim as stored.
func (c claim) row() dbx.Params {
	row := dbx.Params{
		"id": c.id, "claim_id": "C" + c.id, "patient": c.patient, "cpt_code": c.code, "service_date": c.day, "units": c.units, "amount_cents": c.cents,
		"lifecycle_status": c.status, "source": "manual", "payer": c.payer, "payer_name": c.payerName, "rendering_provider": c.provider,
		"submitted_at": c.submitted, "payment_date": c.paidOn, "denial_code": c.denial, "denial_description": c.words, "denial_date": c.deniedOn,
		"created_at": c.created, "updated_at": c.created, "reviewed_at": c.reviewed, "warnings": "[]", "payment_cents": nil, "charge_cents": c.charge, "adjusted_cents": c.adjusted,
		"patient_responsibility_cents": c.share, "refunded_cents": c.refunded, "paid_total_cents": c.paid,
	}
	if c.attest {
		row["warnings"] = `["attest_interaction"]`
	}
	if c.paidOn != "" {
		row["payment_cents"] = c.paid
	}
	return row
}

// plant replaces the stored practice. Half of the claims first go through an earlier life, and some are deleted again.
func (p practice) plant(t *testing.T, app core.App) {
	t.Helper()
	err := app.RunInTransaction(func(tx core.App) error {
		for _, table := range []string{"billing_entries", "time_entries", "reading_days", "consents", "patients", "payers"} {
			if _, err := tx.DB().NewQuery("DELETE FROM " + table).Execute(); err != nil {
				return err
			}
		}
		for id, name := range p.payers {
			if _, err := tx.DB().Insert("payers", dbx.Params{"id": id, "name": name, "payer_code": name, "is_active": true}).Execute(); err != nil {
				return err
			}
		}
		if err := p.plantPeople(tx); err != nil {
			return err
		}
		for i, c := range p.claims {
			if err := plantClaim(tx, i, c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func plantClaim(tx core.App, i int, c claim) error {
	if i%2 == 0 {
		_, err := tx.DB().Insert("billing_entries", c.row()).Execute()
		return err
	}
	before := c
	before.status, before.day, before.cents, before.units = states[i%len(states)], "2024-02-29", c.cents+17, 4
	before.submitted, before.paidOn, before.paid, before.deniedOn = "2024-03-01T02:00:00.000000Z", "2024-04-01", 5, "2024-03-20"
	before.charge, before.adjusted, before.share, before.refunded = 1, 2, 3, 4
	if _, err := tx.DB().Insert("billing_entries", before.row()).Execute(); err != nil {
		return err
	}
	if i%10 == 1 {
		if _, err := tx.DB().Delete("billing_entries", dbx.HashExp{"id": c.id}).Execute(); err != nil {
			return err
		}
		_, err := tx.DB().Insert("billing_entries", c.row()).Execute()
		return err
	}
	_, err := tx.DB().Update("billing_entries", c.row(), dbx.HashExp{"id": c.id}).Execute()
	return err
}

func (p practice) plantPeople(tx core.App) error {
	var rows []struct {
		table string
		row   dbx.Params
	}
	add := func(table string, row dbx.Params) {
		rows = append(rows, struct {
			table string
			row   dbx.Params
		}{table, row})
	}
	for i, one := range p.people {
		row := dbx.Params{"id": one.id, "mrn": fmt.Sprint("M", i), "active": one.active, "time_zone": one.zone, "gender": "other", "icd10_codes": "[]"}
		if one.deleted {
			row["deleted_at"] = stamp(p.begin)
		}
		if one.diagnosis {
			row["icd10_codes"] = `["I10"]`
		}
		if !one.active {
			row["archived_at"] = stamp(p.begin)
		}
		add("patients", row)
		if one.consent {
			add("consents", dbx.Params{"id": fmt.Sprintf("%015d", i+1), "patient": one.id, "type": "rpm", "method": "written", "granted_at": stamp(p.begin)})
		}
		for day := range one.days {
			add("reading_days", dbx.Params{"patient": one.id, "day": day, "observation_type": "weight", "first_observation": "x", "readings": 1, "device_readings": 1})
		}
	}
	for i, s := range p.time {
		add("time_entries", dbx.Params{
			"id": fmt.Sprintf("%015d", i+1), "patient": s.patient, "user": s.user, "category": s.category, "source": "manual", "started_at": stamp(s.start),
			"ended_at": stamp(s.start.Add(time.Duration(s.seconds) * time.Second)), "duration_seconds": s.seconds,
		})
	}
	for _, r := range rows {
		if _, err := tx.DB().Insert(r.table, r.row).Execute(); err != nil {
			return fmt.Errorf("%s: %w", r.table, err)
		}
	}
	return nil
}

// staff creates two providers, and returns their names in reports.
func staff(t *testing.T, app core.App) map[string]string {
	t.Helper()
	names := map[string]string{}
	for range 2 {
		user := vigiltest.User(t, app, "provider")
		names[user.Id] = strings.Trim(user.GetString("last_name")+", "+user.GetString("first_name"), ", ")
	}
	return names
}
