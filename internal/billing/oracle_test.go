package billing_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// The oracle implements the rules again, day by day and minute by minute, without sharing code with the engine.

type oracleReading struct {
	at     time.Time
	device bool
	// origin is the source of the reading, if a story sets it; a retracted reading does not count.
	origin    string
	withdrawn bool
}

// counts reports whether the reading came from a device automatically and is not retracted.
func (r oracleReading) counts() bool {
	return r.device && !r.withdrawn && r.origin != "staff" && r.origin != "patient"
}

type oracleTime struct {
	at       time.Time
	seconds  int
	category string
	source   string
	noted    bool
}

type oracleCase struct {
	zone      *time.Location
	practice  *time.Location
	held      [][2]time.Time // assignments; a zero end is open
	readings  []oracleReading
	times     []oracleTime
	archived  time.Time
	consent   time.Time // zero for none
	revoked   time.Time // zero for never
	diagnosis bool
	educated  time.Time
	payer     bool
	provided  bool // has a primary provider
}

const (
	oracleDay   = "2006-01-02"
	oracleMonth = "2006-01"
)

// oracleEntries returns "code start end service units minutes cents days", sorted. now is the end of the 14 months.
func oracleEntries(c oracleCase, now time.Time) (lines []string) {
	today := now.In(c.practice).Format(oracleDay)
	activeOn := func(day string) bool {
		return c.archived.IsZero() || day <= c.archived.In(c.practice).Format(oracleDay)
	}
	granted, revoked := "9999", "9999"
	if !c.consent.IsZero() {
		granted = c.consent.In(c.practice).Format(oracleDay)
	}
	if !c.revoked.IsZero() {
		revoked = c.revoked.In(c.practice).Format(oracleDay)
	}
	consentOn := func(day string) bool { return granted <= day && day <= revoked }
	counts := func(day, start, end string) bool { // a period with consent on some day counts only days with consent
		return consentOn(day) || granted > end || revoked < start
	}
	rate := func(code string, day string) int {
		if c.payer && code == "99454" && day >= "2026-03-01" {
			return 5100
		}
		return map[string]int{"99453": 1973, "99454": 4302, "99457": 4787, "99458": 3849, "99445": 4700, "99470": 2600}[code]
	}
	add := func(code, start, end, service string, units, minutes, days int) {
		lines = append(lines, fmt.Sprintln(code, start, end, service, units, minutes, units*rate(code, service), days))
	}
	withData := map[string]bool{}
	for _, r := range c.readings {
		for _, h := range c.held {
			if r.counts() && !r.at.Before(h[0]) && (h[1].IsZero() || r.at.Before(h[1])) {
				withData[r.at.In(c.zone).Format(oracleDay)] = true
			}
		}
	}
	first := ""
	for day := range withData {
		if first == "" || day < first {
			first = day
		}
	}
	supplied := false
	if first != "" {
		start, _ := time.Parse(oracleDay, first)
		for {
			days, end := 0, start.AddDate(0, 0, 29).Format(oracleDay)
			for i := range 30 {
				if day := start.AddDate(0, 0, i).Format(oracleDay); withData[day] && counts(day, start.Format(oracleDay), end) {
					days++
				}
			}
			if end >= today {
				break
			}
			code := ""
			if days >= 16 {
				code = "99454"
			} else if days >= 2 && end >= "2026-01-01" {
				code = "99445"
			}
			if code != "" && activeOn(end) {
				add(code, start.Format(oracleDay), end, end, 1, 0, days)
				supplied = true
			}
			start = start.AddDate(0, 0, 30)
		}
	}
	if supplied && !c.educated.IsZero() {
		if day := c.educated.In(c.practice).Format(oracleDay); activeOn(day) {
			add("99453", day, day, day, 1, 0, -1)
		}
	}
	c.times = slices.DeleteFunc(slices.Clone(c.times), func(e oracleTime) bool {
		day := e.at.In(c.practice).Format(oracleDay)
		return !consentOn(day) || !activeOn(day)
	})
	return append(lines, oracleMonths(c, today, add, func(day string) bool { return activeOn(day) && consentOn(day) && c.diagnosis })...)
}

func oracleMonths(c oracleCase, today string, add func(code, start, end, service string, units, minutes, days int), papers func(string) bool) []string {
	months := map[string][]oracleTime{}
	for _, e := range c.times {
		if e.category == "interactive" {
			month := e.at.In(c.practice).Format(oracleMonth)
			months[month] = append(months[month], e)
		}
	}
	for month, list := range months {
		slices.SortStableFunc(list, func(a, b oracleTime) int { return a.at.Compare(b.at) })
		crossed := map[int]string{}       // second of the month, by twenty minutes, to the day
		unnoted := map[int]bool{}         // blocks of twenty minutes with undocumented time
		second, ten, hazy := 0, "", false // when ten minutes were reached, and whether some of them are undocumented
		for _, e := range list {
			for range e.seconds {
				if !e.noted {
					unnoted[second/1200] = true
				}
				hazy = hazy || !e.noted && second < 600
				if second++; second == 600 {
					ten = e.at.In(c.practice).Format(oracleDay)
				}
				if second%1200 == 0 {
					crossed[second] = e.at.In(c.practice).Format(oracleDay)
				}
			}
		}
		begin, _ := time.Parse(oracleMonth, month)
		end := begin.AddDate(0, 1, -1).Format(oracleDay)
		start := begin.Format(oracleDay)
		if ten != "" && crossed[1200] == "" && end < today && ten >= "2026-01-01" && !hazy && papers(ten) {
			add("99470", start, end, ten, 1, 10, -1)
		}
		if crossed[1200] == "" || unnoted[0] || !papers(crossed[1200]) {
			continue
		}
		add("99457", start, end, crossed[1200], 1, 20, -1)
		units := 0
		for units < 3 && crossed[1200*(units+2)] != "" {
			units++
		}
		bad := false
		for i := 1; i <= units; i++ {
			bad = bad || unnoted[i]
		}
		if units > 0 && !bad && papers(crossed[1200*(units+1)]) {
			add("99458", start, end, crossed[1200*(units+1)], units, units*20, -1)
		}
	}
	return nil
}

// zones are the time zones of random cases; each case has its own seed, which a failure prints.
var zones = []string{"America/New_York", "Pacific/Auckland", "Asia/Kolkata", "America/Los_Angeles", "UTC"}

func randomCase(seed uint64, begin time.Time, practice *time.Location) oracleCase {
	r := rand.New(rand.NewPCG(seed, 7))
	zone, err := time.LoadLocation(zones[r.IntN(len(zones))])
	if err != nil {
		panic(err)
	}
	c := oracleCase{zone: zone, practice: practice, diagnosis: r.IntN(8) > 0, payer: r.IntN(2) == 0}
	assigned := begin.Add(time.Duration(r.IntN(60*24)) * time.Hour)
	c.held = append(c.held, [2]time.Time{assigned, {}})
	if r.IntN(3) == 0 { // swapped for another device, with a pause shorter than 90 days
		c.held[0][1] = assigned.AddDate(0, 0, 20+r.IntN(200))
		c.held = append(c.held, [2]time.Time{c.held[0][1].AddDate(0, 0, r.IntN(80)), {}})
	}
	if r.IntN(4) > 0 {
		c.educated = assigned.Add(time.Duration(r.IntN(72)) * time.Hour)
	}
	if r.IntN(6) > 0 {
		c.consent = begin.AddDate(0, 0, r.IntN(120)).Add(time.Duration(r.IntN(24)) * time.Hour)
		if r.IntN(5) == 0 {
			c.revoked = c.consent.AddDate(0, 0, r.IntN(300))
		}
	}
	if r.IntN(6) == 0 {
		c.archived = begin.AddDate(0, 2+r.IntN(10), r.IntN(28))
	}
	end, chance := begin.AddDate(0, 14, 0), 20+r.IntN(75)
	for at := begin; at.Before(end); at = at.Add(time.Duration(3+r.IntN(40)) * time.Hour) {
		if r.IntN(100) < chance {
			c.readings = append(c.readings, oracleReading{at: at, device: r.IntN(12) > 0})
			if r.IntN(5) == 0 { // a repeat on the same day or at the same time
				c.readings = append(c.readings, oracleReading{at: at.Add(time.Duration(r.IntN(3)) * time.Minute), device: r.IntN(2) == 0})
			}
		}
	}
	categories := []string{"interactive", "interactive", "interactive", "review", "interpretation", "care_management"}
	for at, pace := begin, 60+r.IntN(600); at.Before(end); at = at.Add(time.Duration(20+r.IntN(pace)) * time.Hour) {
		c.times = append(c.times, oracleTime{at.Add(time.Duration(r.IntN(3600)) * time.Second), 1 + r.IntN(2400), categories[r.IntN(len(categories))], "manual", r.IntN(25) > 0})
	}
	return c
}

// plant stores a case as ingestion, devices and users would.
func plant(t *testing.T, app core.App, n int, c oracleCase, user string) (patient string) {
	t.Helper()
	insert := func(table string, row dbx.Params) {
		if _, err := app.DB().Insert(table, row).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	stamp := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	patient = fmt.Sprintf("00000000-0000-7000-8000-%012d", n)
	row := dbx.Params{"id": patient, "mrn": "M" + strconv.Itoa(n), "active": c.archived.IsZero(), "archived_at": stamp(c.archived), "time_zone": c.zone.String(), "gender": "other"}
	if c.diagnosis {
		row["icd10_codes"] = `["I10"]`
	}
	if c.provided {
		row["primary_provider"] = user
	}
	if c.payer {
		row["insurance_payer"] = 1
	}
	insert("patients", row)
	if !c.consent.IsZero() {
		insert("consents", dbx.Params{"id": fmt.Sprintf("%015d", n), "patient": patient, "type": "rpm", "method": "written", "granted_at": stamp(c.consent), "revoked_at": stamp(c.revoked)})
	}
	for i, h := range c.held {
		device := fmt.Sprintf("D-%d-%d", n, i)
		done := ""
		if i == 0 {
			done = stamp(c.educated)
		}
		insert("devices", dbx.Params{"device_id": device, "status": "assigned", "patient": patient, "setup_completed_at": done})
		insert("device_assignments", dbx.Params{"device_id": device, "patient": patient, "assigned_at": stamp(h[0]), "unassigned_at": stamp(h[1])})
	}
	plantDays(t, app, patient, c)
	for i, e := range c.times {
		note, id := "", fmt.Sprintf("%015d", n*10000+i)
		if e.noted {
			var err error
			if note, err = collections.Seal("Talked", "time_entries.notes", id); err != nil {
				t.Fatal(err)
			}
		}
		insert("time_entries", dbx.Params{
			"id": id, "patient": patient, "user": user, "category": e.category, "source": e.source, "started_at": stamp(e.at),
			"ended_at": stamp(e.at.Add(time.Duration(e.seconds) * time.Second)), "duration_seconds": e.seconds, "notes": note,
		})
	}
	return patient
}

// plantDays stores the days with data of a case.
func plantDays(t *testing.T, app core.App, patient string, c oracleCase) {
	t.Helper()
	for _, r := range c.readings {
		counts := 0
		for _, h := range c.held {
			if r.counts() && !r.at.Before(h[0]) && (h[1].IsZero() || r.at.Before(h[1])) {
				counts = 1
			}
		}
		_, err := app.DB().NewQuery(`INSERT INTO reading_days (patient, day, observation_type, first_observation, readings, device_readings)
			VALUES ({:p}, {:d}, 'weight', 'x', 1, {:n}) ON CONFLICT DO UPDATE SET readings = readings + 1, device_readings = device_readings + {:n}`).
			Bind(dbx.Params{"p": patient, "d": r.at.In(c.zone).Format(oracleDay), "n": counts}).Execute()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func storedEntries(t *testing.T, app core.App, patient string) (lines []string) {
	t.Helper()
	var rows []struct {
		Code    string   `db:"cpt_code"`
		Start   string   `db:"billing_period_start"`
		End     string   `db:"billing_period_end"`
		Service string   `db:"service_date"`
		Units   int      `db:"units"`
		Minutes int      `db:"duration_minutes"`
		Cents   int      `db:"amount_cents"`
		Days    *float64 `db:"transmission_days"`
	}
	if err := app.DB().Select("*").From("billing_entries").Where(dbx.HashExp{"patient": patient}).All(&rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		days := -1
		if r.Days != nil {
			days = int(*r.Days)
		}
		lines = append(lines, fmt.Sprintln(r.Code, r.Start, r.End, r.Service, r.Units, r.Minutes, r.Cents, days))
	}
	return lines
}

// oraclePractice is a practice in New York with random patients over 14 months, without billing entries.
type oraclePractice struct {
	app        core.App
	zone       *time.Location
	begin, end time.Time
	cases      map[string]oracleCase // by patient
	engine     *billing.Engine
}

// plantPractice creates a practice; its random cases use consecutive seeds from the given one.
func plantPractice(t *testing.T, seed uint64, cases int) oraclePractice {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2025, 12, 3, 5, 0, 0, 0, time.UTC)
	p := oraclePractice{
		app: vigiltest.NewApp(t), zone: zone, begin: begin, end: begin.AddDate(0, 14, 0), cases: map[string]oracleCase{},
		engine: billing.New(billing.Settings{Zone: zone, Enable2026Codes: true, MaxUnits99458: 3, RequireConsent: true, EscalationTimeCap: time.Hour}),
	}
	user := vigiltest.User(t, p.app, "nurse")
	for _, statement := range []string{
		`INSERT INTO payers (id, name, payer_code, is_active) VALUES ('000000000000001', 'Acme', 'AC', TRUE)`,
		`INSERT INTO payer_rates (payer, cpt_code, rate_cents, effective_date) VALUES ('000000000000001', '99454', 5100, '2026-03-01')`,
	} {
		if _, err := p.app.DB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	err = p.app.RunInTransaction(func(tx core.App) error {
		for n := range cases {
			c := randomCase(seed+uint64(n), begin, zone)
			p.cases[plant(t, tx, n+1, c, user.Id)] = c
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p oraclePractice) run(t *testing.T, job billing.Job, at time.Time) billing.Result {
	t.Helper()
	result, err := p.engine.Run(t.Context(), p.app, job, audit.System(), func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The engine, run repeatedly at random times over 14 months, matches the oracle for random patients: 10,080 practice-months, or 840 with -short.
// VIGIL_ORACLE_CASES sets another number of patients.
func TestOracle(t *testing.T) {
	cases := vigiltest.Rounds(720, 120)
	if testing.Short() {
		cases = 60
	}
	if n, err := strconv.Atoi(os.Getenv("VIGIL_ORACLE_CASES")); err == nil {
		cases = n
	}
	p := plantPractice(t, 0, cases)
	dice := rand.New(rand.NewPCG(1, 2))
	for at := p.begin; at.Before(p.end); at = at.AddDate(0, 0, 1+dice.IntN(70)) {
		p.run(t, []billing.Job{billing.DeviceJob, billing.SmartJob, billing.AllJobs}[dice.IntN(3)], at)
	}
	p.run(t, billing.AllJobs, p.end)
	p.run(t, billing.SmartJob, p.end)
	for patient, c := range p.cases {
		want, got := oracleEntries(c, p.end), storedEntries(t, p.app, patient)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("patient %s:\noracle: %v\nengine: %v", patient, want, got)
		}
	}
	before := vigiltest.RowCounts(t, p.app)
	if again := p.run(t, billing.AllJobs, p.end); len(again.Created) != 0 {
		t.Errorf("a second run makes %v", again.Created)
	}
	added := vigiltest.RowsAdded(t, p.app, before)
	delete(added, "audit_log") // the run itself
	delete(added, "job_runs")
	if len(added) != 0 {
		t.Errorf("a second run adds %v", added)
	}
	if months, wrong, err := billing.RecountTotals(t.Context(), p.app); err != nil || wrong != 0 || months < 12 {
		t.Errorf("recounting %d months finds %d wrong: %v", months, wrong, err)
	}
}
