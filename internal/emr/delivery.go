package emr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
)

// send delivers a claimed transmission and stores how that ended. A failure of our own leaves it in processing, to be
// taken up as stuck, and so does the end of the process: the next one takes it up at once.
func (w *Worker) send(ctx context.Context, app core.App, c Claimed) (Result, error) {
	d, err := w.deliver(ctx, app, c)
	if err == nil {
		d.verdict = w.judge(c, d)
	}
	if err == nil && d.err != nil && w.patience.Err() != nil {
		err = errors.New("cut off while stopping")
	}
	if err != nil {
		return Result{}, fmt.Errorf("deliver %s: %w", c.ID, err)
	}
	return w.record(app, c, d)
}

// delivery is what came of one send.
type delivery struct {
	done      Delivered
	err       *Error
	attempts  []Attempt
	startedAt time.Time
	requestID string // of the request that brought the reading: one id leads from its log line to the EMR's
	withdrawn bool   // the reading was entered in error
	never     bool   // nothing was sent, nor will be
	unsent    bool   // it ended before anything was sent
	asked     bool   // the EMR was asked something
	verdict   verdict
}

// firstFailure is when the first request of a failed delivery had failed.
func (d *delivery) firstFailure() time.Time {
	if len(d.attempts) == 0 {
		return d.startedAt
	}
	return d.startedAt.Add(d.attempts[0].Started + d.attempts[0].Took)
}

// deliver sends one observation, or has the EMR's copy follow it. After an ambiguous end it looks for it at the EMR first.
func (w *Worker) deliver(ctx context.Context, app core.App, c Claimed) (delivery, error) {
	d := delivery{startedAt: w.Clock()}
	// A send under way is finished even while the service shuts down: cutting it off makes it ambiguous. Only an EMR that hangs is not
	// waited for.
	ctx, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(w.patience, cut)()
	ctx = OneDelivery(ctx)
	w.rendering <- struct{}{}
	rendered, err := w.render(app, c)
	if err == nil {
		d.requestID, err = collections.CausingRequest(app, audit.ResourceObservation, c.ObservationID)
	}
	<-w.rendering
	if err != nil {
		return d, d.fail(err)
	}
	if d.requestID == "" {
		d.requestID = uuid.NewString()
	}
	d.withdrawn = rendered.withdrawn
	d.done.EMRID = c.EMRID
	// It may be there though nobody knows its id: after an unknown end, or because the EMR did not say it.
	if c.EMRID == "" && (c.Ambiguous || c.SentHash != "") {
		d.asked = true
		if d.done.EMRID, err = w.lookUp(ctx, c, rendered.id); err != nil {
			d.unsent = true
			return d, d.fail(err)
		}
		if d.done.EMRID != "" && c.Corrections == 0 && !rendered.withdrawn {
			return d, nil // an earlier send had arrived
		}
		d.startedAt = w.Clock()
	}
	switch {
	case d.done.EMRID != "":
		err = w.update(ctx, c, rendered, &d)
	case rendered.withdrawn:
		d.never = true
	default:
		err = w.create(ctx, rendered, &d)
	}
	return d, d.fail(err)
}

// lookUp finds what may have arrived. What is to be corrected must be found, or known not to be there.
func (w *Worker) lookUp(ctx context.Context, c Claimed, id string) (emrID string, err error) {
	find := w.EMR.FindObservation
	if c.Corrections > 0 {
		find = w.EMR.LookUpObservation
	}
	emrID, _, err = find(ctx, id)
	return emrID, err
}

func (w *Worker) create(ctx context.Context, s sendable, d *delivery) error {
	d.asked = true
	created, err := w.EMR.CreateObservation(ctx, s.id, s.content, d.requestID)
	if err != nil {
		return err
	}
	d.done, d.attempts = Delivered{EMRID: created.EMRID, SentHash: s.hash()}, created.Attempts
	return nil
}

// update has the EMR's copy follow, unless it is known to say the same already.
func (w *Worker) update(ctx context.Context, c Claimed, s sendable, d *delivery) error {
	d.done.SentHash = s.hash()
	if c.SentHash == d.done.SentHash && !c.Ambiguous {
		return nil
	}
	content, err := s.update(d.done.EMRID).Encode()
	if err != nil {
		return &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	d.asked = true
	updated, err := w.EMR.UpdateObservation(ctx, d.done.EMRID, content, d.requestID, c.Ambiguous)
	d.attempts = updated.Attempts
	return err
}

// fail takes the EMR's refusal as the end of the delivery; what is not the EMR's comes back.
func (d *delivery) fail(err error) error {
	if err == nil {
		return nil
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		d.err, d.attempts = refusal, refusal.Attempts
		return nil
	}
	return err
}
