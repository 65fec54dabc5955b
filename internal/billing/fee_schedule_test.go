package billing_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
)

// Every shipped list can be imported, has a source for each figure, and states that it must be checked.
func TestShippedFees(t *testing.T) {
	years := billing.BundledFeeYears()
	if len(years) == 0 {
		t.Fatal("no list is shipped")
	}
	for _, year := range years {
		file, known := billing.BundledFees(year)
		fees, err := billing.ParseFees(file)
		if !known || err != nil || len(fees) == 0 {
			t.Fatalf("%s: %d fees (%v)", year, len(fees), err)
		}
		for _, fee := range fees {
			if !strings.HasPrefix(fee.Source, "Secondary source, check: ") || fee.ChargeCents != nil || fee.ExpectedCents == nil || fee.Locality != "" || fee.EffectiveDate != year+"-01-01" {
				t.Errorf("%s: %+v", year, fee)
			}
		}
	}
	if _, known := billing.BundledFees("../fees"); known {
		t.Error("a list that is none")
	}
}

// For each figure, the practice's locality precedes the national rate, and the latest day precedes earlier ones.
func TestLocalityFees(t *testing.T) {
	d := newFixture(t, func(s *billing.Settings) { s.Locality = "05" })
	list := "\ufeffsource,expected,charge,effective_date,locality,cpt_code\r\n" +
		"N,41.00,80,2025-01-01,,99457\r\nN,42.00,,2026-01-01,,99457\r\nL,,95.5,2025-06-01,05,99457\r\nX,1,1,2026-01-02,06,99457\r\nF,9,9,2026-02-01,05,99457\r\n"
	if _, err := billing.ImportFees(d.app, []byte(list), audit.System(), changesTime); err != nil {
		t.Fatal(err)
	}
	entry := d.made(d.patient(), billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	if entry.AmountCents() != 4200 || entry.ChargeCents() != 9550 {
		t.Errorf("expected %d, charged %d", entry.AmountCents(), entry.ChargeCents())
	}
	// The engine charges its entries the same way, unit by unit, also when units are added.
	patient := d.patient(talked("2026-01-10 10:00", 45))
	if _, err := billing.ImportFees(d.app, []byte("cpt_code,locality,effective_date,charge,expected,source\n99458,,2026-01-01,70,40,N\n"), audit.System(), changesTime); err != nil {
		t.Fatal(err)
	}
	d.run(billing.TimeJob, "2026-01-12 03:00")
	if next := d.entry(patient, billing.NextTwenty); next.ChargeCents() != 7000 || next.AmountCents() != 4000 {
		t.Errorf("expected %d, charged %d", next.AmountCents(), next.ChargeCents())
	}
}

// The import of a long list lets others write in between, and the next import completes an interrupted one.
func TestLongFeeList(t *testing.T) {
	d := newFixture(t)
	var list strings.Builder
	list.WriteString("cpt_code,locality,effective_date,charge,expected,source\n")
	for i := range 450 {
		fmt.Fprintf(&list, "99454,%d,2026-01-01,%d.50,40,Practice\n", i, 50+i%40)
	}
	file := []byte(list.String())
	parts := map[int]bool{}
	d.app.OnModelAfterCreateSuccess("fee_schedule").BindFunc(func(e *core.ModelEvent) error { // its transaction has ended
		parts[d.fees()] = true
		return e.Next()
	})
	first, err := billing.ImportFees(d.app, file, d.by, changesTime)
	if err != nil || first != (billing.FeeImport{Rows: 450, Created: 450}) || d.fees() != 450 {
		t.Fatalf("took in %+v, %v", first, err)
	}
	if !parts[200] || !parts[400] || !parts[450] || len(parts) != 3 {
		t.Errorf("others could write when there were %v", parts)
	}
	d.exec("DELETE FROM fee_schedule WHERE CAST(locality AS INTEGER) >= 200", nil) // as after an interruption
	again, err := billing.ImportFees(d.app, file, d.by, changesTime)
	if err != nil || again != (billing.FeeImport{Rows: 450, Created: 250, Unchanged: 200}) || d.fees() != 450 {
		t.Errorf("took in %+v, %v", again, err)
	}
	if _, err := billing.ImportFees(d.app, append(file, "99454,x,2026-13-01,1,1,P\n"...), d.by, changesTime); err == nil || d.fees() != 450 {
		t.Errorf("a wrong row was taken in: %v", err)
	}
}

func (d *fixture) fees() (n int) {
	d.t.Helper()
	if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM fee_schedule").Row(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// A fee written directly to the database is validated like an imported one.
func TestCheckFee(t *testing.T) {
	good := collections.Fee{CPTCode: "99454", EffectiveDate: "2026-01-01", ChargeCents: new(int64(9500))}
	if problem := billing.CheckFee(good); problem != "" {
		t.Error(problem)
	}
	for name, change := range map[string]func(*collections.Fee){
		"code": func(f *collections.Fee) { f.CPTCode = "12345" }, "day": func(f *collections.Fee) { f.EffectiveDate = "2026-02-30" },
		"negative": func(f *collections.Fee) { f.ExpectedCents = new(int64(-1)) }, "too much": func(f *collections.Fee) { f.ChargeCents = new(int64(100_000_001)) },
	} {
		fee := good
		if change(&fee); billing.CheckFee(fee) == "" {
			t.Errorf("%s was taken", name)
		}
	}
}

// An empty status is that of a list without the column: final.
func TestEmptyFeeStatus(t *testing.T) {
	fees, err := billing.ParseFees([]byte("cpt_code,locality,effective_date,charge,expected,source,status\n99457,,2026-01-01,,48,CMS,\n99458,,2026-01-01,,38,CMS,proposed\n"))
	if err != nil || len(fees) != 2 || fees[0].Status != "final" || fees[1].Status != "proposed" {
		t.Errorf("read %+v (%v)", fees, err)
	}
}
