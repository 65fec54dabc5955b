package icd10

import (
	"slices"
	"strings"
	"sync"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// BillableCodes returns which of the codes are billable: those of the embedded set, and those that the practice has imported, such as a newer year's.
// Preflight, entries and the search use it. Source: docs/decisions/billing.md, "ICD-10".
func BillableCodes(app core.App, codes []string) (map[string]bool, error) {
	known, err := collections.ExistingICD10(app, codes)
	if err != nil || !slices.ContainsFunc(codes, func(code string) bool { return !known[code] }) {
		return known, err
	}
	set, err := All()
	if err != nil {
		return nil, err
	}
	for _, code := range codes {
		if entry, found := set.Find(code); found && entry.Billable && entry.Code == code {
			known[code] = true
		}
	}
	return known, nil
}

// Lookup searches the embedded set and the practice's imported codes. The zero value is ready for use.
type Lookup struct {
	lock     sync.Mutex
	count    int     // of the table when imported was read
	imported []Entry // billable in the table, but not in the set
}

// Search is [Set.Search] with the imported codes first.
func (d *Lookup) Search(app core.App, q Query) (hits []Hit, total int, err error) {
	set, err := All()
	if err != nil {
		return nil, 0, err
	}
	extra, err := d.importedCodes(app, set)
	if err != nil {
		return nil, 0, err
	}
	found := []Hit{}
	for _, entry := range extra {
		if matchesWords(entry, q.Words) {
			found = append(found, Hit{Entry: entry})
		}
	}
	first := min(q.Offset, len(found))
	hits = append([]Hit{}, found[first:min(q.Offset+q.Limit, len(found))]...)
	rest := q
	rest.Offset, rest.Limit = max(q.Offset-len(found), 0), q.Limit-len(hits)
	more, total := set.Search(rest)
	return append(hits, more...), total + len(found), nil
}

// FindAll returns codes in the requested order; it omits unknown codes.
func (d *Lookup) FindAll(app core.App, codes []string) (hits []Hit, err error) {
	set, err := All()
	if err != nil {
		return nil, err
	}
	extra, err := d.importedCodes(app, set)
	if err != nil {
		return nil, err
	}
	hits = []Hit{}
	for _, code := range codes {
		entry, found := set.Find(code)
		if i := slices.IndexFunc(extra, func(e Entry) bool { return strings.EqualFold(e.Code, strings.TrimSpace(code)) }); i >= 0 {
			entry, found = extra[i], true
		}
		if found && IsAccepted(entry.Code) || found && !entry.Billable {
			hits = append(hits, Hit{Entry: entry})
		}
	}
	return hits, nil
}

// importedCodes returns the codes of the table that the set lacks or does not mark as billable. It reads them again when their number changes:
// importing a year adds its new codes.
func (d *Lookup) importedCodes(app core.App, set *Set) ([]Entry, error) {
	count, err := collections.CountICD10(app)
	if err != nil {
		return nil, err
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	if count == d.count {
		return d.imported, nil
	}
	list, err := collections.ListICD10(app)
	if err != nil {
		return nil, err
	}
	d.imported = nil
	for _, row := range list {
		if entry, found := set.Find(row.Code); !found || !entry.Billable {
			d.imported = append(d.imported, Entry{Code: row.Code, Description: row.Description, Billable: true})
		}
	}
	d.count = count
	return d.imported, nil
}

// matchesWords reports whether each word of a search is the beginning of the code or of a word of the description.
func matchesWords(e Entry, words string) bool {
	fields := strings.Fields(expandAbbreviations(words))
	bare, text := strings.ReplaceAll(e.Code, ".", ""), foldCase(e.Description)
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(field string) bool {
		if code := asCode(field); code != "" && strings.HasPrefix(bare, code) {
			return false
		}
		parts := wordsOf(foldCase(field))
		return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { found, _ := hasPrefixWord(text, part); return !found })
	})
}
