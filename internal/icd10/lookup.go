package icd10

import (
	"slices"
	"strings"
	"sync"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// BillableCodes tells which of some codes may stand on a claim: those of the set of the binary, and those that the practice has taken in besides, such as
// a newer year's. It is what preflight, entries and the look-up go by. Source: docs/decisions/billing.md, "ICD-10".
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

// Lookup looks codes up in the set of the binary and in what the practice has taken in besides. The zero value is ready.
type Lookup struct {
	lock     sync.Mutex
	count    int     // of the table when extra was read
	imported []Entry // what the table has and the set has not
}

// Search is [Set.Search] with what was taken in besides before the rest.
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

// FindAll finds codes by themselves, in the order in which they are asked for; those that there are not are left out.
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

// importedCodes are the codes of the table that the set has not, or not as billable. They are read anew when there are more or fewer than before: taking
// in a year adds its new codes.
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

// matchesWords reports whether a code begins with each word of a search, or its description has it.
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
