package dashboard

import (
	"context"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// writeTimeout is how long the write check waits for other writers.
const writeTimeout = 4 * time.Second

// database is down also if it answers but cannot store, as on a full disk: then every reading is rejected. Waiting for other writers is not
// a failure and not part of the response time. A write that fits into the journal proves little, so a nearly full disk is degraded.
// Source: docs/decisions/dashboard.md, "Health body".
func (m *Monitor) database(ctx context.Context, app core.App) Check {
	check := m.measure(databaseThreshold, func() error { return m.probes.Database(ctx, app) })
	if m.probes.Writes == nil || check.Status == Down {
		return check
	}
	waiting, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := m.probes.Writes(waiting, app)
	switch {
	case err == nil && m.probes.HasDiskSpace != nil && !m.probes.HasDiskSpace() && check.Status == Healthy:
		check.Status, check.Detail = Degraded, "disk almost full"
	case err == nil:
	case waiting.Err() != nil:
		check.Status, check.Detail = Degraded, "writing takes long"
	default:
		check.Status, check.Detail = Down, "cannot be written"
		if earlier := m.latest.Load(); earlier == nil || earlier.Services.Database.Status != Down {
			m.log.Error("database check failed: the database cannot be written; readings are rejected until it can", slog.Any("error", err))
		}
	}
	return check
}

// logChanges logs each service that goes down or recovers; slow responses are not logged.
func (m *Monitor) logChanges(before, after Services) {
	for _, service := range []struct {
		name     string
		from, to Health
	}{
		{"database", before.Database.Status, after.Database.Status},
		{"emr", before.EMR.Status, after.EMR.Status},
		{"background_worker", before.BackgroundWorker.Status, after.BackgroundWorker.Status},
		{"fhir_engine", before.FHIREngine.Status, after.FHIREngine.Status},
	} {
		switch {
		case service.to == Down && service.from != Down:
			m.log.Warn("service down", slog.String("service", service.name))
		case service.from == Down && service.to != Down:
			m.log.Info("service back", slog.String("service", service.name))
		}
	}
}
