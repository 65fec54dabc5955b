package x12

import (
	"strings"
	"time"
)

// dayOf is CCYYMMDD as YYYY-MM-DD; "" for what is no day.
func dayOf(text string) string {
	day, err := time.Parse("20060102", text)
	if err != nil {
		return ""
	}
	return day.Format(time.DateOnly)
}

// period reads a date by its format qualifier: D8 for a day, RD8 for a range. Both are "" for neither.
func period(qualifier, text string) (from, through string) {
	switch qualifier {
	case "D8":
		from = dayOf(text)
		return from, from
	case "RD8":
		first, last, _ := strings.Cut(text, "-")
		from, through = dayOf(first), dayOf(last)
		if from != "" && from <= through {
			return from, through
		}
	}
	return "", ""
}
