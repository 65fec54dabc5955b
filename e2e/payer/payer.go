// Package payer is a payer made for tests: it reads an 837P and answers it by a script with a 999, a 277CA and an 835, as the guides of package
// x12 have them. It writes its files by hand, so that what the service's own reader expects is not what makes them. It judges no claim by itself.
package payer

import (
	"fmt"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/x12"
)

// A Payer answers batches. Each of its files has the next control number.
type Payer struct {
	ID, Name string
	At       time.Time
	Control  int    // of the last file
	Usage    string // T where it is empty
	// Marks are what separates elements, repetitions, components and segments; "*^:~" where they are empty.
	Separators string
	// Break stands behind every segment, such as "\r\n".
	LineBreak string
}

// A Submission is an 837P as the payer took it.
type Submission struct {
	Sender, Group, Set, Batch string
	Submitter                 x12.Party
	Claims                    []Claim
	first                     int // ordinal of ST in its file
}

// A Claim is one of a submission.
type Claim struct {
	ControlNumber      string
	Frequency          string // 1, 7, 8
	PayerControlNumber string // of the claim that is replaced or voided
	Charge             x12.Cents
	Billing            x12.Party // NPI and name
	Patient            [2]string // last and first name
	Member, Filing     string
	Place              string
	Lines              []Line
	ordinal            int // of CLM in its file
}

// A Line is one service of a claim.
type Line struct {
	ControlNumber string
	Procedure     []string // HC, code, modifiers
	Charge        x12.Cents
	Units         string
	From, Through string // CCYYMMDD
}

// Number is the control number that the payer gives to a claim.
func (c Claim) Number() string { return "P" + c.ControlNumber }

// Read837P takes an 837P of one transaction set.
func Read837P(file []byte) (Submission, error) {
	interchanges, err := x12.Read(file)
	if err != nil {
		return Submission{}, err
	}
	in := interchanges[0]
	if len(in.Groups) != 1 || len(in.Groups[0].Sets) != 1 || in.Groups[0].Sets[0].ID != "837" {
		return Submission{}, fmt.Errorf("payer: takes one 837 a file")
	}
	set := in.Groups[0].Sets[0]
	s := Submission{Sender: in.Sender, Group: in.Groups[0].ControlNumber, Set: set.ControlNumber, first: set.Segments[0].Ordinal - 1}
	var context Claim // what all claims under a level share
	for _, segment := range set.Segments {
		s.readSegment(&context, segment)
	}
	return s, nil
}

func (s *Submission) readSegment(context *Claim, segment x12.Segment) {
	at := segment.Element
	switch segment.ID {
	case "BHT":
		s.Batch = at(3)
	case "NM1":
		s.readName(context, segment)
	case "SBR":
		if len(s.Claims) == 0 || context.Lines == nil { // not the one of another payer, within a claim
			context.Filing = at(9)
		}
	case "HL":
		context.Lines = nil
	case "CLM":
		c := *context
		c.ControlNumber, c.Charge, c.Lines, c.ordinal = at(1), cents(at(2)), nil, segment.Ordinal
		c.Place, c.Frequency = segment.Component(5, 1), segment.Component(5, 3)
		s.Claims = append(s.Claims, c)
		context.Lines = []Line{} // we are within claims
	case "REF":
		s.readReference(at(1), at(2))
	case "SV1":
		c := s.lastClaim()
		c.Lines = append(c.Lines, Line{Procedure: strings.Split(at(1), string(segment.Separators.Component)), Charge: cents(at(2)), Units: at(4)})
	case "DTP":
		if c := s.lastClaim(); at(1) == "472" {
			line := &c.Lines[len(c.Lines)-1]
			line.From, line.Through, _ = strings.Cut(at(3), "-")
			if line.Through == "" {
				line.Through = line.From
			}
		}
	}
}

func (s *Submission) lastClaim() *Claim { return &s.Claims[len(s.Claims)-1] }

func (s *Submission) readName(context *Claim, segment x12.Segment) {
	at := segment.Element
	party := x12.Party{ID: at(9), Name: at(3)}
	switch at(1) {
	case "41":
		s.Submitter = party
	case "85":
		context.Billing = party
	case "IL", "QC":
		if context.Lines != nil { // another payer's subscriber, within a claim
			return
		}
		context.Patient = [2]string{at(3), at(4)}
		if at(1) == "IL" {
			context.Member = at(9)
		}
	}
}

func (s *Submission) readReference(qualifier, value string) {
	switch qualifier {
	case "F8":
		if c := s.lastClaim(); len(c.Lines) == 0 && c.PayerControlNumber == "" && c.Frequency != "1" {
			c.PayerControlNumber = value
		}
	case "6R":
		c := s.lastClaim()
		c.Lines[len(c.Lines)-1].ControlNumber = value
	}
}

// cents reads what x12 wrote.
func cents(text string) x12.Cents {
	whole, fraction, _ := strings.Cut(text, ".")
	var sum x12.Cents
	for _, digit := range whole + (fraction + "00")[:2] {
		sum = sum*10 + x12.Cents(digit-'0')
	}
	return sum
}

// dollars writes an amount, always with cents: other writers than ours do.
func dollars(c x12.Cents) string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

// A set is a transaction set in the making, with * and : between its parts.
type set struct{ lines []string }

func (s *set) add(elements ...string) {
	s.lines = append(s.lines, strings.TrimRight(strings.Join(elements, "*"), "*"))
}

// file wraps a transaction set in its envelopes, for whoever sent the submission.
func (p *Payer) file(to, functional, number, guide string, inSet bool, s set) []byte {
	p.Control++
	usage, marks := p.Usage, p.Separators
	if usage == "" {
		usage = "T"
	}
	if marks == "" {
		marks = "*^:~"
	}
	head := "ST*" + number + "*0001"
	if inSet {
		head += "*" + guide
	}
	day, clock := p.At.Format("20060102"), p.At.Format("1504")
	lines := append([]string{
		fmt.Sprintf("ISA*00*          *00*          *ZZ*%-15s*ZZ*%-15s*%s*%s*^*00501*%09d*0*%s*:", p.ID, to, day[2:], clock, p.Control, usage),
		fmt.Sprintf("GS*%s*%s*%s*%s*%s*%d*X*%s", functional, p.ID, to, day, clock, p.Control, guide),
		head,
	}, s.lines...)
	lines = append(lines, fmt.Sprintf("SE*%d*0001", len(s.lines)+2), fmt.Sprintf("GE*1*%d", p.Control), fmt.Sprintf("IEA*1*%09d", p.Control))
	swap := strings.NewReplacer("*", marks[:1], "^", marks[1:2], ":", marks[2:3])
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(swap.Replace(line) + marks[3:4] + p.LineBreak)
	}
	return []byte(b.String())
}
