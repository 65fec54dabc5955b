package web

import (
	"errors"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Source: docs/decisions/conventions.md, "Pagination edge cases".
const (
	defaultPageSize = 20
	maxPageSize     = 100
	lastNumber      = 1 << 40 // beyond every list, small enough to multiply
)

// Paging is the requested page of a list.
type Paging struct{ Number, Size int }

// Offset is the number of entries before the page.
func (p Paging) Offset() int { return (p.Number - 1) * p.Size }

// Cut returns the entries of a whole list that are on the page.
func Cut[T any](p Paging, all []T) []T {
	from := min(p.Offset(), len(all))
	return all[from:min(from+p.Size, len(all))]
}

// Listing returns the query of a list and the requested page.
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

// Positive reads a whole number of at least 1, capped at most.
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
	// Unreadable counts the entries left out because a stored value cannot be decrypted: of this page, or of the whole
	// list if it is decrypted before paging.
	Unreadable int `json:"unreadable,omitempty"`
}

// RespondPage answers 200 with one page of count entries, without unreadable ones, or 404 for a page beyond the end.
func RespondPage[T any](c *Call, p Paging, count int, results []T, unreadable int) error {
	page, err := PageOf(c, p, count, results)
	if err != nil {
		return err
	}
	page.Unreadable = unreadable
	return c.OK(page)
}

// RespondPageOf is RespondPage for the results of a finder, each rendered by view, or returns the finder's error.
func RespondPageOf[T, V any](c *Call, p Paging, view func(T) V) func([]T, int, error) error {
	return func(page []T, count int, err error) error {
		if err != nil {
			return err
		}
		return RespondPage(c, p, count, Map(page, view), 0)
	}
}

// EncodePage encodes the answer of [RespondPage] for a handler that caches it; it has no unreadable entries.
func EncodePage[T any](c *Call, p Paging, count int, results []T) ([]byte, error) {
	page, err := PageOf(c, p, count, results)
	if err != nil {
		return nil, err
	}
	return Encode(page)
}

// RespondSlice answers with the requested page of a list that is short enough to read whole, and counts the unreadable
// entries of all pages.
func RespondSlice[T any](c *Call, all []T, unreadable int) error {
	q := c.Query()
	p := q.Paging()
	if err := q.Err(); err != nil {
		return err
	}
	return RespondPage(c, p, len(all)+unreadable, Cut(p, all), unreadable)
}

// RespondSliceOf is RespondSlice for the results of a finder, each rendered by view, or returns the finder's error.
func RespondSliceOf[T, V any](c *Call, view func(T) V) func([]T, error) error {
	return func(all []T, err error) error {
		if err != nil {
			return err
		}
		return RespondSlice(c, Map(all, view), 0)
	}
}

// PageOf returns one page of count entries; a page beyond the end is a fault.
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

// pageURL is the absolute URL of another page of the list, with all other parameters.
func (c *Call) pageURL(number int) *string { return c.LinkTo("page", strconv.Itoa(number)) }

// LinkTo is the absolute URL of this list with one parameter changed.
func (c *Call) LinkTo(parameter, value string) *string {
	values := c.Request.URL.Query()
	values.Set(parameter, value)
	path := strings.TrimSuffix(c.Request.URL.EscapedPath(), "/") + "/"
	address := c.publicURL + path + "?" + values.Encode()
	return &address
}
