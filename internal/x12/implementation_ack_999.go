package x12

// ImplementationAck is a 999: it reports which transaction sets of a group are syntactically valid.
type ImplementationAck struct {
	Group      string // AK102: control number of our group
	Functional string // AK101: HC for claims
	Code       string // AK901: A accepted, E accepted with errors, P partly, R, M, W, X rejected
	Codes      []string
	Received   int // transaction sets
	Accepted   int
	Sets       []SetAck
}

// SetAck is the acknowledgment of one transaction set.
type SetAck struct {
	ControlNumber string // AK202
	Type          string // AK201: 837
	Code          string // IK501: A accepted, E accepted with errors, R, M, W, X rejected
	Codes         []string
	Errors        []SegmentError
	ended         bool
}

// Rejected reports whether the transaction set was rejected.
func (s SetAck) Rejected() bool { return isRejectedCode(s.Code) }

// Rejected reports whether the group was rejected.
func (a ImplementationAck) Rejected() bool { return isRejectedCode(a.Code) }

func isRejectedCode(code string) bool { return inList("R M W X", code) }

// A SegmentError describes an error in a segment that we sent.
type SegmentError struct {
	Segment  string // IK301
	Position int    // IK302: in the transaction set, ST being 1
	Loop     string // IK303; longer than the four characters of the guide in some files, such as 2010AA
	Code     string // IK304, "" if only elements are wrong
	Claim    string // our control number of the affected claim, if given
	Elements []ElementError
}

// An ElementError describes an error in an element. It does not print, because the copy of the value may be PHI.
type ElementError struct {
	unprintable
	Position, Component int
	Reference           string // element number in the X12 dictionary
	Code                string // IK403
	Value               string // IK404: a copy of what was sent
}

const groupCodes = "A E M P R W X"

// ackGuide is the table of 005010X231A1. Loops: H group, T transaction set, E segment error, L element error, Z end of the group.
var ackGuide = guide[ImplementationAck]{
	"AK1": {{within: "H", opens: 'H', rules: []rule{required(1, text).upTo(2), required(2, count), optional(3, text).upTo(12)}, handle: func(x *ImplementationAck, s Segment) error {
		if x.Group != "" {
			return s.fault(0, "appears twice")
		}
		x.Functional, x.Group = s.Element(1), s.Element(2)
		return nil
	}}},
	"AK2": {{within: "HTEL", opens: 'T', rules: []rule{required(1, text).upTo(3), required(2, text).upTo(9), optional(3, text).upTo(35)}, handle: handleAK2}},
	"IK3": {{within: "TEL", opens: 'E', rules: []rule{required(1, text).upTo(3), required(2, count), optional(3, text).upTo(10), optional(4, text).upTo(3)}, handle: func(x *ImplementationAck, s Segment) error {
		set, err := x.currentSet(s)
		if err == nil {
			set.Errors = append(set.Errors, SegmentError{Segment: s.Element(1), Position: s.number(2), Loop: s.Element(3), Code: s.Element(4)})
		}
		return err
	}}},
	"CTX": {{within: "EL", rules: []rule{required(1, text)}, handle: handleCTX}},
	"IK4": {{within: "EL", opens: 'L', rules: []rule{
		required(1, count).of(1), optional(1, count).of(2), optional(2, text).upTo(4), required(3, text).upTo(3), optional(4, text),
	}, handle: func(x *ImplementationAck, s Segment) error {
		e, err := x.lastError(s)
		if err == nil {
			e.Elements = append(e.Elements, ElementError{
				Position: componentNumber(s, 1), Component: componentNumber(s, 2), Reference: s.Element(2), Code: s.Element(3), Value: s.Element(4),
			})
		}
		return err
	}}},
	"IK5": {{within: "TEL", opens: 'T', rules: []rule{required(1, text).among("A E M R W X")}, handle: func(x *ImplementationAck, s Segment) error {
		set, err := x.currentSet(s)
		if err == nil {
			set.Code, set.Codes, set.ended = s.Element(1), s.codes(2, 6), true
		}
		return err
	}}},
	"AK9": {{within: "HT", opens: 'Z', rules: []rule{required(1, text).among(groupCodes), required(2, count), required(3, count), required(4, count)}, handle: func(x *ImplementationAck, s Segment) error {
		if n := len(x.Sets); n > 0 && !x.Sets[n-1].ended {
			return s.fault(0, "is not allowed here: IK5 must come before")
		}
		x.Code, x.Received, x.Accepted, x.Codes = s.Element(1), s.number(3), s.number(4), s.codes(5, 9)
		return nil
	}}},
}

func readImplementationAck(set Set) (*ImplementationAck, error) {
	x := &ImplementationAck{}
	return x, ackGuide.read(x, set, "AK1", "AK9")
}

func handleAK2(x *ImplementationAck, s Segment) error {
	if x.Group == "" || len(x.Sets) > 0 && !x.Sets[len(x.Sets)-1].ended {
		return s.fault(0, "is not allowed here: what it follows is not complete")
	}
	x.Sets = append(x.Sets, SetAck{Type: s.Element(1), ControlNumber: s.Element(2)})
	return nil
}

// currentSet returns the open transaction set.
func (a *ImplementationAck) currentSet(s Segment) (*SetAck, error) {
	set := &a.Sets[len(a.Sets)-1] // exists: the table rejects the segment before AK2
	if set.ended {
		return nil, s.fault(0, "is not allowed here: IK5 has closed the transaction set")
	}
	return set, nil
}

func (a *ImplementationAck) lastError(s Segment) (*SegmentError, error) {
	set, err := a.currentSet(s)
	if err != nil {
		return nil, err
	}
	return &set.Errors[len(set.Errors)-1], nil
}

// handleCTX stores the claim's control number. Other contexts describe situations, patients and subscribers. Source: 005010X231A1, CTX "Business
// Unit Identifier".
func handleCTX(x *ImplementationAck, s Segment) error {
	if s.Component(1, 1) != "CLM01" {
		return nil
	}
	e, err := x.lastError(s)
	if err == nil {
		e.Claim = s.Component(1, 2)
	}
	return err
}

func componentNumber(s Segment, component int) int {
	return Segment{data: s.Component(1, component), Separators: s.Separators}.number(1)
}

// codes returns the non-empty elements from one position to another.
func (s Segment) codes(from, to int) (list []string) {
	for n := from; n <= to; n++ {
		if code := s.Element(n); code != "" {
			list = append(list, code)
		}
	}
	return list
}
