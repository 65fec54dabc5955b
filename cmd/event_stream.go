package cmd

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/events"
	"github.com/vigilhealth/vigil/internal/events/consumer"
	"github.com/vigilhealth/vigil/internal/events/directory"
	"github.com/vigilhealth/vigil/internal/ingest"
)

const (
	// claimsInterval is how often a practice looks for changed devices and patients, one short query.
	claimsInterval = 2 * time.Second
	// claimsRepair is how often it reads back and repairs its part of the directory.
	claimsRepair = time.Hour
	// publishPatience bounds one publication. The next continues it; a request to a bucket without a leader is never answered.
	publishPatience = 5 * time.Second
)

// startEvents starts to read the practice's events and to publish its devices, if there is a stream.
func (s *Service) startEvents(ctx context.Context) error {
	e := s.settings.Events
	if !e.Configured() {
		return nil
	}
	if e.Practice == "" {
		return errors.New("VIGIL_PRACTICE is required with VIGIL_EVENTS_URL")
	}
	identities, err := config.AgeIdentities(e.Identities)
	if err != nil {
		return err
	}
	stream, err := openEvents(s.settings, "vigil "+e.Practice, s.log)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, stream.Close)
	reader := consumer.New(consumer.Options{
		Stream: stream, Practice: e.Practice, Identities: identities, Replay: e.Replay, Epoch: s.epoch, Held: s.leaseHeld,
		Receive: s.pipeline.Receive, Received: s.countQuarantined, Log: s.log,
	})
	s.runWorker(func() { reader.Run(ctx, s.app) })
	s.background.Go(func() { s.publishClaims(ctx, stream, e.Recipient()) })
	return nil
}

// epoch is the epoch of the lease; 0 without one, when the process is the only writer.
func (s *Service) epoch() uint64 {
	if s.lease == nil {
		return 0
	}
	return s.lease.Epoch()
}

// leaseHeld returns an error once the lease is lost.
func (s *Service) leaseHeld() error {
	if s.mayWrite() {
		return nil
	}
	return dashboard.ErrNoLease
}

// countQuarantined counts quarantined events and rejected ones, as the webhook does.
func (s *Service) countQuarantined(results []ingest.Result) {
	for _, result := range results {
		switch {
		case result.SeenBefore:
		case result.Status == ingest.Quarantined:
			s.metrics.CountRejection(result.Reason)
		case result.Rejection != nil:
			s.metrics.CountRejection(result.Rejection.Code)
		}
	}
}

// publishClaims keeps the practice's part of the device directory equal to its database until ctx ends.
func (s *Service) publishClaims(ctx context.Context, stream *events.Stream, recipient string) {
	publisher := directory.NewPublisher(stream.JetStream(), s.settings.Events.Practice)
	var position int64
	var repairedAt time.Time
	isDue := true
	for ticks := time.Tick(claimsInterval); ; {
		newest, changed, err := collections.DeviceClaimsChanged(s.app, position)
		if now := s.now(); now.Sub(repairedAt) >= claimsRepair {
			publisher.Reset()
			repairedAt, isDue = now, true
		}
		if err == nil && (changed || isDue) {
			err = s.publishOnce(ctx, publisher, recipient)
			isDue = err != nil
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("device directory could not be updated; trying again", slog.Any("error", err))
		} else {
			position = newest
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

func (s *Service) publishOnce(ctx context.Context, publisher *directory.Publisher, recipient string) error {
	claims, err := directory.ReadClaims(s.app, []byte(s.settings.Events.DirectoryKey.Reveal()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, publishPatience)
	defer cancel()
	return publisher.Publish(ctx, recipient, claims)
}
