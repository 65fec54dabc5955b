package web

import (
	"errors"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Sizes of a page. Source: docs/decisions/conventions.md, "Pagination edge cases".
const (
	defaultPageSize = 20
	maxPageSize     = 100
	lastNumber      = 1 << 40 // beyond every list, small enough to multiply
)

// Paging says which page of a list was asked for.
type Paging struct{ Number, Size int }

// Offset is how many entries come before the page.
func (p Paging) Offset() int { return (p.Number - 1) * p.Size }

// Listing is the query of a list, with the page that it asks for.
func (c *Call) Listing() (*Query, Paging) {
	q := c.Query()
	return q, q.Paging()
}

// Paging reads page and page_size.
func (q *Query) Paging() Paging {
	return Paging{
		Number: q.Positive("page", 1, lastNumber),
		Size:   q.Positive("page_size", defaultPageSize, maxPageSize),
	}
}

// Positive is a whole number of at least 1, cut to most.
func (q *Query) Positive(name string, absent, most int) int {
	if !q.Has(name) {
		return absent
	}
	text := q.Get(name)
	value, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) && !strings.HasPrefix(text, "-") {
		return most
	}
	if err != nil || value < 1 {
		q.Reject(name, "Must be a positive integer.")
		return absent
	}
	return min(value, most)
}

// Page is the envelope of every list. Source: docs/decisions/conventions.md, "List envelope".
type Page[T any] struct {
	Count    int     `json:"count"`
	Next     *string `json:"next"`
	Previous *string `json:"previous"`
	Results  []T     `json:"results"`
	// Unreadable is how many entries are left out because a stored value of theirs cannot be opened: of this page, or of the whole list when
	// it is opened before it is cut into pages, so that they have a place on none.
	Unreadable int `json:"unreadable,omitempty"`
}

// List answers 200 with one page of count entries, those left out that cannot be read, or 404 when the list ends before it.
func List[T any](c *Call, p Paging, count int, results []T, unreadable int) error {
	page, err := PageOf(c, p, count, results)
	if err != nil {
		return err
	}
	page.Unreadable = unreadable
	return c.OK(page)
}

// Listed is List of what a finder gave, each row by its view, or returns the error that it gave instead.
func Listed[T, V any](c *Call, p Paging, view func(T) V) func([]T, int, error) error {
	return func(page []T, count int, err error) error {
		if err != nil {
			return err
		}
		return List(c, p, count, Views(page, view), 0)
	}
}

// ListBody is what [List] answers, for a handler that keeps it; none of its entries is left out.
func ListBody[T any](c *Call, p Paging, count int, results []T) ([]byte, error) {
	page, err := PageOf(c, p, count, results)
	if err != nil {
		return nil, err
	}
	return Encode(page)
}

// ListWhole answers the page that was asked for of a list that is short enough to be read whole, and tells how many of all could not be
// read.
func ListWhole[T any](c *Call, all []T, unreadable int) error {
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	from := min(p.Offset(), len(all))
	return List(c, p, len(all)+unreadable, all[from:min(from+p.Size, len(all))], unreadable)
}

// ListedWhole is ListWhole of what a finder gave, each row by its view, or returns the error that it gave instead.
func ListedWhole[T, V any](c *Call, view func(T) V) func([]T, error) error {
	return func(all []T, err error) error {
		if err != nil {
			return err
		}
		return ListWhole(c, Views(all, view), 0)
	}
}

// PageOf is one page of count entries; a list that ends before it is a fault.
func PageOf[T any](c *Call, p Paging, count int, results []T) (Page[T], error) {
	last := max(1, (count+p.Size-1)/p.Size)
	if p.Number > last {
		return Page[T]{}, fault.New(fault.NotFound, "not_found", "Invalid page.")
	}
	page := Page[T]{Count: count, Results: results}
	if page.Results == nil {
		page.Results = []T{}
	}
	if p.Number < last {
		page.Next = c.pageURL(p.Number + 1)
	}
	if p.Number > 1 {
		page.Previous = c.pageURL(p.Number - 1)
	}
	return page, nil
}

// pageURL is the absolute address of another page of the same list, all other parameters kept.
func (c *Call) pageURL(number int) *string { return c.LinkTo("page", strconv.Itoa(number)) }

// LinkTo is the absolute address of this list with one parameter changed.
func (c *Call) LinkTo(parameter, value string) *string {
	values := c.Request.URL.Query()
	values.Set(parameter, value)
	path := strings.TrimSuffix(c.Request.URL.EscapedPath(), "/") + "/"
	address := c.publicURL + path + "?" + values.Encode()
	return &address
}
