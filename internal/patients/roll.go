package patients

import (
	"bytes"
	"iter"
	"math/bits"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// roll is the base of a directory: all entries in the order of names, in few large pieces of memory. Once finished
// it is only read.
type roll struct {
	text       []byte   // the texts of all entries, one after the other
	start      []uint32 // where each begins in text, and where the last ends
	ids        []uuid.UUID
	created    []int64
	state      []State
	byID       []uint32 // entries in the order of ids
	byCreation []uint32 // entries in the order of creation
}

// newRoll makes room for so many entries with so much text, so that no piece is left behind by growing.
func newRoll(size, text int) *roll {
	return &roll{
		text: make([]byte, 0, text), start: make([]uint32, 1, size+1),
		ids: make([]uuid.UUID, 0, size), created: make([]int64, 0, size), state: make([]State, 0, size),
	}
}

// add appends the next entry in the order of names.
func (r *roll) add(id uuid.UUID, text []byte, created int64, state State) {
	r.text = append(r.text, text...)
	r.start = append(r.start, uint32(len(r.text))) //nolint:gosec // all names of a practice are far below 4 GiB
	r.ids, r.created, r.state = append(r.ids, id), append(r.created, created), append(r.state, state)
}

// finish makes the two other orders.
func (r *roll) finish() {
	r.byID, r.byCreation = make([]uint32, len(r.ids)), make([]uint32, len(r.ids))
	for i := range r.ids {
		r.byID[i], r.byCreation[i] = uint32(i), uint32(i)
	}
	slices.SortFunc(r.byID, func(a, b uint32) int { return bytes.Compare(r.ids[a][:], r.ids[b][:]) })
	slices.SortFunc(r.byCreation, func(a, b uint32) int {
		x, y := r.entry(int(a)), r.entry(int(b))
		return byCreation(&x, &y)
	})
}

func (r *roll) entryText(i int) []byte { return r.text[r.start[i]:r.start[i+1]] }

func (r *roll) entry(i int) entry {
	return entry{id: r.ids[i], text: r.entryText(i), created: r.created[i], state: r.state[i]}
}

// find is the place of an id in the order of names.
func (r *roll) find(id uuid.UUID) (int, bool) {
	at, ok := slices.BinarySearchFunc(r.byID, id, func(i uint32, id uuid.UUID) int { return bytes.Compare(r.ids[i][:], id[:]) })
	if !ok {
		return 0, false
	}
	return int(r.byID[at]), true
}

// search marks the entries that contain every word.
func (r *roll) search(wanted [][]byte) bitmap {
	found := newBitmap(len(r.ids))
	if len(wanted) == 0 {
		found.setAll(len(r.ids))
		return found
	}
	at, i := 0, 0
	for {
		hit := bytes.Index(r.text[at:], wanted[0])
		if hit < 0 {
			return found
		}
		for int(r.start[i+1]) <= at+hit { // a word has no separator, so that a hit lies within one entry
			i++
		}
		if contains(r.entryText(i), wanted[1:]) {
			found.set(i)
		}
		at = int(r.start[i+1])
	}
}

// place is how many entries of the roll come before e.
func (r *roll) place(e *entry, order ListOrder) int {
	return sort.Search(len(r.ids), func(n int) bool {
		other := r.entry(r.at(n, order))
		return order.compare(&other, e) >= 0
	})
}

// at is the nth entry in an order.
func (r *roll) at(n int, order ListOrder) int {
	switch order {
	case ByCreation:
		return int(r.byCreation[n])
	case ByCreationLast:
		return int(r.byCreation[len(r.byCreation)-1-n])
	}
	return n
}

// sortByMeasurement walks the marked entries in an order, with their places in it.
func (r *roll) inOrder(order ListOrder, marked bitmap) iter.Seq2[int, int] {
	return func(yield func(place, i int) bool) {
		for n := range r.ids {
			if i := r.at(n, order); marked.has(i) && !yield(n, i) {
				return
			}
		}
	}
}

// bitmap is one bit for each entry of a roll.
type bitmap []uint64

func newBitmap(size int) bitmap { return make(bitmap, (size+63)/64) }

func (b bitmap) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitmap) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

func (b bitmap) setAll(size int) {
	for i := range b {
		b[i] = ^uint64(0)
	}
	if size%64 != 0 {
		b[len(b)-1] = 1<<(size%64) - 1
	}
}

// filter clears the bits of which stays says no.
func (b bitmap) filter(stays func(i int) bool) {
	for word := range b {
		for rest := b[word]; rest != 0; rest &= rest - 1 {
			if bit := bits.TrailingZeros64(rest); !stays(word*64 + bit) {
				b[word] &^= 1 << bit
			}
		}
	}
}

func (b bitmap) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

func parseID(id string) uuid.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return uuid.Nil // no patient has it
	}
	return parsed
}

// parseIDs is nil for nil: no limit.
func parseIDs(ids []string) map[uuid.UUID]bool {
	if ids == nil {
		return nil
	}
	set := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		set[parseID(id)] = true
	}
	return set
}

// separator stands between the parts of a directory entry; fold never returns it.
const separator = '\x00'

// letters that are not decomposed by Unicode but that people type without their strokes, and the apostrophes and
// hyphens that keyboards do not have. Commas separate words, so that "Lovelace, Ada" finds her.
var letters = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe", "ħ", "h", "ŧ", "t", "ı", "i",
	"\u2018", "'", "\u2019", "'", "\u02bc", "'", "\u2010", "-", "\u2013", "-", ",", " ")

// fold is text without case, accents and control characters: what equal names have in common.
// Source: docs/decisions/conventions.md, "Encrypted columns and searching".
func fold(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		text = norm.NFKD.String(text)
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, text)
		text = cases.Fold().String(text)
	}
	text = letters.Replace(strings.ToLower(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// words are the folded words of a search, the longest first, because it is the rarest.
func words(search string) [][]byte {
	var list [][]byte
	for word := range strings.FieldsSeq(fold(search)) {
		list = append(list, []byte(word))
		if last := len(list) - 1; len(list[last]) > len(list[0]) {
			list[0], list[last] = list[last], list[0]
		}
	}
	return list
}
