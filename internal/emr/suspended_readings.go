package emr

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// prepare reads the EMR's CapabilityStatement if that is due, except during an outage, when probes alone reach the EMR and read it.
func (w *Worker) prepare(ctx context.Context) {
	if w.EMR.Configured() && !w.breaker.isOpen() {
		w.EMR.Prepare(ctx)
	}
}

// suspendOrResumeReadings suspends readings while the EMR does not accept them one by one, and queues them
// again once it does. Source: docs/decisions/transmissions.md, "Delivery mode".
func (w *Worker) suspendOrResumeReadings(app core.App) error {
	if !w.EMR.TakesReadings() {
		w.hasResumedReadings.Store(false)
		return collections.SuspendReadings(app, w.Clock())
	}
	if w.hasResumedReadings.Load() {
		return nil
	}
	err := collections.ResumeReadings(app, w.Clock())
	w.hasResumedReadings.Store(err == nil)
	return err
}

// canSend reports whether the EMR accepts readings. When it stops accepting them, administrators
// are notified once; the readings wait, and this is no outage. Source:
// docs/decisions/transmissions.md, "Delivery mode".
func (w *Worker) canSend(app core.App) bool {
	if w.EMR.CanReceive() {
		w.hasAnnounced.Store(false)
		return true
	}
	if w.hasAnnounced.Swap(true) {
		return false
	}
	err := app.RunInTransaction(func(tx core.App) error {
		return notifications.Announce(tx, notifications.Announcement{
			Kind: notifications.ServiceTrouble, Severity: "warning", Key: "emr_cannot_receive",
			Body: "The EMR cannot receive readings: its CapabilityStatement offers no create of Observations or documents. Readings wait and are not sent. " +
				"Have the EMR's administrator permit it for this client; EMR, Connection shows what is missing.",
		}, w.Clock())
	})
	if err != nil {
		w.hasAnnounced.Store(false)
		w.logError(err, "EMR worker could not announce that the EMR receives no readings; it retries with the next round")
	}
	return false
}

// probeWhileSuspended probes an EMR that stopped accepting readings during an outage, because only
// probes reach it and read its CapabilityStatement. The first successful probe ends the outage,
// although nothing can be sent. The channel fires when the next probe is due or deliveries can be
// sent after all; it is nil without an outage.
func (w *Worker) probeWhileSuspended(ctx context.Context, app core.App) <-chan time.Time {
	if w.breaker.isClosed() {
		return nil
	}
	wait := w.probeIfDue(ctx, app)
	if wait == 0 && !w.EMR.CanReceive() {
		w.breaker.reset()
		return nil
	}
	return time.After(wait)
}

// CountDeliveries is [CountDeliveries] without the readings that the EMR cannot receive: they wait, and are no queue.
func (c *Client) CountDeliveries(app core.App, since time.Time) (f DeliveryCounts, err error) {
	f, err = CountDeliveries(app, since)
	if !c.CanReceive() {
		f.Pending, f.AwaitingRetry = 0, 0
	}
	return f, err
}
