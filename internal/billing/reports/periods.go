package reports

import (
	"cmp"
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/billing"
)

// periodTotals is the totals of a period.
type periodTotals struct {
	Bucket
	billing.Totals
}

// periods returns the totals of each period of a span; zeros for periods without entries.
func (m *builder) periods(group string) ([]periodTotals, error) {
	by := billing.ByDay
	if group == ByMonth {
		by = billing.ByMonth
	}
	sums, err := m.totals(by)
	if err != nil {
		return nil, err
	}
	periods, next := []periodTotals{}, 0
	for _, b := range Buckets(m.q.From, m.q.To, group) {
		first := next
		for next < len(sums) && cmp.Or(sums[next].Day, sums[next].Month) <= b.Last {
			next++
		}
		periods = append(periods, periodTotals{b, addUp(sums[first:next])})
	}
	return periods, nil
}

// The groupings of a breakdown.
const (
	ByDay   = "day"
	ByWeek  = "week"
	ByMonth = "month"
)

// Bucket is one period of a breakdown, limited to the requested span. Week keys follow ISO 8601; their year can differ from the day's.
type Bucket struct{ Key, First, Last string }

// Group returns the grouping of a span: by day up to 31 days, by week up to 182, else by month. Source: docs/decisions/billing.md, "Automatic
// grouping".
func Group(from, to string) string {
	switch days := billing.DaysBetween(from, to) + 1; {
	case days <= 31:
		return ByDay
	case days <= 182:
		return ByWeek
	}
	return ByMonth
}

// Buckets returns the consecutive periods of a span; the first and the last may be shorter.
func Buckets(from, to, group string) (buckets []Bucket) {
	for day := from; day <= to; {
		at := billing.ParseDay(day)
		b := Bucket{Key: day, First: day, Last: day}
		switch group {
		case ByWeek:
			year, week := at.ISOWeek()
			b.Key = fmt.Sprintf("%04d-W%02d", year, week)
			b.Last = billing.AddDays(day, (7-int(at.Weekday()))%7) // Sunday ends the week
		case ByMonth:
			b.Key = day[:len("2006-01")]
			b.Last = time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
		}
		b.Last = min(b.Last, to)
		buckets = append(buckets, b)
		day = billing.AddDays(b.Last, 1)
	}
	return buckets
}

// whole reports whether a bucket is a complete month.
func (b Bucket) whole() bool {
	return len(b.Key) == len("2006-01") && b.First[8:] == "01" && billing.AddDays(b.Last, 1)[8:] == "01"
}
