package patients

import (
	"fmt"
	"slices"
	"testing"
)

// Names are found by the start of their words wherever the entry stands, in the base or among the changes, and as it is now.
func TestMatching(t *testing.T) {
	d := NewDirectory()
	d.ready, d.mostChanges = true, 3 // so that some are in the base
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
		by   func(Called, Sought) bool
		text string
		how  Looking
		want []string
	}{
		{Called.Any, "love", FromStart, []string{"ada", "dan"}},
		{Called.Any, "OVE", FromStart, nil},
		{Called.Any, "ove", Anywhere, []string{"ada", "dan"}},
		{Called.Family, "smith", FromStart, []string{"eve"}},
		{Called.Family, "Smithson", Whole, []string{"eve"}},
		{Called.Family, "nunez", FromStart, []string{"bob"}},
		{Called.Family, "la cruz", FromStart, []string{"carla"}},
		{Called.Given, "maria", FromStart, []string{"carla"}},
		{Called.Given, "ada", FromStart, []string{"ada"}},
		{Called.Any, " ada   lovelace ", Whole, []string{"ada"}},
		{Called.Any, "lovelace ada", FromStart, []string{"ada"}},
		{Called.Any, "", Anywhere, nil},
		{Called.Any, "mrn", Anywhere, nil},
	} {
		sought := Seek(test.text, test.how)
		got := d.Matching(func(c Called) bool { return test.by(c, sought) })
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
