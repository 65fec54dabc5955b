package routes_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/x12"
)

// told is a payer's decision about the claim's only line: CLP02, CLP07, and what it pays and adjusts, such as "CO*45*7.87".
type told struct {
	status, number string
	paid           x12.Cents
	adjustments    []string
}

// back is the reversal of a decision.
func (d told) back() told { return told{"22", d.number, d.paid, d.adjustments} }

// numbered is a decision with another number of the payer.
func (d told) numbered(number string) told { return told{d.status, number, d.paid, d.adjustments} }

var (
	deniedBy16 = told{"4", "ICN1", 0, []string{"CO*16*47.87"}}
	deniedBy50 = told{"4", "ICN2", 0, []string{"CO*50*47.87"}}
	shareOnly  = told{"1", "ICN3", 0, []string{"PR*1*47.87"}}
	paid30     = told{"1", "ICN4", 3000, []string{"CO*45*7.87", "PR*2*10"}}
	paid40     = told{"1", "ICN5", 4000, []string{"CO*45*2.87", "PR*2*5"}}
)

var (
	isUndecided  = object{"lifecycle_status": "submitted", "paid_total": 0.0, "adjusted": 0.0, "patient_responsibility": 0.0, "open": 47.87, "denial": nil}
	isDeniedBy16 = object{"lifecycle_status": "denied", "denial.code": "CO-16", "paid_total": 0.0, "adjusted": 47.87, "open": 0.0}
	isDeniedBy50 = object{"lifecycle_status": "denied", "denial.code": "CO-50", "paid_total": 0.0, "adjusted": 47.87, "open": 0.0}
	isShareOnly  = object{"lifecycle_status": "paid", "denial": nil, "paid_total": 0.0, "adjusted": 0.0, "patient_responsibility": 47.87, "open": 0.0}
	isPaid30     = object{"lifecycle_status": "paid", "paid_total": 30.0, "adjusted": 7.87, "patient_responsibility": 10.0, "open": 0.0}
	isPaid40     = object{"lifecycle_status": "paid", "paid_total": 40.0, "adjusted": 2.87, "patient_responsibility": 5.0, "open": 0.0}
)

// tells uploads one 835 with decisions; the control number is the envelope's.
func (s *sentClaim) tells(trace, control string, decisions ...told) reply {
	s.t.Helper()
	var segments []string
	var total x12.Cents
	l := s.claim.Lines[0]
	for _, d := range decisions {
		sign := x12.Cents(1)
		if d.status == "22" {
			sign = -1
		}
		total += sign * d.paid
		segments = append(segments, fmt.Sprintf("CLP*%s*%s*%s*%s**12*%s*11*1", s.claim.ControlNumber, d.status, usd(sign*l.Charge), usd(sign*d.paid), d.number),
			fmt.Sprintf("SVC*HC:%s*%s*%s**1", l.Procedure[1], usd(sign*l.Charge), usd(sign*d.paid)), "DTM*472*"+l.From)
		for _, a := range d.adjustments {
			at := strings.LastIndex(a, "*") + 1
			dollars, err := strconv.ParseFloat(a[at:], 64)
			if err != nil {
				s.t.Fatal(err)
			}
			segments = append(segments, "CAS*"+a[:at]+usd(sign*x12.Cents(dollars*100+0.5)))
		}
		segments = append(segments, "REF*6R*"+l.ControlNumber)
	}
	return s.upload(remittances(control+trace+s.claim.ControlNumber, paymentSegments(trace, total, segments...))).want(200)
}

// After any statements and reversals of a payer, in one file or in several, the claim is as the decisions that it left make it.
func TestDecisionsAroundReversals(t *testing.T) {
	for name, test := range map[string]struct {
		files [][]told
		want  object
	}{
		"denial, reversed, denied again, paid": {[][]told{{deniedBy16}, {deniedBy16.back()}, {deniedBy16.numbered("I7")}, {paid40}}, isPaid40},
		"denial replaced in one file, paid":    {[][]told{{deniedBy16}, {deniedBy16.back(), deniedBy50}, {paid40}}, isPaid40},
		"paid, reversed, denied, paid":         {[][]told{{paid30}, {paid30.back()}, {deniedBy16}, {paid40}}, isPaid40},
		"denied twice after a reversal":        {[][]told{{paid30}, {paid30.back()}, {deniedBy16}, {deniedBy50}}, isDeniedBy50},
		"payment of a denied claim reversed":   {[][]told{{deniedBy16}, {paid30}, {paid30.back()}}, isDeniedBy16},
		"denial reversed after the payment":    {[][]told{{deniedBy16}, {paid30}, {deniedBy16.back()}}, withDenial(isPaid30, nil)},
		"denial and its reversal":              {[][]told{{deniedBy16, deniedBy16.back()}}, isUndecided},
		"reversal and its denial":              {[][]told{{deniedBy16.back(), deniedBy16}}, isUndecided},
		"share and its reversal":               {[][]told{{shareOnly, shareOnly.back()}}, isUndecided},
		"share, reversal, payment":             {[][]told{{shareOnly, shareOnly.back(), paid30}}, isPaid30},
		"share, reversal, denial":              {[][]told{{shareOnly, shareOnly.back(), deniedBy16}}, isDeniedBy16},
		"denial, reversal, share":              {[][]told{{deniedBy16, deniedBy16.back(), shareOnly}}, isShareOnly},
		"denial, reversal, denial":             {[][]told{{deniedBy16, deniedBy16.back(), deniedBy50}}, isDeniedBy50},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSentClaim(t, 1)
			for i, file := range test.files {
				s.wantReasons(s.tells(fmt.Sprint("EFT", i), "", file...))
			}
			s.wantEntry(0, test.want)
			s.wantBalanced(name)
			for i, file := range test.files {
				s.tells(fmt.Sprint("EFT", i), "AGAIN", file...).wantAt(object{"applied": 0.0, "unmatched": 0.0})
			}
			s.wantEntry(0, test.want)
		})
	}
}

func withDenial(want object, denial any) object {
	out := object{"denial": denial}
	for name, value := range want {
		out[name] = value
	}
	return out
}

// A reversal that comes before what it reverses waits, and is applied when its file comes again.
func TestReversalBeforeItsDecision(t *testing.T) {
	for _, d := range []told{deniedBy16, shareOnly, paid30} {
		s := newSentClaim(t, 1)
		waits := "reversal_without_original " + strconv.FormatFloat(-float64(d.paid)/100, 'f', -1, 64)
		s.wantReasons(s.tells("EFT1", "", d.back()), strings.Replace(waits, " -0", " 0", 1))
		s.wantEntry(0, isUndecided)
		s.wantReasons(s.tells("EFT2", "", d))
		s.wantReasons(s.tells("EFT1", "AGAIN", d.back()))
		s.wantEntry(0, isUndecided)
		s.wantBalanced(fmt.Sprint(slices.Concat(d.adjustments)))
	}
}

// A reversal takes back the decision that its number and adjustments name: nothing of another one, and the claim's number stays that of the newest
// decision that stands.
func TestReversalNamesItsDecision(t *testing.T) {
	lower := told{"1", "LOW1", 2500, []string{"CO*45*2.87", "PR*2*20"}}
	same := told{"1", "SAME1", 3000, []string{"CO*45*2.87", "PR*1*15"}}
	twenty, ten := told{"1", "OLD1", 2000, []string{"CO*45*17.87", "PR*2*10"}}, told{"1", "NEW2", 1000, []string{"CO*45*27.87", "PR*2*10"}}
	of := func(want object, number string) object {
		out := withDenial(want, nil)
		out["payer_control_number"] = number
		return out
	}
	const noOriginal = "reversal_without_original"
	for name, test := range map[string]struct {
		files []told
		last  string // why the last file waits
		want  object
	}{
		"repeated payment":            {[]told{paid30, paid30.numbered("DUP1"), paid30.numbered("DUP1").back()}, noOriginal + " -30", of(isPaid30, "ICN4")},
		"other decision that waits":   {[]told{paid30, lower, lower.back()}, noOriginal + " -25", of(isPaid30, "ICN4")},
		"not on record, other amount": {[]told{paid30, twenty.back()}, noOriginal + " -20", of(isPaid30, "ICN4")},
		"not on record, same amount":  {[]told{paid30, same.back()}, noOriginal + " -30", of(isPaid30, "ICN4")},
		"another denial":              {[]told{deniedBy50, deniedBy16.back()}, noOriginal + " 0", isDeniedBy50},
		"new number of the payer":     {[]told{paid30, paid30.numbered("REV1").back()}, "", of(isUndecided, "ICN4")},
		"first of two":                {[]told{twenty, ten, twenty.back()}, "", object{"paid_total": 10.0, "adjusted": 27.87, "payer_control_number": "NEW2"}},
		"second of two":               {[]told{twenty, ten, ten.back()}, "", object{"paid_total": 20.0, "adjusted": 17.87, "payer_control_number": "OLD1"}},
		"corrected":                   {[]told{twenty, twenty.back(), paid30}, "", of(isPaid30, "ICN4")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSentClaim(t, 1)
			for i, d := range test.files[:len(test.files)-1] {
				s.tells(fmt.Sprint("EFT", i), "", d)
			}
			var reasons []string
			if test.last != "" {
				reasons = []string{test.last}
			}
			s.wantReasons(s.tells("LAST", "", test.files[len(test.files)-1]), reasons...)
			s.wantEntry(0, test.want)
			s.wantBalanced(name)
			for i, d := range test.files[:len(test.files)-1] {
				s.tells(fmt.Sprint("EFT", i), "AGAIN", d)
			}
			s.wantEntry(0, test.want)
		})
	}
}

// A payer's decision that states again what the payer paid by check before, which a person recorded, makes no credit: adjustments alone never do.
func TestDecisionAfterPaymentByHand(t *testing.T) {
	for name, restated := range map[string]string{"as paid before": "OA*B13*20", "as another adjustment": "OA*133*20"} {
		for _, isAdjusted := range []bool{false, true} {
			s := newSentClaim(t, 1)
			s.move(s.entries[0], "pay", object{"amount": 20, "payment_date": "2026-01-14", "reference": "EFT-55501"}).want(200)
			if isAdjusted {
				s.move(s.entries[0], "adjust", object{"amount": 22.87, "group": "CO", "carc": "45", "reason": "Their letter"}).want(200)
				s.move(s.entries[0], "adjust", object{"amount": 5, "group": "PR", "carc": "2", "reason": "Their letter"}).want(200)
			}
			s.wantReasons(s.tells("EFT1", "", told{"1", "ICN1", 2001, []string{"CO*45*2.86", "PR*2*5", restated}}))
			s.wantEntry(0, object{"lifecycle_status": "paid", "paid_total": 40.01, "adjusted": 2.86, "patient_responsibility": 5.0, "open": 0.0})
			s.wantBalanced(fmt.Sprint(name, isAdjusted))
		}
	}
}
