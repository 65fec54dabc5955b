package routes

import (
	"net/http"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/limits"
)

// What the tests of this package, which live outside it, need from inside.

type (
	Route = route
	API   = api
	Call  = call
	Span  = span
)

const (
	Anyone          = anyone
	SignedByGateway = signedByGateway
)

// NewRoute makes a row of a test's own.
func NewRoute(method, path string, who access.Action, limit limits.Class, handle func(*API, *Call) error) Route {
	return Route{method, path, who, limit, handle}
}

// RegisterAlso registers rows beside the real ones.
func RegisterAlso(e *core.ServeEvent, engines Engines, rows ...Route) error {
	return register(e, engines, append(rows, table...), rootTable)
}

// Row is what the contract test compares.
type Row struct {
	Method, Path    string
	Public, Gateway bool
	Action          access.Action
}

func Rows() []Row {
	var rows []Row
	add := func(prefix string, table []route) {
		for _, r := range table {
			rows = append(rows, Row{r.method, prefix + r.path, r.who == anyone, r.who == signedByGateway, r.who})
		}
	}
	add(basePath, table)
	add("", rootTable)
	return rows
}

var (
	Tidy      = tidy
	Preferred = preferred
	Translate = translate
	ErrorBody = errorBody
	CSVSafe   = csvSafe
)

func (c *call) OK(value any) error                          { return c.ok(value) }
func (c *call) NoContent() error                            { return c.noContent() }
func (c *call) Created(value any) error                     { return c.created(value) }
func (c *call) Decode(dst any) error                        { return c.decode(dst) }
func (c *call) DecodeOptional(dst any) error                { return c.decodeOptional(dst) }
func (c *call) Body() ([]byte, error)                       { return c.body() }
func (c *call) PathUUID() (string, error)                   { return c.pathUUID() }
func (c *call) PathInteger() (int64, error)                 { return c.pathInteger("id") }
func (c *call) Attach(kind, name string, body []byte) error { return c.attach(kind, name, body) }

// Filters is every kind of filter at once, as a handler would read them.
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

func (c *call) Filters() (Filters, error) {
	q := c.query()
	p := q.paging()
	f := Filters{
		Search: q.text("search", 10), ID: q.patientID(), Level: q.oneOf("level", "critical", "warning"),
		Ordering: q.ordering("-created_at", "created_at"), Day: q.date("day"), Active: q.boolean("active"),
		Minimum: q.integer("minimum"), Between: q.between(), Offset: p.Offset(), Size: p.Size,
	}
	return f, q.err()
}

// ListNumbers answers with a page of the numbers below count.
func (c *call) ListNumbers(count int) error {
	q := c.query()
	p := q.paging()
	if err := q.err(); err != nil {
		return err
	}
	var page []int
	for n := p.Offset(); n < min(p.Offset()+p.Size, count); n++ {
		page = append(page, n)
	}
	return list(c, p, count, page, 0)
}

// NewTestCall is a call outside any server.
func NewTestCall(r *http.Request, zone *time.Location) *Call {
	return &call{Request: r, zone: zone}
}
