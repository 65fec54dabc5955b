package vitals

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Conversion factors as exact fractions.
// Source: docs/decisions/observations.md, "Weight in pounds" (NIST SP 811, appendix B: 1 lb = 0.45359237 kg exactly) and
// "Glucose units" (1 mmol/L of glucose = 18.0156 mg/dL).
var (
	kgPerPound   = big.NewRat(45_359_237, 100_000_000)
	mgDLPerMmolL = big.NewRat(180_156, 10_000)
	mmolLPerMgDL = new(big.Rat).Inv(mgDLPerMmolL)
	half         = big.NewRat(1, 2)
)

// KgFromPounds converts pounds to kilograms, half up to two decimals: 165 lb is 74.84 kg.
func KgFromPounds(pounds float64) float64 { return scale(pounds, kgPerPound, decimals) }

// MgDLFromMmolL converts glucose from mmol/L to mg/dL, half up to an integer: 5.6 mmol/L is 101 mg/dL.
func MgDLFromMmolL(mmolL float64) float64 { return scale(mmolL, mgDLPerMmolL, 0) }

// MmolLFromMgDL converts glucose from mg/dL to mmol/L, half up to one decimal: 101 mg/dL is 5.6 mmol/L.
func MmolLFromMgDL(mgDL float64) float64 { return scale(mgDL, mmolLPerMgDL, 1) }

// RoundHalfUp rounds to the given number of decimals, halves upwards: 2.675 becomes 2.68. NaN and the infinities
// come back as they are.
func RoundHalfUp(value float64, decimals int) float64 {
	var buffer [32]byte
	text := strconv.AppendFloat(buffer[:0], value, 'f', -1, 64)
	if _, fraction, _ := strings.Cut(string(text), "."); len(fraction) <= decimals {
		return value + 0 // nothing to round; the sum turns -0 into 0
	}
	return scale(value, big.NewRat(1, 1), decimals)
}

// scale multiplies and rounds without a binary rounding error on the way. The float 2.675 really is
// 2.67499999999999982236431605997495353221893310546875, which would round down; the shortest decimal that reads back
// as the same float is what the caller wrote, so that decimal, as an exact fraction, is what is multiplied and
// rounded. Only the result becomes a float again, the one nearest to the rounded decimal.
func scale(value float64, factor *big.Rat, decimals int) float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return value
	}
	exact, _ := new(big.Rat).SetString(strconv.FormatFloat(value, 'g', -1, 64))
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	exact.Mul(exact, factor)
	exact.Mul(exact, new(big.Rat).SetInt(unit))
	exact.Add(exact, half)
	whole := new(big.Int).Div(exact.Num(), exact.Denom()) // the floor, as the denominator is positive
	result, _ := new(big.Rat).SetFrac(whole, unit).Float64()
	return result
}
