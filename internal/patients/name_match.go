package patients

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
)

// FoldedName is a patient's name without case and accents, as the [Directory] compares it. It must not be kept.
type FoldedName struct{ last, first []byte }

// FoldName folds another name.
func FoldName(last, first string) FoldedName {
	return FoldedName{[]byte(fold(last)), []byte(fold(first))}
}

// MatchMode is how a pattern matches a name.
type MatchMode uint8

// The modes: from the start of the name or of one of its words, anywhere, or the whole name.
const (
	MatchStart MatchMode = iota
	MatchAnywhere
	MatchWhole
)

// NamePattern is a text to match with names.
type NamePattern struct {
	text []byte
	mode MatchMode
}

// NewNamePattern folds a text.
func NewNamePattern(text string, how MatchMode) NamePattern {
	return NamePattern{bytes.Join(bytes.Fields([]byte(fold(text))), []byte(" ")), how}
}

// FamilyMatches reports whether the family name matches.
func (c FoldedName) FamilyMatches(s NamePattern) bool { return s.matches(c.last) }

// GivenMatches reports whether the given name matches.
func (c FoldedName) GivenMatches(s NamePattern) bool { return s.matches(c.first) }

// AnyMatches reports whether either name matches, or both in either order.
func (c FoldedName) AnyMatches(s NamePattern) bool {
	return s.matches(c.last) || s.matches(c.first) ||
		s.matches(slices.Concat(c.first, []byte(" "), c.last)) || s.matches(slices.Concat(c.last, []byte(" "), c.first))
}

func (s NamePattern) matches(name []byte) bool {
	switch {
	case len(s.text) == 0:
		return false
	case s.mode == MatchWhole:
		return bytes.Equal(name, s.text)
	case s.mode == MatchAnywhere:
		return bytes.Contains(name, s.text)
	}
	for at := 0; ; {
		hit := bytes.Index(name[at:], s.text)
		if hit < 0 {
			return false
		}
		if at += hit; at == 0 || name[at-1] == ' ' || name[at-1] == '-' {
			return true
		}
		at++
	}
}

// IDsByName returns the ids of patients with matching names, without deleted ones, in no order.
func (d *Directory) IDsByName(match func(FoldedName) bool) []string {
	found := []string{}
	check := func(id uuid.UUID, text []byte, state State) {
		last, rest, _ := bytes.Cut(text, []byte{separator})
		first, _, _ := bytes.Cut(rest, []byte{separator})
		if state != Deleted && match(FoldedName{last, first}) {
			found = append(found, id.String())
		}
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range d.base.ids {
		if !d.removed.has(i) {
			check(d.base.ids[i], d.base.entryText(i), d.base.state[i])
		}
	}
	for _, e := range d.changes {
		check(e.id, e.text, e.state)
	}
	return found
}
