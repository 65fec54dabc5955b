package reports

import (
	"github.com/vigilhealth/vigil/internal/billing"
)

// ratio is n ÷ d rounded half away from zero to a number of decimals; 0 when there is nothing to divide by. It is worked out in whole numbers.
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

// fraction is a fraction with four decimals.
func fraction[T, U ~int | ~int64](n T, d U) float64 { return ratio(int64(n), int64(d), 4) }

// relativeChange is how much now is more than before, as a fraction with four decimals times the factor; nil after nothing.
func relativeChange(before, now billing.Cents, factor int64, decimals int) *float64 {
	if before <= 0 {
		return nil
	}
	return new(ratio(int64(now-before)*factor, int64(before), decimals))
}

// averageOf is an amount for each of some; rounded to the cent.
func averageOf(amount billing.Cents, n int) billing.Cents {
	if n <= 0 {
		return 0
	}
	return (2*amount + billing.Cents(n)) / (2 * billing.Cents(n))
}
