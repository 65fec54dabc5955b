package async_test

import (
	"errors"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/async"
)

var moment = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

func TestCache(t *testing.T) {
	reads, failing := 0, error(nil)
	r := async.NewCache[int](2)
	want := func(what, id string, after time.Duration, value int) {
		t.Helper()
		got, err := r.Get(id, moment.Add(after), func() (int, error) { reads++; return reads, failing })
		if got != value || !errors.Is(err, failing) {
			t.Errorf("%s: %d %v, want %d", what, got, err, value)
		}
	}
	want("the first time", "a", 0, 1)
	want("a while later", "a", 29*time.Second, 1)
	want("too old", "a", 30*time.Second, 2)
	r.Evict("a")
	want("changed", "a", 31*time.Second, 3)
	failing = errors.New("no such record")
	want("not there", "b", 32*time.Second, 4)
	failing = nil
	want("an error is not cached", "b", 32*time.Second, 5)
	want("both are cached", "a", 33*time.Second, 3)
	want("one too many", "c", 33*time.Second, 6)
	want("cleared", "a", 33*time.Second, 7)
}

// A value read before a change was committed is not cached beyond it.
func TestEvictDuringRead(t *testing.T) {
	r := async.NewCache[string](2)
	old, err := r.Get("a", moment, func() (string, error) { r.Evict("a"); return "old", nil })
	if old != "old" || err != nil {
		t.Fatal(old, err)
	}
	if now, _ := r.Get("a", moment, func() (string, error) { return "new", nil }); now != "new" {
		t.Errorf("cached %s", now)
	}
}
