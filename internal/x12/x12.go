// Package x12 writes claims as ASC X12 files and reads the responses of payers: the 837P of 005010X222A1, the 999 of 005010X231A1, the 277CA of
// 005010X214 and the 835 of 005010X221A1, each by a table of its guide's segments. It has plain values only: the caller maps control numbers to its
// records and applies the responses. It never guesses: a file that contradicts its envelope or its sums is rejected as a whole, with the segment and
// element at fault, a claim of an 835 that cannot be read is returned with its fault, and a claim that a guide does not allow is not written.
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

// The guide identifiers of GS08 and ST03.
const (
	Guide837P  = "005010X222A1"
	Guide999   = "005010X231A1"
	Guide277CA = "005010X214"
	Guide835   = "005010X221A1"
)

// Cents is an amount in US cents.
type Cents int64

// A ParseError locates an error in an X12 file. It contains the name and position of a segment, and no other data of the file.
type ParseError struct {
	Segment  string // segment name, such as CLP; for a missing segment, its name
	Ordinal  int    // position of the segment in the file, from 1
	Position int    // position of the element, from 1; 0 for the whole segment
	Reason   string
}

func (f *ParseError) Error() string {
	return "x12: " + f.Location() + ": " + f.Reason
}

// Location returns where the error is, such as "segment 27, CAS01".
func (f *ParseError) Location() string {
	if f.Position == 0 {
		return fmt.Sprintf("segment %d, %s", f.Ordinal, f.Segment)
	}
	return fmt.Sprintf("segment %d, %s%02d", f.Ordinal, f.Segment, f.Position)
}

// unprintable is embedded in types that may carry PHI: they do not print.
type unprintable struct{}

func (unprintable) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, "[x12]") }

func (unprintable) LogValue() slog.Value { return slog.StringValue("[x12]") }

func (unprintable) MarshalJSON() ([]byte, error) { return nil, errors.New("x12: encode single fields") }

var _ json.Marshaler = unprintable{}

// decimal formats the amount as an element of type R: no insignificant zeros, and a point only before cents.
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

// maxDigits limits the dollars of an amount: above the ten characters that the guides allow, and low enough that the sum of a whole file fits into 64
// bits of cents.
const maxDigits = 10

// centsOf parses an element of type R; false for anything else, including exponents and fractions of a cent.
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

// isNumeric reports whether a text has only digits.
func isNumeric(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
