package emr_test

import (
	"testing"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/sqlite"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// What failed for want of a link before readings waited for one waits now, or is due where the patient was linked meanwhile; nothing else changes.
func TestFailuresForWantOfALinkBecomeWaits(t *testing.T) {
	collections.UseSealer(vigiltest.Sealer())
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: t.TempDir(), DBConnect: sqlite.Connect})
	if err := app.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = app.ClearBootstrap() })
	if err := app.RunSystemMigrations(); err != nil {
		t.Fatal(err)
	}
	var before core.MigrationsList
	for _, step := range core.AppMigrations.Items() {
		if step.File < "1767225953_links.go" {
			before.Register(step.Up, step.Down, step.File)
		}
	}
	if _, err := core.NewMigrationsRunner(app, before).Up(); err != nil {
		t.Fatal(err)
	}
	insert(t, app, collections.Patients, dbx.Params{"id": patient, "mrn": "M-1", "external_id": "erx-1"})
	insert(t, app, collections.Patients, dbx.Params{"id": stranger, "mrn": "M-2"})
	failed := func(id, of, message, next string) {
		insert(t, app, collections.Observations, dbx.Params{"id": "o-" + id, "patient": of, "observation_type": "weight", "fhir_status": "failed"})
		insert(t, app, collections.Transmissions, dbx.Params{
			"id": id, "observation": "o-" + id, "patient": of, "observation_type": "weight", "status": "failed", "error_code": "patient_not_found",
			"error_message": message, "attempt_count": 5, "next_retry_at": next, "created_at": collections.Instant(now),
		})
	}
	failed("TXN-2025-000001", stranger, "Patient has no EMR id", "")
	failed("TXN-2025-000002", stranger, "Patient has no EMR id", collections.Instant(now))
	failed("TXN-2025-000003", patient, "Patient has no EMR id", "")
	failed("TXN-2025-000004", patient, "Patient not found in EMR", "")
	if err := app.RunAppMigrations(); err != nil {
		t.Fatal(err)
	}
	for id, waits := range map[string]string{"TXN-2025-000001": "link", "TXN-2025-000002": "link", "TXN-2025-000003": "turn"} {
		check(t, app, collections.Transmissions, id, map[string]any{
			"status": "pending", "waits_for": waits, "attempt_count": 0.0, "next_retry_at": "", "error_code": "", "error_message": "",
		})
		check(t, app, collections.Observations, "o-"+id, map[string]any{"fhir_status": "pending"})
	}
	check(t, app, collections.Transmissions, "TXN-2025-000004", map[string]any{"status": "failed", "waits_for": "", "attempt_count": 5.0})
	_, pending, err := collections.PageOfTransmissions(app, collections.TransmissionFilter{Status: "pending"}, 0, 10)
	if err != nil || pending != 3 {
		t.Errorf("%d are pending (%v)", pending, err)
	}
}
