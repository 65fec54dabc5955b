// Package x12 writes claims as ASC X12 files and reads what a payer answers: the 837P of 005010X222A1, the 999 of 005010X231A1, the 277CA of
// 005010X214 and the 835 of 005010X221A1, each by a table of its guide's segments. It knows plain values only: which line of which practice a
// control number belongs to, and what an answer does to it, is the caller's. It refuses to guess: a file that is not what its envelope or its
// sums say is refused as a whole, with the segment and the element that show it, and a claim that a guide does not allow is not written.
package x12

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// The guides, as GS08 and ST03 name them.
const (
	Guide837P  = "005010X222A1"
	Guide999   = "005010X231A1"
	Guide277CA = "005010X214"
	Guide835   = "005010X221A1"
)

// Cents is an amount of money.
type Cents int64

// A Fault says where a file is not X12 as it must be. It holds nothing of the file but the name and the place of a segment.
type Fault struct {
	Segment  string // the segment's name, such as CLP; the missing one's where one is missing
	Ordinal  int    // which segment of the file it is, from 1
	Position int    // which of its elements, from 1; 0 for the segment as a whole
	Reason   string
}

// Error is the fault in a sentence.
func (f *Fault) Error() string {
	if f.Position == 0 {
		return fmt.Sprintf("x12: segment %d, %s: %s", f.Ordinal, f.Segment, f.Reason)
	}
	return fmt.Sprintf("x12: segment %d, %s%02d: %s", f.Ordinal, f.Segment, f.Position, f.Reason)
}

// unprintable is embedded in what may name somebody or say what was done for them: such a value refuses to print.
type unprintable struct{}

func (unprintable) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[x12]") }

func (unprintable) LogValue() slog.Value { return slog.StringValue("[x12]") }

func (unprintable) MarshalJSON() ([]byte, error) { return nil, errors.New("x12: encode single fields") }

var _ json.Marshaler = unprintable{}

// decimal is the amount as an element of type R: no zeros that say nothing, a point only before cents.
func (c Cents) decimal() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	whole, cents := strconv.FormatInt(int64(c/100), 10), ""
	if c%100 != 0 {
		cents = strings.TrimRight(fmt.Sprintf(".%02d", c%100), "0")
		whole = strings.TrimLeft(whole, "0")
	}
	return sign + whole + cents
}

// maxDigits bounds the dollars of an amount that is read: above the ten characters that the guides allow, and so low that a whole file of them
// adds up in 64 bits of cents.
const maxDigits = 10

// centsOf reads an element of type R; false for anything else, an exponent and fractions of a cent.
func centsOf(text string) (Cents, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	fraction = strings.TrimRight(fraction, "0")
	if whole+fraction == "" && !strings.ContainsRune(digits, '0') || len(whole) > maxDigits || len(fraction) > 2 || !isNumeric(whole+fraction) {
		return 0, false
	}
	value, err := strconv.ParseInt(whole+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return 0, false
	}
	if negative {
		value = -value
	}
	return Cents(value), true
}

// isNumeric says that there is nothing but digits.
func isNumeric(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
