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

// arrangeReadings makes readings wait where the EMR does not take them one by one, and queues them again once it does. Source:
// docs/decisions/transmissions.md, "The way of delivery".
func (w *Worker) arrangeReadings(app core.App) error {
	if !w.EMR.TakesReadings() {
		w.isUnparked.Store(false)
		return collections.ParkReadings(app, w.Clock())
	}
	if w.isUnparked.Load() {
		return nil
	}
	err := collections.UnparkReadings(app, w.Clock())
	w.isUnparked.Store(err == nil)
	return err
}

// canSend reports whether the EMR takes readings. The first time that it takes none the administrators are notified; readings wait, and the wait
// is no outage. Source: docs/decisions/transmissions.md, "The way of delivery".
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

// endOutageWithoutWay probes an EMR that was away when it stopped receiving readings, since probes alone reach it then and read its
// CapabilityStatement; the outage ends with the first success, although nothing can be sent. It returns a channel that fires when the next probe
// is due, or deliveries can be sent after all; nil without an outage.
func (w *Worker) endOutageWithoutWay(ctx context.Context, app core.App) <-chan time.Time {
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
