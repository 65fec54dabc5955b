package vitals

import "strconv"

// FormatNumber formats a value with the fewest digits that identify it: 98.6, 185.
func FormatNumber(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
