package changefeed

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// maxScanned bounds how many changes one page scans, so that a rare type costs no more than a frequent one.
const maxScanned = 20_000

// Reader selects the changes that a caller reads.
type Reader struct {
	Types []string // an empty list selects nothing
	// Team restricts the changes to the patients of a user (record id); "" does not restrict them.
	Team  string
	Limit int
}

// Page holds the changes after a position. It may hold fewer than the limit, or none, although More is true, if the scanned changes were of other
// types.
type Page struct {
	Changes []Change
	Next    Cursor
	More    bool
}

// Oldest returns the position before the oldest kept change.
func Oldest() Cursor { return Cursor{} }

// Latest returns the position after the newest committed change.
func Latest(app core.App) (Cursor, error) {
	row, err := collections.LastChange(app)
	return newChange(row).Cursor(), err
}

// Read returns the page after a position. The end is determined first, so changes committed during the read are on the next page. The cursor is
// verified last, so a deletion during the read cannot cause an unnoticed gap.
func (r Reader) Read(app core.App, from Cursor) (Page, error) {
	page, err := r.read(app, from)
	if err == nil && from != Oldest() {
		err = from.verify(app)
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
	if last.seq-from.seq > maxScanned {
		row, err := collections.ChangeUpTo(app, from.seq+maxScanned)
		if err != nil {
			return Page{}, err
		}
		end = newChange(row).Cursor()
	}
	filter := collections.ChangeFilter{Types: r.Types, Team: r.Team, UpTo: end.seq}
	rows, err := collections.ChangesAfter(app, from.seq, filter, r.Limit+1)
	if err != nil {
		return Page{}, err
	}
	page := Page{Changes: newChanges(rows[:min(len(rows), r.Limit)]), Next: end, More: end != last}
	if len(rows) > r.Limit {
		page.Next, page.More = page.Changes[r.Limit-1].Cursor(), true
	}
	return page, nil
}
