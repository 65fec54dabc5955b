package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

func board(key string) *dashboard.Board {
	return dashboard.NewBoard(dashboard.Options{Zone: time.UTC, CursorKey: []byte(key)})
}

func appendEvents(t testing.TB, app core.App, at time.Time, events ...audit.Event) {
	t.Helper()
	for _, event := range events {
		entry := audit.Entry{Event: event, Actor: audit.User(7, "nurse@vigil.test", "nurse", audit.Origin{}), ResourceType: "X", ResourceID: "degraded"}
		if err := audit.Append(app, entry, at); err != nil {
			t.Fatal(err)
		}
	}
}

func feed(t testing.TB, app core.App, b *dashboard.Board, q dashboard.FeedQuery, now time.Time) dashboard.FeedPage {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 100
	}
	page, err := b.Feed(app, q, now)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// The feed covers 400 days, omits failures and irrelevant events, and grades its entries.
func TestFeed(t *testing.T) {
	app, b := vigiltest.NewApp(t), board("key")
	appendEvents(t, app, start.AddDate(0, 0, -401), audit.PatientCreate)
	appendEvents(t, app, start.AddDate(0, 0, -399), audit.HealthChange)
	appendEvents(t, app, start, audit.PatientRead, audit.ObservationCreate, audit.Login, audit.EMRSync, audit.HubOffline)
	failed := audit.Entry{Event: audit.BillingRun, Outcome: audit.MajorFailure, Actor: audit.System()}
	if err := audit.Append(app, failed, start); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range feed(t, app, b, dashboard.FeedQuery{Role: authz.Admin}, start).Entries {
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Severity, e.Message()))
		if printed := fmt.Sprintf("%v %+v", e, e); strings.Contains(printed, e.Message()) {
			t.Errorf("%s prints", e.ID)
		}
	}
	want := []string{
		"system warning Hub degraded is offline.", "emr_sync success Synchronisation with the EMR completed.",
		"user info nurse@vigil.test signed in.", "system warning The service is degraded.",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	if page := feed(t, app, b, dashboard.FeedQuery{Role: authz.Nurse, Type: dashboard.FeedUser}, start); len(page.Entries) != 0 {
		t.Error("a nurse reads who signed in")
	}
	if page := feed(t, app, b, dashboard.FeedQuery{Role: authz.Patient}, start); len(page.Entries) != 0 {
		t.Error("a portal user reads the feed")
	}
}

// A cursor is valid only with the key that signed it.
func TestFeedCursor(t *testing.T) {
	app := vigiltest.NewApp(t)
	appendEvents(t, app, start, audit.Login, audit.Login, audit.Login)
	q := dashboard.FeedQuery{Role: authz.Admin, Limit: 2}
	page := feed(t, app, board("one"), q, start)
	if len(page.Entries) != 2 || page.Next == "" {
		t.Fatalf("%d entries", len(page.Entries))
	}
	q.Cursor = &page.Next
	if rest := feed(t, app, board("one"), q, start); len(rest.Entries) != 1 || rest.Next != "" || rest.Entries[0].ID != "1" {
		t.Errorf("%v", rest.Entries)
	}
	if _, err := board("another").Feed(app, q, start); err == nil {
		t.Error("another key's cursor is taken")
	}
}

// FuzzFeedCursor: any cursor returns a page or a refusal.
func FuzzFeedCursor(f *testing.F) {
	app, b := vigiltest.NewApp(f), board("key")
	appendEvents(f, app, start, audit.Login, audit.Login)
	page, err := b.Feed(app, dashboard.FeedQuery{Role: authz.Admin, Limit: 1}, start)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{page.Next, "", "AAAA", strings.Repeat("A", 100), "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		got, err := b.Feed(app, dashboard.FeedQuery{Role: authz.Admin, Limit: 1, Cursor: &cursor}, start)
		if (err == nil) != (cursor == page.Next) || err == nil && len(got.Entries) != 1 {
			t.Errorf("%q: %d entries (%v)", cursor, len(got.Entries), err)
		}
	})
}

// The time of one page does not depend on the length of the trail.
func BenchmarkFeed(b *testing.B) {
	app, board := vigiltest.NewApp(b), board("key")
	_, err := app.DB().NewQuery(`INSERT INTO audit_log (id, recorded_at, event, action, outcome, actor_type, resource_type, resource_id, prev_hash, hash)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
		SELECT printf('%015d', i), '2026-01-15T13:45:00.000000Z', CASE i % 100 WHEN 0 THEN 'patient.create' WHEN 1 THEN 'hub.offline' ELSE 'observation.create' END,
			'C', '0', 'system', '', '', '', '' FROM n`).Execute()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		feed(b, app, board, dashboard.FeedQuery{Role: authz.Admin, Limit: 20}, start)
	}
}
