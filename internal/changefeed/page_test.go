package changefeed_test

import (
	"slices"
	"testing"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// insertChanges adds n changes of a type.
func insertChanges(t testing.TB, app core.App, n int, noun, patient string) {
	t.Helper()
	_, err := app.NonconcurrentDB().NewQuery(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {:n})
		INSERT INTO changes (type, record, change, event, patient, at) SELECT {:noun}, i, 'updated', '', {:patient}, '2026-01-15T13:45:00.000000Z' FROM n`).
		Bind(map[string]any{"n": n, "noun": noun, "patient": patient}).Execute()
	if err != nil {
		t.Fatal(err)
	}
}

// With any page size and types, every matching change is read once, in order.
func TestPagesReadEveryChangeOnce(t *testing.T) {
	app := vigiltest.NewApp(t)
	for range 30 {
		insertChanges(t, app, 3, "alert", "p1")
		insertChanges(t, app, 1, "patient", "p2")
	}
	insertChanges(t, app, 50_000, "observation", "p1") // more than one page scans
	insertChanges(t, app, 2, "alert", "p1")
	for _, test := range []struct {
		types []string
		want  int
	}{{[]string{"alert"}, 92}, {[]string{"patient", "alert"}, 122}, {[]string{"claim"}, 0}, {[]string{}, 0}, {[]string{"patient", "alert", "observation"}, 50_122}} {
		for _, limit := range []int{7, 92, 1000} {
			if test.want > 1000 && limit < 1000 {
				continue
			}
			reader := changefeed.Reader{Types: test.types, Limit: limit}
			var seen []int64
			place, pages := changefeed.Oldest(), 0
			for more := true; more; pages++ {
				page, err := reader.Read(app, place)
				if err != nil || len(page.Changes) > limit {
					t.Fatalf("%d changes, %v", len(page.Changes), err)
				}
				for _, c := range page.Changes {
					seen = append(seen, c.Seq)
				}
				place, more = page.Next, page.More
				if again, err := changefeed.Parse(place.String()); err != nil || again != place {
					t.Fatalf("%s parses as %v, %v", place, again, err)
				}
			}
			if len(seen) != test.want || !slices.IsSorted(seen) || len(slices.Compact(seen)) != test.want {
				t.Errorf("%v by %d: %d changes, want %d", test.types, limit, len(seen), test.want)
			}
			if pages < 3 { // several scans were needed
				t.Errorf("%v by %d: %d pages", test.types, limit, pages)
			}
			if end, err := changefeed.Latest(app); err != nil || end != place {
				t.Errorf("ended at %v, %v", place, err)
			}
		}
	}
}

func TestInvalidCursors(t *testing.T) {
	app := vigiltest.NewApp(t)
	empty, err := changefeed.Latest(app)
	if err != nil || empty == changefeed.Oldest() {
		t.Fatalf("an empty database has no position: %v, %v", empty, err)
	}
	reader := changefeed.Reader{Types: changefeed.Types(), Limit: 10}
	insertChanges(t, app, 5, "alert", "")
	end, err := changefeed.Latest(app)
	if err != nil {
		t.Fatal(err)
	}
	if page, err := reader.Read(app, empty); err != nil || len(page.Changes) != 5 || page.Next != end || page.More {
		t.Errorf("%v, %v", page, err)
	}
	refused := func(what, statement string) {
		t.Helper()
		run(t, app, statement)
		if _, err := reader.Read(app, end); vigiltest.Code(err) != changefeed.InvalidCursor {
			t.Errorf("%s: %v", what, err)
		}
	}
	// What a restore can leave of the last row that was read.
	refused("missing", `DELETE FROM changes WHERE seq = 6`)
	refused("another time", `INSERT INTO changes VALUES (6, 'alert', '5', 'updated', '', '', '2026-01-15T13:45:00.001000Z')`)
	refused("another resource", `UPDATE changes SET record = '6', at = '2026-01-15T13:45:00.000000Z' WHERE seq = 6`)
	run(t, app, `UPDATE changes SET record = '5' WHERE seq = 6`)
	if _, err := reader.Read(app, end); err != nil {
		t.Error(err)
	}
	refused("deleted", `INSERT INTO changes VALUES (7, 'alert', '5', 'updated', '', '', ''); DELETE FROM changes WHERE seq < 7`)
	for _, text := range []string{"", "x", "AAAA", end.String() + "A", "AAAAAAAAAAAAAAAAAAAAAA", "__________8AAAAAAAAAAA"} {
		if _, err := changefeed.Parse(text); vigiltest.Code(err) != changefeed.InvalidCursor {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzParse checks that Parse accepts only what String returns.
func FuzzParse(f *testing.F) {
	f.Add("AAAAAAAAAC8tX2T7mK0a3w")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := changefeed.Parse(text); err == nil && c.String() != text {
			t.Errorf("%q parses as %s", text, c)
		}
	})
}

// BenchmarkPage reads a thousand changes from the middle of ten million, and verifies the cursor.
func BenchmarkPage(b *testing.B) {
	app := vigiltest.NewApp(b)
	for range 20 {
		insertChanges(b, app, 500_000, "observation", "0194c5a8-0000-7000-8000-000000000001")
	}
	reader := changefeed.Reader{Types: changefeed.Types(), Limit: 1000}
	var middle changefeed.Cursor
	found, err := changefeed.After(app, 5_000_000, nil, 1)
	if err != nil {
		b.Fatal(err)
	}
	middle = found[0].Cursor()
	b.ResetTimer()
	for range b.N {
		if page, err := reader.Read(app, middle); err != nil || len(page.Changes) != 1000 {
			b.Fatalf("%d changes, %v", len(page.Changes), err)
		}
	}
}
