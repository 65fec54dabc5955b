package billing_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// plantHolders stores patients who held a device and sent a reading every day of January 2026, and lack only a set-up.
func plantHolders(t testing.TB, app core.App, n int) {
	t.Helper()
	count := strconv.Itoa(n)
	for _, statement := range []string{
		`CREATE TEMP TABLE numbers AS WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ` + count + `) SELECT i FROM c`,
		`INSERT INTO patients (id, mrn, active, gender, icd10_codes) SELECT printf('00000000-0000-7000-8000-%012d', i), 'M' || i, TRUE, 'other', '["I10"]' FROM numbers`,
		`INSERT INTO consents (id, patient, type, method, granted_at) SELECT printf('%015d', i), printf('00000000-0000-7000-8000-%012d', i), 'rpm', 'written',
			'2025-12-01T12:00:00.000000Z' FROM numbers`,
		`INSERT INTO device_assignments (device_id, patient, assigned_at) SELECT 'D' || i, printf('00000000-0000-7000-8000-%012d', i),
			'2026-01-01T12:00:00.000000Z' FROM numbers`,
		`WITH RECURSIVE d(day) AS (SELECT '2026-01-02' UNION ALL SELECT date(day, '+1 day') FROM d WHERE day < '2026-01-31')
			INSERT INTO reading_days SELECT printf('00000000-0000-7000-8000-%012d', i), day, 'weight', 'x', 1, 1 FROM numbers CROSS JOIN d`,
	} {
		if _, err := app.NonconcurrentDB().NewQuery(statement).Execute(); err != nil {
			t.Fatal(err)
		}
	}
}

// Between two chunks of patients a run checks whether readings wait, and so notices its cancellation.
func TestRunYieldsToReadings(t *testing.T) {
	app := vigiltest.NewApp(t)
	plantHolders(t, app, 900)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	engine := newEngine()
	engine.ReadingsPending = func() bool {
		var made int
		if err := app.DB().NewQuery("SELECT COUNT(*) FROM billing_entries").Row(&made); err != nil || made > 0 { // a slow machine checks before the first chunk, too
			cancel()
		}
		return true
	}
	result, err := engine.Run(ctx, app, billing.DeviceJob, audit.System(), func() time.Time { return time.Date(2026, 2, 2, 7, 0, 0, 0, time.UTC) })
	if !errors.Is(err, context.Canceled) || len(result.Created) == 0 || len(result.Created) == 900 {
		t.Errorf("%d entries were made: %v", len(result.Created), err)
	}
}
