package vitals

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Text returns a value with label and unit: Systolic 204 mmHg.
func (p *Parameter) Text(value float64) string {
	return p.Label + " " + FormatNumber(value) + " " + p.Range.Unit
}

// ValueText returns a value of the reading without its unit; one that the device showed as a word is "above 600" or "below 20".
func (r *Reading) ValueText(p *Parameter) string {
	value := r.Value(p)
	if value == nil {
		return ""
	}
	if len(p.DisplayWords) > 0 {
		switch r.Qualifier(Comparator) {
		case ComparatorAbove:
			return "above " + FormatNumber(*value)
		case ComparatorBelow:
			return "below " + FormatNumber(*value)
		}
	}
	return FormatNumber(*value)
}

// AbnormalText names an out-of-range value of an alert's group without its number, such as "low
// oxygen saturation"; "" for other groups. Source: the contract's phrases for pushes.
func AbnormalText(group string, value, bound *float64) string {
	for _, p := range Parameters {
		if p.Group != group || p.Abnormal == "" {
			continue
		}
		if p.AbnormalHigh != "" && value != nil && bound != nil && (*value > *bound || *value == *bound && *bound >= p.HighFrom) {
			return p.AbnormalHigh
		}
		return p.Abnormal
	}
	return ""
}

// FormatNumber formats a value with the fewest digits that identify it: 98.6, 185.
func FormatNumber(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

var (
	zero = new(big.Rat)
	one  = big.NewRat(1, 1)
	half = big.NewRat(1, 2)
)

// RoundHalfUp rounds to the given number of decimals, halves up: 2.675 becomes 2.68. NaN and infinities are returned unchanged.
func RoundHalfUp(value float64, decimals int) float64 {
	var buffer [32]byte
	text := strconv.AppendFloat(buffer[:0], value, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(string(text), "."); len(fraction) <= decimals {
		return value + 0 // nothing to round; the sum turns -0 into 0
	}
	return convert(value, zero, one, decimals)
}

// RoundHundredths rounds the result of a calculation to the stored precision, halves away from zero, so that 82.3 − 80 is 2.3 and meets the bound 2.3.
func RoundHundredths(value float64) float64 { return math.Round(value*100) / 100 }

// convert adds, multiplies and rounds exactly; plus and times are fractions. The float 2.675 is
// 2.67499999999999982236431605997495353221893310546875, which would round down, but its shortest decimal is what the caller wrote. That
// decimal, as a fraction, is converted and rounded, and only the result becomes a float, the nearest one.
func convert(value float64, plus, times *big.Rat, decimals int) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return value
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(value, 'g', -1, 64))
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	exact.Mul(exact.Add(exact, plus), times)
	exact.Mul(exact, new(big.Rat).SetInt(unit))
	exact.Add(exact, half)
	whole := new(big.Int).Div(exact.Num(), exact.Denom()) // the floor, as the denominator is positive
	result, _ := new(big.Rat).SetFrac(whole, unit).Float64()
	return result
}
