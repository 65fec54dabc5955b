package x12

import (
	"strings"
)

// The types of responses, as in [Response.Type].
const (
	TypeInterchangeAck    = "TA1"
	TypeImplementationAck = "999"
	TypeClaimAck          = "277CA"
	TypeRemittance        = "835"
	testIndicator         = "T"
)

// Response is one transaction set from a payer or clearinghouse, or the acknowledgment of an interchange. Type selects which of the last four fields
// is set.
type Response struct {
	Type                    string
	Sender, Receiver        string // ISA06, ISA08
	Test                    bool   // ISA15: a test file, ignored in production
	Interchange, Group, Set string // control numbers; with Sender they identify a repeated response
	InterchangeAck          *InterchangeAck
	ImplementationAck       *ImplementationAck
	ClaimAck                *ClaimAck
	Remittance              *Remittance
}

// ReadResponses parses a file of responses to our claims: 999, 277CA, 835 and TA1 in any combination. Each interchange must be addressed to one of
// the receivers (ISA08); without receivers, any is accepted. A file with other content is rejected as a whole. Its errors are of type [ParseError].
func ReadResponses(file []byte, receivers ...string) ([]Response, error) {
	interchanges, err := Read(file)
	if err != nil {
		return nil, err
	}
	var answers []Response
	ordinal := 1
	for _, in := range interchanges {
		base := Response{Sender: in.Sender, Receiver: in.Receiver, Test: in.Usage == testIndicator, Interchange: in.ControlNumber}
		if !isReceiver(in.Receiver, receivers) {
			return nil, &ParseError{Segment: "ISA", Ordinal: ordinal, Position: 8, Reason: "is addressed to another receiver"}
		}
		for _, r := range in.Acks {
			a := base
			a.Type, a.InterchangeAck = TypeInterchangeAck, &r
			answers = append(answers, a)
		}
		for _, group := range in.Groups {
			for _, set := range group.Sets {
				a := base
				a.Group, a.Set = group.ControlNumber, set.ControlNumber
				if err := a.read(group, set); err != nil {
					return nil, err
				}
				answers = append(answers, a)
			}
		}
		ordinal = in.end + 1
	}
	if len(answers) == 0 {
		return nil, &ParseError{Segment: "IEA", Ordinal: ordinal - 1, Position: 1, Reason: "the file has no responses"}
	}
	return answers, nil
}

func isReceiver(receiver string, ours []string) bool {
	for _, one := range ours {
		if strings.EqualFold(strings.TrimSpace(one), receiver) {
			return true
		}
	}
	return len(ours) == 0
}

// setReader reads one kind of transaction set: its number, the functional code of its group, and the supported versions of its guide.
type setReader struct {
	set, functional, editions string
	inSet                     bool // the guide requires ST03
	read                      func(*Response, Set) error
}

// setReaders lists the supported transaction sets. Versions before the errata do not differ in the data read here.
// Source: ST01, ST03, GS01 and GS08 of 005010X231A1, 005010X214, 005010X221A1.
var setReaders = []setReader{
	{"999", "FA", "005010X231 " + Guide999, true, func(a *Response, s Set) (err error) {
		a.Type = TypeImplementationAck
		a.ImplementationAck, err = readImplementationAck(s)
		return err
	}},
	{"277", "HN", Guide277CA, true, func(a *Response, s Set) (err error) {
		a.Type = TypeClaimAck
		a.ClaimAck, err = readClaimAck(s)
		return err
	}},
	{"835", "HP", "005010X221 " + Guide835, false, func(a *Response, s Set) (err error) {
		a.Type = TypeRemittance
		a.Remittance, err = readRemittance(s)
		return err
	}},
}

// read parses a transaction set and rejects unsupported ones.
func (r *Response) read(group Group, set Set) error {
	for _, p := range setReaders {
		if p.set != set.ID {
			continue
		}
		switch {
		case group.Functional != p.functional:
			return group.header.fault(1, "is not the functional group of this transaction set")
		case !inList(p.editions, group.Version):
			return group.header.fault(8, "is not a supported guide")
		case p.inSet && set.Version != "" && !inList(p.editions, set.Version):
			return set.header.fault(3, "is not a supported guide")
		}
		return p.read(r, set)
	}
	return set.header.fault(1, "is not a response to claims: expected 999, 277 or 835")
}
