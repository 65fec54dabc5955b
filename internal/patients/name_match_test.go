package patients

import (
	"fmt"
	"slices"
	"testing"
)

// Names match at the start of their words, for entries in the base and among the changes, by their current value.
func TestIDsByName(t *testing.T) {
	d := NewDirectory()
	d.ready, d.maxChanges = true, 3 // so that some are in the base
	ids := map[string]string{}
	put := func(who, first, last string, state State) {
		if ids[who] == "" {
			ids[who] = fmt.Sprintf("%08x-0000-7000-8000-000000000000", len(ids)+1)
		}
		d.put(newEntry(person{id: ids[who], first: first, last: last, mrn: "love", state: state}.row()))
	}
	put("ada", "Ada", "Lovelace", Active)
	put("bob", "Robert", "O'Brien-Núñez", Archived)
	put("gone", "Ada", "Gone", Deleted)
	put("carla", "Carla Maria", "de la Cruz", Active)
	put("dan", "Dan", "Smith", Active)
	put("eve", "Eve", "Smithson", Active)
	put("dan", "Dan", "Lovell", Active) // who married

	for _, test := range []struct {
		by   func(FoldedName, NamePattern) bool
		text string
		how  MatchMode
		want []string
	}{
		{FoldedName.AnyMatches, "love", MatchStart, []string{"ada", "dan"}},
		{FoldedName.AnyMatches, "OVE", MatchStart, nil},
		{FoldedName.AnyMatches, "ove", MatchAnywhere, []string{"ada", "dan"}},
		{FoldedName.FamilyMatches, "smith", MatchStart, []string{"eve"}},
		{FoldedName.FamilyMatches, "Smithson", MatchWhole, []string{"eve"}},
		{FoldedName.FamilyMatches, "nunez", MatchStart, []string{"bob"}},
		{FoldedName.FamilyMatches, "la cruz", MatchStart, []string{"carla"}},
		{FoldedName.GivenMatches, "maria", MatchStart, []string{"carla"}},
		{FoldedName.GivenMatches, "ada", MatchStart, []string{"ada"}},
		{FoldedName.AnyMatches, " ada   lovelace ", MatchWhole, []string{"ada"}},
		{FoldedName.AnyMatches, "lovelace ada", MatchStart, []string{"ada"}},
		{FoldedName.AnyMatches, "", MatchAnywhere, nil},
		{FoldedName.AnyMatches, "mrn", MatchAnywhere, nil},
	} {
		sought := NewNamePattern(test.text, test.how)
		got := d.IDsByName(func(c FoldedName) bool { return test.by(c, sought) })
		want := []string{}
		for _, who := range test.want {
			want = append(want, ids[who])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q (%d) finds %v, want %v", test.text, test.how, got, want)
		}
	}
}
