package routes

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
)

// query reads the parameters of a request and collects what is wrong with them, by parameter. A parameter that is
// left out is a filter not asked for; one that is sent must be valid, the empty text included. Unknown parameters
// are ignored. Source: docs/decisions/conventions.md, "Booleans, enums and unknown filters in queries".
type query struct {
	values url.Values
	checks *input.Checks
	zone   *time.Location
}

func (c *call) query() *query {
	q := &query{checks: input.NewChecks(), zone: c.zone}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		q.checks.Reject(fault.NonField, "The query string is malformed.")
	}
	q.values = values
	return q
}

// err is nil when every parameter read was valid.
func (q *query) err() error { return q.checks.Err() }

// field is the parameter in the form in which bodies are checked.
func (q *query) field(name string) input.String {
	if !q.values.Has(name) {
		return input.String{}
	}
	return input.Of(q.values.Get(name))
}

// text is a search term of 1 to max characters, trimmed and normalised; "" when left out.
func (q *query) text(name string, max int) string {
	if !q.values.Has(name) {
		return ""
	}
	return q.checks.Text(name, q.field(name), input.Required(max))
}

// patientID is the filter by patient, a lower-case UUID; "" when left out.
func (q *query) patientID() string { return q.checks.UUID("patient_id", q.field("patient_id"), false) }

// date is a calendar date, YYYY-MM-DD; "" when left out.
func (q *query) date(name string) string { return q.checks.Date(name, q.field(name), false) }

// integer is nil when left out.
func (q *query) integer(name string) *int64 {
	if !q.values.Has(name) {
		return nil
	}
	value, err := strconv.ParseInt(q.values.Get(name), 10, 64)
	if err != nil {
		q.checks.Reject(name, "A valid integer is required.")
		return nil
	}
	return &value
}

// boolean is nil when left out.
func (q *query) boolean(name string) *bool {
	if !q.values.Has(name) {
		return nil
	}
	var value bool
	switch strings.ToLower(q.values.Get(name)) {
	case "true", "1":
		value = true
	case "false", "0":
	default:
		q.checks.Reject(name, "Must be true or false.")
		return nil
	}
	return &value
}

// oneOf is one of the documented values; "" when left out.
func (q *query) oneOf(name string, values ...string) string {
	if !q.values.Has(name) {
		return ""
	}
	value := q.values.Get(name)
	if !slices.Contains(values, value) {
		q.checks.Reject(name, fmt.Sprintf("Must be one of: %s.", strings.Join(values, ", ")))
		return ""
	}
	return value
}

// ordering is one of the documented orders ("-" in front for descending), the first of them when left out.
func (q *query) ordering(orders ...string) string {
	if chosen := q.oneOf("ordering", orders...); chosen != "" {
		return chosen
	}
	return orders[0]
}

// span is a stretch of time, both ends included; a zero end is open.
type span struct{ From, To time.Time }

// between reads date_from and date_to. A bare date is a day in the practice's zone, the whole of it.
// Source: docs/decisions/conventions.md, "Date filters".
func (q *query) between() span {
	const from, to = "date_from", "date_to"
	s := span{From: q.edge(from, false), To: q.edge(to, true)}
	if !s.From.IsZero() && !s.To.IsZero() && s.From.After(s.To) {
		q.checks.Reject(from, "Must not be after date_to.")
	}
	return s
}

// edge reads one end of a span; a bare date is its first moment, or its last at the end of the span.
func (q *query) edge(name string, isEnd bool) time.Time {
	if !q.values.Has(name) {
		return time.Time{}
	}
	text := strings.TrimSpace(q.values.Get(name))
	if _, err := input.ParseDate(text); err == nil {
		first := collections.ParseDay(text, q.zone).UTC()
		if isEnd {
			return collections.StartOfNextDay(first.In(q.zone)).UTC().Add(-time.Microsecond)
		}
		return first
	}
	at, err := input.ParseInstant(text)
	if err != nil {
		q.checks.Reject(name, "Must be a date or an ISO 8601 date-time.")
	}
	return at
}
