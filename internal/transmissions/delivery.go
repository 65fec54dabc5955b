package transmissions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// send delivers a claimed transmission and stores how that ended. A failure of our own leaves it in processing, to be
// taken up as stuck, and so does the end of the process: the next one takes it up at once.
func (w *Worker) send(ctx context.Context, app core.App, c Claimed) (Result, error) {
	d, err := w.deliver(ctx, app, c)
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
	err       *emr.Error
	attempts  []emr.Attempt
	startedAt time.Time
	requestID string // of the request that brought the reading: one id leads from its log line to the EMR's
}

// deliver sends one observation. After an ambiguous end it looks for it at the EMR first.
func (w *Worker) deliver(ctx context.Context, app core.App, c Claimed) (delivery, error) {
	d := delivery{startedAt: w.Clock()}
	// A send under way is finished even while the service shuts down: cutting it off makes it ambiguous. Only an EMR that hangs is not
	// waited for.
	ctx, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(w.patience, cut)()
	w.rendering <- struct{}{}
	resource, err := w.render(app, c)
	if err == nil {
		d.requestID, err = collections.CausingRequest(app, audit.ResourceObservation, c.ObservationID)
	}
	<-w.rendering
	if err != nil {
		return d, d.fail(err)
	}
	if c.Ambiguous {
		emrID, found, err := w.EMR.FindObservation(ctx, c.ObservationID)
		if err != nil || found {
			d.done.EMRID = emrID
			return d, d.fail(err)
		}
		d.startedAt = w.Clock()
	}
	if d.requestID == "" {
		d.requestID = uuid.NewString()
	}
	created, err := w.EMR.CreateObservation(ctx, c.ObservationID, resource, d.requestID)
	if err != nil {
		return d, d.fail(err)
	}
	sum := sha256.Sum256(resource)
	d.done, d.attempts = Delivered{EMRID: created.EMRID, SentHash: hex.EncodeToString(sum[:])}, created.Attempts
	return d, nil
}

// fail takes the EMR's refusal as the end of the delivery; what is not the EMR's comes back.
func (d *delivery) fail(err error) error {
	if refusal, ok := errors.AsType[*emr.Error](err); ok {
		d.err, d.attempts = refusal, refusal.Attempts
		return nil
	}
	return err
}

// render makes the FHIR form as delivered, which names the patient by the EMR's own id. A record that cannot be sent as
// it is fails as if the EMR had said so.
func (w *Worker) render(app core.App, c Claimed) ([]byte, error) {
	externalID, err := collections.ExternalIDOf(app, c.PatientID)
	if err != nil {
		return nil, err
	}
	if externalID == "" && w.EMR.Configured() { // else it fails of that first
		return nil, &emr.Error{Code: emr.CodePatientNotFound, Message: "Patient has no EMR id"}
	}
	stored, err := w.Load(app, c.ObservationID)
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return nil, &emr.Error{Code: emr.CodeInvalidResource, Message: "The observation could not be read"}
	}
	if err != nil {
		return nil, fmt.Errorf("load the observation: %w", err)
	}
	resource, err := fhir.Delivered(stored, externalID).Encode()
	if err != nil {
		return nil, &emr.Error{Code: emr.CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	return resource, nil
}
