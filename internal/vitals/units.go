package vitals

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

var (
	zero = new(big.Rat)
	one  = big.NewRat(1, 1)
	half = big.NewRat(1, 2)
)

// RoundHalfUp rounds to the given number of decimals, halves upwards: 2.675 becomes 2.68. NaN and the infinities
// come back as they are.
func RoundHalfUp(value float64, decimals int) float64 {
	var buffer [32]byte
	text := strconv.AppendFloat(buffer[:0], value, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(string(text), "."); len(fraction) <= decimals {
		return value + 0 // nothing to round; the sum turns -0 into 0
	}
	return convert(value, zero, one, decimals)
}

// convert adds, multiplies and rounds without a binary rounding error on the way; what is added and multiplied by are exact fractions. The float 2.675 really is
// 2.67499999999999982236431605997495353221893310546875, which would round down; the shortest decimal that reads back
// as the same float is what the caller wrote, so that decimal, as an exact fraction, is what is multiplied and
// rounded. Only the result becomes a float again, the one nearest to the rounded decimal.
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
