package billing_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
)

// sent stores a submitted entry with a charge.
func (d *fixture) sent(charge int64) *collections.BillingEntry {
	d.t.Helper()
	entry := d.made(d.patient(), billing.FirstTwenty, "2026-01-14", 20, "2026-01-15 09:00")
	d.exec("UPDATE billing_entries SET charge_cents = {:c}, lifecycle_status = 'submitted', submitted_at = '2026-01-20T12:00:00.000000Z' WHERE id = {:id}",
		dbx.Params{"c": charge, "id": entry.Id})
	return d.found(entry.Id)
}

func (d *fixture) found(id string) *collections.BillingEntry {
	d.t.Helper()
	entry, err := collections.FindBillingEntry(d.app, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return entry
}

func (d *fixture) remitted(entry *collections.BillingEntry, r billing.Remittance) (*collections.BillingEntry, bool) {
	d.t.Helper()
	after, repeated, err := d.e.ApplyRemittance(d.app, entry.Id, r, d.by, changesTime)
	if err != nil {
		d.t.Fatalf("%+v: %v", r, err)
	}
	return after, repeated
}

func (d *fixture) amounts(entry *collections.BillingEntry, state string, paid, adjusted, share, open int64) {
	d.t.Helper()
	got := d.found(entry.Id)
	if got.Status() != state || got.PaidTotalCents() != paid || got.AdjustedCents() != adjusted || got.PatientShareCents() != share || got.OpenCents() != open {
		d.t.Errorf("%s: paid %d, adjusted %d, patient %d, open %d; want %s: %d, %d, %d, %d", got.Status(), got.PaidTotalCents(), got.AdjustedCents(),
			got.PatientShareCents(), got.OpenCents(), state, paid, adjusted, share, open)
	}
}

func reason(group, carc string, cents int64, rarc ...string) collections.Adjustment {
	return collections.Adjustment{Group: group, CARC: carc, RARC: rarc, AmountCents: cents}
}

// Payments are booked once: the first payer's, the second payer's for the patient's share, and reversals.
func TestRemittances(t *testing.T) {
	d := newFixture(t)
	line := d.sent(10000)
	first := billing.Remittance{
		Key: "835-1/1", Kind: billing.RemittedPayment, Paid: 6000, Date: "2026-02-01", Reference: "EFT-1", PayerControlNumber: "ICN-1",
		Adjustments: []collections.Adjustment{reason("CO", "45", 2500, "N130"), reason("PR", "2", 1500)},
	}
	d.remitted(line, first)
	d.amounts(line, billing.Paid, 6000, 2500, 1500, 0)
	if _, repeated := d.remitted(line, first); !repeated {
		t.Error("the same remittance had a second effect")
	}
	d.amounts(line, billing.Paid, 6000, 2500, 1500, 0)
	if got := d.found(line.Id); got.PayerControlNumber() != "ICN-1" || len(got.Adjustments()) != 2 || got.PaymentReference() != "EFT-1" {
		t.Errorf("the line has %s, %v, %s", got.PayerControlNumber(), got.Adjustments(), got.PaymentReference())
	}
	d.remitted(line, billing.Remittance{Key: "835-s/0", Kind: billing.RemittedDenial, Secondary: true, Date: "2026-02-09", DenialCode: "CO-29"})
	d.amounts(line, billing.Paid, 6000, 2500, 1500, 0)
	d.remitted(line, billing.Remittance{
		Key: "835-s/1", Kind: billing.RemittedPayment, Secondary: true, Paid: 1000, Date: "2026-02-10", Reference: "EFT-S",
		Adjustments: []collections.Adjustment{reason("OA", "23", 8500), reason("CO", "45", 200), reason("PR", "3", 300)},
	})
	d.amounts(line, billing.Paid, 7000, 2700, 300, 0)

	// Reversal, then the correction.
	lone := d.sent(10000)
	d.remitted(lone, billing.Remittance{Key: "835-2/1", Kind: billing.RemittedPayment, Paid: 8000, Date: "2026-02-01", Reference: "E", Adjustments: []collections.Adjustment{reason("CO", "45", 2000)}})
	d.remitted(lone, billing.Remittance{Key: "835-3/1", Kind: billing.RemittedReversal, Paid: 8000, Date: "2026-02-20", Reference: "E", Adjustments: []collections.Adjustment{reason("CO", "45", 2000)}})
	d.amounts(lone, billing.Submitted, 0, 0, 0, 10000)
	if got := d.found(lone.Id); got.PaymentDate() != "" || got.PaymentCents() != nil {
		t.Errorf("a payment of %v on %s is left", got.PaymentCents(), got.PaymentDate())
	}
	d.remitted(lone, billing.Remittance{Key: "835-3/2", Kind: billing.RemittedPayment, Paid: 7500, Date: "2026-02-20", Reference: "E", Adjustments: []collections.Adjustment{reason("CO", "45", 2500)}})
	d.amounts(lone, billing.Paid, 7500, 2500, 0, 0)
	if _, _, err := d.e.ApplyRemittance(d.app, lone.Id, billing.Remittance{Key: "835-4/1", Kind: billing.RemittedReversal, Paid: 7501}, d.by, changesTime); err == nil {
		t.Error("more was reversed than was paid")
	}
	d.amounts(lone, billing.Paid, 7500, 2500, 0, 0)

	// Of two payments one is reversed, without its remarks, and with an increase among its adjustments: exactly its booking is reversed.
	twice := d.sent(10000)
	d.remitted(twice, billing.Remittance{
		Key: "835-9/1", Kind: billing.RemittedPayment, Paid: 3000, Date: "2026-02-01", Reference: "E",
		Adjustments: []collections.Adjustment{reason("CO", "45", 2500, "N130"), reason("CO", "94", -500)},
	})
	d.remitted(twice, billing.Remittance{Key: "835-9/2", Kind: billing.RemittedPayment, Paid: 5000, Date: "2026-02-01", Reference: "E"})
	d.amounts(twice, billing.Paid, 8000, 2000, 0, 0)
	d.remitted(twice, billing.Remittance{
		Key: "835-9/3", Kind: billing.RemittedReversal, Paid: 3000, Date: "2026-02-20", Reference: "E",
		Adjustments: []collections.Adjustment{reason("CO", "45", 2500), reason("CO", "94", -500), reason("PR", "1", 700)},
	})
	d.amounts(twice, billing.Paid, 5000, 0, 0, 5000)
	if left := d.found(twice.Id).Adjustments(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}

	// A patient's payment does not decide a claim: the payer's correction is booked in any case.
	for _, correction := range []billing.Remittance{
		{Key: "835-c/1", Kind: billing.RemittedPayment, Paid: 7000, Date: "2026-02-20", Reference: "E", Adjustments: []collections.Adjustment{reason("PR", "2", 3000)}},
		{Key: "835-c/2", Kind: billing.RemittedDenial, Date: "2026-02-20", Reference: "E", Adjustments: []collections.Adjustment{reason("CO", "50", 10000)}},
	} {
		shared := d.sent(10000)
		d.remitted(shared, billing.Remittance{Key: "835-p" + shared.Id, Kind: billing.RemittedPayment, Paid: 8000, Date: "2026-02-01", Reference: "E", Adjustments: []collections.Adjustment{reason("PR", "2", 2000)}})
		if _, refused := d.do(shared, d.e.Pay(billing.PaymentDraft{Amount: 2000, Date: "2026-02-10", Reference: "C", Payer: collections.PatientPays}, d.by, changesTime)); refused != "" {
			t.Fatal(refused)
		}
		d.amounts(shared, billing.Paid, 10000, 0, 0, 0)
		d.remitted(shared, billing.Remittance{Key: "835-r" + shared.Id, Kind: billing.RemittedReversal, Paid: 8000, Date: "2026-02-20", Reference: "E", Adjustments: []collections.Adjustment{reason("PR", "2", 2000)}})
		d.amounts(shared, billing.Submitted, 2000, 0, 0, 8000)
		d.remitted(shared, correction)
		if correction.Kind == billing.RemittedPayment {
			d.amounts(shared, billing.Paid, 9000, 0, 1000, 0)
		} else {
			d.amounts(shared, billing.Denied, 2000, 10000, 0, -2000)
		}
	}

	// A denial covers the whole charge until it is disputed.
	denied := d.sent(5000)
	d.remitted(denied, billing.Remittance{Key: "835-5/1", Kind: billing.RemittedDenial, Date: "2026-02-01", Adjustments: []collections.Adjustment{reason("CO", "50", 5000, "N115")}})
	d.amounts(denied, billing.Denied, 0, 5000, 0, 0)
	if got := d.found(denied.Id); got.DenialCode() != "CO-50" || got.Adjustments()[0].RARC[0] != "N115" {
		t.Errorf("denied for %s, %v", got.DenialCode(), got.Adjustments())
	}
	if _, refused := d.do(denied, d.e.Appeal("It is covered", "A", "2026-02-02")); refused != "" {
		t.Fatal(refused)
	}
	d.amounts(denied, billing.Appealed, 0, 0, 0, 5000)

	// A payment for a claim with a requested void is owed back, and the payer may recover it.
	void := d.sent(5000)
	if _, refused := d.do(void, d.e.RequestVoid(billing.VoidRequest{Reason: "Wrong"}, d.by, changesTime)); refused != "" {
		t.Fatal(refused)
	}
	d.remitted(void, billing.Remittance{Key: "835-6/1", Kind: billing.RemittedPayment, Paid: 5000, Date: "2026-02-01", Reference: "E"})
	d.amounts(void, billing.RefundDue, 5000, 0, 0, 0)
	d.remitted(void, billing.Remittance{Key: "835-7/1", Kind: billing.RemittedReversal, Paid: 5000, Date: "2026-02-20", Reference: "E"})
	d.amounts(void, billing.Refunded, 5000, 0, 0, 0)
	if _, _, err := d.e.ApplyRemittance(d.app, void.Id, billing.Remittance{Key: "835-8/1", Kind: billing.RemittedPayment, Paid: 1}, d.by, changesTime); err == nil {
		t.Error("something was paid for what is undone")
	}
}

// The engine does not bill a refunded service again.
func TestRefundedIsNotBilledAgain(t *testing.T) {
	d := newFixture(t)
	patient := d.patient(wears("2026-01-01", "", "2026-01-01", 16), talked("2026-01-10 10:00", 25))
	d.run(billing.AllJobs, "2026-02-02 03:00")
	for _, code := range []string{billing.DeviceSupply, billing.FirstTwenty} {
		entry := d.entry(patient, code)
		d.state(entry, billing.Submitted)
		for _, m := range []billing.Transition{
			d.e.Pay(billing.PaymentDraft{Amount: 4000, Date: "2026-03-01", Reference: "E", Payer: collections.PrimaryPayer}, d.by, changesTime),
			d.e.RequestVoid(billing.VoidRequest{Reason: "Wrong"}, d.by, changesTime), d.e.Refund(billing.RefundDraft{Amount: 4000, Date: "2026-03-02", Reference: "C"}, d.by, changesTime),
		} {
			if _, refused := d.do(entry, m); refused != "" {
				t.Fatal(m.Name, refused)
			}
		}
	}
	var bound int
	if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM time_entries WHERE billing_entry != ''").Row(&bound); err != nil || bound != 0 {
		t.Errorf("%d times are still billed (%v)", bound, err)
	}
	again := d.run(billing.AllJobs, "2026-02-03 03:00")
	if len(again.Created) != 0 || !slices.ContainsFunc(again.Skipped, func(s billing.SkippedEntry) bool {
		return s.Reason == "refunded_before" && s.CPTCode == billing.DeviceSupply
	}) {
		t.Errorf("made %v, left out %v", again.Created, again.Skipped)
	}
	month, _ := billing.MonthSpan("2026-01")
	list, err := d.e.Explain(d.app, patient, month, at("2026-02-03 03:00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if (x.CPTCode == billing.DeviceSupply || x.CPTCode == billing.FirstTwenty) && (x.Billed || !slices.Contains(x.Reasons, "refunded_before")) {
			t.Errorf("%s is explained as %+v", x.CPTCode, x)
		}
	}
}

// After any actions, a claim's totals match its payments, its state does not contradict them, and the sums match the lines.
func TestClaimTotals(t *testing.T) {
	d := newFixture(t)
	var lines []string
	reached := map[string]bool{}
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 19))
		line := d.sent(int64(1 + r.IntN(9000)))
		lines = append(lines, line.Id)
		for step := range 14 {
			d.anyMove(r, line.Id, fmt.Sprintf("%d-%d", seed, step))
			d.wantSound(line.Id)
			reached[d.found(line.Id).Status()] = true
		}
	}
	if len(reached) != len(billing.States)-2 { // all states after submission
		t.Errorf("only %v were reached", reached)
	}
	d.wantSums(lines)
	if _, wrong, err := billing.RecountTotals(t.Context(), d.app); err != nil || wrong != 0 {
		t.Errorf("the nightly count found %d months wrong (%v)", wrong, err)
	}
}

// anyMove performs a random action on a claim; one that its state refuses changes nothing.
func (d *fixture) anyMove(r *rand.Rand, id, key string) {
	d.t.Helper()
	entry := d.found(id)
	amount := func(most int64) billing.Cents { return billing.Cents(r.Int64N(max(most, 0) + 1)) }
	list := []collections.Adjustment{}
	paid := amount(entry.ChargeCents())
	rest := entry.ChargeCents() - int64(paid)
	for _, group := range []string{"CO", "PR", "OA"} {
		if part := int64(amount(rest)); part > 0 && r.IntN(2) == 0 {
			list, rest = append(list, reason(group, fmt.Sprint(r.IntN(3)+1), part)), rest-part
		}
	}
	remittance := billing.Remittance{Key: key, Kind: billing.RemittedPayment, Paid: paid, Date: "2026-02-01", Reference: "E", Adjustments: list, Secondary: r.IntN(4) == 0}
	why := []string{"", "Paid twice"}[r.IntN(2)]
	switch r.IntN(12) {
	case 0, 1:
		_, _, _ = d.e.ApplyRemittance(d.app, id, remittance, d.by, changesTime)
	case 2:
		remittance.Kind, remittance.DenialCode = billing.RemittedDenial, "CO-50"
		_, _, _ = d.e.ApplyRemittance(d.app, id, remittance, d.by, changesTime)
	case 3:
		remittance.Kind, remittance.Paid, remittance.Adjustments = billing.RemittedReversal, amount(entry.PaidTotalCents()), nil
		if r.IntN(2) == 0 {
			remittance.Paid, remittance.Adjustments = billing.Cents(entry.PaidTotalCents()), entry.Adjustments()
		}
		_, _, _ = d.e.ApplyRemittance(d.app, id, remittance, d.by, changesTime)
	case 4, 5:
		d.do(entry, d.e.Pay(billing.PaymentDraft{Amount: paid, Date: "2026-02-01", Reference: "E", Payer: billing.PayerKinds[r.IntN(3)], OverpaymentReason: why}, d.by, changesTime))
	case 6:
		d.do(entry, d.e.Adjust(billing.AdjustmentDraft{Amount: amount(entry.OpenCents()) - 50, Group: []string{"CO", "PR"}[r.IntN(2)], CARC: "45", Reason: "Contract"}, d.by, changesTime))
	case 7:
		d.do(entry, d.e.RequestVoid(billing.VoidRequest{Reason: "Wrong"}, d.by, changesTime))
	case 8, 9:
		d.do(entry, d.e.Refund(billing.RefundDraft{
			Amount: amount(entry.PaidTotalCents() - entry.RefundedCents()), Date: "2026-03-01", Reference: "C",
		}, d.by, changesTime))
	case 10:
		d.do(entry, []billing.Transition{d.e.Deny("CO-16", "Lacks", "2026-02-01", changesTime), d.e.Appeal("No", "", "2026-02-02"), d.e.Resubmit(billing.Corrections{}, "", changesTime)}[r.IntN(3)])
	case 11:
		d.do(entry, d.e.Void("Gone", changesTime))
	}
}

// wantSound compares a claim with its payments and its state.
func (d *fixture) wantSound(id string) {
	d.t.Helper()
	entry := d.found(id)
	payments, err := collections.PaymentsOf(d.app, id)
	if err != nil {
		d.t.Fatal(err)
	}
	var paid, refunded, adjusted, share, first int64
	for _, p := range payments {
		switch p.Kind {
		case "payment", "reversal":
			if paid += p.AmountCents; p.Payer != collections.PatientPays && p.Payer != collections.SecondaryPayer {
				first += p.AmountCents
			}
		case "refund":
			refunded += p.AmountCents
		}
		for _, a := range p.Adjustments {
			if a.Group == "PR" {
				share += a.AmountCents
			} else {
				adjusted += a.AmountCents
			}
		}
	}
	if paid != entry.PaidTotalCents() || refunded != entry.RefundedCents() || adjusted != entry.AdjustedCents() || share != entry.PatientShareCents() ||
		entry.ChargeCents() != paid+adjusted+share+entry.OpenCents() {
		d.t.Fatalf("%s: %d, %d, %d, %d of payments that come to %d, %d, %d, %d", id, entry.PaidTotalCents(), entry.RefundedCents(), entry.AdjustedCents(),
			entry.PatientShareCents(), paid, refunded, adjusted, share)
	}
	none := paid == 0 && refunded == 0
	undecided := paid >= 0 && first <= 0 && refunded == 0 // the patient or a secondary payer has paid the rest
	sound := map[string]bool{
		billing.Submitted: undecided && adjusted == 0 && share == 0, billing.Appealed: undecided && adjusted == 0 && share == 0,
		billing.VoidRequested: none && adjusted == 0 && share == 0, billing.Voided: none && adjusted == 0 && share == 0,
		billing.Denied: undecided, billing.Paid: paid >= 0 && refunded == 0 && share >= 0, billing.RefundDue: paid > 0 && refunded < paid,
		billing.Refunded: paid > 0 && refunded == paid,
	}
	if !sound[entry.Status()] {
		d.t.Fatalf("%s is %s with %d paid, %d adjusted, %d of the patient, %d back", id, entry.Status(), paid, adjusted, share, refunded)
	}
}

// wantSums compares the stored sums of a month, and of its one day, with the lines.
func (d *fixture) wantSums(lines []string) {
	d.t.Helper()
	want := map[string]billing.Totals{}
	for _, id := range lines {
		entry := d.found(id)
		s := want[entry.Status()]
		s.Claims++
		s.Billed += billing.Cents(entry.ChargeCents())
		s.Collected += billing.Cents(entry.PaidTotalCents())
		s.Adjusted += billing.Cents(entry.AdjustedCents())
		s.PatientShare += billing.Cents(entry.PatientShareCents())
		s.Refunded += billing.Cents(entry.RefundedCents())
		want[entry.Status()] = s
	}
	for _, f := range []billing.TotalsFilter{{From: "2026-01-01", To: "2026-01-31"}, {From: "2026-01-14", To: "2026-01-14"}} {
		f.WithMoney = true
		sums, err := billing.LoadTotals(d.app, f, billing.ByStatus)
		if err != nil || len(sums) != len(want) {
			d.t.Fatalf("%d sums of %d states (%v)", len(sums), len(want), err)
		}
		for _, s := range sums {
			w := want[s.Status]
			if s.Claims != w.Claims || s.Billed != w.Billed || s.Collected != w.Collected || s.Adjusted != w.Adjusted || s.PatientShare != w.PatientShare || s.Refunded != w.Refunded {
				d.t.Errorf("%s: %+v, want %+v", s.Status, s, w)
			}
		}
	}
}
