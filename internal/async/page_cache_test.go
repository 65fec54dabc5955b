package async_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/async"
)

func TestPageCache(t *testing.T) {
	pages := async.NewPageCache[int, string](20)
	want := func(what, key string, state int, page string) {
		t.Helper()
		if found, known := pages.Get(key, state); found != page || known != (page != "") {
			t.Errorf("%s: %q %t, want %q", what, found, known, page)
		}
	}
	want("empty", "a", 1, "")
	pages.Put("a", 1, "one", 3)
	pages.Put("a", 1, "again", 5)
	pages.Put("b", 1, "two", 3)
	want("stored", "a", 1, "one")
	want("both stored", "b", 1, "two")
	want("another state", "a", 2, "")
	want("unknown to the cache so far", "a", 1, "one")
	pages.Put("a", 2, "later", 5)
	want("the new state", "a", 2, "later")
	want("evicted with the old state", "b", 1, "")
	pages.Put("c", 1, "late", 4) // computed while the state changed
	want("late", "c", 2, "")
	pages.Put("d", 3, "0123456789", 10)
	pages.Put("e", 3, "012345678", 9)
	want("cleared", "d", 3, "")
	want("the last one", "e", 3, "012345678")
	pages.Put("f", 3, strings.Repeat("x", 20), 20)
	want("larger than the cache", "f", 3, "")
	want("evicts no other", "e", 3, "012345678")
}
