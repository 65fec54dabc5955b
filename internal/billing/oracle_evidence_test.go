package billing_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// origins are the sources of readings, including those stored before the origin was recorded.
var origins = []string{"device", "device", "device", "machine", "import", "staff", "patient"}

// bring stores the readings of a case with their origins, and lets the days with data be counted from them.
func (p oraclePractice) bring(t *testing.T, patient string, c *oracleCase, dice *rand.Rand) {
	t.Helper()
	err := p.app.RunInTransaction(func(tx core.App) error {
		if _, err := tx.DB().NewQuery("DELETE FROM reading_days WHERE patient = {:p}").Bind(dbx.Params{"p": patient}).Execute(); err != nil {
			return err
		}
		number, err := strconv.Atoi(patient[len(patient)-12:])
		if err != nil {
			return err
		}
		for i := range c.readings {
			r := &c.readings[i]
			r.origin, r.withdrawn = origins[dice.IntN(len(origins))], dice.IntN(10) == 0
			status, device := "final", ""
			if r.withdrawn {
				status = "entered_in_error"
			}
			if r.device {
				device = deviceAt(number, *c, r.at)
			}
			id := fmt.Sprintf("20000000-0000-7000-%04d-%012d", number, i)
			_, err := tx.DB().Insert("observations", dbx.Params{
				"id": id, "patient": patient, "observation_type": "weight", "measured_at": r.at.UTC().Format("2006-01-02T15:04:05.000000Z"), "device_id": device,
				"source": "api", "origin": r.origin, "weight_kg": 80, "status": status, "reading_key": id, "created_at": r.at.UTC().Format("2006-01-02T15:04:05.000000Z"),
			}).Execute()
			if err != nil {
				return err
			}
		}
		return ingest.RecountDays(tx, patient, collections.ZonesOf("", nil, c.zone), time.Time{})
	})
	if err != nil {
		t.Fatal(err)
	}
	p.cases[patient] = *c
}

// deviceAt returns the device of a case that is held at a time, else the last one.
func deviceAt(number int, c oracleCase, at time.Time) string {
	for i, h := range c.held {
		if !at.Before(h[0]) && (h[1].IsZero() || at.Before(h[1])) {
			return fmt.Sprintf("D-%d-%d", number, i)
		}
	}
	return fmt.Sprintf("D-%d-%d", number, len(c.held)-1)
}

// For any origin and any retraction of readings, the engine matches the oracle; and a submitted entry is marked exactly if retracted readings, an
// earlier return of the device or shorter time no longer support it.
func TestOracleOfOrigins(t *testing.T) {
	runOracleOfOrigins(t, 31)
}

func runOracleOfOrigins(t *testing.T, seed uint64) {
	t.Helper()
	p := plantPractice(t, 1000*seed, vigiltest.Rounds(24, 16))
	dice := rand.New(rand.NewPCG(5, seed))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	for _, patient := range slices.Sorted(maps.Keys(p.cases)) {
		c := p.cases[patient]
		p.bring(t, patient, &c, dice)
	}
	for at := p.begin; at.Before(p.end); at = at.AddDate(0, 0, 20+dice.IntN(40)) {
		p.run(t, billing.AllJobs, at)
	}
	p.run(t, billing.AllJobs, p.end)
	for _, patient := range slices.Sorted(maps.Keys(p.cases)) {
		want, got := oracleEntries(p.cases[patient], p.end), storedEntries(t, p.app, patient)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("patient %s:\noracle: %v\nengine: %v", patient, want, got)
		}
	}
	p.changeAfterSending(t, dice)
}

// sentLine is a line sent to a payer.
type sentLine struct {
	ID      string `db:"id"`
	Patient string `db:"patient"`
	Code    string `db:"cpt_code"`
	Start   string `db:"billing_period_start"`
	End     string `db:"billing_period_end"`
	Units   int    `db:"units"`
	Changed bool   `db:"changed"`
}

// changeAfterSending submits all entries, changes their evidence, and compares the marks with the rules.
func (p oraclePractice) changeAfterSending(t *testing.T, dice *rand.Rand) {
	t.Helper()
	if _, err := p.app.DB().NewQuery("UPDATE patients SET primary_provider = (SELECT id FROM users LIMIT 1)").Execute(); err != nil {
		t.Fatal(err)
	}
	by := audit.User(9, "biller@vigil.test", "data_monitor", audit.Origin{})
	list := func() (lines []sentLine) {
		err := p.app.DB().NewQuery(`SELECT id, patient, cpt_code, billing_period_start, billing_period_end, CAST(units AS INTEGER) AS units, evidence_changed_at != '' AS changed
			FROM billing_entries WHERE lifecycle_status IN ('pending_review', 'submitted') AND cpt_code != '99453' ORDER BY cpt_code, patient, billing_period_start`).All(&lines)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	sent := map[string]bool{}
	for _, x := range list() { // 99457 before its add-on 99458
		if _, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.Review(by, "", "", false, p.end), by, p.end); err != nil {
			continue
		}
		if _, err := p.engine.ApplyTransition(p.app, x.ID, p.engine.Submit("", p.end, p.end), by, p.end); err != nil {
			t.Fatal(x, err)
		}
		sent[x.ID] = true
	}
	for _, patient := range slices.Sorted(maps.Keys(p.cases)) {
		p.cases[patient] = p.change(t, patient, p.cases[patient], dice)
	}
	if _, _, err := p.engine.RecheckAll(t.Context(), p.app, p.end); err != nil {
		t.Fatal(err)
	}
	marked := map[string]int{}
	for _, x := range list() {
		if !sent[x.ID] {
			continue
		}
		if holds := p.isSupported(x); x.Changed == holds {
			t.Errorf("sent %+v, and the rules say %t", x, holds)
		}
		if x.Changed {
			marked[x.Code]++
		}
	}
	for _, code := range []string{"99454", "99445", "99457", "99458"} {
		if marked[code] == 0 {
			t.Errorf("of %s none was marked", code)
		}
	}
	if n := marked["99454"] + marked["99445"] + marked["99457"] + marked["99458"]; n == len(sent) {
		t.Error("all were marked")
	}
}

// change retracts some readings, ends the first assignment earlier, and halves some time.
func (p oraclePractice) change(t *testing.T, patient string, c oracleCase, dice *rand.Rand) oracleCase {
	t.Helper()
	number, _ := strconv.Atoi(patient[len(patient)-12:])
	exec := func(statement string, params dbx.Params) {
		if _, err := p.app.DB().NewQuery(statement).Bind(params).Execute(); err != nil {
			t.Fatal(err)
		}
	}
	c.readings, c.times, c.held = slices.Clone(c.readings), slices.Clone(c.times), slices.Clone(c.held)
	for i := range c.readings {
		if dice.IntN(5) == 0 {
			c.readings[i].withdrawn = true
			exec("UPDATE observations SET status = 'entered_in_error' WHERE id = {:id}", dbx.Params{"id": fmt.Sprintf("20000000-0000-7000-%04d-%012d", number, i)})
		}
	}
	if dice.IntN(2) == 0 {
		last := len(c.held) - 1
		c.held[last][1] = c.held[last][0].AddDate(0, 0, 40+dice.IntN(100))
		exec("UPDATE device_assignments SET unassigned_at = {:at} WHERE device_id = {:device}", dbx.Params{
			"at": c.held[last][1].UTC().Format("2006-01-02T15:04:05.000000Z"), "device": fmt.Sprintf("D-%d-%d", number, last),
		})
	}
	for i := range c.times {
		if dice.IntN(6) == 0 {
			e := &c.times[i]
			e.seconds /= 2
			exec("UPDATE time_entries SET duration_seconds = {:s}, ended_at = {:end} WHERE id = {:id}", dbx.Params{
				"s": e.seconds, "end": e.at.Add(time.Duration(e.seconds) * time.Second).UTC().Format("2006-01-02T15:04:05.000000Z"), "id": fmt.Sprintf("%015d", number*10000+i),
			})
		}
	}
	if err := p.app.RunInTransaction(func(tx core.App) error {
		return ingest.RecountDays(tx, patient, collections.ZonesOf("", nil, c.zone), time.Time{})
	}); err != nil {
		t.Fatal(err)
	}
	return c
}

// isSupported computes from the rules alone whether a submitted entry is still supported.
func (p oraclePractice) isSupported(x sentLine) bool {
	c := p.cases[x.Patient]
	switch x.Code {
	case "99454":
		return stillEarned(c, x.Start, x.End, 16)
	case "99445":
		return stillEarned(c, x.Start, x.End, 2)
	}
	seconds := 0
	for _, e := range c.times {
		day := e.at.In(c.practice).Format(oracleDay)
		consented := c.consent.In(c.practice).Format(oracleDay) <= day && (c.revoked.IsZero() || day <= c.revoked.In(c.practice).Format(oracleDay))
		active := c.archived.IsZero() || day <= c.archived.In(c.practice).Format(oracleDay)
		if e.category == "interactive" && day >= x.Start && day <= x.End && consented && active {
			seconds += e.seconds
		}
	}
	needed := map[string]int{"99470": 10, "99457": 20, "99458": 20 + 20*x.Units}[x.Code]
	return seconds/60 >= needed
}
