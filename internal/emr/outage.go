package emr

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// notifyAfter is how long an outage lasts before administrators are notified.
const notifyAfter = 15 * time.Minute

// Outage reports whether the circuit breaker is open, and since when the outage lasts. An EMR that only limits the request rate is not down.
func (w *Worker) Outage() (since time.Time, isDown bool) {
	b := w.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outageSince, b.state == breakerOpen && !b.rateLimited
}

// LastReached returns when the EMR last accepted a delivery or answered a probe; the zero time if not since the start.
func (w *Worker) LastReached() time.Time {
	b := w.breaker
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recoveredAt.After(b.lastSuccess) {
		return b.recoveredAt
	}
	return b.lastSuccess
}

// attribute decides whether a failure is the EMR's or the record's, and updates the circuit breaker.
func (w *Worker) attribute(c Leased, d deliveryOutcome) attribution {
	now := w.Clock()
	if d.err == nil || d.err.Class() == ClassRequest {
		if d.requested && (d.err == nil || d.err.Status != 0) && w.breaker.recordSuccess(c.ID, d.startedAt, now) {
			w.Wake()
		}
		return attribution{}
	}
	if !w.EMR.Configured() {
		return attribution{toEMR: true}
	}
	a, ok := w.breaker.attributeWithoutProbe(c, d, now)
	if !ok {
		err := w.probeSince(now)
		a = w.breaker.attributeAfterProbe(c, d, err, w.Clock())
	}
	if a.waitsForEMR {
		w.Wake() // from any round: Run must probe
	}
	return a
}

// probeSince probes the EMR, or waits for a probe that began no earlier than after.
func (w *Worker) probeSince(after time.Time) error {
	for {
		p, isOwner := w.breaker.joinProbe(after, w.Clock())
		if isOwner {
			p.err = w.EMR.Probe(w.sendCtx)
			close(p.done)
		}
		<-p.done
		if !p.began.Before(after) {
			return p.err
		}
	}
}

// The keys that announce an outage and its end, so that each is announced once across restarts.
const outageKey, recoveryKey = "emr outage/", "emr back/"

// restoreOutage restores the outage of an earlier process: deliveries that wait for the EMR open the circuit breaker, and an announced
// outage continues until its end is announced, too.
func (w *Worker) restoreOutage(app core.App) {
	stalled, since, err := collections.OutageTransmissions(app)
	w.logError(err, "EMR worker could not restore the outage of an earlier process; it continues without it")
	at, err := collections.UnpairedAnnouncement(app, outageKey, recoveryKey)
	w.logError(err, "EMR worker could not restore the announced outage; its end may not be announced")
	if announcedAt := collections.ParseInstant(at); !announcedAt.IsZero() {
		w.breaker.setNotified(announcedAt)
	} else if stalled > 0 {
		w.breaker.setOutageStart(since)
	}
	w.breaker.restoreOpen(stalled > 0, w.Clock())
}

// probeIfDue probes while the circuit breaker is open, and returns the wait until the next probe; 0 when deliveries may be sent.
func (w *Worker) probeIfDue(ctx context.Context, app core.App) time.Duration {
	if wait := w.breaker.untilProbe(w.Clock()); wait > 0 || !w.breaker.isOpen() {
		return wait
	}
	sendTrial := w.breaker.probeDone(w.probeSince(w.Clock()), w.Clock())
	if sendTrial && w.EMR.CanReceive() {
		_, err := w.round(ctx, app, 1, byProbe)
		w.logError(err, "EMR worker could not send a trial delivery; it retries after further probes")
	}
	if ctx.Err() == nil {
		w.logError(w.announceOutage(app), "EMR worker could not announce the outage; it retries with the next probe")
	}
	return w.breaker.untilProbe(w.Clock())
}

func (w *Worker) logError(err error, what string) {
	if err != nil {
		w.Log.Error(what, slog.Any("error", err))
	}
}

// announceOutage notifies administrators once of an outage that lasts.
func (w *Worker) announceOutage(app core.App) error {
	o, ok := w.breaker.currentOutage()
	now := w.Clock()
	if !ok || o.notified || !w.breaker.isOpen() || now.Sub(o.since) < notifyAfter {
		return nil
	}
	_, since, err := collections.OutageTransmissions(app) // the same after a restart, so that it is announced only once
	if err != nil {
		return err
	}
	if since.IsZero() {
		since = o.since
	}
	waiting, err := collections.DueTransmissions(app, now)
	if err == nil {
		err = notifications.Announce(app, notifications.Announcement{
			Kind: notifications.EMROutage, Severity: "warning", Key: outageKey + collections.FormatInstant(since),
			Body: fmt.Sprintf("The EMR has accepted nothing since %s: %s. %d deliveries are queued; they are sent automatically once it is available.",
				formatTime(since), o.reason, waiting),
		}, now)
	}
	if err == nil {
		w.breaker.setNotified(since)
	}
	return err
}

// endOutage ends the outage once its backlog is delivered, and announces the end if the outage was long.
func (w *Worker) endOutage(app core.App) error {
	o, ok := w.breaker.currentOutage()
	if ok && !o.recoveredAt.IsZero() && o.recoveredAt.Sub(o.since) >= notifyAfter {
		delivered, _, _, err := collections.TransmissionsSince(app, o.since)
		if err != nil || delivered == 0 { // without a delivery the recovery is not certain yet
			return err
		}
		err = notifications.Announce(app, notifications.Announcement{
			Kind: notifications.EMROutage, Severity: "success", Key: recoveryKey + collections.FormatInstant(o.since),
			Body: fmt.Sprintf("The EMR is available again after an outage from %s to %s. %d deliveries were made since; none is queued.",
				formatTime(o.since), formatTime(o.recoveredAt), delivered),
		}, w.Clock())
		if err != nil {
			return err
		}
	}
	w.breaker.reset()
	return nil
}

func formatTime(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
