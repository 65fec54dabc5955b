package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// probes are how health is checked.
func (s *service) probes() dashboard.Probes {
	probes := dashboard.Probes{
		Database: func(ctx context.Context, app core.App) error {
			_, err := app.DB().NewQuery("SELECT 1 FROM patients LIMIT 1").WithContext(ctx).Execute()
			return err
		},
		FHIR: probeFHIR, Keep: dashboard.KeepHealth,
		Workers: func(app core.App) (running, queued int, err error) {
			running, queued = int(s.running.Load()), s.writer.QueueDepth()
			if !s.emr.Configured() { // what nobody will deliver does not count, as the EMR itself does not
				return running, queued, nil
			}
			pending, _, _, err := transmissions.Backlog(app)
			return running, queued + pending, err
		},
	}
	if s.emr.Configured() {
		probes.EMR = func(ctx context.Context) error {
			_, err := s.emr.Metadata(ctx)
			return err
		}
	}
	return probes
}

// probeFHIR renders an observation, as every delivery does.
func probeFHIR() error {
	systolic, diastolic := 120.0, 80.0
	_, err := fhir.Observation(fhir.Stored{
		ID: "00000000-0000-7000-8000-000000000000", PatientID: "00000000-0000-7000-8000-000000000001",
		Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: time.Unix(0, 0).UTC(), Systolic: &systolic, Diastolic: &diastolic},
	}, "").Encode()
	return err
}

// secure demands TLS 1.3, and lets the webhook's own server name do with 1.2. The version is agreed before the path is known, hence the name.
// Source: docs/decisions/limits.md, "TLS 1.3 and 1.2".
func secure(server *tls.Config, settings config.TLS) error {
	server.MinVersion = tls.VersionTLS13
	if settings.Configured() {
		certificate, err := tls.LoadX509KeyPair(settings.CertFile, settings.KeyFile)
		if err != nil {
			return fmt.Errorf("load the TLS certificate: %w", err)
		}
		server.GetCertificate, server.Certificates = nil, []tls.Certificate{certificate}
	}
	if settings.WebhookHost == "" {
		return nil
	}
	webhook := server.Clone()
	webhook.MinVersion, webhook.NextProtos = tls.VersionTLS12, []string{"h2", "http/1.1"}
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if hello.ServerName == settings.WebhookHost {
			return webhook, nil
		}
		return nil, nil //nolint:nilnil // the standard library's way to say "the usual one"
	}
	return nil
}
