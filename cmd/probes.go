package cmd

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// probes are how health is checked.
func (s *Service) probes() dashboard.Probes {
	probes := dashboard.Probes{
		Database: collections.Answers, FHIR: probeFHIR, Keep: dashboard.KeepHealth,
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
	_, err := fhir.Observation(fhir.Stored{
		ID: "00000000-0000-7000-8000-000000000000", PatientID: "00000000-0000-7000-8000-000000000001",
		Reading: vitals.Reading{Kind: vitals.BloodPressure, MeasuredAt: time.Unix(0, 0).UTC()}.With(vitals.Systolic, 120).With(vitals.Diastolic, 80),
	}, "").Encode()
	return err
}
