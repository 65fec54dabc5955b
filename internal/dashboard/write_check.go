package dashboard

import (
	"context"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"
)

// writePatience is how long the proof that the database can be written waits for whoever writes before it.
const writePatience = 4 * time.Second

// database is down also when it answers and can store nothing, as on a full disk: then every reading is refused. Waiting for others to write is
// no failure, and not part of the time that it took to answer. What still fits into the journal is no proof for long: with next to no room left
// it is not well either. Source: docs/decisions/dashboard.md, "Health body".
func (m *Monitor) database(ctx context.Context, app core.App) Check {
	check := m.measure(databaseThreshold, func() error { return m.probes.Database(ctx, app) })
	if m.probes.Writes == nil || check.Status == Down {
		return check
	}
	waiting, cancel := context.WithTimeout(ctx, writePatience)
	defer cancel()
	err := m.probes.Writes(waiting, app)
	switch {
	case err == nil && m.probes.Room != nil && !m.probes.Room() && check.Status == Healthy:
		check.Status, check.Detail = Degraded, "disk almost full"
	case err == nil:
	case waiting.Err() != nil:
		check.Status, check.Detail = Degraded, "writing takes long"
	default:
		check.Status, check.Detail = Down, "cannot be written"
		if earlier := m.latest.Load(); earlier == nil || earlier.Services.Database.Status != Down {
			m.log.Error("the database cannot be written", slog.Any("error", err))
		}
	}
	return check
}

// tellChanges has a line for each service that goes down or comes back; what is merely slow comes and goes.
func (m *Monitor) tellChanges(before, after Services) {
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
