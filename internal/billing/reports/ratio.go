package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// ratio returns n ÷ d rounded half away from zero to a number of decimals, in integer arithmetic; 0 if d is not positive.
func ratio(n, d int64, decimals int) float64 {
	if d <= 0 {
		return 0
	}
	if n < 0 {
		return -ratio(-n, d, decimals)
	}
	scale := int64(1)
	for range decimals {
		scale *= 10
	}
	return float64((2*n*scale+d)/(2*d)) / float64(scale)
}

// fraction returns n ÷ d with four decimals.
func fraction[T, U ~int | ~int64](n T, d U) float64 { return ratio(int64(n), int64(d), 4) }

// relativeChange returns the relative change from before to now, times the factor; nil if before is not positive.
func relativeChange(before, now billing.Cents, factor int64, decimals int) *float64 {
	if before <= 0 {
		return nil
	}
	return new(ratio(int64(now-before)*factor, int64(before), decimals))
}

// averageOf returns an amount divided by n, rounded to the cent.
func averageOf(amount billing.Cents, n int) billing.Cents {
	if n <= 0 {
		return 0
	}
	return (2*amount + billing.Cents(n)) / (2 * billing.Cents(n))
}
