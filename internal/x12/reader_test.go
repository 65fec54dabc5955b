package x12_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/x12"
)

// receiptFile is an interchange with only a TA1.
const receiptFile = "ISA*00*          *00*          *ZZ*CLEARHOUSE     *ZZ*VIGIL01        *261103*0930*^*00501*000000201*0*P*:~" +
	"TA1*000004711*261102*0930*R*018~IEA*0*000000201~"

// remittance is an 835 for ten claims, one of them denied.
func remittance(t testing.TB, p *payer.Payer) []byte {
	t.Helper()
	s := received(t, written(t, batchOf(10)))
	return p.Write835(s, map[string]payer.Decision{
		s.Claims[1].ControlNumber: payer.Deny("CO", "50", "N115"),
		s.Claims[2].ControlNumber: payer.Partly(1000, 500, 300),
	})
}

// summarize formats every field of a response for comparison, because the values do not print.
func summarize(t testing.TB, file []byte) []string {
	t.Helper()
	answers, err := x12.ReadResponses(file, "VIGIL01")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, a := range answers {
		p := a.Remittance
		list = append(list, fmt.Sprint(a.Type, a.Sender, a.Set, p.Total, p.Method, p.PaidOn, p.Payer, p.Payee, p.ProviderAdjustments))
		for _, c := range p.Claims {
			list = append(list, fmt.Sprint(c.ControlNumber, c.Status, c.Charge, c.Paid, c.PatientResponsibility, c.PayerControlNumber, c.From, c.Through, c.RemarkCodes))
			for _, line := range c.Lines {
				list = append(list, fmt.Sprint(line.ControlNumber, line.Procedure, line.Modifiers, line.Charge, line.Paid, line.Units, line.From, line.Through, line.Adjustments, line.RemarkCodes))
			}
		}
	}
	return list
}

// A file reads the same with any separators and line breaks.
func TestReadSeparatorsAndLineBreaks(t *testing.T) {
	plain := remittance(t, newPayer())
	want := summarize(t, plain)
	if len(want) != 1+10+30 {
		t.Fatalf("%d lines", len(want))
	}
	with := func(marks, lineBreak string) []byte {
		p := newPayer()
		p.Separators, p.LineBreak = marks, lineBreak
		return remittance(t, p)
	}
	wrapped := func(file []byte, width int) (out []byte) {
		for chunk := range slices.Chunk(file, width) {
			out = append(append(out, chunk...), "\r\n"...)
		}
		return out
	}
	bold := replaced(t, plain, "*EDI SUPPORT", "*EDI S\xdcPPORT") // ISO 8859-1
	files := map[string][]byte{
		"other separators":              with("|^>!", ""),
		"control characters":            with("\x1d\x1e\x1f\x1c", ""),
		"a line break after each":       with("*^:~", "\n"),
		"two characters after each":     with("*^:~", "\r\n"),
		"a line break as terminator":    with("*^:\n", ""),
		"a return as terminator":        with("*^:\r", "\n"),
		"empty lines between":           with("*^:~", "\n\n  "),
		"no repetition separator":       with("*U:~", ""),
		"wrapped at 80":                 wrapped(plain, 80),
		"wrapped at 7":                  wrapped(plain, 7),
		"a byte order mark":             append([]byte("\uFEFF"), plain...),
		"blanks around":                 append(append([]byte("\r\n  "), plain...), " \r\n\x1a"...),
		"ISO 8859-1":                    bold,
		"empty segments":                bytes.ReplaceAll(plain, []byte("~LX*1~"), []byte("~~LX*1~~")),
		"separators at the end":         bytes.ReplaceAll(plain, []byte("~LX*1~"), []byte("~LX*1***~")),
		"zeros before a group's number": replaced(t, plain, "GE*1*101", "GE*1*000101"),
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			if got := summarize(t, file); !reflect.DeepEqual(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// All interchanges, groups and transaction sets of a file are read, in order, each with its own separators.
func TestReadAllInterchanges(t *testing.T) {
	p := newPayer()
	s := received(t, written(t, batchOf(3)))
	file := append(p.Write999(s), '\n')
	p.Separators = "|^>\n"
	file = append(file, p.Write277CA(s, nil)...)
	file = append(file, receiptFile...)
	p.Separators = ""
	paid := string(p.Write835(s, nil))
	set := paid[strings.Index(paid, "ST*"):strings.Index(paid, "GE*")]
	group := paid[strings.Index(paid, "GS*"):strings.Index(paid, "IEA*")]
	second := strings.NewReplacer("*103*X*", "*104*X*", "GE*1*103", "GE*2*104", set, set+strings.NewReplacer("ST*835*0001", "ST*835*0002", "*0001~", "*0002~").Replace(set)).Replace(group)
	file = append(file, strings.NewReplacer(group, group+second, "IEA*1*", "IEA*2*").Replace(paid)...)
	answers, err := x12.ReadResponses(file, "VIGIL01")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprint(a.Type, " ", a.Interchange, " ", a.Group, " ", a.Set, " ", a.Test))
	}
	want := []string{
		"999 000000101 101 0001 true", "277CA 000000102 102 0001 true", "TA1 000000201   false", "835 000000103 103 0001 true", "835 000000103 104 0001 true",
		"835 000000103 104 0002 true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if r := answers[2].InterchangeAck; *r != (x12.InterchangeAck{ControlNumber: "000004711", Date: "261102", Time: "0930", Code: "R", Note: "018"}) {
		t.Errorf("the receipt is %+v", r)
	}
}

// Each incomplete envelope is rejected, with the segment and element at fault.
func TestEnvelopeFaults(t *testing.T) {
	file := remittance(t, newPayer())
	total := bytes.Count(file, []byte("~"))
	change := func(from, to string) []byte { return replaced(t, file, from, to) }
	for name, c := range map[string]struct {
		file              []byte
		segment           string
		ordinal, position int
	}{
		"nothing":                     {nil, "ISA", 1, 0},
		"something else":              {[]byte("%PDF-1.7 a document"), "ISA", 1, 0},
		"half an ISA":                 {file[:60], "ISA", 1, 0},
		"no terminator":               {file[:105], "ISA", 1, 0},
		"a narrow element":            {change("*ZZ*12345          *", "*ZZ*12345         *"), "ISA", 1, 6},
		"a separator in an element":   {change("*ZZ*12345          *", "*ZZ*123*5          *"), "ISA", 1, 6},
		"a letter as separator":       {change("*T*:~", "*T*A~"), "ISA", 1, 16},
		"one separator twice":         {change("*T*:~", "*T**~"), "ISA", 1, 16},
		"repetition as element":       {change("*0930*^*00501", "*0930***00501"), "ISA", 1, 11},
		"a short date":                {change("*261103*", "*2611 3*"), "ISA", 1, 9},
		"no control number":           {change("*000000101*0*", "*         *0*"), "ISA", 1, 13},
		"no sender":                   {change("*ZZ*12345          *", "*ZZ*               *"), "ISA", 1, 6},
		"an older version":            {change("*00501*", "*00401*"), "ISA", 1, 12},
		"no usage":                    {change("*0*T*:", "*0*X*:"), "ISA", 1, 15},
		"another receiver":            {change("*ZZ*VIGIL01        *", "*ZZ*SOMEBODYELSE   *"), "ISA", 1, 8},
		"GS before its time":          {change("GS*HP", "XX*HP"), "XX", 2, 0},
		"a group's number":            {change("*101*X*", "*A01*X*"), "GS", 2, 6},
		"a group's date":              {change("VIGIL01*20261103*0930*101", "VIGIL01*20261303*0930*101"), "GS", 2, 4},
		"an agency":                   {change("*101*X*", "*101*T*"), "GS", 2, 7},
		"another guide":               {change("005010X221A1", "004010X091A1"), "GS", 2, 8},
		"another group":               {change("GS*HP", "GS*HN"), "GS", 2, 1},
		"no ST":                       {change("ST*835*0001~", ""), "BPR", 3, 0},
		"another transaction":         {change("ST*835*", "ST*820*"), "ST", 3, 1},
		"ST02":                        {change("ST*835*0001", "ST*835*0002"), "SE", total - 2, 2},
		"SE01":                        {change(fmt.Sprintf("SE*%d*", total-4), "SE*7*"), "SE", total - 2, 1},
		"SE01 no number":              {change(fmt.Sprintf("SE*%d*", total-4), "SE*x*"), "SE", total - 2, 1},
		"GE01":                        {change("GE*1*", "GE*2*"), "GE", total - 1, 1},
		"GE02":                        {change("GE*1*101", "GE*1*102"), "GE", total - 1, 2},
		"GE02 missing":                {change("GE*1*101", "GE*1"), "GE", total - 1, 2},
		"IEA01":                       {change("IEA*1*", "IEA*0*"), "IEA", total, 1},
		"IEA02":                       {change("IEA*1*000000101", "IEA*1*000000102"), "IEA", total, 2},
		"no IEA":                      {change("IEA*1*000000101~", ""), "IEA", total, 0},
		"no GE":                       {change("GE*1*101~", ""), "IEA", total - 1, 0},
		"no SE":                       {change(fmt.Sprintf("SE*%d*0001~", total-4), ""), "GE", total - 2, 0},
		"cut off":                     {bytes.TrimSuffix(file, []byte("~")), "IEA", total, 0},
		"cut off in the middle":       {file[:bytes.Index(file, []byte("LX*1"))], "SE", 13, 0},
		"no name of a segment":        {change("LX*1~", "lx*1~"), "?", 13, 0},
		"a control character":         {change("*EDI SUPPORT*", "*EDI\x01SUPPORT*"), "PER", 11, 2},
		"too many elements":           {change("LX*1~", "LX*"+strings.Repeat("1*", 300)+"1~"), "LX", 13, 0},
		"a set's number twice":        {twice(t, file), "ST", total - 1, 2},
		"after the interchange":       {append(bytes.Clone(file), "GS*HP~"...), "ISA", total + 1, 0},
		"a file of nothing to answer": {[]byte(strings.NewReplacer("TA1*000004711*261102*0930*R*018~", "").Replace(receiptFile)), "IEA", 2, 1},
		"a receipt's word":            {[]byte(strings.Replace(receiptFile, "*R*018", "*Q*018", 1)), "TA1", 2, 4},
	} {
		t.Run(name, func(t *testing.T) {
			wantFault(t, c.file, c.segment, c.ordinal, c.position)
		})
	}
}

// twice is a file with the same transaction set two times.
func twice(t testing.TB, file []byte) []byte {
	t.Helper()
	set := file[bytes.Index(file, []byte("ST*")):bytes.Index(file, []byte("GE*"))]
	file = bytes.Replace(file, set, append(bytes.Clone(set), set...), 1)
	return replaced(t, file, "GE*1*", "GE*2*")
}

func wantFault(t *testing.T, file []byte, segment string, ordinal, position int) {
	t.Helper()
	_, err := x12.ReadResponses(file, "VIGIL01", "OTHER")
	var fault *x12.ParseError
	if !errors.As(err, &fault) {
		t.Fatalf("no fault but %v", err)
	}
	if fault.Segment != segment || fault.Ordinal != ordinal || fault.Position != position {
		t.Errorf("%s %d %d, want %s %d %d: %v", fault.Segment, fault.Ordinal, fault.Position, segment, ordinal, position, fault)
	}
}

// Two groups of an interchange cannot share a control number.
func TestDuplicateGroupNumber(t *testing.T) {
	file := string(remittance(t, newPayer()))
	group := file[strings.Index(file, "GS*"):strings.Index(file, "IEA*")]
	file = strings.Replace(strings.Replace(file, group, group+group, 1), "IEA*1*", "IEA*2*", 1)
	wantFault(t, []byte(file), "GS", 2+strings.Count(group, "~"), 6)
}

// Oversized files are rejected early.
func TestLimits(t *testing.T) {
	wantFault(t, make([]byte, x12.MaxBytes+1), "ISA", 1, 0)
	file := replaced(t, remittance(t, newPayer()), "LX*1~", strings.Repeat("LX*1~", x12.MaxSegments))
	wantFault(t, file, "LX", x12.MaxSegments+1, 0)
}

// Without receivers, a file for any receiver is accepted.
func TestReceivers(t *testing.T) {
	file := remittance(t, newPayer())
	for _, receivers := range [][]string{nil, {"vigil01"}, {"OTHER", " VIGIL01 "}} {
		if _, err := x12.ReadResponses(file, receivers...); err != nil {
			t.Errorf("%q: %v", receivers, err)
		}
	}
}

// Neither a fault nor a printed value contains PHI.
func TestValuesDoNotPrint(t *testing.T) {
	file := remittance(t, newPayer())
	names := []string{"BRIEN", "LINDSTR", "1EG4TE", "VC0000", "168.52"}
	check := func(text string) {
		t.Helper()
		for _, name := range names {
			if strings.Contains(strings.ToUpper(text), name) {
				t.Errorf("%q is in %.200q", name, text)
			}
		}
	}
	for at := 106; at < len(file); at += 3 { // remove every third character
		if _, err := x12.ReadResponses(append(bytes.Clone(file[:at]), file[at+1:]...)); err != nil {
			check(err.Error())
		}
	}
	answers, err := x12.ReadResponses(file)
	if err != nil {
		t.Fatal(err)
	}
	p := answers[0].Remittance
	interchanges, err := x12.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	batch := batchOf(3)
	for _, value := range []any{
		answers, p, p.Claims, p.Claims[0], p.Claims[0].Lines, interchanges, interchanges[0].Groups[0].Sets[0].Segments[20], batch, batch.Claims, batch.Claims[0].Coverage.Subscriber,
	} {
		check(fmt.Sprintf("%v %+v %#v", value, value, value))
	}
	if _, err := p.Claims[0].MarshalJSON(); err == nil {
		t.Error("a claim became JSON")
	}
	if got := p.Claims[0].LogValue().String(); got != "[x12]" {
		t.Errorf("logged as %q", got)
	}
}

// Padding blanks of elements are ignored.
func TestPaddedElements(t *testing.T) {
	plain := remittance(t, newPayer())
	want := summarize(t, plain)
	file := replaced(t, replaced(t, plain, "CLP*VC00000000*1*", "CLP* VC00000000  *1 *"), "SVC*HC:99454*", "SVC*HC:99454  *")
	if got := summarize(t, file); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
