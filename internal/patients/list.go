package patients

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
)

// Query is what a caller asks of the list of patients.
type Query struct {
	Search string
	// Active is true for active patients, which is the default, and false for archived ones.
	Active *bool
	// Deleted shows deleted patients instead; the caller has checked who asks.
	Deleted  bool
	Ordering ListOrder // by last name when empty
	// Only limits the list to these ids, such as a portal user's own; nil does not limit it.
	Only          []string
	Offset, Limit int
}

func unprepared() error {
	return fault.New(fault.Unavailable, "service_unavailable", "The list of patients is being prepared. Try again in a moment.")
}

// Search returns the ids of at most so many active patients whose names or MRN hold every word; not nil. Until the directory is
// built it is unavailable.
func Search(directory *Directory, words string, most int) ([]string, error) {
	if !directory.Ready() {
		return nil, unprepared()
	}
	ids, _ := directory.Find(Find{Search: words, Limit: most})
	return append([]string{}, ids...), nil
}

// List returns one page of patients and how many there are in all. Until the directory is built it is unavailable.
// Source: docs/decisions/conventions.md, "Encrypted columns and searching" and docs/decisions/patients.md, "`active` and `status`".
func List(app core.App, directory *Directory, q Query) (page []*collections.Patient, total int, err error) {
	if !directory.Ready() {
		return nil, 0, unprepared()
	}
	find := Find{Search: q.Search, Only: q.Only, Order: q.Ordering, Offset: q.Offset, Limit: q.Limit}
	switch {
	case q.Deleted:
		find.State = Deleted
	case q.Active != nil && !*q.Active:
		find.State = Archived
	}
	ids, total := directory.Find(find)
	page, err = collections.PatientsByID(app, ids)
	return page, total, err
}
