package directory_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vigilhealth/vigil/internal/events/directory"
)

// day returns a time of November 2026.
func day(n int) time.Time { return time.Date(2026, 11, n, 12, 0, 0, 0, time.UTC) }

func span(from, to int) directory.Interval {
	if to == 0 {
		return directory.Interval{From: day(from)}
	}
	return directory.Interval{From: day(from), To: day(to)}
}

func TestOwner(t *testing.T) {
	id := directory.NewID([]byte("key"), directory.Device, "bp-1")
	moved := map[string][]directory.Interval{"elm": {span(1, 10)}, "oak": {span(10, 0)}}
	for _, test := range []struct {
		name     string
		claims   map[string][]directory.Interval
		measured time.Time
		want     directory.Owner
	}{
		{"unknown", nil, day(5), directory.Owner{}},
		{"held", map[string][]directory.Interval{"elm": {span(1, 0)}}, day(5), directory.Owner{Practice: "elm"}},
		{"moved, backlog of the former holder", moved, day(9), directory.Owner{Practice: "elm"}},
		{"moved, at the moment", moved, day(10), directory.Owner{Practice: "oak"}},
		{"moved, before either", moved, day(1).Add(-time.Second), directory.Owner{}},
		{"between two holders", map[string][]directory.Interval{"elm": {span(1, 5)}, "oak": {span(8, 0)}}, day(6), directory.Owner{}},
		{"overlapping claims", map[string][]directory.Interval{"elm": {span(1, 0)}, "oak": {span(8, 0)}}, day(9), directory.Owner{Overlaps: true}},
		{"before the claims overlap", map[string][]directory.Interval{"elm": {span(1, 0)}, "oak": {span(8, 0)}}, day(7), directory.Owner{Practice: "elm"}},
		{"measured before the only assignment", map[string][]directory.Interval{"elm": {span(8, 0)}}, day(2), directory.Owner{Practice: "elm"}},
		{"registered, never assigned", map[string][]directory.Interval{"elm": {}}, day(2), directory.Owner{Practice: "elm"}},
		{"returned, then back", map[string][]directory.Interval{"elm": {span(1, 3), span(7, 0)}, "oak": {span(3, 7)}}, day(8), directory.Owner{Practice: "elm"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := (directory.Claims{id: test.claims}).Owner(id, test.measured); got != test.want {
				t.Errorf("the owner is %+v, want %+v", got, test.want)
			}
		})
	}
}

// At each time the owner is the one practice that holds the device then, if there is one.
func TestOwnerOfRandomClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := directory.NewID([]byte("key"), directory.Device, "bp-1")
		claims, at := map[string][]directory.Interval{}, day(rapid.IntRange(1, 28).Draw(t, "measured"))
		var holders []string
		for _, practice := range []string{"ash", "elm", "oak"}[:rapid.IntRange(0, 3).Draw(t, "practices")] {
			claims[practice] = []directory.Interval{}
			if rapid.Bool().Draw(t, "holds") {
				from := rapid.IntRange(1, 20).Draw(t, "from")
				to := from + rapid.IntRange(1, 8).Draw(t, "length")
				claims[practice] = append(claims[practice], span(from, to))
				if !at.Before(day(from)) && at.Before(day(to)) {
					holders = append(holders, practice)
				}
			}
		}
		got := directory.Claims{id: claims}.Owner(id, at)
		switch {
		case len(holders) == 1 && got != directory.Owner{Practice: holders[0]},
			len(holders) > 1 && got != directory.Owner{Overlaps: true},
			len(holders) == 0 && len(claims) > 1 && got != directory.Owner{}:
			t.Fatalf("%v at %v: the owner is %+v, holders are %v", claims, at, got, holders)
		}
	})
}

func TestHashesDifferByKindAndKey(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range []string{"one", "two"} {
		for _, kind := range []directory.Kind{directory.Device, directory.Hub, directory.Patient} {
			seen[directory.NewID([]byte(key), kind, "1").Hash] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("%d hashes of six identifiers", len(seen))
	}
}
