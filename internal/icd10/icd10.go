// Package icd10 searches the diagnosis codes of ICD-10-CM by the beginning of a code or by words, and states which codes are billable.
//
// The binary contains the whole code set, compressed. It is decompressed at the first search, not at startup, and stays in a compact form: a table of
// words, and for each code the numbers of its words. tools/icd10 writes data/codes.gz; see docs/billing.md.
package icd10

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"

	"github.com/vigilhealth/vigil/internal/validate"
)

//go:embed data/codes.gz
var packed []byte

// Release identifies the code set.
const Release = "ICD-10-CM FY 2026, release of April 1, 2026"

// Entry is a code of the set.
type Entry struct {
	Code        string // with the dot
	Description string
	Billable    bool     // false for a heading, which claims cannot use
	Synonyms    []string // inclusion terms of the tabular list
}

// width is the length of a padded code without its dot; the byte after it marks billable codes.
const (
	width    = 7
	billable = 'b'
)

// Set is a code set.
type Set struct {
	words   []string // of the descriptions, verbatim; the first has number 1
	lower   []string // the same words, folded for search
	codes   []byte   // width+1 bytes each, sorted
	offsets []uint32 // start of each code's texts
	texts   []byte   // word numbers; 0 ends a text, a second 0 ends a code
}

var all = sync.OnceValues(func() (*Set, error) { return Unpack(bytes.NewReader(packed)) })

// All returns the embedded code set.
func All() (*Set, error) { return all() }

var errDamaged = errors.New("icd10: the code set is damaged")

// Unpack reads a packed set: magic, number of words, words, number of codes, codes, length of the texts, texts.
func Unpack(r io.Reader) (*Set, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("open the code set: %w", err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("unpack the code set: %w", err)
	}
	p := &packedReader{rest: raw}
	if string(p.take(len(magic))) != magic {
		return nil, errDamaged
	}
	s := &Set{words: strings.Split(string(p.take(p.number())), "\n")}
	s.codes = bytes.Clone(p.take(p.number()))
	s.texts = bytes.Clone(p.take(p.number()))
	if p.short || len(p.rest) > 0 || len(s.codes)%(width+1) != 0 {
		return nil, errDamaged
	}
	s.lower = make([]string, len(s.words))
	for i, word := range s.words {
		s.lower[i] = foldCase(word)
	}
	return s, s.buildOffsets()
}

const magic = "vigil-icd10-1\n"

// packedReader reads a packed set.
type packedReader struct {
	rest  []byte
	short bool
}

func (p *packedReader) take(n int) (taken []byte) {
	if n < 0 || n > len(p.rest) {
		p.short = true
		return nil
	}
	taken, p.rest = p.rest[:n], p.rest[n:]
	return taken
}

func (p *packedReader) number() int {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 || n > 1<<30 {
		p.short = true
		return 0
	}
	p.rest = p.rest[size:]
	return int(n)
}

// buildOffsets locates the texts of each code.
func (s *Set) buildOffsets() error {
	s.offsets = make([]uint32, 0, s.Len())
	begins, words := true, 0
	for at := 0; at < len(s.texts); {
		first := begins
		if begins {
			s.offsets, begins = append(s.offsets, uint32(at)), false
		}
		word, size := binary.Uvarint(s.texts[at:])
		if size <= 0 || word > uint64(len(s.words)) || first && word == 0 {
			return errDamaged
		}
		at += size
		if word > 0 {
			words++
			continue
		}
		begins, words = words == 0, 0 // the second 0
	}
	if len(s.offsets) != s.Len() || !begins {
		return errDamaged
	}
	return nil
}

// Len returns the number of codes, including headings.
func (s *Set) Len() int { return len(s.codes) / (width + 1) }

// bare returns the code at an index, without its dot.
func (s *Set) bare(i int) string {
	return strings.TrimRight(string(s.codes[i*(width+1):i*(width+1)+width]), " ")
}

func (s *Set) billable(i int) bool { return s.codes[i*(width+1)+width] == billable }

// indexOf returns the index of a code without its dot, or where it would be inserted.
func (s *Set) indexOf(bare string) int {
	return sort.Search(s.Len(), func(i int) bool { return s.bare(i) >= bare })
}

// Find returns a code, written with or without its dot, in any case.
func (s *Set) Find(code string) (Entry, bool) {
	bare := strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(code)), ".", "")
	i := s.indexOf(bare)
	if bare == "" || i == s.Len() || s.bare(i) != bare {
		return Entry{}, false
	}
	return s.entry(i), true
}

// entry returns the entry at an index.
func (s *Set) entry(i int) Entry {
	texts := s.read(i)
	return Entry{Code: Dotted(s.bare(i)), Description: texts[0], Billable: s.billable(i), Synonyms: texts[1:]}
}

// read returns the texts of a code, its description first.
func (s *Set) read(i int) (texts []string) {
	var words []string
	for at := s.offsets[i]; ; {
		word, size := binary.Uvarint(s.texts[at:])
		at += uint32(size) //nolint:gosec // at most ten
		switch {
		case word > 0:
			words = append(words, s.words[word-1])
		case len(words) > 0:
			texts, words = append(texts, strings.Join(words, " ")), nil
		default:
			return texts
		}
	}
}

// Dotted inserts the dot after the category.
func Dotted(bare string) string {
	if len(bare) <= 3 {
		return bare
	}
	return bare[:3] + "." + bare[3:]
}

// IsAccepted reports whether patients and claims accept a code of the set: codes of the chapter for special purposes (U) do not match the contract's
// format. Source: docs/decisions/billing.md, "ICD-10".
func IsAccepted(code string) bool { return validate.ValidICD10(code) }
