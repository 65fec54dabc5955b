package cmd

import (
	"crypto/rand"
	"log/slog"
	"strings"
	"testing"

	"github.com/jonboulle/clockwork"

	"github.com/vigilhealth/vigil/internal/config"
)

// Without an EMR, queued deliveries do not make the service unhealthy.
func TestQueueWithoutEMR(t *testing.T) {
	block, err := config.Generate(rand.Reader, now())
	if err != nil {
		t.Fatal(err)
	}
	keys := strings.Split(strings.TrimSpace(block), "\n")
	withEMR := append(sandboxSettings("http://127.0.0.1:1", "vigil-test", "elm-street"), "VIGIL_EMR_ENVIRONMENT=staging")
	for _, test := range []struct {
		env    []string
		queued int
	}{{withEMR, 1}, {nil, 0}} {
		settings, err := config.Load(append(keys, test.env...))
		if err != nil {
			t.Fatal(err)
		}
		settings = settings.WithPublicURL("http://127.0.0.1:1")
		app, err := NewApp(t.TempDir(), settings)
		if err != nil {
			t.Fatal(err)
		}
		sealer, err := Open(app, settings)
		if err != nil {
			t.Fatal(err)
		}
		s, err := new(Program).NewService(app, sealer, settings, slog.New(slog.DiscardHandler), clockwork.NewRealClock())
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
