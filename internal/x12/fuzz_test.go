package x12_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/e2e/payer"
	"github.com/vigilhealth/vigil/internal/x12"
)

// seeds are files of every kind, complete and truncated.
func seeds(f *testing.F) {
	f.Helper()
	file := written(f, batchOf(10))
	s := received(f, file)
	p := newPayer()
	first := s.Claims[0].ControlNumber
	whole := [][]byte{
		file,
		p.Write999(s), p.Write999(s, payer.Fault{Claim: first, Element: 2, Code: "1"}),
		p.Write277CA(s, map[string]payer.Rejection{first: {Category: "A7", Code: "562"}}),
		p.Write835(s, map[string]payer.Decision{first: payer.Then(payer.Full(), payer.Reverse(payer.Full()), payer.Deny("CO", "50", "N115"))},
			x12.ProviderAdjustment{Reason: "WO", Amount: 100}),
		[]byte(receiptFile),
	}
	for _, one := range whole {
		f.Add(one)
		f.Add(one[:len(one)/2])
		f.Add(bytes.ReplaceAll(one, []byte("~"), []byte("\r\n")))
		f.Add(append(bytes.Clone(one), one...))
	}
}

// For any input, Read does not panic, its errors are faults without data, and the result survives writing and reading.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		first, err := x12.Read(file)
		if err != nil {
			var fault *x12.ParseError
			if !errors.As(err, &fault) || fault.Segment == "" || fault.Ordinal < 1 || fault.Position < 0 || fault.Reason == "" {
				t.Fatalf("not a fault: %#v", err)
			}
			return
		}
		once := encode(first)
		second, err := x12.Read(once)
		if err != nil {
			t.Fatalf("written again it is refused: %v\n%q", err, once)
		}
		if twice := encode(second); !bytes.Equal(once, twice) {
			t.Fatalf("written once\n%q\ntwice\n%q", once, twice)
		}
	})
}

func encode(interchanges []x12.Interchange) (file []byte) {
	for _, in := range interchanges {
		file = append(file, x12.Encode(in)...)
	}
	return file
}

// For any input, ReadResponses does not panic and is deterministic.
func FuzzAnswers(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, file []byte) {
		first, err := x12.ReadResponses(file)
		if err != nil {
			var fault *x12.ParseError
			if !errors.As(err, &fault) || len(first) > 0 {
				t.Fatalf("%d answers and %#v", len(first), err)
			}
			return
		}
		second, err := x12.ReadResponses(file)
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("another answer the second time: %v", err)
		}
		for _, a := range first {
			if a.Type == x12.TypeRemittance && !reflect.DeepEqual(balanced(a.Remittance), a.Remittance.Total) {
				t.Fatal("a payment that does not balance was taken")
			}
		}
	})
}

// balanced checks the sums of an 835 independently of the package.
func balanced(p *x12.Remittance) (total x12.Cents) {
	for _, c := range p.Claims {
		total += c.Charge
		for _, a := range c.Adjustments {
			total -= a.Amount
		}
		for _, line := range c.Lines {
			for _, a := range line.Adjustments {
				total -= a.Amount
			}
		}
	}
	for _, a := range p.ProviderAdjustments {
		total -= a.Amount
	}
	return total
}

// A text is converted to the basic set or rejected, and a converted text does not change again.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"Zoë Núñez", "Łukasz", "O’Brien", "a*b~c:d^e", "李", "Straße", "½ Ave", "\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, ok := x12.Plain(text)
		if !ok {
			return
		}
		if strings.ContainsAny(once, "*~:^|") || once != strings.ToUpper(once) || strings.IndexFunc(once, func(r rune) bool { return r < ' ' || r > '_' }) >= 0 {
			t.Fatalf("%q became %q", text, once)
		}
		if twice, ok := x12.Plain(once); !ok || twice != once {
			t.Fatalf("%q became %q, then %q", text, once, twice)
		}
	})
}

// A written amount reads as the same amount.
func FuzzCents(f *testing.F) {
	for _, seed := range []int64{0, 1, -1, 50, 4302, -100, 99_999_999_99} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value int64) {
		cents := x12.Cents(value % 1e12)
		text := x12.Decimal(cents)
		if again, ok := x12.CentsOf(text); !ok || again != cents {
			t.Fatalf("%d is written %q and read %d", cents, text, again)
		}
		if strings.HasSuffix(text, ".") || strings.Contains(text, ".") && strings.HasSuffix(text, "0") || len(text) > 1 && text[0] == '0' {
			t.Fatalf("%q has zeros that say nothing", text)
		}
	})
}
