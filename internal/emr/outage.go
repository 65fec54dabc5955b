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

// tellAfter is how long an outage lasts before people hear of it.
const tellAfter = 15 * time.Minute

// Outage reports whether the line to the EMR is down, and since when the outage lasts. An EMR that only asks to be asked less is not down.
func (w *Worker) Outage() (since time.Time, isDown bool) {
	l := w.line
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.since, l.state == lineDown && !l.paced
}

// Reached is when the EMR took a delivery or answered a probe last; zero when it has not since the start.
func (w *Worker) Reached() time.Time {
	l := w.line
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.back.After(l.passed) {
		return l.back
	}
	return l.passed
}

// judge says whose fault the end of a delivery was, and learns from it how the line is.
func (w *Worker) judge(c Claimed, d delivery) verdict {
	now := w.Clock()
	if d.err == nil || d.err.Fault() == OfRequest {
		if d.asked && (d.err == nil || d.err.Status != 0) && w.line.pass(c.ID, d.startedAt, now) {
			w.Wake()
		}
		return verdict{}
	}
	if !w.EMR.Configured() {
		return verdict{line: true}
	}
	v, ok := w.line.known(c, d, now)
	if !ok {
		err := w.lookAt(now)
		v = w.line.judge(c, d, err, w.Clock())
	}
	if v.held {
		w.Wake() // whichever round it was sent in, Run is to probe
	}
	return v
}

// lookAt probes the EMR, or waits for a probe that began no earlier than a time.
func (w *Worker) lookAt(after time.Time) error {
	for {
		p, mine := w.line.look(after, w.Clock())
		if mine {
			p.err = w.EMR.Probe(w.patience)
			close(p.done)
		}
		<-p.done
		if !p.began.Before(after) {
			return p.err
		}
	}
}

// What an outage and its end are announced under, each once whoever runs.
const outageKey, backKey = "emr outage/", "emr back/"

// resume begins where an earlier process ended: what waits for the line says that it is down, and an outage that people were told of is not over
// until they are told that, too.
func (w *Worker) resume(app core.App) {
	stalled, since, err := collections.OutageTransmissions(app)
	w.report(err, "outage not taken up")
	at, err := collections.UnpairedAnnouncement(app, outageKey, backKey)
	w.report(err, "outage not taken up")
	if told := collections.ParseInstant(at); !told.IsZero() {
		w.line.tell(told)
	} else if stalled > 0 {
		w.line.begin(since)
	}
	w.line.resume(stalled > 0, w.Clock())
}

// probe tries the line while it is down, and says how long to leave it alone; 0 when something may be sent.
func (w *Worker) probe(ctx context.Context, app core.App) time.Duration {
	if wait := w.line.untilProbe(w.Clock()); wait > 0 || !w.line.isDown() {
		return wait
	}
	try := w.line.probed(w.lookAt(w.Clock()), w.Clock())
	if try {
		_, err := w.round(ctx, app, 1, tested)
		w.report(err, "nothing tried")
	}
	if ctx.Err() == nil {
		w.report(w.tellOfOutage(app), "outage not told")
	}
	return w.line.untilProbe(w.Clock())
}

func (w *Worker) report(err error, what string) {
	if err != nil {
		w.Log.Error(what, slog.Any("error", err))
	}
}

// tellOfOutage tells once of an outage that lasts.
func (w *Worker) tellOfOutage(app core.App) error {
	o, ok := w.line.current()
	now := w.Clock()
	if !ok || o.told || !w.line.isDown() || now.Sub(o.since) < tellAfter {
		return nil
	}
	_, since, err := collections.OutageTransmissions(app) // the same after a restart, so that nobody is told twice
	if err != nil {
		return err
	}
	if since.IsZero() {
		since = o.since
	}
	waiting, err := collections.DueTransmissions(app, now)
	if err == nil {
		err = notifications.Announce(app, notifications.Announcement{
			Kind: notifications.EMROutage, Severity: "warning", Key: outageKey + collections.Instant(since),
			Body: fmt.Sprintf("The EMR has taken nothing since %s: %s. %d deliveries wait; they are sent by themselves once it is back.",
				inWords(since), o.because, waiting),
		}, now)
	}
	if err == nil {
		w.line.tell(since)
	}
	return err
}

// endOutage ends the outage once nothing waits any more, and tells of the end of one that lasted.
func (w *Worker) endOutage(app core.App) error {
	o, ok := w.line.current()
	if ok && !o.back.IsZero() && o.back.Sub(o.since) >= tellAfter {
		delivered, _, _, err := collections.TransmissionsSince(app, o.since)
		if err != nil || delivered == 0 { // whether it is back nobody knows as yet
			return err
		}
		err = notifications.Announce(app, notifications.Announcement{
			Kind: notifications.EMROutage, Severity: "success", Key: backKey + collections.Instant(o.since),
			Body: fmt.Sprintf("The EMR, which took nothing from %s to %s, is back. %d deliveries were made since; nothing waits any more.",
				inWords(o.since), inWords(o.back), delivered),
		}, w.Clock())
		if err != nil {
			return err
		}
	}
	w.line.rest()
	return nil
}

func inWords(at time.Time) string { return at.UTC().Format("2006-01-02 15:04 UTC") }
