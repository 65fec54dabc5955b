package patients

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Query selects patients for a list.
type Query struct {
	Search string
	// Active is true for active patients, which is the default, and false for archived ones.
	Active *bool
	// Deleted lists deleted patients instead; the caller has checked the permission.
	Deleted  bool
	Ordering ListOrder // by last name when empty
	// Only limits the list to these ids, such as a portal user's own; nil does not.
	Only          []string
	Offset, Limit int
}

func directoryUnavailable() error {
	return fault.New(fault.Unavailable, "service_unavailable", "The list of patients is being prepared. Try again in a moment.")
}

// Search returns the ids of at most most active patients with every word in their names or MRN, never nil. It is unavailable until the
// directory is built.
func Search(directory *Directory, words string, most int) ([]string, error) {
	if !directory.Ready() {
		return nil, directoryUnavailable()
	}
	ids, _ := directory.Find(DirectoryQuery{Search: words, Limit: most})
	return append([]string{}, ids...), nil
}

// List returns one page of patients and the total. It is unavailable until the directory is built.
// Source: docs/decisions/conventions.md, "Encrypted columns and searching" and docs/decisions/patients.md, "`active` and `status`".
func List(app core.App, directory *Directory, q Query) (page []*collections.Patient, total int, err error) {
	if !directory.Ready() {
		return nil, 0, directoryUnavailable()
	}
	find := DirectoryQuery{Search: q.Search, Only: q.Only, Order: q.Ordering, Offset: q.Offset, Limit: q.Limit}
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

// SearchWithArchived returns the ids of at most most active and archived patients with every word in their names or MRN. It is unavailable until the
// directory is built.
func SearchWithArchived(directory *Directory, words string, most int) ([]string, error) {
	if !directory.Ready() {
		return nil, directoryUnavailable()
	}
	if len(searchWords(words)) == 0 {
		return nil, nil // a comma has no word, which would list all patients
	}
	ids, _ := findInStates(directory, words, most, Active, Archived)
	return ids, nil
}

func findInStates(directory *Directory, words string, most int, states ...State) (ids []string, total int) {
	for _, state := range states {
		found, n := directory.Find(DirectoryQuery{Search: words, State: state, Limit: most - len(ids)})
		ids, total = append(ids, found...), total+n
	}
	return ids, total
}

// SearchAllStates returns at most most ids of patients of any state, active ones first, and the total: patients with every word in their
// names or MRN, or with an SSN, e-mail address or phone number equal to the text. It is unavailable until the directory is built.
func SearchAllStates(app core.App, directory *Directory, typed string, most int) (ids []string, total int, err error) {
	if !directory.Ready() {
		return nil, 0, directoryUnavailable()
	}
	if len(searchWords(typed)) == 0 {
		return nil, 0, nil // a comma has no word, which would list all patients
	}
	ids, total = findInStates(directory, typed, most, Active, Archived, Deleted)
	for _, column := range blindIndexed {
		value := normalizeForIndex(column, typed)
		if !isCompleteValue(column, value) {
			continue
		}
		index, err := collections.BlindIndex(column, value)
		if err != nil {
			return nil, 0, err
		}
		found, err := collections.PatientIDsByIndex(app, column, index)
		if err != nil {
			return nil, 0, err
		}
		ids, total = append(ids, found...), total+len(found)
	}
	return ids[:min(len(ids), most)], total, nil
}

// blindIndexed are the sealed columns with a blind index, for equality search.
var blindIndexed = []string{collections.PatientSSN, collections.PatientEmail, collections.PatientPhone}

// normalizeForIndex returns the indexed form of a value: the digits of an SSN, an e-mail address in lower case, the digits of a phone
// readNumber without extension and country code 1.
func normalizeForIndex(column, value string) string {
	switch column {
	case collections.PatientSSN:
		return validate.Digits(value)
	case collections.PatientEmail:
		return strings.ToLower(value)
	}
	value, _, _ = strings.Cut(value, "x")
	value = PhoneDigits(value)
	if len(value) == 11 {
		value = strings.TrimPrefix(value, "1")
	}
	return value
}

// isCompleteValue reports whether a value may be a complete one of its column: a part has no blind index.
func isCompleteValue(column, value string) bool {
	switch column {
	case collections.PatientSSN:
		return len(value) == 9
	case collections.PatientEmail:
		return strings.Contains(value, "@")
	}
	return len(value) >= 7
}
