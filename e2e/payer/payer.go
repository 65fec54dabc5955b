// Package payer is a payer for tests: it reads an 837P and answers with a 999, a 277CA and an 835 as the test prescribes, by
// the implementation guides of package x12. It formats its files itself, so that the service's reader is not tested with
// files of the service's own writer. It makes no decision about claims.
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
	Usage    string // T if empty
	// Separators are those of elements, repetitions, components and segments; "*^:~" if empty.
	Separators string
	// LineBreak follows every segment, such as "\r
	// ".
	LineBreak string
}

// A Submission is an 837P as the payer read it.
type Submission struct {
	Sender, Group, Set, Batch string
	Submitter                 x12.Party
	Claims                    []Claim
	first                     int // ordinal of ST in its file
}

// A Claim is a claim of a submission.
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

// Number returns the payer's control number of a claim.
func (c Claim) Number() string { return "P" + c.ControlNumber }

// Read837P reads an 837P with one transaction set.
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
	var context Claim // shared by all claims below a level
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
		if len(s.Claims) == 0 || context.Lines == nil { // not the identifier of another payer, within a claim
			context.Filing = at(9)
		}
	case "HL":
		context.Lines = nil
	case "CLM":
		c := *context
		c.ControlNumber, c.Charge, c.Lines, c.ordinal = at(1), cents(at(2)), nil, segment.Ordinal
		c.Place, c.Frequency = segment.Component(5, 1), segment.Component(5, 3)
		s.Claims = append(s.Claims, c)
		context.Lines = []Line{} // within claims from here on
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

// cents parses an amount.
func cents(text string) x12.Cents {
	whole, fraction, _ := strings.Cut(text, ".")
	var sum x12.Cents
	for _, digit := range whole + (fraction + "00")[:2] {
		sum = sum*10 + x12.Cents(digit-'0')
	}
	return sum
}

// dollars formats an amount, always with cents.
func dollars(c x12.Cents) string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

// A set is a transaction set under construction, with * and : as separators.
type set struct{ lines []string }

func (s *set) add(elements ...string) {
	s.lines = append(s.lines, strings.TrimRight(strings.Join(elements, "*"), "*"))
}

// file wraps a transaction set in its envelopes, addressed to the sender of the submission.
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
