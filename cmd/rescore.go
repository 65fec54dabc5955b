package cmd

import (
	"context"
	"log/slog"

	"github.com/vigilhealth/vigil/internal/triage"
)

// inheritors ranks everyone anew after the practice's default thresholds have changed: that takes too long for the request
// that changes them.
type inheritors struct{ waiting chan struct{} }

func newInheritors() inheritors { return inheritors{make(chan struct{}, 1)} }

// Changed asks for a run; one that waits already does for both.
func (i inheritors) Changed() {
	select {
	case i.waiting <- struct{}{}:
	default:
	}
}

func (s *Service) rescoreInheritors(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.inheritors.waiting:
		}
		if _, _, err := triage.RescoreAll(ctx, s.app, s.now(), s.live.Rescored); err != nil && ctx.Err() == nil {
			s.log.Error("risk scores not recalculated after a change of the defaults", slog.Any("error", err)) // the hourly job does it
		}
	}
}
