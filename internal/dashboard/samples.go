package dashboard

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

const (
	// sampleEvery is how often a look is kept as a sample of the uptime.
	sampleEvery = time.Minute
	// steady is how many looks in a row make a state one that people hear of: a service that flickers must not fill the trail.
	steady = 3
	// mostUnsaved bounds the samples that wait for a database that is down: a day of them.
	mostUnsaved = 24 * 60
)

// memory is what the monitor remembers between two looks.
type memory struct {
	sampledAt time.Time
	unsaved   []Report
	told      Health // the state that the trail has
	last      Health
	inARow    int
}

// Kept is what is stored of the looks since the last time: samples, and the change of state that has lasted, if any.
type Kept struct {
	At       time.Time
	Samples  []Report
	From, To Health // equal when nothing changed
}

// keep stores a sample every minute, and a change of state that lasts. What a broken database refuses is stored when it is back.
func (m *Monitor) keep(app core.App, report Report) {
	if m.probes.Keep == nil {
		return
	}
	r := &m.memory
	if r.last != report.Status {
		r.last, r.inARow = report.Status, 0
	}
	r.inARow++
	if r.sampledAt.IsZero() || report.At.Sub(r.sampledAt) >= sampleEvery {
		r.sampledAt = report.At
		r.unsaved = append(r.unsaved, report)
		r.unsaved = r.unsaved[max(0, len(r.unsaved)-mostUnsaved):]
	}
	kept := Kept{At: report.At, Samples: r.unsaved, From: r.told, To: r.told}
	if r.inARow >= steady {
		kept.To = report.Status
		if kept.From == "" {
			kept.From, r.told = kept.To, kept.To // the first state is no change
		}
	}
	if len(kept.Samples) == 0 && kept.From == kept.To {
		return
	}
	if err := m.probes.Keep(app, kept); err != nil {
		m.log.Warn("health not kept", slog.Any("error", err))
		return
	}
	r.unsaved, r.told = nil, kept.To
}

// KeepHealth stores samples of the health for the uptime, and a change of state in the audit trail.
func KeepHealth(app core.App, kept Kept) error {
	return app.RunInTransaction(func(tx core.App) error {
		for _, sample := range kept.Samples {
			services, err := json.Marshal(sample.Services)
			if err != nil {
				return fmt.Errorf("encode health: %w", err)
			}
			if err := collections.StoreHealthSample(tx, string(sample.Status), string(services), sample.At); err != nil {
				return err
			}
		}
		if kept.From == kept.To {
			return nil
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.HealthChange, Actor: audit.System(), ResourceType: audit.ResourceService, ResourceID: string(kept.To),
			Changes: audit.Changes{"status": {Old: string(kept.From), New: string(kept.To)}},
		}, kept.At)
	})
}
