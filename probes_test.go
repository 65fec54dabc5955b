package main

import (
	"log/slog"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/vigilhealth/vigil/internal/config"
)

// A practice without an EMR does not fall ill of the deliveries that wait for one.
func TestQueueWithoutEMR(t *testing.T) {
	for _, test := range []struct {
		env    []string
		queued int
	}{{emrSettings("http://127.0.0.1:1"), 1}, {nil, 0}} {
		p := newPractice(t, test.env...)
		settings, err := config.Load(p.Env)
		if err != nil {
			t.Fatal(err)
		}
		settings = settings.ServedAt("http://127.0.0.1:1")
		app, err := newApp(p.Dir, settings)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newService(app, settings, slog.New(slog.DiscardHandler), clockwork.NewRealClock())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := app.DB().NewQuery("INSERT INTO transmissions (id, status) VALUES ('TXN-2026-000001', 'pending')").Execute(); err != nil {
			t.Fatal(err)
		}
		if _, queued, err := s.probes().Workers(app); queued != test.queued || err != nil {
			t.Errorf("with %v %d wait, want %d; %v", test.env, queued, test.queued, err)
		}
	}
}
