package routes_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/routes"
)

// The uptime of a service that is down is never 100 %, even without a recorded start of the outage, and completed outages
// still count.
func TestUptimeAgreesWithStatus(t *testing.T) {
	const fine, noEMR, unconfigured, noWorkers = `{"emr":{"status":"healthy"},"background_worker":{"status":"healthy"}}`,
		`{"emr":{"status":"down"},"background_worker":{"status":"healthy"}}`, `{"emr":{"status":"down","detail":"not configured"},"background_worker":{"status":"healthy"}}`,
		`{"emr":{"status":"healthy"},"background_worker":{"status":"down"}}`
	for name, c := range map[string]struct {
		samples []string // services of samples a minute apart, newest first
		down    bool
		want    string
	}{
		"from the start":         {nil, true, "0.0%"},
		"nothing known, up":      {nil, false, "100.0%"},
		"just now":               {[]string{fine, fine, fine}, true, "75.0%"},
		"for some time":          {[]string{noEMR, noEMR, fine}, true, "25.0%"},
		"over":                   {[]string{fine, noEMR, noEMR, fine}, false, "50.0%"},
		"the workers were":       {[]string{fine, noWorkers}, false, "50.0%"},
		"there was no EMR":       {[]string{unconfigured, fine}, false, "100.0%"},
		"samples of old without": {[]string{"", ""}, false, "100.0%"},
	} {
		t.Run(name, func(t *testing.T) {
			var gone error
			if c.down {
				gone = errors.New("gone")
			}
			monitor := dashboard.NewMonitor(dashboard.Probes{
				Database: func(context.Context, core.App) error { return nil }, EMR: func(context.Context) error { return gone },
				FHIR: func() error { return nil }, Workers: func(core.App) (int, int, error) { return 1, 0, nil },
			}, func() time.Time { return clock }, slog.New(slog.DiscardHandler))
			d := newDelivering(t, func(e *routes.Engines) { e.Monitor = monitor })
			monitor.Check(t.Context(), d.app)
			for i, services := range c.samples {
				status := "degraded"
				if services == fine {
					status = "healthy"
				}
				d.insert(collections.HealthSamples, dbx.Params{
					"sampled_at": collections.FormatInstant(clock.Add(-time.Duration(i+1) * time.Minute)), "status": status, "services": services,
				})
			}
			status := "operational"
			if c.down {
				status = "down"
			}
			d.request(authz.MA, "GET", "/fhir/status/", nil).want(200).wantAt(object{"status": status, "uptime": c.want})
		})
	}
}
