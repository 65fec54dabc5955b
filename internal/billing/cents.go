package billing

import (
	"fmt"
	"math"
	"strconv"
)

// Cents is money in whole US cents. In JSON it is the amount in dollars with two decimals.
type Cents int64

// String is the amount in dollars with two decimals and a point: "43.02".
func (c Cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, int64(c)/100, int64(c)%100)
}

// MarshalJSON writes the amount as a number.
func (c Cents) MarshalJSON() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalJSON reads the amount as [Cents.MarshalJSON] writes it.
func (c *Cents) UnmarshalJSON(data []byte) error {
	dollars, err := strconv.ParseFloat(string(data), 64)
	cents, ok := CentsOf(dollars)
	if err != nil || !ok {
		return fmt.Errorf("%q is no amount", data)
	}
	*c = cents
	return nil
}

// shortest returns the amount in its shortest form: "43.5".
func (c Cents) shortest() string {
	return strconv.FormatFloat(float64(c)/100, 'f', -1, 64)
}

// maxDollars bounds every amount that a user enters.
const maxDollars = 1_000_000

// CentsOf converts dollars to cents; false for a negative amount, more than a million, or fractions of a cent.
func CentsOf(dollars float64) (Cents, bool) {
	text := strconv.FormatFloat(dollars, 'f', -1, 64)
	cents := math.Round(dollars * 100)
	if dollars < 0 || dollars > maxDollars || math.IsNaN(dollars) || Cents(cents).shortest() != text {
		return 0, false
	}
	return Cents(cents), true
}
