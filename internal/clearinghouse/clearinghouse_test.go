package clearinghouse_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/claims"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// practice is a practice with many patients and a clearinghouse.
type practice struct {
	testing.TB
	app    core.App
	engine *billing.Engine
	house  clearinghouse.Engine
	by     audit.Actor
	now    time.Time

	talked int    // minutes of calls with each patient
	second *int64 // the second payer of every other patient
}

func newPractice(t testing.TB) *practice {
	p := &practice{TB: t, app: vigiltest.NewApp(t), by: audit.System(), now: vigiltest.Clock, talked: 20}
	p.engine = billing.New(billing.Settings{Zone: time.UTC, MaxUnits99458: 3, RequireConsent: true, LiveContactFrom: "2026-01-01", Claims: claims.Loader{
		Practice: claims.Practice{
			Name: "ELM STREET CLINIC", NPI: "1234567893", TaxID: "123456789", Taxonomy: "207Q00000X", Address: "1 ELM ST", City: "ALBANY", State: "NY", Zip: "122071234",
			Phone: "5185550100",
		},
		Submitter: claims.Submitter{ID: "SUB1", Contact: "BILLING", ReceiverID: "HOUSE1", ReceiverName: "CLEARING HOUSE", Usage: "T", PlaceOfService: "11"},
	}})
	p.house = clearinghouse.Engine{Billing: p.engine}
	return p
}

func (p *practice) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// crowd enrolls patients with complete claim data and twenty minutes of calls each, bills the month, and reviews the entries.
func (p *practice) crowd(n int) (entries []string) {
	p.Helper()
	provider := vigiltest.User(p.TB, p.app, authz.Provider)
	provider.Set(collections.UserNPI, "1245319599")
	provider.Set(collections.UserTaxonomy, "207R00000X")
	p.must(p.app.Save(provider))
	insurer, _, err := collections.AddPayer(p.app, collections.Payer{Name: "Acme", Code: "AC", Active: true, EDI: "60054", Filing: "CI"}, p.now)
	p.must(err)
	nurses := []string{vigiltest.User(p.TB, p.app, authz.Nurse).Id, vigiltest.User(p.TB, p.app, authz.Nurse).Id, vigiltest.User(p.TB, p.app, authz.Nurse).Id, vigiltest.User(p.TB, p.app, authz.Nurse).Id}
	address, err := (&phi.Address{Line1: "1 Main St", City: "Troy", State: "NY", Zip: "12180", Country: "US"}).Plaintext()
	p.must(err)
	p.must(p.app.RunInTransaction(func(tx core.App) error {
		for i := range n {
			if err := p.person(tx, i, provider.Id, nurses[i%len(nurses)], insurer.Number(), address); err != nil {
				return err
			}
		}
		return nil
	}))
	_, err = p.engine.Run(context.Background(), p.app, billing.TimeJob, p.by, func() time.Time { return p.now })
	p.must(err)
	p.must(p.app.DB().NewQuery("SELECT id FROM billing_entries ORDER BY claim_id").Column(&entries))
	for _, id := range entries {
		_, err := p.engine.ApplyTransition(p.app, id, p.engine.Review(p.by, "", "", false, p.now), p.by, p.now)
		p.must(err)
	}
	return entries
}

func (p *practice) person(tx core.App, i int, provider, nurse string, insurer int64, address string) error {
	patient, err := collections.NewPatient(tx)
	if err != nil {
		return err
	}
	patient.Load(map[string]any{
		"first_name": "Ada", "last_name": fmt.Sprintf("King%d", i), "date_of_birth": "1955-12-10", "gender": "female", "mrn": fmt.Sprint("M", i), "active": true,
		"address": address, "primary_provider": provider, "insurance_payer": insurer, "insurance_member_id": fmt.Sprintf("W%06d", i), "icd10_codes": []string{"I10"},
		"time_zone": "UTC", "created_at": collections.FormatInstant(p.now),
	})
	if p.second != nil && i%2 == 0 {
		details, err := (&phi.Coverage{Secondary: &phi.Coverage{Payer: *p.second, MemberID: "S7"}}).Plaintext()
		if err != nil {
			return err
		}
		patient.Set(collections.PatientInsuranceDetails, details)
	}
	if err := tx.Save(patient); err != nil {
		return err
	}
	note, err := collections.Seal("Talked", "time_entries.notes", fmt.Sprintf("%015d", i+1))
	if err != nil {
		return err
	}
	talked := time.Duration(p.talked) * time.Minute
	began := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC).Add(time.Duration(i/4) * talked)
	for table, row := range map[string]dbx.Params{
		"consents": {"id": fmt.Sprintf("%015d", i+1), "patient": patient.Id, "type": "rpm", "method": "written", "granted_at": "2025-11-01T12:00:00.000000Z"},
		"time_entries": {
			"id": fmt.Sprintf("%015d", i+1), "patient": patient.Id, "user": nurse, "category": "interactive", "contact_method": "phone", "source": "manual",
			"started_at": collections.FormatInstant(began), "ended_at": collections.FormatInstant(began.Add(talked)), "duration_seconds": talked.Seconds(), "notes": note,
		},
	} {
		if _, err := tx.DB().Insert(table, row).Execute(); err != nil {
			return err
		}
	}
	return nil
}

// states counts entries and their charges by state.
func (p *practice) states() (list string) {
	p.Helper()
	p.must(p.app.DB().NewQuery(`SELECT group_concat(line, ' ') FROM (SELECT lifecycle_status || ':' || COUNT(*) || ':' || SUM(paid_total_cents) || ':' || SUM(adjusted_cents)
		|| ':' || SUM(patient_responsibility_cents) AS line FROM billing_entries GROUP BY lifecycle_status ORDER BY lifecycle_status)`).Row(&list))
	return list
}

// A third-party reader accepts a file of a thousand claims, and a day's responses bring every line to its final state; importing them twice changes
// nothing more.
func TestThousandClaimsThereAndBack(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	claims := vigiltest.Rounds(1000, 250)
	entries := p.crowd(claims)
	if len(entries) != claims {
		t.Fatalf("billed %d", len(entries))
	}
	batch, err := p.house.SendBatch(p.app, entries, p.by, p.now)
	p.must(err)
	sealed, err := collections.BatchFile(p.app, batch.ID)
	p.must(err)
	file := []byte(sealed.Reveal())
	sent, err := payer.Read837P(file)
	p.must(err)
	if batch.Claims != claims || len(sent.Claims) != claims {
		t.Fatalf("%d claims in the batch, %d in the file", batch.Claims, len(sent.Claims))
	}
	house := &payer.Payer{ID: "HOUSE1", Name: "CLEARING HOUSE", At: p.now}
	r, refusals, decisions := rand.New(rand.NewPCG(19, 1000)), map[string]payer.Rejection{}, map[string]payer.Decision{}
	for _, c := range sent.Claims {
		switch n := r.IntN(20); {
		case n == 0:
			refusals[c.ControlNumber], decisions[c.ControlNumber] = payer.Rejection{Category: "A7", Code: "562"}, payer.NoDecision()
		case n == 1:
			decisions[c.ControlNumber] = payer.Deny("CO", "50", "N130")
		case n < 8:
			decisions[c.ControlNumber] = payer.Partly(900, 500, 300)
		}
	}
	for _, answer := range [][]byte{house.Write999(sent), house.Write277CA(sent, refusals), house.Write835(sent, decisions)} {
		done, err := p.house.Import(p.app, answer, p.by, p.now)
		p.must(err)
		if len(done.Response.Unmatched()) != 0 || done.Repeated {
			t.Fatalf("%s left %v for a person", done.Response.Type(), done.Response.Unmatched())
		}
		after := p.states()
		again, err := p.house.Import(p.app, answer, p.by, p.now.Add(time.Hour))
		p.must(err)
		dressed, err := p.house.Import(p.app, append(answer, '\n'), p.by, p.now.Add(time.Hour))
		p.must(err)
		if now := p.states(); !again.Repeated || dressed.Repeated || now != after {
			t.Fatalf("%s came again: %v, %s, then %s", done.Response.Type(), again.Repeated, after, now)
		}
	}
	denied, partly := 0, 0
	for control := range decisions {
		if _, refused := refusals[control]; !refused {
			partly++
		}
	}
	p.must(p.app.DB().NewQuery("SELECT COUNT(*) FROM billing_entries WHERE lifecycle_status = 'denied'").Row(&denied))
	partly -= denied
	charge := int(batch.ChargeCents) / claims
	want := fmt.Sprintf("denied:%d:0:%d:0 paid:%d:%d:%d:%d reviewed:%d:0:0:0", denied, denied*charge, claims-denied-len(refusals),
		(claims-denied-len(refusals))*charge-partly*1700, partly*900, partly*800, len(refusals))
	if got := p.states(); got != want {
		t.Errorf("the lines came to %s, want %s", got, want)
	}
	if found := payer.Pyx12.Read(t, file); !found.OK || len(found.Errors) > 0 {
		t.Errorf("pyx12: %q", found.Errors)
	}
}

// An import reads what waits of a payer's other payments once, for any number of reversals in its payments.
func TestReversalsReadWaitingItemsOnce(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	batch, err := p.house.SendBatch(p.app, p.crowd(6), p.by, p.now)
	p.must(err)
	sealed, err := collections.BatchFile(p.app, batch.ID)
	p.must(err)
	sent, err := payer.Read837P([]byte(sealed.Reveal()))
	p.must(err)
	house := &payer.Payer{ID: "HOUSE1", Name: "CLEARING HOUSE", At: p.now}
	paid, reversed := map[string]payer.Decision{}, map[string]payer.Decision{}
	for _, c := range sent.Claims {
		paid[c.ControlNumber] = payer.Partly(900, 500, 300)
		reversed[c.ControlNumber] = payer.Reverse(paid[c.ControlNumber])
	}
	first, second := house.Write835(sent, paid), house.Write835(sent, reversed)
	_, err = p.house.Import(p.app, first, p.by, p.now)
	p.must(err)
	reads := 0
	db := p.app.ConcurrentDB().(*dbx.DB)
	db.QueryLogFunc = func(_ context.Context, _ time.Duration, query string, _ *sql.Rows, _ error) {
		if strings.Contains(query, "FROM `remittances` WHERE (`payer`=") {
			reads++
		}
	}
	done, err := p.house.Import(p.app, second, p.by, p.now)
	db.QueryLogFunc = nil
	if err != nil || done.Applied != len(sent.Claims) || reads != 1 {
		t.Errorf("%d lines of %d claims, %d reads (%v)", done.Applied, len(sent.Claims), reads, err)
	}
}
