package x12

import "slices"

// ClaimAck is a 277CA: it reports which claims the payer accepted for adjudication.
type ClaimAck struct {
	unprintable
	Sources []SourceStatus
}

// SourceStatus is the status of a batch at one payer or clearinghouse.
type SourceStatus struct {
	unprintable
	Source    Party
	Trace     string       // its number of the file
	Batch     string       // our reference of the batch, BHT03 of the 837
	Statuses  []StatusInfo // on the batch as a whole
	Providers []ProviderStatus
}

// ProviderStatus is the status of the claims of one billing provider.
type ProviderStatus struct {
	unprintable
	ID       string       // an NPI or a tax number
	Statuses []StatusInfo // on all its claims
	Claims   []ClaimStatus
}

// ClaimStatus is the status of one claim.
type ClaimStatus struct {
	unprintable
	ControlNumber       string // ours, CLM01: TRN02
	PayerControlNumber  string // REF 1K
	ClearinghouseNumber string // REF D9
	From, Through       string // YYYY-MM-DD
	Statuses            []StatusInfo
	Lines               []LineStatus
	segment             Segment
}

// LineStatus is the status of one service line.
type LineStatus struct {
	unprintable
	ControlNumber string // ours, REF 6R of the 837: REF FJ
	Procedure     string
	Statuses      []StatusInfo
}

// StatusInfo is one STC segment.
type StatusInfo struct {
	Codes   []StatusCode // the first one decides
	Date    string       // YYYY-MM-DD
	Action  string       // WQ accepted, U rejected
	Charge  Cents
	Message string // STC12, in the payer's words
}

// StatusCode is a category code, a status code, and the entity that they describe.
type StatusCode struct{ Category, Code, Entity string }

// Rejected reports whether the status rejects its subject. The category decides if it can: A3, A4, A6, A7 and A8 reject, A0, A1, A2 and A5 do not.
// For any other category the action decides. There is no intermediate status. Source: 005010X214, STC01-1 and STC03; code source 507; X12, request
// for interpretation 2203 (2017).
func (si StatusInfo) Rejected() bool {
	switch category := si.Codes[0].Category; {
	case inList("A3 A4 A6 A7 A8", category):
		return true
	case inList("A0 A1 A2 A5", category):
		return false
	}
	return si.Action == "U"
}

// Rejected reports whether a status of the claim or one of its lines rejects it. Statuses of its provider and batch are separate.
func (c ClaimStatus) Rejected() bool {
	return anyRejected(c.Statuses) || slices.ContainsFunc(c.Lines, func(line LineStatus) bool { return anyRejected(line.Statuses) })
}

// Rejected reports whether the whole batch was rejected.
func (s SourceStatus) Rejected() bool { return anyRejected(s.Statuses) }

// Rejected reports whether all claims of the provider were rejected.
func (p ProviderStatus) Rejected() bool { return anyRejected(p.Statuses) }

func anyRejected(statuses []StatusInfo) bool {
	return slices.ContainsFunc(statuses, StatusInfo.Rejected)
}

// Rules that apply at every level.
var (
	levelRules  = []rule{required(1, text).upTo(12), optional(2, text).upTo(12)}
	traceRules  = []rule{required(1, text).among("1 2"), required(2, text).upTo(50)}
	statusRules = []rule{
		required(1, text).of(1).upTo(30), required(1, text).of(2).upTo(30), optional(1, text).of(3).upTo(3), optional(2, date), optional(3, text).among("U WQ"), optional(4, amount),
	}
	dateRules      = []rule{required(1, text).upTo(3), required(2, text).among("D8 RD8"), required(3, text).upTo(17)}
	referenceRules = []rule{required(1, text).upTo(3), required(2, text).upTo(50)}
)

// claimAckGuide is the table of 005010X214. Loops: H header, A source, B receiver of the response, C provider, D patient, E claim, L line.
var claimAckGuide = guide[ClaimAck]{
	"BHT": {{within: "H", rules: []rule{required(1, text).among("0085"), required(2, text).among("08")}}},
	"HL": {
		{on: 3, when: "20", within: "HBCDEL", opens: 'A', rules: levelRules, process: func(x *ClaimAck, _ Segment) {
			x.Sources = append(x.Sources, SourceStatus{})
		}},
		{on: 3, when: "21", within: "A", opens: 'B', rules: levelRules},
		{on: 3, when: "19", within: "BCDEL", opens: 'C', rules: levelRules, process: func(x *ClaimAck, _ Segment) {
			source := x.source()
			source.Providers = append(source.Providers, ProviderStatus{})
		}},
		{on: 3, when: "PT", within: "CDEL", opens: 'D', rules: levelRules},
	},
	"NM1": {
		{within: "A", rules: []rule{required(1, text).upTo(3), optional(9, text).upTo(80)}, process: func(x *ClaimAck, s Segment) {
			x.source().Source = Party{ID: s.Element(9), Name: s.Element(3)}
		}},
		{within: "C", rules: []rule{required(1, text).upTo(3), optional(9, text).upTo(80)}, process: func(x *ClaimAck, s Segment) {
			x.provider().ID = s.Element(9)
		}},
		{within: "BD", rules: []rule{required(1, text).upTo(3)}}, // the receiver, and a patient's name, which is not used
	},
	"TRN": {
		{within: "A", rules: traceRules, process: func(x *ClaimAck, s Segment) { x.source().Trace = s.Element(2) }},
		{within: "B", rules: traceRules, process: func(x *ClaimAck, s Segment) { x.source().Batch = s.Element(2) }},
		{within: "C", rules: traceRules},
		{within: "DEL", opens: 'E', rules: traceRules, process: func(x *ClaimAck, s Segment) {
			p := x.provider()
			p.Claims = append(p.Claims, ClaimStatus{ControlNumber: s.Element(2), segment: s})
		}},
	},
	"STC": {
		{within: "B", rules: statusRules, process: func(x *ClaimAck, s Segment) { s.addStatus(&x.source().Statuses) }},
		{within: "C", rules: statusRules, process: func(x *ClaimAck, s Segment) { s.addStatus(&x.provider().Statuses) }},
		{within: "E", rules: statusRules, process: func(x *ClaimAck, s Segment) { s.addStatus(&x.claim().Statuses) }},
		{within: "L", rules: statusRules, process: func(x *ClaimAck, s Segment) { s.addStatus(&x.line().Statuses) }},
	},
	"REF": {
		{within: "C", rules: referenceRules},
		{within: "E", rules: referenceRules, process: func(x *ClaimAck, s Segment) {
			switch c := x.claim(); s.Element(1) {
			case "1K":
				c.PayerControlNumber = s.Element(2)
			case "D9":
				c.ClearinghouseNumber = s.Element(2)
			}
		}},
		{within: "L", rules: referenceRules, process: func(x *ClaimAck, s Segment) {
			if s.Element(1) == "FJ" {
				x.line().ControlNumber = s.Element(2)
			}
		}},
	},
	"DTP": {
		{within: "AL", rules: dateRules},
		{within: "E", rules: dateRules, handle: func(x *ClaimAck, s Segment) error {
			c := x.claim()
			if c.From, c.Through = period(s.Element(2), s.Element(3)); c.From == "" {
				return s.fault(3, "is no date")
			}
			return nil
		}},
	},
	"QTY": {{within: "BC", rules: []rule{required(1, text), optional(2, decimal)}}},
	"AMT": {{within: "BC", rules: []rule{required(1, text), required(2, amount)}}},
	"SVC": {{within: "EL", opens: 'L', rules: []rule{required(1, text).of(1), required(1, text).of(2).upTo(48), required(2, amount)}, process: func(x *ClaimAck, s Segment) {
		c := x.claim()
		c.Lines = append(c.Lines, LineStatus{Procedure: s.Component(1, 2)})
	}}},
}

// Accessors to the current item: the table rejects segments outside their loop, so it exists.

func (a *ClaimAck) source() *SourceStatus { return &a.Sources[len(a.Sources)-1] }

func (a *ClaimAck) provider() *ProviderStatus {
	providers := a.source().Providers
	return &providers[len(providers)-1]
}

func (a *ClaimAck) claim() *ClaimStatus {
	claims := a.provider().Claims
	return &claims[len(claims)-1]
}

func (a *ClaimAck) line() *LineStatus {
	lines := a.claim().Lines
	return &lines[len(lines)-1]
}

// addStatus appends an STC with up to three codes. Source: 005010X214, STC01, STC10, STC11.
func (s Segment) addStatus(statuses *[]StatusInfo) {
	w := StatusInfo{Date: s.day(2), Action: s.Element(3), Charge: s.cents(4), Message: s.Element(12)}
	for _, n := range []int{1, 10, 11} {
		if s.Element(n) != "" {
			w.Codes = append(w.Codes, StatusCode{Category: s.Component(n, 1), Code: s.Component(n, 2), Entity: s.Component(n, 3)})
		}
	}
	*statuses = append(*statuses, w)
}

func readClaimAck(set Set) (*ClaimAck, error) {
	x := &ClaimAck{}
	if err := claimAckGuide.read(x, set, "BHT", "HL"); err != nil {
		return nil, err
	}
	for _, source := range x.Sources {
		for _, p := range source.Providers {
			for _, c := range p.Claims {
				if !c.hasStatus() {
					return nil, c.segment.fault(0, "no status follows the claim")
				}
			}
		}
	}
	return x, nil
}

// hasStatus reports whether the claim or one of its lines has a status.
func (c ClaimStatus) hasStatus() bool {
	return len(c.Statuses) > 0 || slices.ContainsFunc(c.Lines, func(line LineStatus) bool { return len(line.Statuses) > 0 })
}
