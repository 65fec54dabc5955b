package clearinghouse_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/clearinghouse"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vigiltest"
	"github.com/vigilhealth/vigil/internal/x12"
)

// moneySequence is a practice that gets files of payers one after another, while people record payments, with the account at the bank.
type moneySequence struct {
	*practice
	r        *rand.Rand
	reports  *reports.Engine
	entries  []string
	claims   []*claimInHand
	past     []deposit
	byHand   int64            // what people recorded as paid, less refunds
	waiting  map[string]int   // open items by remittance
	unposted int64            // what the items have, less provider adjustments
	left     map[string]int64 // what is not posted of the claims of each remittance
	number   int
	step     string // what was done last
}

func newMoneySequence(t *testing.T, seed uint64) *moneySequence {
	s := &moneySequence{
		practice: newPractice(t), r: rand.New(rand.NewPCG(seed, 42)), reports: reports.New(billing.New(billing.Settings{Zone: time.UTC, MaxUnits99458: 3}), 0),
		waiting: map[string]int{}, left: map[string]int64{},
	}
	second, _, err := collections.AddPayer(s.app, collections.Payer{Name: "Second", Code: "S2", Active: true, EDI: "SEC22", Filing: "CI"}, s.now)
	s.must(err)
	number := second.Number()
	s.talked, s.second = 45, &number
	s.entries = s.crowd(64)
	s.claims = s.handOver(s.house.SendBatch(s.app, s.entries, s.by, s.now))
	return s
}

// handOver returns the claims of a batch as their payer has them.
func (s *moneySequence) handOver(batch collections.BatchRow, err error) (list []*claimInHand) {
	s.Helper()
	s.must(err)
	sealed, err := collections.BatchFile(s.app, batch.ID)
	s.must(err)
	sent, err := payer.Read837P([]byte(sealed.Reveal()))
	s.must(err)
	for _, c := range sent.Claims {
		lines, err := collections.LinesOfClaim(s.app, c.ControlNumber)
		s.must(err)
		list = append(list, &claimInHand{control: c.ControlNumber, lines: lines, isSecond: lines[0].IsSecondary()})
	}
	return list
}

// cash is what the practice has of its entries' payments.
func (s *moneySequence) cash() (cents int64) {
	s.Helper()
	s.must(s.app.DB().NewQuery("SELECT SUM(paid_total_cents - refunded_cents) FROM billing_entries").Row(&cents))
	return cents
}

// sendFile imports a file of one to three payments, some of them repeated from earlier files.
func (s *moneySequence) sendFile() {
	s.Helper()
	var list []deposit
	for range 1 + s.r.IntN(3) {
		if len(s.past) > 0 && s.r.IntN(8) == 0 {
			list = append(list, s.past[s.r.IntN(len(s.past))])
			continue
		}
		var claims []x12.ClaimPayment
		isSecond := s.r.IntN(3) == 0 && s.claims[len(s.claims)-1].isSecond
		for range 1 + s.r.IntN(3) {
			if c := s.claims[s.r.IntN(len(s.claims))]; c.isSecond == isSecond && c.answers < mostAnswers {
				claims = append(claims, c.decide(s.r)...)
			}
		}
		by := firstPayer
		if isSecond {
			by = secondPayer
		}
		s.number++
		d := newDeposit(s.r, fmt.Sprint("EFT", s.number), by, claims)
		list, s.past = append(list, d), append(s.past, d)
	}
	s.number++
	file := fileOf(s.number, list...)
	s.step = string(file)
	before := s.cash()
	done, err := s.house.Import(s.app, file, s.by, s.now)
	if err != nil {
		s.Fatalf("%v: %s", err, file)
	}
	s.checkImport(list, done, s.cash()-before)
}

// checkImport compares what an import posted and left with what the payers sent.
func (s *moneySequence) checkImport(list []deposit, done clearinghouse.Outcome, posted int64) {
	s.Helper()
	unmatched := 0
	for _, d := range list {
		row := s.remittance(d.trace)
		items, err := row.Items()
		s.must(err)
		sums, open := map[string]int64{}, 0
		for _, item := range items {
			sums[item.Segment] += item.AmountCents
			if item.ClosedAt == "" {
				open++
			}
		}
		if s.waiting[row.ID] = open; row.Status == collections.RemittanceOpen != (open > 0) {
			s.Fatalf("%s is %s with %d open items: %s", d.trace, row.Status, open, s.step)
		}
		sent, plb := int64(0), int64(0)
		for _, c := range d.claims {
			sent += int64(c.Paid)
		}
		for _, a := range d.provider {
			plb += int64(a.Amount)
		}
		if debt := int64(d.total) - sent + plb; sums["BPR"] != debt || sums["PLB"] != plb {
			s.Fatalf("%s leaves %v, of provider adjustments %d and a debt of %d: %v in %s", d.trace, sums, plb, debt, items, s.step)
		}
		before, isKnown := s.left[row.ID]
		if !isKnown { // one that comes again may post what waited
			before = sent
			s.unposted += sent + sums["BPR"] - plb
			unmatched += len(items)
		}
		posted -= before - sums["CLP"]
		s.unposted -= before - sums["CLP"]
		s.left[row.ID] = sums["CLP"]
	}
	if posted != 0 {
		s.Fatalf("%d cents were posted beyond what the payers sent: %s", posted, s.step)
	}
	if got := len(done.Response.Unmatched()); got < unmatched {
		s.Fatalf("%d unmatched, %d items: %s", got, unmatched, s.step)
	}
}

func (s *moneySequence) remittance(trace string) (row collections.RemittanceRow) {
	s.Helper()
	id := ""
	s.must(s.app.DB().NewQuery("SELECT id FROM remittances WHERE trace_number = {:trace}").Bind(dbx.Params{"trace": trace}).Row(&id))
	row, err := collections.FindRemittance(s.app, id)
	s.must(err)
	return row
}

// act does what a person might do with an entry; what the entry's state refuses changes nothing.
func (s *moneySequence) act() {
	s.Helper()
	id := s.entries[s.r.IntN(len(s.entries))]
	amount, day := billing.Cents(1+s.r.IntN(6000)), "2026-01-15"
	cash, m := int64(0), billing.Transition{}
	switch s.r.IntN(9) {
	case 0, 1:
		by := billing.PayerKinds[s.r.IntN(3)]
		cash, m = int64(amount), s.engine.Pay(billing.PaymentDraft{Amount: amount, Date: day, Reference: fmt.Sprint("CHECK", s.number), Payer: by, OverpaymentReason: "Paid twice"}, s.by, s.now)
	case 2:
		m = s.engine.Adjust(billing.AdjustmentDraft{Amount: amount, Group: billing.GroupContractual, CARC: "45", Reason: "Write-off"}, s.by, s.now)
	case 3:
		cash, m = -int64(amount), s.engine.Refund(billing.RefundDraft{Amount: amount, Date: day, Reference: "R"}, s.by, s.now)
	case 4:
		m = s.engine.Appeal("Covered", "A1", day)
	case 5:
		m = s.engine.Deny("CO-50", "Not deemed a medical necessity", day, s.now)
	case 6:
		s.closeItems()
		return
	case 7:
		s.sendToSecond()
		return
	case 8:
		if s.r.IntN(4) > 0 {
			return
		}
		m = s.engine.RequestVoid(billing.VoidRequest{Reason: "Wrong patient", ByRefund: true}, s.by, s.now)
	}
	s.step = fmt.Sprint(m.Name, " ", amount, " of ", id)
	_, err := s.engine.ApplyTransition(s.app, id, m, s.by, s.now)
	if s.isRefused(err) {
		return
	}
	s.byHand += cash
}

func (s *moneySequence) isRefused(err error) bool {
	s.Helper()
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return true
	}
	s.must(err)
	return false
}

// closeItems closes the first open item of a payment, or all.
func (s *moneySequence) closeItems() {
	s.Helper()
	for _, id := range slices.Sorted(maps.Keys(s.waiting)) {
		if s.waiting[id] == 0 {
			continue
		}
		s.step = "close " + id
		importing := true // a parallel test may be importing a file
		for importing {
			err := clearinghouse.CloseRemittance(s.app, id, 0, "Resolved", s.by, s.now)
			refused, _ := errors.AsType[*fault.Error](err)
			if importing = refused != nil && strings.Contains(refused.Detail, "being imported"); !importing {
				s.must(err)
			}
		}
		s.waiting[id] = 0
		return
	}
}

// sendToSecond sends the claims that are due to the second payer, one batch each.
func (s *moneySequence) sendToSecond() {
	s.Helper()
	var due []string
	s.must(s.app.DB().NewQuery("SELECT id FROM billing_entries WHERE secondary_status = 'due' ORDER BY id").Column(&due))
	for _, entry := range due {
		s.step = "to the second payer: " + entry
		batch, err := s.house.SendSecondary(s.app, []string{entry}, false, s.by, s.now)
		if !s.isRefused(err) {
			s.claims = append(s.claims, s.handOver(batch, err)...)
		}
	}
}

// At every moment of any sequence of files and of people's work: what the entries have is what the bank has, each cent that is not posted is an item of a
// task, what is open by age is what is open in the revenue report, and no adjustment makes a credit.
func TestMoneyOfAnySequence(t *testing.T) {
	t.Parallel()
	for seed := range uint64(vigiltest.Rounds(100, 2)) {
		t.Run(fmt.Sprint("sequence ", seed), func(t *testing.T) { runMoneySequence(t, seed) })
	}
}

func runMoneySequence(t *testing.T, seed uint64) {
	s := newMoneySequence(t, seed)
	for range 100 {
		s.now = s.now.Add(time.Second)
		if s.sendFile(); s.r.IntN(2) == 0 {
			s.checkAll()
			s.act()
		}
		s.checkAll()
	}
	if n := slices.IndexFunc(s.claims, func(c *claimInHand) bool { return c.isSecond && len(c.decided) > 0 }); n < 0 || s.byHand == 0 {
		t.Error("no second payer, or no payment by hand")
	}
}
