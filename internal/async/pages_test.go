package async_test

import (
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/async"
)

func TestPages(t *testing.T) {
	pages := async.NewPages[int, string](20)
	want := func(what, key string, state int, page string) {
		t.Helper()
		if found, known := pages.Find(key, state); found != page || known != (page != "") {
			t.Errorf("%s: %q %t, want %q", what, found, known, page)
		}
	}
	want("nothing yet", "a", 1, "")
	pages.Remember("a", 1, "one", 3)
	pages.Remember("a", 1, "again", 5)
	pages.Remember("b", 1, "two", 3)
	want("kept", "a", 1, "one")
	want("both", "b", 1, "two")
	want("another state", "a", 2, "")
	want("which it has not met", "a", 1, "one")
	pages.Remember("a", 2, "later", 5)
	want("the other one", "a", 2, "later")
	want("is all that holds", "b", 1, "")
	pages.Remember("c", 1, "late", 4) // made while the state became another
	want("late", "c", 2, "")
	pages.Remember("d", 3, "0123456789", 10)
	pages.Remember("e", 3, "012345678", 9)
	want("it began anew", "d", 3, "")
	want("with the last", "e", 3, "012345678")
	pages.Remember("f", 3, strings.Repeat("x", 20), 20)
	want("too large for any room", "f", 3, "")
	want("takes nobody's", "e", 3, "012345678")
}
