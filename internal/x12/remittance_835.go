package x12

import (
	"cmp"
	"errors"
	"strings"
)

// Remittance is an 835: a payer's decisions and payment. It does not print.
type Remittance struct {
	unprintable
	Handling            string // BPR01, see [Remittance.MovesMoney]
	Debit               bool   // BPR03 D
	Total               Cents  // BPR02; negative for money that goes back to the payer
	Method              string // BPR04: ACH, CHK, FWT, BOP, NON
	PaidOn              string // BPR16, YYYY-MM-DD
	Trace               string // TRN02: check or transfer number
	PayerNumber         string // TRN03
	Payer               Party  // with its identifier, if given
	Payee               Party  // its NPI or tax number; of the first, if several payments were joined
	PayeeTaxID          string // REF TJ, if given separately
	ProducedOn          string
	Claims              []ClaimPayment
	ProviderAdjustments []ProviderAdjustment // not related to one claim: PLB
	total               Segment
	payee               payee // of the claims that follow
}

// payee is who is paid. A file of joined payments repeats N1 after claims. Source: 005010X221A1, loop 1000B.
type payee struct {
	party Party
	taxID string
}

// ClaimPayment is the payer's decision on one claim.
type ClaimPayment struct {
	unprintable
	ControlNumber         string // ours: CLP01
	Status                string // CLP02: see [ClaimPayment.Denied] and [ClaimPayment.IsReversal]
	Charge, Paid          Cents
	PatientResponsibility Cents  // CLP05
	FilingCode            string // CLP06
	PayerControlNumber    string // CLP07
	PlaceOfService        string
	Frequency             string
	From, Through         string // YYYY-MM-DD, "" if only lines have dates
	Adjustments           []Adjustment
	RemarkCodes           []string // RARC, from MOA and MIA
	Lines                 []ServicePayment
	Payee                 Party       // as of the whole payment, unless payments were joined
	PayeeTaxID            string      // REF TJ
	ParseError            *ParseError // the first of the claim's segments that cannot be read, nil for none: then no other field can be relied on
	segment               Segment
}

// Denied reports whether the payer denied the claim. Other codes: 1, 2, 3 processed as primary, secondary, tertiary; 19, 20, 21 the same and
// forwarded to another payer; 23 not our claim, forwarded; 25 predetermination. Source: 005010X221A1, CLP02.
func (c ClaimPayment) Denied() bool { return c.Status == "4" }

// IsReversal reports whether this reverses an earlier decision; its amounts have the opposite sign.
func (c ClaimPayment) IsReversal() bool { return c.Status == "22" }

// Segment returns the ordinal of the claim's CLP segment in the file.
func (c ClaimPayment) Segment() int { return c.segment.Ordinal }

// ServicePayment is the payer's decision on one service line.
type ServicePayment struct {
	unprintable
	ControlNumber      string // ours: REF 6R, "" if the payer omits it
	Procedure          string
	Modifiers          []string
	SubmittedProcedure string // the procedure that we sent, if the payer decided on another one
	Charge, Paid       Cents
	Units              string // paid units; 1 if the payer omits them
	From, Through      string // YYYY-MM-DD
	Adjustments        []Adjustment
	RemarkCodes        []string // RARC, from LQ
	segment            Segment
}

// ProviderAdjustment is an amount that is not related to a single claim.
type ProviderAdjustment struct {
	Provider  string // PLB01
	Year      string // end of the fiscal year, YYYY-MM-DD
	Reason    string // such as WO overpayment recovered, FB balance forward, L6 interest, 72 refund acknowledged, CS
	Reference string // the payer's or our reference
	Amount    Cents  // subtracted from the total; negative if added
	Ordinal   int    // ordinal of the PLB segment in the file
}

var (
	claimCodes = "1 2 3 4 19 20 21 22 23 25"
	// adjustRules are the rules of CAS: up to six reasons, each with an amount and a quantity.
	adjustRules = func() []rule {
		rules := []rule{required(1, text).among(adjustGroups), required(2, text), required(3, amount)}
		for n := 2; n <= 17; n += 3 {
			rules = append(rules, optional(n, text).upTo(5), optional(n+1, amount), optional(n+2, decimal))
		}
		return rules
	}()
	// providerRules are the rules of PLB: up to six identifiers, each with an amount.
	providerRules = func() []rule {
		rules := []rule{required(1, text).upTo(50), required(2, date), required(3, text), required(4, amount)}
		for n := 3; n <= 13; n += 2 {
			rules = append(rules, optional(n, text).of(1).upTo(2), optional(n, text).of(2).upTo(50), optional(n+1, amount))
		}
		return rules
	}()
	dayRules = []rule{required(1, text).upTo(3), required(2, date)}
)

// remittanceGuide is the table of 005010X221A1. Loops: H header, A payer, B payee, D header number, C claim, S service, P provider adjustments.
var remittanceGuide = guide[Remittance]{
	// Data for the payee's bank may be missing: this package does not use it.
	"BPR": {{within: "H", rules: []rule{
		required(1, text).among("C D H I P U X"), required(2, amount), optional(3, text).among("C D"), optional(4, text).upTo(3), optional(16, date),
	}, handle: handleBPR}},
	"TRN": {{within: "H", rules: []rule{required(1, text).among("1"), required(2, text).upTo(50), optional(3, text).upTo(10)}, process: func(x *Remittance, s Segment) {
		x.Trace, x.PayerNumber = s.Element(2), s.Element(3)
	}}},
	"CUR": {{within: "H"}},
	"N1": {
		{on: 1, when: "PR", within: "HBCDSP", opens: 'A', rules: []rule{required(2, text).upTo(60), optional(4, text).upTo(80)}, process: func(x *Remittance, s Segment) {
			if x.payee == (payee{}) {
				x.Payer = Party{Name: s.Element(2), ID: s.Element(4)}
			}
		}},
		{on: 1, when: "PE", within: "ABCDSP", opens: 'B', rules: []rule{required(2, text).upTo(60), optional(4, text).upTo(80)}, process: func(x *Remittance, s Segment) {
			isFirst := x.payee == (payee{})
			x.payee = payee{party: Party{Name: s.Element(2), ID: s.Element(4)}}
			if isFirst {
				x.Payee = x.payee.party
			}
		}},
	},
	"N3": {{within: "AB"}}, "N4": {{within: "AB"}}, "PER": {{within: "AC"}}, "RDM": {{within: "B"}}, "TS2": {{within: "D"}}, "TS3": {{within: "D"}},
	"LX": {{within: "BDCS", opens: 'D', rules: []rule{required(1, count)}}},
	"CLP": {{within: "BDCS", opens: 'C', rules: []rule{
		required(1, text).upTo(38), required(2, text).among(claimCodes), required(3, amount), required(4, amount), optional(5, amount), optional(6, text).upTo(2),
		optional(7, text).upTo(50), optional(8, text).upTo(2), optional(9, text).upTo(1),
	}, process: processCLP}},
	"CAS": {
		{within: "C", rules: adjustRules, handle: func(x *Remittance, s Segment) error { return s.readCAS(&x.claim().Adjustments) }},
		{within: "S", rules: adjustRules, handle: func(x *Remittance, s Segment) error { return s.readCAS(&x.line().Adjustments) }},
	},
	"NM1": {{within: "C", rules: []rule{required(1, text).upTo(3)}}}, // names of patients and subscribers, which are not used
	"MIA": {{within: "C", process: func(x *Remittance, s Segment) {
		x.claim().remark(append(s.codes(5, 5), s.codes(20, 23)...))
	}}},
	"MOA": {{within: "C", process: func(x *Remittance, s Segment) { x.claim().remark(s.codes(3, 7)) }}},
	"REF": {
		{within: "HABC", rules: []rule{required(1, text).upTo(3), required(2, text).upTo(50)}, process: processREF},
		{within: "S", rules: []rule{required(1, text).upTo(3), required(2, text).upTo(50)}, process: func(x *Remittance, s Segment) {
			if s.Element(1) == "6R" {
				x.line().ControlNumber = s.Element(2)
			}
		}},
	},
	"DTM": {
		{within: "H", rules: dayRules, process: func(x *Remittance, s Segment) { x.ProducedOn = s.day(2) }},
		{within: "C", rules: dayRules, process: func(x *Remittance, s Segment) {
			c := x.claim()
			s.date(&c.From, &c.Through, "232", "233")
		}},
		{within: "S", rules: dayRules, process: func(x *Remittance, s Segment) {
			line := x.line()
			s.date(&line.From, &line.Through, "150", "151")
			if s.Element(1) == "472" {
				line.From, line.Through = s.day(2), s.day(2)
			}
		}},
	},
	"AMT": {{within: "CS", rules: []rule{required(1, text).upTo(3), required(2, amount)}}},
	"QTY": {{within: "CS", rules: []rule{required(1, text).upTo(2), required(2, decimal)}}},
	"SVC": {{within: "CS", opens: 'S', rules: []rule{
		required(1, text).of(1).upTo(2), required(1, text).of(2).upTo(48), required(2, amount), required(3, amount), optional(5, decimal), optional(6, text).of(2).upTo(48),
	}, process: processSVC}},
	"LQ": {{within: "S", rules: []rule{required(1, text).upTo(3), required(2, text).upTo(30)}, process: func(x *Remittance, s Segment) {
		if s.Element(1) == "HE" {
			x.line().RemarkCodes = append(x.line().RemarkCodes, s.Element(2))
		}
	}}},
	"PLB": {{within: "BDCSP", opens: 'P', rules: providerRules, handle: handlePLB}},
}

// Accessors to the current item: the table rejects segments outside their loop, so it exists.

func (r *Remittance) claim() *ClaimPayment { return &r.Claims[len(r.Claims)-1] }

func (r *Remittance) line() *ServicePayment {
	lines := r.claim().Lines
	return &lines[len(lines)-1]
}

func readRemittance(set Set) (*Remittance, error) {
	x := &Remittance{}
	if err := remittanceGuide.readKeeping(x, set, keepClaimFault, "BPR", "TRN", "N1 PR", "N1 PE"); err != nil {
		return nil, err
	}
	if x.Debit && x.Net() < 0 {
		x.Total = -max(x.Total, -x.Total)
	}
	return x, x.checkBalance()
}

// keepClaimFault stores the fault of a claim's segment with the claim, so that the other claims are read. The fault of a segment about the whole payment is
// the payment's.
func keepClaimFault(x *Remittance, s Segment, at loop, err error) (loop, bool) {
	fault, isFault := errors.AsType[*ParseError](err)
	switch {
	case !isFault:
		return at, false
	case s.looksLikeClaim() && strings.IndexByte("BDCS", byte(at)) >= 0:
		at = 'C'
		processCLP(x, s) // as far as it can be read
	case at != 'C' && at != 'S' || inList("BPR TRN CUR N1 LX PLB", s.ID):
		return at, false
	}
	c := x.claim()
	c.ParseError = cmp.Or(c.ParseError, fault)
	return at, true
}

// looksLikeClaim reports whether a segment begins a claim even if its name is damaged, so that its
// error is not attributed to the claim before.
func (s Segment) looksLikeClaim() bool {
	_, isCharge := centsOf(s.Element(3))
	_, isPaid := centsOf(s.Element(4))
	return s.ID == "CLP" || isCharge && isPaid && inList(claimCodes, s.Element(2)) && len(remittanceGuide[s.ID]) == 0
}

// Transaction handling codes. Source: 005010X221A1, BPR01, as X12's interpretation 2228 quotes it.
const (
	handlingNotification    = "H" // BPR02 is zero
	handlingPrenotification = "P" // only tests an account number
)

// MovesMoney reports whether the payment moves money: the payer pays, or debits the practice for
// negative decisions. It does not with a prenotification, a notification with an amount, or a debit
// that the payee has to collect. Source: 005010X221A1, BPR01, BPR03.
func (r *Remittance) MovesMoney() bool {
	return r.Handling != handlingPrenotification && (r.Total == 0 || r.Handling != handlingNotification && (r.Total < 0 || !r.Debit))
}

// Prenotification reports whether the payment only tests an account number.
func (r *Remittance) Prenotification() bool { return r.Handling == handlingPrenotification }

func handleBPR(x *Remittance, s Segment) error {
	if x.total.ID != "" {
		return s.fault(0, "appears twice")
	}
	x.Handling, x.Debit = s.Element(1), s.Element(3) == "D"
	x.Total, x.Method, x.PaidOn, x.total = s.cents(2), s.Element(4), s.day(16), s
	return nil
}

func processCLP(x *Remittance, s Segment) {
	x.Claims = append(x.Claims, ClaimPayment{
		ControlNumber: s.Element(1), Status: s.Element(2), Charge: s.cents(3), Paid: s.cents(4), PatientResponsibility: s.cents(5),
		FilingCode: s.Element(6), PayerControlNumber: s.Element(7), PlaceOfService: s.Element(8), Frequency: s.Element(9),
		Payee: x.payee.party, PayeeTaxID: x.payee.taxID, segment: s,
	})
}

func processSVC(x *Remittance, s Segment) {
	line := ServicePayment{
		Procedure: s.Component(1, 2), SubmittedProcedure: s.Component(6, 2), Charge: s.cents(2), Paid: s.cents(3), Units: cmp.Or(s.Element(5), "1"), segment: s,
	}
	for n := 3; n <= 6; n++ {
		if m := s.Component(1, n); m != "" {
			line.Modifiers = append(line.Modifiers, m)
		}
	}
	c := x.claim()
	c.Lines = append(c.Lines, line)
}

// processREF stores the payer's claim submission id, if N1 has none, and the payee's tax number. Source: 005010X221A1, REF "Additional Payer
// Identification" and "Payee Additional Identification".
func processREF(x *Remittance, s Segment) {
	switch {
	case s.Element(1) == "2U" && x.Payer.ID == "":
		x.Payer.ID = s.Element(2)
	case s.Element(1) == "TJ" && x.payee != (payee{}):
		if x.payee.taxID = s.Element(2); len(x.Claims) == 0 {
			x.PayeeTaxID = s.Element(2)
		}
	}
}

// handlePLB reads up to six adjustments from a PLB.
func handlePLB(x *Remittance, s Segment) error {
	for n := 3; n <= 13; n += 2 {
		switch reason := s.Element(n); {
		case reason == "" && s.Element(n+1) == "":
			continue
		case reason == "":
			return s.fault(n, "is missing")
		case s.Element(n+1) == "":
			return s.fault(n+1, "is missing")
		}
		x.ProviderAdjustments = append(x.ProviderAdjustments, ProviderAdjustment{
			Provider: s.Element(1), Year: s.day(2), Reason: s.Component(n, 1), Reference: s.Component(n, 2), Amount: s.cents(n + 1), Ordinal: s.Ordinal,
		})
	}
	return nil
}

// readCAS reads up to six adjustments from a CAS.
func (s Segment) readCAS(list *[]Adjustment) error {
	for n := 2; n <= 17; n += 3 {
		switch code := s.Element(n); {
		case code == "" && s.Element(n+1) == "" && s.Element(n+2) == "":
			continue
		case code == "":
			return s.fault(n, "is missing")
		case s.Element(n+1) == "":
			return s.fault(n+1, "is missing")
		}
		*list = append(*list, Adjustment{Group: s.Element(1), Code: s.Element(n), Amount: s.cents(n + 1), Quantity: s.Element(n + 2)})
	}
	return nil
}

// date stores a DTM with the start or end of a period.
func (s Segment) date(from, through *string, begins, ends string) {
	switch s.Element(1) {
	case begins:
		*from = s.day(2)
	case ends:
		*through = s.day(2)
	}
}

func (c *ClaimPayment) remark(codes []string) { c.RemarkCodes = append(c.RemarkCodes, codes...) }
