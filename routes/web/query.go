package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Query reads the parameters of a request and collects their errors. A filter that is left out does not apply; a filter
// that is sent must be valid and not empty. Unknown parameters are refused before the handler. Source: docs/decisions/conventions.md,
// "Booleans, enums and unknown filters in queries".
type Query struct {
	values url.Values
	checks *validate.Checks
	zone   *time.Location
}

func (c *Call) Query() *Query {
	q := &Query{checks: validate.NewChecks(), zone: c.zone}
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		q.Reject(fault.NonField, "The query string is malformed.")
	}
	q.values = values
	return q
}

// Has reports whether a parameter was sent.
func (q *Query) Has(name string) bool { return q.values.Has(name) }

// Get returns a parameter as sent.
func (q *Query) Get(name string) string { return q.values.Get(name) }

// Reject adds an error about a parameter.
func (q *Query) Reject(name, problem string) { q.checks.Reject(name, problem) }

// Err returns nil if every parameter read was valid.
func (q *Query) Err() error { return q.checks.Err() }

// field wraps the parameter for the checks of bodies.
func (q *Query) field(name string) validate.String {
	if !q.Has(name) {
		return validate.String{}
	}
	return validate.Of(q.Get(name))
}

// Text reads a search term of 1 to max characters, trimmed and normalized; "" if left out.
func (q *Query) Text(name string, max int) string {
	if !q.Has(name) {
		return ""
	}
	return q.checks.Text(name, q.field(name), validate.Required(max))
}

// PatientID reads the filter by patient, a lower-case UUID; "" if left out.
func (q *Query) PatientID() string { return q.checks.UUID("patient_id", q.field("patient_id"), false) }

// PatientIDs returns the ids of "patient_ids", separated by commas; nil if it was not sent, an error for more than a page has.
func (q *Query) PatientIDs() []string {
	text := q.Text("patient_ids", maxPageSize*37)
	if text == "" {
		return nil
	}
	ids := strings.Split(text, ",")
	for i, id := range ids {
		parsed, ok := validate.ParseUUID(id)
		if !ok {
			q.Reject("patient_ids", "Must be ids of patients, separated by commas.")
		}
		ids[i] = parsed
	}
	return ids
}

// Date reads a calendar date, YYYY-MM-DD; "" if left out.
func (q *Query) Date(name string) string { return q.checks.Date(name, q.field(name), false) }

// Integer returns nil if left out.
func (q *Query) Integer(name string) *int64 {
	if !q.Has(name) {
		return nil
	}
	value, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil {
		q.Reject(name, "A valid integer is required.")
		return nil
	}
	return &value
}

// Boolean returns nil if left out.
func (q *Query) Boolean(name string) *bool {
	if !q.Has(name) {
		return nil
	}
	var value bool
	switch strings.ToLower(q.Get(name)) {
	case "true", "1":
		value = true
	case "false", "0":
	default:
		q.Reject(name, "Must be true or false.")
		return nil
	}
	return &value
}

// IsTrue reports whether a parameter is sent and true.
func (q *Query) IsTrue(name string) bool {
	value := q.Boolean(name)
	return value != nil && *value
}

// OneOf reads one of the documented values; "" if left out.
func (q *Query) OneOf(name string, values ...string) string {
	if !q.Has(name) {
		return ""
	}
	value := q.Get(name)
	if !slices.Contains(values, value) {
		q.Reject(name, fmt.Sprintf("Must be one of: %s.", strings.Join(values, ", ")))
		return ""
	}
	return value
}

// Ordering reads one of the documented orders ("-" in front for descending); the first is the default.
func (q *Query) Ordering(orders ...string) string {
	if chosen := q.OneOf("ordering", orders...); chosen != "" {
		return chosen
	}
	return orders[0]
}

// Span is a time range, both ends included; a zero end is open.
type Span struct{ From, To time.Time }

// Between reads date_from and date_to. A bare date is a whole day in the practice's zone. Source:
// docs/decisions/conventions.md, "Date filters".
func (q *Query) Between() Span {
	const from, to = "date_from", "date_to"
	s := Span{From: q.edge(from, false), To: q.edge(to, true)}
	if !s.From.IsZero() && !s.To.IsZero() && s.From.After(s.To) {
		q.Reject(from, "Must not be after date_to.")
	}
	return s
}

// edge reads one end of a span.
func (q *Query) edge(name string, isEnd bool) time.Time {
	if !q.Has(name) {
		return time.Time{}
	}
	at, ok := Edge(q.Get(name), q.zone, isEnd)
	if !ok {
		q.Reject(name, MsgEdge)
	}
	return at
}

// MsgEdge is the error for text that [Edge] cannot parse.
const MsgEdge = "Must be a date or an ISO 8601 date-time."

// Edge parses one end of a span; a bare date is its first moment in the zone, or its last moment if isEnd.
func Edge(text string, zone *time.Location, isEnd bool) (at time.Time, ok bool) {
	text = strings.TrimSpace(text)
	if _, err := validate.ParseDate(text); err == nil {
		first := collections.ParseDay(text, zone).UTC()
		if isEnd {
			return collections.StartOfNextDay(first.In(zone)).UTC().Add(-time.Microsecond), true
		}
		return first, true
	}
	at, err := validate.ParseInstant(text)
	return at, err == nil
}
