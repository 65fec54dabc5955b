package patients

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
)

// Called is what a patient of the [Directory] is called, as it compares: without case and accents. It is not kept.
type Called struct{ last, first []byte }

// CalledOf is what somebody else is called.
func CalledOf(last, first string) Called { return Called{[]byte(fold(last)), []byte(fold(first))} }

// Looking is a way of looking for a text.
type Looking uint8

// The ways of looking: from the start of the name or of one of its words, anywhere in it, or the whole of it.
const (
	FromStart Looking = iota
	Anywhere
	Whole
)

// Sought is a text that is looked for in names.
type Sought struct {
	text []byte
	how  Looking
}

// Seek makes ready what is looked for.
func Seek(text string, how Looking) Sought {
	return Sought{bytes.Join(bytes.Fields([]byte(fold(text))), []byte(" ")), how}
}

// Family reports whether the family name is what is looked for.
func (c Called) Family(s Sought) bool { return s.in(c.last) }

// Given reports whether the given name is.
func (c Called) Given(s Sought) bool { return s.in(c.first) }

// Any reports whether one of the names is, or both as people say them.
func (c Called) Any(s Sought) bool {
	return s.in(c.last) || s.in(c.first) ||
		s.in(slices.Concat(c.first, []byte(" "), c.last)) || s.in(slices.Concat(c.last, []byte(" "), c.first))
}

func (s Sought) in(name []byte) bool {
	switch {
	case len(s.text) == 0:
		return false
	case s.how == Whole:
		return bytes.Equal(name, s.text)
	case s.how == Anywhere:
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

// Matching are the ids of the patients, archived ones too, whose names are what is looked for, in no order.
func (d *Directory) Matching(match func(Called) bool) []string {
	found := []string{}
	check := func(id uuid.UUID, text []byte, state State) {
		last, rest, _ := bytes.Cut(text, []byte{separator})
		first, _, _ := bytes.Cut(rest, []byte{separator})
		if state != Deleted && match(Called{last, first}) {
			found = append(found, id.String())
		}
	}
	d.reading.RLock()
	defer d.reading.RUnlock()
	for i := range d.base.ids {
		if !d.gone.has(i) {
			check(d.base.ids[i], d.base.entryText(i), d.base.state[i])
		}
	}
	for _, e := range d.changes {
		check(e.id, e.text, e.state)
	}
	return found
}
