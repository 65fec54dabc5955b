package web

import (
	"net/http"
	"time"
)

// Exports for the external tests of this package.

var (
	Tidy      = tidy
	ErrorBody = errorBody
)

// Filters has every kind of filter, as a handler would read them.
type Filters struct {
	Search   string
	ID       string
	Level    string
	Ordering string
	Day      string
	Active   *bool
	Minimum  *int64
	Between  Span
	Offset   int
	Size     int
}

func ReadFilters(c *Call) (Filters, error) {
	q := c.Query()
	p := q.Paging()
	f := Filters{
		Search: q.Text("search", 10), ID: q.PatientID(), Level: q.OneOf("level", "critical", "warning"),
		Ordering: q.Ordering("-created_at", "created_at"), Day: q.Date("day"), Active: q.Boolean("active"),
		Minimum: q.Integer("minimum"), Between: q.Between(), Offset: p.Offset(), Size: p.Size,
	}
	return f, q.Err()
}

// ListNumbers answers with a page of the numbers below count.
func ListNumbers(c *Call, count int) error {
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	var page []int
	for n := p.Offset(); n < min(p.Offset()+p.Size, count); n++ {
		page = append(page, n)
	}
	return RespondPage(c, p, count, page, 0)
}

// NewTestCall is a call without a server.
func NewTestCall(r *http.Request, zone *time.Location) *Call {
	return &Call{Request: r, zone: zone}
}
