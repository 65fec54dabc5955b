package collections_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/collections"
)

func TestStartOfDay(t *testing.T) {
	for _, test := range []struct{ zone, day, want, next string }{
		{"America/New_York", "2026-01-15", "2026-01-15T05:00:00Z", "2026-01-16T05:00:00Z"},
		{"America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"}, // 23 hours
		{"America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"}, // 25 hours
		{"Africa/Cairo", "2025-04-25", "2025-04-24T22:00:00Z", "2025-04-25T21:00:00Z"},     // midnight is skipped
		{"Africa/Cairo", "2025-10-31", "2025-10-30T22:00:00Z", "2025-10-31T22:00:00Z"},     // the hour before it comes twice
		{"America/Havana", "2025-11-02", "2025-11-02T04:00:00Z", "2025-11-03T05:00:00Z"},   // midnight comes twice
		{"Asia/Kathmandu", "2026-01-15", "2026-01-14T18:15:00Z", "2026-01-15T18:15:00Z"},
		{"UTC", "2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		start := collections.ParseDay(test.day, zone)
		if got := start.UTC().Format(time.RFC3339); got != test.want {
			t.Errorf("%s in %s begins at %s, want %s", test.day, test.zone, got, test.want)
		}
		next := collections.StartOfNextDay(start)
		if got := next.UTC().Format(time.RFC3339); got != test.next {
			t.Errorf("the day after %s in %s begins at %s, want %s", test.day, test.zone, got, test.next)
		}
		for _, within := range []time.Time{start, start.Add(11 * time.Hour), next.Add(-time.Microsecond)} {
			if got := collections.StartOfDay(within); !got.Equal(start) {
				t.Errorf("%s belongs to a day that begins at %s", within, got)
			}
		}
	}
	if got := collections.ParseDay("yesterday", time.UTC); !got.IsZero() {
		t.Errorf("no day begins at %s", got)
	}
}

func TestZone(t *testing.T) {
	practice := time.FixedZone("practice", -5*3600)
	for name, want := range map[string]string{"": "practice", "Mars/Olympus": "practice", "Asia/Kathmandu": "Asia/Kathmandu", "UTC": "UTC"} {
		for range 2 {
			if got := collections.Zone(name, practice); got.String() != want {
				t.Errorf("%q is %s, want %s", name, got, want)
			}
		}
	}
}

func TestInstantFormat(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 9))
	for range 20_000 {
		at := time.Unix(random.Int64N(500_000_000_000)-100_000_000_000, random.Int64N(1_000_000_000)).In(time.FixedZone("", random.IntN(100_000)-50_000))
		if got, want := collections.FormatInstant(at), at.UTC().Format("2006-01-02T15:04:05.000000Z"); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if got := collections.FormatInstant(time.Time{}); got != "" {
		t.Errorf("%q", got)
	}
}

func BenchmarkInstant(b *testing.B) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89_012_345, time.UTC)
	for b.Loop() {
		collections.FormatInstant(at)
	}
}
