package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/vigiltest"
)

// A minute has one sample, and a steady change is recorded once; what a failing database rejects is stored later, in order.
func TestHealthIsStored(t *testing.T) {
	at, broken, refusing := start, false, false
	var kept []string
	probes := dashboard.Probes{
		FHIR: func() error { return nil }, EMR: func(context.Context) error { return nil },
		Workers: func(core.App) (int, int, error) { return 1, 0, nil },
		Database: func(context.Context, core.App) error {
			if broken {
				return errors.New("gone")
			}
			return nil
		},
		Store: func(_ core.App, k dashboard.HealthRecord) error {
			if refusing {
				return errors.New("no database")
			}
			kept = append(kept, fmt.Sprintf("%d samples, %s to %s", len(k.Samples), k.From, k.To))
			return nil
		},
	}
	m := dashboard.NewMonitor(probes, func() time.Time { return at }, slog.New(slog.DiscardHandler))
	look := func(times int) {
		for range times {
			m.Check(t.Context(), nil)
			at = at.Add(10 * time.Second)
		}
	}
	look(7) // the first and the seventh are a minute apart
	broken, refusing = true, true
	look(12) // two samples are refused, and so is the change
	refusing = false
	look(1)
	broken = false
	look(1) // flickers
	broken = true
	look(3)
	want := []string{"1 samples,  to ", "1 samples, healthy to healthy", "2 samples, healthy to down"}
	if diff := cmp.Diff(want, kept[:3]); diff != "" {
		t.Error(diff)
	}
	for _, line := range kept[3:] {
		if line != "1 samples, down to down" {
			t.Errorf("a flicker is recorded: %s", line)
		}
	}
}

func TestStoreHealth(t *testing.T) {
	app := vigiltest.NewApp(t)
	sample := func(status dashboard.Health, ago time.Duration) dashboard.Report {
		return dashboard.Report{Status: status, At: start.Add(-ago)}
	}
	err := dashboard.StoreHealth(app, dashboard.HealthRecord{
		At: start, From: dashboard.Healthy, To: dashboard.Down,
		Samples: []dashboard.Report{
			sample(dashboard.Down, 31*24*time.Hour), sample(dashboard.Healthy, 2*time.Minute), sample(dashboard.Degraded, time.Minute), sample(dashboard.Down, 0),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if up, err := dashboard.Uptime(app, false, start); err != nil || up != 66.6 {
		t.Errorf("up %v (%v)", up, err)
	}
	entries, total, err := audit.List(app, audit.Filter{Event: string(audit.HealthChange)}, 0, 10)
	if err != nil || total != 1 || entries[0].ResourceID != "down" || entries[0].Changes["status"].Old != "healthy" {
		t.Errorf("%d entries (%v)", total, err)
	}
}
