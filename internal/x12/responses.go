package x12

import (
	"strings"
)

// The kinds of answers, as [Answer] names them.
const (
	TypeInterchangeAck    = "TA1"
	TypeImplementationAck = "999"
	TypeClaimAck          = "277CA"
	TypeRemittance        = "835"
	testIndicator         = "T"
)

// An Answer is one transaction set that a payer or a clearinghouse sent, or the receipt of an interchange. Of the last four fields it has the one
// that its type names.
type Response struct {
	Type                    string
	Sender, Receiver        string // ISA06, ISA08
	Test                    bool   // ISA15: not to be acted on in production
	Interchange, Group, Set string // control numbers: with Sender, what tells an answer that comes again
	InterchangeAck          *InterchangeAck
	ImplementationAck       *ImplementationAck
	ClaimAck                *ClaimAck
	Remittance              *Remittance
}

// ReadResponses reads a file of answers to our claims: 999, 277CA, 835 and TA1, alone or together. Every interchange must be for one of the receivers,
// by ISA08; with none, for anybody. A file with anything else in it is refused. Its errors are of type [Fault].
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
			return nil, &Fault{Segment: "ISA", Ordinal: ordinal, Position: 8, Reason: "is not for us"}
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
		return nil, &Fault{Segment: "IEA", Ordinal: ordinal - 1, Position: 1, Reason: "the file answers nothing"}
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

// A purpose is what a transaction set is for: its number, its group's letters, and the editions of its guide that are read.
type setReader struct {
	set, functional, editions string
	inSet                     bool // the guide wants ST03
	read                      func(*Response, Set) error
}

// setReaders is the table of what is read. The editions before the errata differ in nothing that is read here.
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

// read refuses what is for anything else.
func (a *Response) read(group Group, set Set) error {
	for _, p := range setReaders {
		if p.set != set.ID {
			continue
		}
		switch {
		case group.Functional != p.functional:
			return group.header.fault(1, "is not the group of such transaction sets")
		case !inList(p.editions, group.Version):
			return group.header.fault(8, "is no guide that is read here")
		case p.inSet && set.Version != "" && !inList(p.editions, set.Version):
			return set.header.fault(3, "is no guide that is read here")
		}
		return p.read(a, set)
	}
	return set.header.fault(1, "is no answer to claims: 999, 277 and 835 are")
}
