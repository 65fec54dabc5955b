package routes_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/x12"
)

// After each file of a random sequence the API's figures agree: each deposit adds up, the entries have what was posted, what waits is a task, and what is
// open by age is what is open in the revenue report. internal/clearinghouse tests thousands of files.
func TestRemittanceSequence(t *testing.T) {
	s, r := newSentClaim(t, 2), rand.New(rand.NewPCG(42, 7))
	var amounts []x12.Cents // of the last decision, per line: paid and the patient's
	for i := range 14 {
		var segments []string
		total := x12.Cents(0)
		switch i % 7 {
		case 3: // the reversal of the last decision, and a new one
			back, less := s.decisionOf("22", -1, amounts)
			amounts = s.amountsAtRandom(r)
			next, more := s.decisionOf("1", 1, amounts)
			if segments, total = append(next, back...), more+less; total < 0 {
				total = 0 // the payer carries the debt
			}
		case 5:
			segments, total = []string{"CLP*UNKNOWN*1*50*50**12*ICN7*11*1"}, 5000
		case 6: // does not add up
			segments, total = append([]string{s.clp("1", 100)}, s.svc(0, 2000)...), 100
		default:
			amounts = s.amountsAtRandom(r)
			segments, total = s.decisionOf("1", 1, amounts)
		}
		if fee := x12.Cents(r.IntN(500)); i%4 == 1 && fee < total {
			segments, total = append(segments, "PLB*1234567893*20261231*WO:OLD*"+usd(fee)), total-fee
		}
		s.remit(total, segments...)
		s.wantFiguresAgree(i + 1)
	}
}

func (s *sentClaim) amountsAtRandom(r *rand.Rand) (amounts []x12.Cents) {
	for _, line := range s.claim.Lines {
		paid := x12.Cents(r.IntN(int(line.Charge)))
		amounts = append(amounts, paid, x12.Cents(r.IntN(int(line.Charge-paid)+1)))
	}
	return amounts
}

// decisionOf returns a decision on both lines, or with the sign -1 its reversal, and what it pays.
func (s *sentClaim) decisionOf(status string, sign x12.Cents, amounts []x12.Cents) (segments []string, paid x12.Cents) {
	for i, line := range s.claim.Lines {
		pays, share := amounts[2*i], amounts[2*i+1]
		segments = append(segments, fmt.Sprintf("SVC*HC:%s*%s*%s**1", line.Procedure[1], usd(sign*line.Charge), usd(sign*pays)), "DTM*472*"+line.From,
			"CAS*CO*45*"+usd(sign*(line.Charge-pays-share)), "CAS*PR*2*"+usd(sign*share), "REF*6R*"+line.ControlNumber)
		paid += sign * pays
	}
	head := fmt.Sprintf("CLP*%s*%s*%s*%s**12*ICN1*11*1", s.claim.ControlNumber, status, usd(sign*s.claim.Charge), usd(paid))
	return append([]string{head}, segments...), paid
}

func (s *sentClaim) wantFiguresAgree(files int) {
	s.t.Helper()
	posted, open := 0.0, 0
	for _, r := range s.wantDeposits(files) {
		posted += r["posted"].(float64)
		if r["status"] == "open" {
			open++
		}
	}
	paid := 0.0
	for _, id := range s.entries {
		paid += s.entry(id).at("paid_total").(float64)
	}
	aging := s.request(authz.Admin, "GET", "/billing/reports/aging/", nil).want(200)
	revenue := s.request(authz.Admin, "GET", "/billing/reports/revenue/?date_from=2025-12-01&date_to=2026-01-31", nil).want(200)
	revenue.wantAt(object{"open_submitted": aging.at("total_open")})
	s.request(authz.DataMonitor, "GET", "/billing/reports/tasks-summary/", nil).want(200).wantAt(object{"unposted_remittances": float64(open)})
	if fmt.Sprintf("%.2f", posted) != fmt.Sprintf("%.2f", paid) {
		s.t.Errorf("%.2f is posted, and the entries have %.2f", posted, paid)
	}
}
