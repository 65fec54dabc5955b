package x12

import (
	"strconv"
	"strings"
)

// An Interchange is one ISA envelope, from one sender to one receiver. It does not print.
type Interchange struct {
	unprintable
	Separators
	SenderQualifier, Sender     string // ISA05, ISA06
	ReceiverQualifier, Receiver string // ISA07, ISA08
	Date, Time                  string // ISA09 YYMMDD, ISA10 HHMM
	ControlNumber               string // ISA13, nine digits
	RequestAck                  bool   // ISA14
	Usage                       string // ISA15: T or P
	Acks                        []InterchangeAck
	Groups                      []Group
	end                         int // the ordinal of IEA
}

// InterchangeAck is a TA1: the acknowledgment of an interchange's envelope.
type InterchangeAck struct {
	ControlNumber string // of the interchange that was received
	Date, Time    string // from that interchange's envelope
	Code          string // A accepted, E accepted with errors, R rejected
	Note          string // note code, 000 for none
}

// A Group holds the transaction sets of one kind.
type Group struct {
	unprintable
	Functional       string // GS01: HC for claims, FA, HN, HP for responses
	Sender, Receiver string // GS02, GS03
	Date, Time       string // GS04 CCYYMMDD, GS05
	ControlNumber    string // GS06
	Version          string // GS08: the guide
	Sets             []Set
	header           Segment
}

// A Set is one transaction set: the segments between ST and SE.
type Set struct {
	unprintable
	ID            string // ST01: 837, 999, 277, 835
	ControlNumber string // ST02
	Version       string // ST03: the guide, if the guide requires ST03
	Segments      []Segment
	header        Segment
	trailer       Segment
}

// Rules of the envelopes. Source: 005010X222A1, appendix C; 005010X231A1, appendix C, for TA1.
var (
	isaRules = []rule{
		required(5, text), required(6, text), required(7, text), required(8, text),
		required(12, text).among("00501"), required(14, text).among("0 1"), required(15, text).among("P T"),
	}
	ta1Rules = []rule{required(1, count).upTo(9), optional(2, count).upTo(6), optional(3, count).upTo(4), required(4, text).among("A E R"), optional(5, text).upTo(3)}
	gsRules  = []rule{
		required(1, text).upTo(2), required(2, text).upTo(15), required(3, text).upTo(15), required(4, date), required(5, count).upTo(8),
		required(6, count), required(7, text).among("X"), required(8, text).upTo(12),
	}
	stRules  = []rule{required(1, text).upTo(3), required(2, text).upTo(9), optional(3, text).upTo(35)}
	endRules = []rule{required(1, count), required(2, text).upTo(9)} // SE, GE and IEA
)

// next returns the next segment, or a fault that names the wanted one if the file has ended.
func (r *reader) next(wanted string) (Segment, error) {
	s, found, err := r.segment()
	if err == nil && !found {
		err = &ParseError{Segment: wanted, Ordinal: r.count + 1, Reason: "is missing: the file ends before it"}
	}
	return s, err
}

// checkTrailer compares a trailer with its header.
func checkTrailer(s Segment, number string, parts int) error {
	if err := s.check(endRules); err != nil {
		return err
	}
	if s.number(1) != parts {
		return s.fault(1, "counts otherwise than the file holds")
	}
	given := s.Element(2)
	if s.ID != "SE" { // numeric there: leading zeros are insignificant
		given, number = strings.TrimLeft(given, "0"), strings.TrimLeft(number, "0")
	}
	if given != number {
		return s.fault(2, "is not the control number that its header has")
	}
	return nil
}

func (r *reader) interchange() error {
	head, err := r.header()
	if err == nil {
		err = head.check(isaRules)
	}
	if err != nil {
		return err
	}
	id := head.Element
	in := Interchange{
		Separators: r.sep, SenderQualifier: id(5), Sender: id(6), ReceiverQualifier: id(7), Receiver: id(8), Date: id(9), Time: id(10),
		ControlNumber: id(13), RequestAck: id(14) == "1", Usage: id(15),
	}
	numbers := map[string]bool{}
	for {
		s, err := r.next("IEA")
		if err != nil {
			return err
		}
		switch s.ID {
		case "TA1":
			if err := s.check(ta1Rules); err != nil {
				return err
			}
			in.Acks = append(in.Acks, InterchangeAck{
				ControlNumber: s.Element(1), Date: s.Element(2), Time: s.Element(3), Code: s.Element(4), Note: s.Element(5),
			})
		case "GS":
			group, err := r.group(s)
			if err != nil {
				return err
			}
			if numbers[group.ControlNumber] {
				return s.fault(6, "stands for two groups of the interchange")
			}
			numbers[group.ControlNumber] = true
			in.Groups = append(in.Groups, group)
		case "IEA":
			in.end = s.Ordinal
			r.done = append(r.done, in)
			return checkTrailer(s, in.ControlNumber, len(in.Groups))
		default:
			return s.fault(0, "is not allowed here: GS or IEA must")
		}
	}
}

func (r *reader) group(head Segment) (Group, error) {
	g := Group{
		Functional: head.Element(1), Sender: head.Element(2), Receiver: head.Element(3),
		Date: head.Element(4), Time: head.Element(5), ControlNumber: head.Element(6), Version: head.Element(8), header: head,
	}
	if err := head.check(gsRules); err != nil {
		return g, err
	}
	numbers := map[string]bool{}
	for {
		s, err := r.next("GE")
		if err != nil {
			return g, err
		}
		switch s.ID {
		case "ST":
			set, err := r.set(s)
			if err != nil {
				return g, err
			}
			if numbers[set.ControlNumber] {
				return g, s.fault(2, "stands for two transaction sets of the group")
			}
			numbers[set.ControlNumber] = true
			g.Sets = append(g.Sets, set)
		case "GE":
			return g, checkTrailer(s, g.ControlNumber, len(g.Sets))
		default:
			return g, s.fault(0, "is not allowed here: ST or GE must")
		}
	}
}

func (r *reader) set(head Segment) (Set, error) {
	set := Set{ID: head.Element(1), ControlNumber: head.Element(2), Version: head.Element(3), header: head}
	if err := head.check(stRules); err != nil {
		return set, err
	}
	for {
		s, err := r.next("SE")
		if err != nil {
			return set, err
		}
		switch s.ID {
		case "SE":
			set.trailer = s
			return set, checkTrailer(s, set.ControlNumber, len(set.Segments)+2)
		case "ISA", "GS", "ST", "GE", "IEA", "TA1":
			return set, s.fault(0, "is not allowed here: SE must come before")
		}
		set.Segments = append(set.Segments, s)
	}
}

// bytes encodes an interchange with its own separators.
func (in Interchange) bytes() []byte {
	e := &segmentEncoder{sep: in.Separators}
	repetition := string(in.Repetition)
	if in.Repetition == 0 {
		repetition = "U"
	}
	ask := "0"
	if in.RequestAck {
		ask = "1"
	}
	e.segment("ISA", "00", padded("", 10), "00", padded("", 10), padded(in.SenderQualifier, 2), padded(in.Sender, 15),
		padded(in.ReceiverQualifier, 2), padded(in.Receiver, 15),
		in.Date, in.Time, repetition, "00501", in.ControlNumber, ask, in.Usage, string(in.Component))
	for _, t := range in.Acks {
		e.segment("TA1", t.ControlNumber, t.Date, t.Time, t.Code, t.Note)
	}
	for _, g := range in.Groups {
		e.segment("GS", g.Functional, g.Sender, g.Receiver, g.Date, g.Time, g.ControlNumber, "X", g.Version)
		for _, set := range g.Sets {
			e.segment("ST", set.ID, set.ControlNumber, set.Version)
			for _, s := range set.Segments {
				e.segment(s.ID, s.data)
			}
			e.segment("SE", strconv.Itoa(len(set.Segments)+2), set.ControlNumber)
		}
		e.segment("GE", strconv.Itoa(len(g.Sets)), g.ControlNumber)
	}
	e.segment("IEA", strconv.Itoa(len(in.Groups)), in.ControlNumber)
	return e.out
}

// segmentEncoder joins elements to segments and segments to a file.
type segmentEncoder struct {
	sep Separators
	out []byte
}

func (e *segmentEncoder) segment(id string, elements ...string) {
	last := len(elements)
	for last > 0 && elements[last-1] == "" {
		last--
	}
	e.out = append(e.out, id...)
	for _, element := range elements[:last] {
		e.out = append(append(e.out, e.sep.Element), element...)
	}
	e.out = append(e.out, e.sep.Segment)
}

func padded(text string, width int) string { return text + strings.Repeat(" ", width-len(text)) }
