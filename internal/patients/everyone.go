package patients

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Everyone returns at most so many ids of patients of any state, active ones first, and how many there are: those whose names or MRN hold every
// word, and those whose SSN, e-mail address or phone number is what was typed. Until the directory is built it is unavailable.
func Everyone(app core.App, directory *Directory, typed string, most int) (ids []string, total int, err error) {
	if !directory.Ready() {
		return nil, 0, unprepared()
	}
	if len(words(typed)) == 0 {
		return nil, 0, nil // a comma names nobody, and the directory would list all
	}
	for _, state := range []State{Active, Archived, Deleted} {
		found, n := directory.Find(Find{Search: typed, State: state, Limit: most - len(ids)})
		ids, total = append(ids, found...), total+n
	}
	for _, column := range indexed {
		value := forIndex(column, typed)
		if !whole(column, value) {
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

// indexed are the sealed columns with a blind index, by which equal values are found.
var indexed = []string{collections.PatientSSN, collections.PatientEmail, collections.PatientPhone}

// forIndex is the form of a value in which it is indexed: the digits of a social security number, an address in lower case, the digits of a phone
// number without extension and country code 1.
func forIndex(column, value string) string {
	switch column {
	case collections.PatientSSN:
		return validate.Digits(value)
	case collections.PatientEmail:
		return strings.ToLower(value)
	}
	value, _, _ = strings.Cut(value, "x")
	value = validate.Digits(value)
	if len(value) == 11 {
		value = strings.TrimPrefix(value, "1")
	}
	return value
}

// whole reports whether a value may be all of a column's: the index of a part of it is that of nothing.
func whole(column, value string) bool {
	switch column {
	case collections.PatientSSN:
		return len(value) == 9
	case collections.PatientEmail:
		return strings.Contains(value, "@")
	}
	return len(value) >= 7
}
