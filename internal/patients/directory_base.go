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

// directoryBase holds a directory's entries sorted by name, in few large allocations. It is read-only once finished.
type directoryBase struct {
	text       []byte   // the texts of all entries, one after the other
	start      []uint32 // start of each text, and the end of the last
	ids        []uuid.UUID
	created    []int64
	state      []State
	byID       []uint32 // entries in the order of ids
	byCreation []uint32 // entries in the order of creation
}

// newDirectoryBase allocates the exact size, so that growing leaves no copies of names behind.
func newDirectoryBase(size, text int) *directoryBase {
	return &directoryBase{
		text: make([]byte, 0, text), start: make([]uint32, 1, size+1),
		ids: make([]uuid.UUID, 0, size), created: make([]int64, 0, size), state: make([]State, 0, size),
	}
}

// add appends the next entry in the order of names.
func (d *directoryBase) add(id uuid.UUID, text []byte, created int64, state State) {
	d.text = append(d.text, text...)
	d.start = append(d.start, uint32(len(d.text))) //nolint:gosec // all names of a practice are far below 4 GiB
	d.ids, d.created, d.state = append(d.ids, id), append(d.created, created), append(d.state, state)
}

// finish sorts the two other orders.
func (d *directoryBase) finish() {
	d.byID, d.byCreation = make([]uint32, len(d.ids)), make([]uint32, len(d.ids))
	for i := range d.ids {
		d.byID[i], d.byCreation[i] = uint32(i), uint32(i)
	}
	slices.SortFunc(d.byID, func(a, b uint32) int { return bytes.Compare(d.ids[a][:], d.ids[b][:]) })
	slices.SortFunc(d.byCreation, func(a, b uint32) int {
		x, y := d.entry(int(a)), d.entry(int(b))
		return byCreation(&x, &y)
	})
}

func (d *directoryBase) entryText(i int) []byte { return d.text[d.start[i]:d.start[i+1]] }

func (d *directoryBase) entry(i int) entry {
	return entry{id: d.ids[i], text: d.entryText(i), created: d.created[i], state: d.state[i]}
}

// find returns the index of an id in the order of names.
func (d *directoryBase) find(id uuid.UUID) (int, bool) {
	at, ok := slices.BinarySearchFunc(d.byID, id, func(i uint32, id uuid.UUID) int { return bytes.Compare(d.ids[i][:], id[:]) })
	if !ok {
		return 0, false
	}
	return int(d.byID[at]), true
}

// search marks the entries that contain every word.
func (d *directoryBase) search(wanted [][]byte) bitmap {
	found := newBitmap(len(d.ids))
	if len(wanted) == 0 {
		found.setAll(len(d.ids))
		return found
	}
	at, i := 0, 0
	for {
		hit := bytes.Index(d.text[at:], wanted[0])
		if hit < 0 {
			return found
		}
		for int(d.start[i+1]) <= at+hit { // a word has no separator, so a hit lies within one entry
			i++
		}
		if contains(d.entryText(i), wanted[1:]) {
			found.set(i)
		}
		at = int(d.start[i+1])
	}
}

// position returns how many entries of the base precede e.
func (d *directoryBase) position(e *entry, order ListOrder) int {
	return sort.Search(len(d.ids), func(n int) bool {
		other := d.entry(d.nth(n, order))
		return order.compare(&other, e) >= 0
	})
}

// nth returns the index of the nth entry in an order.
func (d *directoryBase) nth(n int, order ListOrder) int {
	switch order {
	case ByCreation:
		return int(d.byCreation[n])
	case ByCreationDescending:
		return int(d.byCreation[len(d.byCreation)-1-n])
	}
	return n
}

// inOrder iterates over the marked entries in an order, with their positions.
func (d *directoryBase) inOrder(order ListOrder, marked bitmap) iter.Seq2[int, int] {
	return func(yield func(place, i int) bool) {
		for n := range d.ids {
			if i := d.nth(n, order); marked.has(i) && !yield(n, i) {
				return
			}
		}
	}
}

// bitmap has one bit per entry of a base.
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

// filter clears the bits for which stays returns false.
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

// parseIDs returns nil for nil: no limit.
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

// separator ends each part of a directory entry; fold never returns it.
const separator = '\x00'

// foldedLetters maps letters that Unicode does not decompose but users type without strokes, and apostrophes and hyphens that keyboards
// lack. Commas separate words, so that "Lovelace, Ada" finds her.
var foldedLetters = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe", "ħ", "h", "ŧ", "t", "ı", "i",
	"\u2018", "'", "\u2019", "'", "\u02bc", "'", "\u2010", "-", "\u2013", "-", ",", " ")

// fold returns text without case, accents and control characters. Source: docs/decisions/conventions.md, "Encrypted columns and searching".
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
	text = foldedLetters.Replace(strings.ToLower(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// searchWords returns the folded words of a search, the longest first, because it is the rarest.
func searchWords(search string) [][]byte {
	var list [][]byte
	for word := range strings.FieldsSeq(fold(search)) {
		list = append(list, []byte(word))
		if last := len(list) - 1; len(list[last]) > len(list[0]) {
			list[0], list[last] = list[last], list[0]
		}
	}
	return list
}
