package jobs

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/vitalsummary"
)

// updateAges applies the practice's thresholds to patients who have become adults.
func updateAges(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := patients.UpdateAgeGroups(ctx, app, e.Clock.Now().UTC(), e.Zone)
	return counts{"seen": seen, "changed": changed}, err
}

// endPatientHolds records the end of patient holds that are over.
func endPatientHolds(e Engines, ctx context.Context, app core.App) (counts, error) {
	ended, err := patients.EndDueHolds(ctx, app, e.Clock.Now().UTC())
	return counts{"ended": ended}, err
}

// proposeTemplates proposes threshold templates to patients who reached or left their ages.
func proposeTemplates(e Engines, ctx context.Context, app core.App) (counts, error) {
	seen, changed, err := templates.ProposeAll(ctx, app, 0, e.Clock.Now().UTC(), e.Zone)
	return counts{"seen": seen, "changed": changed}, err
}

// readCharts reads the charts of linked patients at night, unless the EMR is away.
func readCharts(e Engines, ctx context.Context, app core.App) (counts, error) {
	if !e.EMRContext.IsEnabled() {
		return disabled, nil
	}
	if _, down := e.Transmissions.Outage(); down {
		return counts{}, nil
	}
	read, failed, err := e.EMRContext.RefreshStale(ctx, app, func() time.Time { return e.Clock.Now().UTC() })
	return counts{"read": read, "failed": failed}, err
}

// sendMeans queues the mean blood pressure of each finished week for the EMR, if enabled.
func sendMeans(e Engines, ctx context.Context, app core.App) (counts, error) {
	if !e.SendMeans || !e.Transmissions.EMR.Configured() {
		return disabled, nil
	}
	seen, queued := 0, 0
	now := e.Clock.Now().UTC()
	err := vitalsummary.NewReader(e.Zone).EachWeek(ctx, app, now, func(week vitalsummary.Week) error {
		seen++
		added, err := e.Transmissions.QueueMean(app, week.PatientID, week.From, week.To, week.HasEnough, now)
		if added {
			queued++
		}
		return err
	})
	return counts{"seen": seen, "queued": queued}, err
}

// sendMessages queues the automatic messages that are due and sends what is queued.
func sendMessages(e Engines, ctx context.Context, app core.App) (counts, error) {
	if e.Messages == nil {
		return disabled, nil
	}
	queued, err := e.Reminders.Queue(ctx, app, e.Clock.Now().UTC())
	if err != nil {
		return counts{"queued": queued}, err
	}
	round, err := e.Messages.SendDue(ctx, app)
	return counts{"queued": queued, "sent": round.Sent, "suppressed": round.Suppressed, "failed": round.Failed, "unknown": round.Unknown}, err
}
