package billing_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

var newYork = func() *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		panic(err)
	}
	return zone
}()

func newEngine() *billing.Engine {
	return billing.New(billing.Settings{Zone: newYork, MaxUnits99458: 3, RequireConsent: true, EscalationTimeCap: time.Hour})
}

func TestEscalationTime(t *testing.T) {
	app := vigiltest.NewApp(t)
	engine := newEngine()
	user := vigiltest.User(t, app, "nurse")
	begin := time.Date(2026, 1, 5, 15, 0, 0, 0, time.UTC)
	patient := plant(t, app, 1, oracleCase{zone: newYork, practice: newYork}, user.Id)
	log := func(number int64, minutes *int, took time.Duration) {
		t.Helper()
		from := begin.Add(time.Duration(number) * 24 * time.Hour)
		err := app.RunInTransaction(func(tx core.App) error {
			resolved, err := collections.NewEscalation(tx)
			if err != nil {
				return err
			}
			resolved.Id = collections.NumberID(number)
			resolved.SetSubject(patient, "urgent", "", "", "")
			resolved.Assign(user.Email(), from)
			if minutes != nil {
				resolved.SetInteractionMinutes(*minutes)
			}
			return engine.LogEscalationTime(tx, resolved, "other.user@vigil.test", from.Add(took))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	entries := func() (lines []string) {
		list, _, err := collections.PageOfBillingEntries(app, collections.EntryFilter{PatientID: patient}, []string{"service_date", "id"}, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			if !slices.Contains(x.Warnings(), billing.AttestInteraction) || !slices.Contains(x.Warnings(), billing.MissingConsent) {
				t.Errorf("%s has the warnings %v", x.CPTCode(), x.Warnings())
			}
			lines = append(lines, x.CPTCode()+" "+x.Source()+" "+x.ServiceDate()+" "+string(rune('0'+x.Units())))
		}
		return lines
	}
	log(1, new(0), time.Hour) // no time
	log(2, new(15), time.Minute)
	if got := entries(); got != nil {
		t.Errorf("15 minutes made %v", got)
	}
	log(3, nil, 5*time.Hour) // capped at 60: 75 in all
	if got := entries(); !slices.Equal(got, []string{"99457 escalation 2026-01-08 1", "99458 escalation 2026-01-08 2"}) {
		t.Errorf("75 minutes made %v", got)
	}
	log(4, new(10), time.Hour) // 85: a third unit
	if got := entries(); !slices.Equal(got, []string{"99457 escalation 2026-01-08 1", "99458 escalation 2026-01-09 3"}) {
		t.Errorf("85 minutes made %v", got)
	}
	list, _, err := collections.PageOfBillingEntries(app, collections.EntryFilter{PatientID: patient}, []string{"service_date", "id"}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	if list[1].AmountCents() != 3*3849 || list[1].Minutes() != 60 {
		t.Errorf("three units come to %d cents and %d minutes", list[1].AmountCents(), list[1].Minutes())
	}
	now := begin.AddDate(0, 0, 20)
	if _, err := engine.ApplyTransition(app, list[0].Id, engine.Review(audit.System(), "", "", true, now), audit.System(), now); err == nil {
		t.Error("an entry without consent was approved")
	}
	if _, _, err := billing.RecountTotals(t.Context(), app); err != nil {
		t.Error(err)
	}
}

// Ten concurrent runs create each entry once: one holds the lock, the others are refused.
func TestConcurrentRuns(t *testing.T) {
	app := vigiltest.NewApp(t)
	user := vigiltest.User(t, app, "nurse")
	begin := time.Date(2025, 12, 3, 5, 0, 0, 0, time.UTC)
	for n := range 8 {
		plant(t, app, n+1, randomCase(uint64(n), begin, newYork), user.Id)
	}
	engine, now := newEngine(), begin.AddDate(0, 6, 0)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			_, _ = engine.Run(t.Context(), app, billing.AllJobs, audit.System(), func() time.Time { return now }) // most are refused
		})
	}
	group.Wait()
	result, err := engine.Run(t.Context(), app, billing.AllJobs, audit.System(), func() time.Time { return now })
	if err != nil || len(result.Created) != 0 {
		t.Errorf("one more run makes %v: %v", result.Created, err)
	}
	var doubles int
	err = app.DB().NewQuery(`SELECT COUNT(*) FROM (SELECT 1 FROM billing_entries GROUP BY patient, cpt_code, billing_period_start HAVING COUNT(*) > 1)`).Row(&doubles)
	if err != nil || doubles != 0 {
		t.Errorf("%d entries were made twice: %v", doubles, err)
	}
}

// The stored sums follow every change of an entry, and a recount finds differences.
func TestSumsAndRecount(t *testing.T) {
	app := vigiltest.NewApp(t)
	user := vigiltest.User(t, app, "nurse")
	begin := time.Date(2025, 12, 3, 5, 0, 0, 0, time.UTC)
	for n := range 10 {
		plant(t, app, n+1, randomCase(uint64(n), begin, newYork), user.Id)
	}
	now := begin.AddDate(0, 8, 0)
	if _, err := newEngine().Run(t.Context(), app, billing.AllJobs, audit.System(), func() time.Time { return now }); err != nil {
		t.Fatal(err)
	}
	for _, change := range []dbx.Params{
		{"lifecycle_status": "voided"},
		{"lifecycle_status": "paid", "payment_cents": 4000, "payment_date": "2026-06-20", "submitted_at": "2026-06-01T00:00:00.000000Z"},
		{"lifecycle_status": "denied", "denial_date": "2026-06-20", "submitted_at": "2026-06-01T00:00:00.000000Z", "service_date": "2026-02-28"},
	} {
		_, err := app.DB().Update("billing_entries", change, dbx.NewExp("id IN (SELECT id FROM billing_entries WHERE lifecycle_status = 'pending_review' LIMIT 5)")).Execute()
		if err != nil {
			t.Fatal(err)
		}
	}
	var all, units, cents, paid int64
	err := app.DB().NewQuery(`SELECT COUNT(*), SUM(units), SUM(amount_cents), SUM(COALESCE(payment_cents, 0)) FROM billing_entries
		WHERE lifecycle_status != 'voided' AND service_date BETWEEN '2026-01-10' AND '2026-05-20'`).Row(&all, &units, &cents, &paid)
	if err != nil {
		t.Fatal(err)
	}
	none := ""
	for name, f := range map[string]billing.TotalsFilter{"kept": {From: "2026-01-10", To: "2026-05-20"}, "by provider": {From: "2026-01-10", To: "2026-05-20", Provider: &none}} {
		for _, by := range [][]billing.Dimension{nil, {billing.ByMonth}, {billing.ByDay, billing.ByStatus}, {billing.ByCode, billing.ByPayer}} {
			sums, err := billing.LoadTotals(app, f, by...)
			if err != nil {
				t.Fatal(err)
			}
			total := billing.Totals{}
			for _, s := range sums {
				total.Claims, total.Units, total.Amount, total.Collected = total.Claims+s.Claims, total.Units+s.Units, total.Amount+s.Amount, total.Collected+s.Collected
			}
			if int64(total.Claims) != all || int64(total.Units) != units || int64(total.Amount) != cents || int64(total.Collected) != paid {
				t.Errorf("%s by %v: %+v, want %d claims, %d units, %d and %d cents", name, by, total, all, units, cents, paid)
			}
		}
	}
	if months, wrong, err := billing.RecountTotals(t.Context(), app); err != nil || wrong != 0 || months == 0 {
		t.Errorf("%d of %d months are wrong: %v", wrong, months, err)
	}
	if _, err := app.DB().NewQuery("UPDATE billing_months SET amount_cents = amount_cents + 1 WHERE month = '2026-03'").Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if _, wrong, err := billing.RecountTotals(t.Context(), app); err != nil || wrong != want {
			t.Errorf("%d months are wrong, want %d: %v", wrong, want, err)
		}
	}
}
