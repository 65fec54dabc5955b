package changefeed

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// Looked is how many changes one page looks through, so that a type of which there are few costs no more than one of which there are many.
const looked = 20_000

// Reader says what somebody wants to read.
type Reader struct {
	Types []string // none is nothing
	// Team is the user (record id) to whose patients the changes are confined; "" for nobody's.
	Team  string
	Limit int
}

// Page is what comes after a place. It may hold fewer changes than were asked for, or none, with more to come: what was looked through was of other types.
type Page struct {
	Changes []Change
	Next    Cursor
	More    bool
}

// Oldest is the place before everything that is kept, or behind the row of nothing that a database begins with.
func Oldest() Cursor { return Cursor{} }

// Latest is the place behind all that has been committed.
func Latest(app core.App) (Cursor, error) {
	row, err := collections.LastChange(app)
	return read(row).Cursor(), err
}

// Read reads the page after a place. What is committed meanwhile is in the next one: the end is looked up first. What is removed meanwhile is no gap: that the
// place is still there is looked up last.
func (r Reader) Read(app core.App, from Cursor) (Page, error) {
	page, err := r.read(app, from)
	if err == nil && from != Oldest() {
		err = from.stands(app)
	}
	return page, err
}

func (r Reader) read(app core.App, from Cursor) (Page, error) {
	last, err := Latest(app)
	if err != nil {
		return Page{}, err
	}
	if from == Oldest() {
		first, err := collections.FirstChange(app)
		if err != nil {
			return Page{}, err
		}
		from.seq = first.Seq - 1
	}
	end := last
	if last.seq-from.seq > looked {
		row, err := collections.ChangeUpTo(app, from.seq+looked)
		if err != nil {
			return Page{}, err
		}
		end = read(row).Cursor()
	}
	filter := collections.ChangeFilter{Types: r.Types, Team: r.Team, UpTo: end.seq}
	rows, err := collections.ChangesAfter(app, from.seq, filter, r.Limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Changes: views(rows[:min(len(rows), r.Limit)]), Next: end, More: end != last}
	if len(rows) > r.Limit {
		page.Next, page.More = page.Changes[r.Limit-1].Cursor(), true
	}
	return page, nil
}
