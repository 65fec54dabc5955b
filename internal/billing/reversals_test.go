package billing_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// secondlyInsured stores a submitted entry of a patient with two payers.
func (d *fixture) secondlyInsured(charge int64) *collections.BillingEntry {
	d.t.Helper()
	entry := d.sent(charge)
	d.exec("UPDATE billing_entries SET payer = (SELECT id FROM payers LIMIT 1), secondary_status = 'submitted' WHERE id = '"+entry.Id+"'", nil)
	return entry
}

// randomDecision is a payer's decision that balances with the charge, or what the patient pays.
func randomDecision(r *rand.Rand, key string, charge int64) (decision billing.Remittance, patient billing.Cents) {
	if r.IntN(8) == 0 {
		return decision, billing.Cents(1 + r.Int64N(charge/4))
	}
	paid := r.Int64N(charge / 3)
	rest := charge - paid
	d := billing.Remittance{
		Key: key, Kind: billing.RemittedPayment, Paid: billing.Cents(paid), Date: "2026-02-01", Reference: key, Payer: "1", Secondary: r.IntN(3) == 0,
	}
	if d.Secondary {
		d.Payer = "2"
	}
	if r.IntN(4) == 0 {
		d.Kind, d.Paid, d.Adjustments = billing.RemittedDenial, 0, []collections.Adjustment{reason("CO", []string{"50", "16"}[r.IntN(2)], charge)}
		return d, 0
	}
	for _, group := range []string{"CO", "PR", "OA"} {
		if part := r.Int64N(rest + 1); group == "OA" || part > 0 {
			if group == "OA" {
				part = rest
			}
			d.Adjustments = append(d.Adjustments, reason(group, []string{"45", "2", "133", "B13"}[r.IntN(4)], part))
			rest -= part
		}
	}
	return d, 0
}

// posts stores a decision or a patient's payment, unless the claim's state refuses it.
func (d *fixture) posts(entry *collections.BillingEntry, decision billing.Remittance, patient billing.Cents) bool {
	d.t.Helper()
	if patient > 0 {
		_, refused := d.do(entry, d.e.Pay(billing.PaymentDraft{
			Amount: patient, Date: "2026-02-01", Reference: "CASH", Payer: collections.PatientPays, OverpaymentReason: "Paid twice",
		}, d.by, changesTime))
		return refused == ""
	}
	decision.Key += entry.Id
	_, _, err := d.e.ApplyRemittance(d.app, entry.Id, decision, d.by, changesTime)
	return err == nil
}

// figures are what a reversal must leave as if its decision had never come.
func (d *fixture) figures(id string) string {
	entry := d.found(id)
	list := entry.Adjustments()
	slices.SortFunc(list, func(a, b collections.Adjustment) int { return cmp.Compare(a.Group+a.CARC, b.Group+b.CARC) })
	denial := ""
	if entry.Status() == billing.Denied {
		denial = entry.DenialCode()
	}
	return fmt.Sprintf("%s %s paid %d adjusted %d patient %d open %d %v", entry.Status(), denial, entry.PaidTotalCents(), entry.AdjustedCents(), entry.PatientShareCents(), entry.OpenCents(), list)
}

// Any sequence of decisions with some of them reversed, in any order, is the sequence without these: in money, adjustments, the patient's share and state.
func TestReversalIsAsIfItNeverCame(t *testing.T) {
	d := newFixture(t)
	if _, _, err := collections.AddPayer(d.app, collections.Payer{Name: "Acme", Code: "AC", Active: true, EDI: "60054", Filing: "CI"}, changesTime); err != nil {
		t.Fatal(err)
	}
	reversed := 0
	for seed := range uint64(vigiltest.Rounds(3000, 300)) {
		r := rand.New(rand.NewPCG(seed, 835))
		charge := int64(4000 + r.IntN(9000))
		whole, without := d.secondlyInsured(charge), d.secondlyInsured(charge)
		type step struct {
			decision billing.Remittance
			patient  billing.Cents
		}
		var posted []step
		for n := range 2 + r.IntN(4) {
			var s step
			s.decision, s.patient = randomDecision(r, fmt.Sprintf("%d-%d-", seed, n), charge)
			if d.posts(whole, s.decision, s.patient) {
				posted = append(posted, s)
			}
		}
		var story []string
		for _, s := range posted {
			story = append(story, fmt.Sprintf("%s second %t paid %d %v, patient %d", s.decision.Kind, s.decision.Secondary, s.decision.Paid, s.decision.Adjustments, s.patient))
		}
		left := slices.Clone(posted)
		for n := range 1 + r.IntN(2) {
			at := slices.IndexFunc(left, func(s step) bool { return s.patient == 0 })
			if at < 0 {
				continue
			}
			for at += r.IntN(len(left) - at); left[at].patient > 0; at = r.IntN(len(left)) {
				continue
			}
			for i, s := range left { // of equal ones the last
				if b := left[at].decision; s.patient == 0 && s.decision.Secondary == b.Secondary && s.decision.Paid == b.Paid && fmt.Sprint(s.decision.Adjustments) == fmt.Sprint(b.Adjustments) {
					at = i
				}
			}
			back := left[at].decision
			back.Kind, back.Key = billing.RemittedReversal, fmt.Sprint("back", n, back.Key)
			if !d.posts(whole, back, 0) {
				t.Fatalf("seed %d: the reversal of %d was refused: %q", seed, at, story)
			}
			story = append(story, "without "+fmt.Sprint(at))
			left = slices.Delete(left, at, at+1)
			reversed++
		}
		for _, s := range left {
			if !d.posts(without, s.decision, s.patient) {
				t.Fatalf("seed %d: %+v was refused: %q", seed, s, story)
			}
		}
		if got, want := d.figures(whole.Id), d.figures(without.Id); got != want {
			t.Fatalf("seed %d is\n%s, want\n%s:\n%q", seed, got, want, story)
		}
	}
	if reversed == 0 {
		t.Error("nothing was reversed")
	}
}

// Reversals that a version without stated adjustments stored count when a later one of the same claim is posted.
func TestReversalAfterOlderOnes(t *testing.T) {
	d := newFixture(t)
	if _, _, err := collections.AddPayer(d.app, collections.Payer{Name: "Acme", Code: "AC", Active: true, EDI: "60054", Filing: "CI"}, changesTime); err != nil {
		t.Fatal(err)
	}
	payment := billing.Remittance{Kind: billing.RemittedPayment, Paid: 4736, Adjustments: []collections.Adjustment{reason("CO", "45", 5104), reason("PR", "2", 2000)}}
	correction := billing.Remittance{Kind: billing.RemittedPayment, Paid: 6036, Adjustments: []collections.Adjustment{reason("CO", "45", 5104), reason("PR", "1", 700)}}
	denial := billing.Remittance{Kind: billing.RemittedDenial, Adjustments: []collections.Adjustment{reason("CO", "16", 11840)}}
	decisions := map[rune]billing.Remittance{'p': payment, 'c': correction, 'd': denial}
	for _, story := range []string{ // r reverses the latest decision, s is a payment of the patient, and all before | is of an older version
		"pr|cr", "prc|r", "drp|r", "prd|r", "drd|r", "dr|dr", "pr|dr", "prpr|cr", "prcr|dr", "prdrc|r", "drpr|cr", "prp|r", "pr|pr", "psrc|r", "prsc|r", "psr|dr", "prs|cr", "drs|pr",
	} {
		t.Run(story, func(t *testing.T) {
			entry, fresh := d.secondlyInsured(11840), d.secondlyInsured(11840)
			var latest billing.Remittance
			for n, step := range story + "p" {
				key := fmt.Sprint(story, n)
				switch step {
				case '|':
					d.exec("UPDATE payments SET stated = NULL, payer_control_number = '' WHERE billing_entry = '"+entry.Id+"'", nil)
					continue
				case 's':
					if !d.posts(entry, billing.Remittance{}, 500) || !d.posts(fresh, billing.Remittance{}, 500) {
						t.Fatal("the patient's payment was refused")
					}
					continue
				case 'r':
					latest.Kind = billing.RemittedReversal
				default:
					latest = decisions[step]
				}
				latest.Key, latest.Date, latest.Reference, latest.Payer = key, "2026-02-01", key, "1"
				if n == len(story) {
					if got, want := d.figures(entry.Id), d.figures(fresh.Id); got != want {
						t.Errorf("after the reversals: %s, want %s", got, want)
					}
					if !d.posts(fresh, latest, 0) {
						t.Fatal("the payment was refused")
					}
				}
				if !d.posts(entry, latest, 0) {
					t.Fatalf("step %d was refused: %s", n, d.figures(entry.Id))
				}
			}
			if got, want := d.figures(entry.Id), d.figures(fresh.Id); got != want {
				t.Errorf("after the payment: %s, want %s", got, want)
			}
		})
	}
}

// The payer's number of the claim, with which a correction names it, is that of the decision that stands; none if an older version did not store it.
func TestNumberOfStandingDecision(t *testing.T) {
	d := newFixture(t)
	first := billing.Remittance{
		Kind: billing.RemittedPayment, Paid: 2000, Adjustments: []collections.Adjustment{reason("CO", "45", 9840)}, PayerControlNumber: "ICN1", Payer: "1", Date: "2026-02-01",
	}
	second := first
	second.Paid, second.PayerControlNumber, second.Adjustments = 1000, "ICN2", []collections.Adjustment{reason("CO", "45", 8840)}
	for _, c := range []struct {
		name, without string // the decision without a number on record
		back          billing.Remittance
		isOfWaiting   bool
		want, reason  string
	}{
		{"both on record", "", second, false, "ICN1", ""},
		{"the older one not", "ICN1", second, false, "", ""},
		{"the newer one not", "ICN2", first, false, "ICN2", ""},
		{"the older one reversed", "ICN1", first, false, "ICN2", ""},
		{"beside a repeated one that waits", "ICN1", first, true, "ICN2", ""},
		{"beside a repeated one, both on record", "", first, true, "ICN2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			entry := d.sent(11840)
			for i, r := range []billing.Remittance{first, second} {
				if r.Key = fmt.Sprint(c.name, i); !d.posts(entry, r, 0) {
					t.Fatal("a decision was refused")
				}
			}
			d.exec("UPDATE payments SET stated = NULL, payer_control_number = '' WHERE payer_control_number = '"+c.without+"' AND billing_entry = '"+entry.Id+"'", nil)
			c.back.Kind, c.back.Key, c.back.ReversesUnposted = billing.RemittedReversal, c.name, c.isOfWaiting
			if _, _, err := d.e.ApplyRemittance(d.app, entry.Id, c.back, d.by, changesTime); refused(err) != c.reason {
				t.Fatalf("the reversal: %v", err)
			}
			if got := d.found(entry.Id); got.PayerControlNumber() != c.want || got.PaidTotalCents() != 3000-int64(c.back.Paid) {
				t.Errorf("number %q, paid %d, want %q", got.PayerControlNumber(), got.PaidTotalCents(), c.want)
			}
		})
	}
}

// A denial that its payer reverses after an appeal is not the claim's any more.
func TestReversalOfAppealedDenial(t *testing.T) {
	d := newFixture(t)
	entry := d.sent(11840)
	denial := billing.Remittance{Key: "a", Kind: billing.RemittedDenial, Payer: "1", Date: "2026-02-01", Adjustments: []collections.Adjustment{reason("CO", "50", 11840)}}
	payment := billing.Remittance{Key: "c", Kind: billing.RemittedPayment, Payer: "1", Date: "2026-02-09", Paid: 11840}
	back := denial
	back.Key, back.Kind = "b", billing.RemittedReversal
	if !d.posts(entry, denial, 0) {
		t.Fatal("the denial was refused")
	}
	if _, refused := d.do(entry, d.e.Appeal("Covered", "A1", "2026-02-02")); refused != "" {
		t.Fatal(refused)
	}
	if !d.posts(entry, back, 0) || d.found(entry.Id).DenialCode() != "" || d.found(entry.Id).Status() != billing.Appealed {
		t.Errorf("the reversal leaves %s %q", d.found(entry.Id).Status(), d.found(entry.Id).DenialCode())
	}
	if !d.posts(entry, payment, 0) || d.found(entry.Id).DenialCode() != "" {
		t.Errorf("the payment leaves %s %q", d.found(entry.Id).Status(), d.found(entry.Id).DenialCode())
	}
}

// A second decision of the same amount that states what was paid before is a supplement, and the same one again is not.
func TestSupplementOfEqualAmount(t *testing.T) {
	d := newFixture(t)
	entry := d.sent(5177)
	first := billing.Remittance{
		Key: "a", Kind: billing.RemittedPayment, Payer: "1", Date: "2026-02-01", Paid: 2000, Adjustments: []collections.Adjustment{reason("CO", "45", 1177), reason("OA", "133", 2000)},
	}
	second, again := first, first
	second.Key, second.Adjustments = "b", []collections.Adjustment{reason("CO", "45", 1177), reason("OA", "B13", 2000)}
	again.Key, again.Adjustments = "c", second.Adjustments
	if !d.posts(entry, first, 0) || !d.posts(entry, second, 0) || d.posts(entry, again, 0) {
		t.Error("the supplement was refused, or posted twice")
	}
	d.amounts(d.found(entry.Id), billing.Paid, 4000, 1177, 0, 0)
}
