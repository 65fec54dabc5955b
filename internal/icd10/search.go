package icd10

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
)

// Hit is a search result.
type Hit struct {
	Entry
	Synonym string // the matching synonym, "" if the description matches
}

// Query is a search request.
type Query struct {
	Words         string // beginnings of words in any order, and the beginning of a code with or without its dot
	BillableOnly  bool
	Offset, Limit int
}

// Search returns the codes for which each search term is the beginning of the code or of a word in one of its texts. Billable codes come first, then
// common ones and those of monitored conditions, then the closest matches. total is the number of all matches. Codes that are not accepted
// ([IsAccepted]) are omitted.
func (s *Set) Search(q Query) (hits []Hit, total int) {
	terms := s.searchTerms(q.Words)
	if len(terms) == 0 {
		return []Hit{}, 0
	}
	var found []match
	for i := range s.Len() {
		if q.BillableOnly && !s.billable(i) || s.codes[i*(width+1)] == 'U' {
			continue
		}
		if m, ok := s.match(i, terms); ok {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, match.before)
	hits = []Hit{}
	for _, m := range found[min(q.Offset, len(found)):min(q.Offset+q.Limit, len(found))] {
		hit := Hit{Entry: s.entry(m.at)}
		if m.text > 0 {
			hit.Synonym = hit.Synonyms[m.text-1]
		}
		hits = append(hits, hit)
	}
	return hits, len(found)
}

// searchTerm is one word of a search.
type searchTerm struct {
	code  string // possible beginning of a code, without a dot; "" if it cannot be one
	words []bool // by word number: whether a part of the word begins with the term
	whole []bool // by word number: whether a part of the word equals the term
}

// maxTerms is the number of search terms that are used.
const maxTerms = 8

func (s *Set) searchTerms(text string) (terms []searchTerm) {
	for _, field := range strings.Fields(expandAbbreviations(text)) {
		code := asCode(field)
		parts := wordsOf(foldCase(field))
		if code != "" && len(parts) != 1 { // I50.9
			parts = []string{strings.ToLower(code)}
		}
		for _, part := range parts {
			a := searchTerm{code: code, words: make([]bool, len(s.words)+1), whole: make([]bool, len(s.words)+1)}
			for i, word := range s.lower {
				a.words[i+1], a.whole[i+1] = hasPrefixWord(word, part)
			}
			if terms = append(terms, a); len(terms) == maxTerms {
				return terms
			}
		}
	}
	return terms
}

// abbreviations maps clinical abbreviations to words of the code set.
var abbreviations = map[string]string{
	"afib": "atrial fibrillation", "chf": "congestive heart failure", "ckd": "chronic kidney disease", "copd": "chronic obstructive pulmonary disease",
	"dm": "diabetes mellitus", "dm1": "type 1 diabetes mellitus", "dm2": "type 2 diabetes mellitus", "esrd": "end stage renal disease",
	"gdm": "gestational diabetes mellitus", "htn": "hypertension", "osa": "obstructive sleep apnea", "t1dm": "type 1 diabetes mellitus",
	"t2dm": "type 2 diabetes mellitus",
}

// expandAbbreviations replaces abbreviations by their words.
func expandAbbreviations(text string) string {
	fields := strings.Fields(text)
	for i, field := range fields {
		if long := abbreviations[strings.ToLower(field)]; long != "" {
			fields[i] = long
		}
	}
	return strings.Join(fields, " ")
}

// asCode returns a possible beginning of a code, without its dot: a letter, then a digit; "" for other words.
func asCode(field string) string {
	bare := strings.ToUpper(strings.ReplaceAll(field, ".", ""))
	if bare == "" || len(bare) > width || bare[0] < 'A' || bare[0] > 'Z' || len(bare) > 1 && (bare[1] < '0' || bare[1] > '9') {
		return ""
	}
	return bare
}

// hasPrefixWord reports whether a word, or a part of a compound word, begins with a term, and whether it equals the term.
func hasPrefixWord(word, part string) (found, whole bool) {
	for at := 0; at < len(word); {
		if strings.HasPrefix(word[at:], part) {
			end := at + len(part)
			found = true
			if end == len(word) || !isWord(rune(word[end])) {
				return true, true
			}
		}
		next := strings.IndexFunc(word[at:], func(r rune) bool { return !isWord(r) })
		if next < 0 {
			break
		}
		at += next + 1
	}
	return found, false
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r >= 0x80 }

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !isWord(r) })
}

// foldCase folds a text for search: lower case, without diacritics in names such as Ménière.
func foldCase(text string) string { return strings.ToLower(accents.Replace(text)) }

var accents = strings.NewReplacer("é", "e", "è", "e", "ê", "e", "ë", "e", "á", "a", "à", "a", "â", "a", "ä", "a", "å", "a", "ó", "o", "ò", "o", "ô", "o",
	"ö", "o", "ø", "o", "ú", "u", "ù", "u", "û", "u", "ü", "u", "í", "i", "ì", "i", "î", "i", "ï", "i", "ç", "c", "ñ", "n", "É", "e", "Å", "a", "Ö", "o", "Ü", "u")

// match ranks a search result.
type match struct {
	at, text             int // index of the code, and of the matching text
	heading, unmonitored bool
	rare                 bool // not a common code
	byWords              bool // not by the code alone
	part, first, long    int
}

// before orders search results.
func (m match) before(o match) int {
	no := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(no(m.heading)-no(o.heading), no(m.byWords)-no(o.byWords), no(m.rare)-no(o.rare), no(m.unmonitored)-no(o.unmonitored),
		no(m.byWords && m.text > 0)-no(o.byWords && o.text > 0), m.part-o.part, m.first-o.first, m.long-o.long, m.at-o.at)
}

// match returns the best match of a code: the description before its synonyms.
func (s *Set) match(i int, terms []searchTerm) (match, bool) {
	m := match{at: i, heading: !s.billable(i)}
	var met, whole uint16
	code := string(s.codes[i*(width+1) : i*(width+1)+width])
	for n, a := range terms {
		if a.code != "" && strings.HasPrefix(code, a.code) {
			met |= 1 << n
		}
	}
	every := uint16(1)<<len(terms) - 1
	if met == every {
		return m, true
	}
	byCode := met
	m.byWords, m.rare, m.unmonitored = true, !isCommon(code), !isMonitored(code)
	for at, words, first := s.offsets[i], 0, -1; ; {
		word, size := binary.Uvarint(s.texts[at:])
		at += uint32(size) //nolint:gosec // at most ten
		if word > 0 {
			for n, a := range terms {
				if a.words[word] {
					met |= 1 << n
					if first < 0 {
						first = words
					}
				}
				if a.whole[word] {
					whole |= 1 << n
				}
			}
			words++
			continue
		}
		if met == every {
			m.part, m.first, m.long = len(terms)-countBits(whole), first, words
			return m, true
		}
		if words == 0 {
			return m, false
		}
		m.text++
		met, whole, words, first = byCode, 0, 0, -1
	}
}

func countBits(set uint16) (n int) {
	for ; set != 0; set &= set - 1 {
		n++
	}
	return n
}

// monitoredCategories are the categories that remote monitoring covers: diabetes, obesity, hypertension, heart, lung and kidney.
var monitoredCategories = []string{"E08", "E09", "E10", "E11", "E13", "E66", "I10", "I11", "I12", "I13", "I15", "I16", "I1A", "I20", "I25", "I27", "I48", "I50", "J44", "J45", "J96", "N18", "O10", "O13", "O14", "R03", "Z79", "Z99"}

// commonCodes are the most used codes of monitored conditions, which are ranked first.
var commonCodes = []string{"E10.9", "E11.65", "E11.9", "E66.9", "E78.5", "G47.33", "I10", "I25.10", "I48.91", "I50.22", "I50.32", "I50.9", "J44.9", "J45.909", "N18.30", "N18.6", "N18.9", "O24.419"}

func isCommon(code string) bool {
	_, found := slices.BinarySearch(commonCodes, Dotted(strings.TrimRight(code, " ")))
	return found
}

func isMonitored(code string) bool {
	_, found := slices.BinarySearch(monitoredCategories, code[:3])
	return found
}
