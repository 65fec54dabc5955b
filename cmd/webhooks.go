package cmd

import (
	"github.com/vigilhealth/vigil/internal/egress"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes"
)

func (s *Service) newWebhooks() *webhooks.Engine {
	w := s.settings.Webhooks
	return webhooks.New(webhooks.Options{
		Views: routes.WebhookViews{Zone: s.settings.PracticeLocation, Clock: s.now}, Timeout: w.Timeout, Schedule: w.RetryDelays, DisableAfter: w.DisableAfter,
		Client:    egress.New(egress.Options{Timeout: w.Timeout, DevHosts: s.settings.Outbound.DevAllowedHosts}),
		UserAgent: "Vigil/" + s.program.Version, ReadingsPending: func() bool { return s.writer.Busy() }, Clock: s.now, Log: s.log, OnAttempt: s.metrics.CountWebhookAttempt,
	})
}

// readingsStored wakes the workers that deliver or publish stored readings.
func (s *Service) readingsStored() {
	s.worker.Wake()
	s.live.Wake()
	s.webhooks.Wake()
}
