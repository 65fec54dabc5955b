package patients

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"Smith":                  "smith",
		"MRN-00001042":           "mrn-00001042",
		"Jos\u00e9":              "jose",
		"Jose\u0301":             "jose",
		"Weiß":                   "weiss",
		"WEISS":                  "weiss",
		"GROẞ":                   "gross",
		"İstanbul":               "istanbul",
		"Işık":                   "isik",
		"O'Brien":                "o'brien",
		"O\u2019BRIEN":           "o'brien",
		"Łukasz":                 "lukasz",
		"Sørensen":               "sorensen",
		"Ægir":                   "aegir",
		"Nguyễn":                 "nguyen",
		"Ângström":               "angstrom",
		"ΣΊΣΥΦΟΣ":                "σισυφοσ",
		"Σίσυφος":                "σισυφοσ",
		"Éric-Anne":              "eric-anne",
		"Lovelace, Ada":          "lovelace  ada",
		"line\nbreak\x00nothing": "line break nothing",
		"":                       "",
	} {
		if got := fold(in); got != want {
			t.Errorf("fold(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestFoldIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := fold(rapid.String().Draw(t, "text"))
		if strings.ContainsRune(once, separator) {
			t.Fatalf("%q holds the separator", once)
		}
		if twice := fold(once); twice != once {
			t.Fatalf("folded twice: %q, then %q", once, twice)
		}
	})
}

// person is a patient of the model.
type person struct {
	id, first, last, mrn string
	state                State
	created              time.Time
}

func (p person) row() collections.DirectoryEntry {
	return collections.DirectoryEntry{
		ID: p.id, MRN: p.mrn, First: phi.Text(p.first), Last: phi.Text(p.last),
		Active: p.state == Active, Deleted: p.state == Deleted, CreatedAt: p.created,
	}
}

// naive searches by comparing every patient.
func naive(people map[string]person, f DirectoryQuery) (ids []string, total int) {
	var found []person
	for _, p := range people {
		matches := p.state == f.State && (f.Only == nil || slices.Contains(f.Only, p.id))
		for _, word := range strings.Fields(fold(f.Search)) {
			matches = matches && (strings.Contains(fold(p.first), word) || strings.Contains(fold(p.last), word) || strings.Contains(fold(p.mrn), word))
		}
		if matches {
			found = append(found, p)
		}
	}
	sorted := func(p person) string { return strings.Join([]string{fold(p.last), fold(p.first), fold(p.mrn)}, "\x00") }
	slices.SortFunc(found, func(a, b person) int {
		first := strings.Compare(sorted(a), sorted(b))
		if f.Order == ByCreation || f.Order == ByCreationDescending {
			first = a.created.Compare(b.created)
		}
		if first == 0 {
			first = strings.Compare(a.id, b.id)
			if f.Order == ByCreationDescending {
				return -first
			}
			return first
		}
		if f.Order == ByCreationDescending {
			return -first
		}
		return first
	})
	for _, p := range found[min(f.Offset, len(found)):min(f.Offset+f.Limit, len(found))] {
		ids = append(ids, p.id)
	}
	return ids, len(found)
}

func TestDirectoryAgainstNaiveSearch(t *testing.T) {
	names := rapid.StringOfN(rapid.RuneFrom([]rune("aAbBé'’ßøı -\u0301")), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		found := make([]string, 12)
		for i := range found {
			found[i] = fmt.Sprintf("%08x-0000-7000-8000-%012x", rapid.Uint32().Draw(t, "id"), i)
		}
		people := map[string]person{}
		d := NewDirectory()
		d.maxChanges = rapid.IntRange(0, 6).Draw(t, "most changes")
		d.ready = true
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				p := person{
					id: rapid.SampledFrom(found).Draw(t, "who"), first: names.Draw(t, "first"), last: names.Draw(t, "last"),
					mrn: names.Draw(t, "mrn"), state: State(rapid.IntRange(0, 2).Draw(t, "state")),
					created: time.UnixMicro(rapid.Int64Range(0, 3).Draw(t, "created")).UTC(),
				}
				people[p.id] = p
				d.put(newEntry(p.row()))
			},
			"remove": func(t *rapid.T) {
				id := rapid.SampledFrom(found).Draw(t, "who")
				delete(people, id)
				d.remove(parseID(id))
			},
			"": func(t *rapid.T) {
				f := DirectoryQuery{
					Search: names.Draw(t, "search"), State: State(rapid.IntRange(0, 2).Draw(t, "state")),
					Order:  rapid.SampledFrom([]ListOrder{"", ByLastName, ByCreation, ByCreationDescending}).Draw(t, "order"),
					Offset: rapid.IntRange(0, 5).Draw(t, "offset"), Limit: rapid.IntRange(0, 5).Draw(t, "limit"),
				}
				if rapid.Bool().Draw(t, "some only") {
					f.Only = append([]string{}, rapid.SliceOfN(rapid.SampledFrom(found), 0, 4).Draw(t, "only")...)
				}
				ids, total := d.Find(f)
				wantIDs, wantTotal := naive(people, f)
				if diff := cmp.Diff(wantIDs, ids); diff != "" || total != wantTotal {
					t.Fatalf("%+v: total %d, want %d; ids (-want +got):\n%s", f, total, wantTotal, diff)
				}
			},
		})
	})
}

func TestDirectorySearches(t *testing.T) {
	d := NewDirectory()
	d.ready = true
	for i, name := range [][2]string{{"Siobhán", "O’Brien"}, {"Ada", "Lovelace"}, {"Jürgen", "Weiß"}, {"Bob", "Brienne"}} {
		d.put(newEntry(person{id: uuid.Must(uuid.NewV7()).String(), first: name[0], last: name[1], mrn: fmt.Sprintf("MRN-%08d", 1042+i)}.row()))
	}
	for search, want := range map[string]int{
		"":                4,
		"   ":             4,
		"o'brien":         1,
		"brien":           2,
		"SIOBHAN":         1,
		"ada lovelace":    1,
		"Lovelace, Ada":   1,
		"lace ad":         1,
		"ada brien":       0,
		"jurgen weiss":    1,
		"mrn-00001043":    1,
		"1042":            1,
		"e mrn":           4,
		"lovelace\x00ada": 1,
		"zz":              0,
	} {
		if _, total := d.Find(DirectoryQuery{Search: search, Limit: 10}); total != want {
			t.Errorf("%q found %d, want %d", search, total, want)
		}
	}
}

func TestClosedDirectoryIsEmptyAndOverwritten(t *testing.T) {
	d := filled(3 * maxChanges)
	base, changed := d.base, d.changes
	if len(changed) == 0 || len(base.ids) == 0 {
		t.Fatal("the test needs entries in the base and in the changes")
	}
	d.Close()
	if strings.Trim(string(base.text), "\x00") != "" {
		t.Error("the base still holds names")
	}
	for _, e := range changed {
		if len(bytes.Trim(e.text, "\x00")) != 0 {
			t.Error("a change still holds a name")
		}
	}
	if _, total := d.Find(DirectoryQuery{Limit: 1}); total != 0 || d.Ready() {
		t.Errorf("a closed directory finds %d and is ready: %v", total, d.Ready())
	}
	d.swap(newDirectoryBase(0, 0))
	if d.Ready() {
		t.Error("a closed directory came back")
	}
}

func TestDirectorySearchesWhileChanging(t *testing.T) {
	d := filled(2000)
	d.maxChanges = 16
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for i := range 200 {
				d.writeMu.Lock()
				d.put(newEntry(randomPerson(rand.New(rand.NewPCG(7, uint64(i)))).row()))
				d.writeMu.Unlock()
			}
		})
		group.Go(func() {
			for range 100 {
				if ids, total := d.Find(DirectoryQuery{Search: "a", Limit: 20}); len(ids) > total {
					t.Errorf("%d ids of %d", len(ids), total)
				}
			}
		})
	}
	group.Wait()
}

func TestDirectoryRefusesToPrint(t *testing.T) {
	d := NewDirectory()
	d.put(newEntry(person{id: uuid.NewString(), last: "Markedname"}.row()))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, d); strings.Contains(strings.ToLower(text), "markedname") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

var (
	someFirst = []string{"Maria", "James", "Olivia", "José", "Wei", "Fatima", "John", "Aaliyah", "Siobhán", "Robert"}
	someLast  = []string{"Garcia", "Smith", "Johnson", "Nguyen", "O'Brien", "Müller", "Williams", "Kowalski", "Hernandez", "Lee"}
)

func randomPerson(r *rand.Rand) person {
	suffix := func() string { return string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26))) }
	id := uuid.UUID{}
	for i := range id {
		id[i] = byte(r.IntN(256))
	}
	return person{
		id: id.String(), first: someFirst[r.IntN(len(someFirst))], last: someLast[r.IntN(len(someLast))] + suffix(),
		mrn: fmt.Sprintf("MRN-%08d", r.IntN(1e8)), created: time.UnixMicro(r.Int64N(1e15)),
	}
}

// filled is a directory of so many people, with some hundred entries outside the base.
func filled(people int) *Directory {
	r := rand.New(rand.NewPCG(1, 2))
	d := NewDirectory()
	d.ready = true
	var all []*entry
	text := 0
	for range people - min(people, 300) {
		e := newEntry(randomPerson(r).row())
		all, text = append(all, e), text+len(e.text)
	}
	slices.SortFunc(all, byName)
	base := newDirectoryBase(len(all), text)
	for _, e := range all {
		base.add(e.id, e.text, e.created, e.state)
	}
	base.finish()
	d.swap(base)
	for range min(people, 300) {
		d.put(newEntry(randomPerson(r).row()))
	}
	return d
}

func BenchmarkDirectory(b *testing.B) {
	for _, people := range []int{10_000, 100_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		d := filled(people)
		runtime.GC()
		runtime.ReadMemStats(&after)
		for name, find := range map[string]DirectoryQuery{
			"search 4 letters":  {Search: "guye", Limit: 20},
			"search 2 words":    {Search: "maria garc", Limit: 20},
			"search 1 letter":   {Search: "a", Limit: 20},
			"search by newest":  {Search: "guye", Limit: 20, Order: ByCreationDescending},
			"page by last name": {Limit: 20},
			"page 500 deep":     {Limit: 20, Offset: 5000},
		} {
			b.Run(fmt.Sprintf("%d/%s", people, name), func(b *testing.B) {
				for b.Loop() {
					d.Find(find)
				}
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(people), "B/patient")
			})
		}
		b.Run(fmt.Sprintf("%d/put", people), func(b *testing.B) {
			r := rand.New(rand.NewPCG(3, 4))
			for b.Loop() {
				d.put(newEntry(randomPerson(r).row()))
			}
		})
	}
}
