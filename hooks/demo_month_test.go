package hooks_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/sandbox"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// demoPatients is the number of patients in the demo.
const demoPatients = 40

// docs/clinical.md, which a clinician signs, has the alert rates of the demo month. A change of a rule that changes them must be documented
// there.
func TestDemoMonthAlertRates(t *testing.T) {
	d := newDashboard(t)
	readings := ingest.NewReadingStore(ingest.Rules{
		PracticeZone: time.UTC, AutoTransform: true, MaxFuture: 5 * time.Minute,
		NormalReadingsNeeded: alerts.NormalReadingsRequired{Warning: 1, Critical: 2}, WarningPush: alerts.PushTrend,
	})
	if err := sandbox.Populate(d.app, readings, demoPatients, time.UTC, vigiltest.Clock, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	count := func(query string) (n float64) {
		t.Helper()
		if err := d.app.DB().NewQuery("SELECT COUNT(*) FROM " + query).Row(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := count("observations")
	thousands := all / 1000
	row := fmt.Sprintf("| now | %.0f | %.1f | %.1f | %.1f | %.1f |", all, count("alerts WHERE level = 'critical'")/thousands,
		count("alerts WHERE level = 'warning'")/thousands, count("escalations")/thousands, float64(pushesToOne(t, d))/thousands)
	page, err := os.ReadFile("../docs/clinical.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+row+"\n") {
		t.Errorf("docs/clinical.md does not have what the rules make of the month:\n%s", row)
	}
}

// pushesToOne returns the number of pushes to a user who is notified of every patient: one for an escalation and its alert, and one per 30
// minutes for alerts of a patient, type and level, without those that are only listed. Source: docs/decisions/alerts.md, "One alert per vital
// type and reading"; docs/decisions/notifications.md, "Pages for warnings".
func pushesToOne(t *testing.T, d *dashboard) (pushes int) {
	t.Helper()
	var told []struct {
		Kind    string `db:"kind"`
		Patient string `db:"patient"`
		Type    string `db:"type"`
		Level   string `db:"level"`
		Listed  bool   `db:"listed"`
		At      string `db:"created_at"`
	}
	err := d.app.DB().NewQuery(`SELECT n.kind, n.patient, COALESCE(a.type, '') AS type, COALESCE(a.level, '') AS level, n.created_at,
			COALESCE(a.push_rule IN ('trend', 'never', 'snoozed', 'ended'), FALSE) AS listed
		FROM announcements n LEFT JOIN alerts a ON a.id = n.alert ORDER BY n.created_at, n.kind != {:escalation}, n.id`).
		Bind(dbx.Params{"escalation": string(notifications.EscalationOpened)}).All(&told)
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]time.Time{}
	for _, one := range told {
		kind := notifications.Kind(one.Kind)
		if kind != notifications.AlertRaised && kind != notifications.EscalationOpened || one.Listed {
			continue
		}
		about, at := strings.Join([]string{one.Patient, one.Type, one.Level}, " "), collections.ParseInstant(one.At)
		if before, pushed := last[about]; pushed && at.Sub(before) < 30*time.Minute {
			continue
		}
		last[about] = at
		pushes++
	}
	return pushes
}
