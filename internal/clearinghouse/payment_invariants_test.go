package clearinghouse_test

import (
	"slices"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
)

// checkAll checks the invariants of the ledger, the tasks, the reports and each changed entry.
func (s *moneySequence) checkAll() {
	s.Helper()
	bank := int64(0)
	for _, d := range s.past {
		bank += int64(d.total)
	}
	if cash := s.cash(); cash+s.unposted != bank+s.byHand {
		s.Fatalf("the ledger has %d, items %d; the bank %d and %d by hand after %s", cash, s.unposted, bank, s.byHand, s.step)
	}
	s.checkReports()
	var changed []string
	s.must(s.app.DB().NewQuery("SELECT id FROM billing_entries WHERE updated_at >= {:now}").Bind(dbx.Params{"now": collections.FormatInstant(s.now)}).Column(&changed))
	entries, err := collections.BillingEntriesByID(s.app, changed)
	s.must(err)
	for _, entry := range entries {
		s.checkEntry(entry)
	}
}

// ledger is the amounts of an entry in cents.
type ledger struct {
	Status string `db:"lifecycle_status"`
	Paid   int64  `db:"paid_total_cents"`
	Open   int64  `db:"open"`
	Second string `db:"secondary_status"`
}

// checkReports compares the reports with the entries: each open cent of a claim that was sent has an age, and each balance, credit, denial and unposted
// payment is a task.
func (s *moneySequence) checkReports() {
	s.Helper()
	var rows []ledger
	s.must(s.app.DB().NewQuery(`SELECT lifecycle_status, secondary_status, paid_total_cents,
		charge_cents - paid_total_cents - adjusted_cents - patient_responsibility_cents AS open FROM billing_entries`).All(&rows))
	open, want := int64(0), reports.TasksBody{}
	for _, row := range rows {
		if row.Status != billing.Refunded && row.Status != billing.Voided && row.Status != billing.Reviewed {
			open += row.Open
		}
		isDecided := row.Status == billing.Paid || row.Status == billing.Denied
		for count, counts := range map[*int]bool{
			&want.DeniedAwaitingResubmission: row.Status == billing.Denied, &want.VoidRequested: row.Status == billing.VoidRequested, &want.RefundDue: row.Status == billing.RefundDue,
			&want.OpenBalances: row.Status == billing.Paid && row.Open > 0, &want.Credits: isDecided && row.Open < 0 && row.Paid > 0, &want.SecondaryDue: row.Second == billing.SecondaryDue,
		} {
			if counts {
				*count++
			}
		}
	}
	for _, items := range s.waiting {
		want.UnpostedRemittances += min(items, 1)
	}
	all := reports.Query{From: "2025-12-01", To: "2026-12-31"}
	tasks := s.report(reports.TasksSummary, all).(reports.TasksBody)
	want.Items, want.MissingCodeList, want.MissingFeeList, want.OldestPendingDays = tasks.Items, tasks.MissingCodeList, tasks.MissingFeeList, tasks.OldestPendingDays
	if got := tasks; got.DeniedAwaitingResubmission != want.DeniedAwaitingResubmission || got.VoidRequested != want.VoidRequested || got.RefundDue != want.RefundDue ||
		got.OpenBalances != want.OpenBalances || got.Credits != want.Credits || got.SecondaryDue != want.SecondaryDue || got.UnpostedRemittances != want.UnpostedRemittances {
		s.Fatalf("the tasks are %+v, not %+v after %s", got, want, s.step)
	}
	aging, revenue := s.report(reports.Aging, reports.Query{}).(reports.AgingBody), s.report(reports.Revenue, all).(reports.RevenueBody)
	if int64(aging.TotalOpen) != open || aging.TotalOpen != revenue.OpenSubmitted {
		s.Fatalf("%v is open by age, %v in the revenue report, %d of the entries after %s", aging.TotalOpen, revenue.OpenSubmitted, open, s.step)
	}
}

func (s *moneySequence) report(name reports.Name, q reports.Query) any {
	s.Helper()
	report, err := s.reports.Build(s.app, name, q, "admin", true, s.now)
	s.must(err)
	return report.Body
}

// checkEntry compares an entry with the rows of its payments: its amounts are theirs, adjustments alone make no credit, and its state has evidence.
func (s *moneySequence) checkEntry(entry *collections.BillingEntry) {
	s.Helper()
	rows, err := collections.PaymentsOf(s.app, entry.Id)
	s.must(err)
	var paid, refunded, adjusted, share, others, first int64
	last := "" // decision of the first payer that stands
	for _, p := range rows {
		switch p.Kind {
		case collections.RefundKind:
			refunded += p.AmountCents
		case collections.PaymentKind, collections.ReversalKind:
			paid += p.AmountCents
			if p.Source == collections.Source835 && p.Payer == collections.PrimaryPayer {
				first += p.AmountCents
			} else {
				others += max(0, p.AmountCents)
			}
		}
		if p.Payer == collections.PrimaryPayer || p.Kind == collections.ReopeningKind {
			last = p.Kind
		}
		for _, a := range p.Adjustments {
			if a.Group == billing.GroupPatient {
				share += a.AmountCents
			} else {
				adjusted += a.AmountCents
			}
		}
	}
	fail := func(rule string) {
		s.Helper()
		for _, p := range rows {
			s.Logf("%s %s %s %d %v offsets %v", p.Source, p.Payer, p.Kind, p.AmountCents, p.Adjustments, p.ShareOffsets)
		}
		s.Fatalf("%s: %s, charge %d, paid %d, adjusted %d, share %d, refunded %d after %s", rule, entry.Status(), entry.ChargeCents(), entry.PaidTotalCents(), entry.AdjustedCents(),
			entry.PatientShareCents(), entry.RefundedCents(), s.step)
	}
	if paid != entry.PaidTotalCents() || refunded != entry.RefundedCents() || adjusted != entry.AdjustedCents() || share != entry.PatientShareCents() {
		fail("the amounts are not those of the payments")
	}
	credit := max(0, paid-entry.ChargeCents()) + others // beside what the first payer decided, others may have paid
	switch {
	case share < 0:
		fail("the patient owes less than nothing")
	case paid < 0 || refunded > paid:
		fail("more went back than came")
	case -entry.OpenCents() > credit:
		fail("adjustments make a credit")
	}
	undecided := []string{billing.Submitted, billing.Appealed, billing.VoidRequested}
	switch state := entry.Status(); {
	case slices.Contains(undecided, state) && (adjusted != 0 || share != 0):
		fail("an undecided claim has adjustments")
	case state == billing.Denied && (entry.DenialCode() == "" || first > 0):
		fail("a denied claim has no reason, or its payer's money")
	case state == billing.Paid && len(rows) == 0:
		fail("a paid claim has no payment")
	case state == billing.Submitted && first > 0 && last == collections.PaymentKind:
		fail("a paid claim waits for its payer")
	case state == billing.RefundDue && refunded >= paid, state == billing.Refunded && refunded < paid:
		fail("the refund is not that of the payments")
	}
}
