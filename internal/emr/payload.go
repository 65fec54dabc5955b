package emr

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// payload is one form of an observation or mean, ready to send.
type payload struct {
	id string // the identifier under which the EMR finds it
	// retracted: update existing copies, but create none.
	retracted bool
	// content is the resource for a new copy; update renders it for the EMR's copy with an id.
	content []byte
	update  func(emrID string) fhir.Resource
}

// hash identifies the content.
func (p payload) hash() string {
	sum := sha256.Sum256(p.content)
	return hex.EncodeToString(sum[:])
}

// render builds the FHIR resource, which refers to the patient by the EMR's id. An observation that cannot be sent as it is returns the
// *Error that the EMR would return.
func (w *Worker) render(app core.App, c Leased) (p payload, err error) {
	if c.Form == collections.FormMeanPressure {
		p, err = w.renderMean(app, c)
	} else {
		p, err = w.renderReading(app, c)
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		return p, refusal
	}
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return p, &Error{Code: CodeInvalidResource, Message: "The observation could not be read"}
	}
	if err != nil {
		return p, fmt.Errorf("load the observation: %w", err)
	}
	if p.content, err = p.update("").Encode(); err != nil {
		return p, &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	return p, nil
}

// externalID returns the EMR's id of the patient: known, unless that is "".
func (w *Worker) externalID(app core.App, c Leased, known string) (id string, err error) {
	if known != "" {
		return known, nil
	}
	id, err = collections.ExternalIDOf(app, c.PatientID)
	if err == nil && id == "" && w.EMR.Configured() { // otherwise the delivery fails as not configured
		err = &Error{Code: CodePatientNotFound, Message: notLinked}
	}
	return id, err
}

func (w *Worker) renderReading(app core.App, c Leased) (payload, error) {
	stored, loadErr := w.Load(app, c.ObservationID)
	externalID, err := w.externalID(app, c, stored.ExternalID)
	if err = cmp.Or(err, loadErr); err != nil { // a patient without a link comes first: a person must correct it
		return payload{}, err
	}
	p := payload{id: c.ObservationID, retracted: stored.EnteredInError}
	deliver := fhir.DeliveredObservation
	if c.Form == collections.FormHeartRate {
		p.id, deliver = fhir.PartID(c.ObservationID, fhir.HeartRatePart), fhir.DeliveredHeartRate
	}
	p.update = func(emrID string) fhir.Resource {
		stored.EMRID = emrID
		return deliver(stored, externalID)
	}
	return p, nil
}

func (w *Worker) renderMean(app core.App, c Leased) (payload, error) {
	externalID, err := w.externalID(app, c, "")
	if err != nil {
		return payload{}, err
	}
	if w.LoadMean == nil {
		return payload{}, fault.Missing()
	}
	mean, err := w.LoadMean(app, c.PatientID, c.From, c.To)
	if err != nil {
		return payload{}, err
	}
	mean.ID, mean.CreatedAt = c.ObservationID, collections.ParseInstant(c.CreatedAt)
	return payload{id: c.ObservationID, retracted: mean.Readings == 0, update: func(emrID string) fhir.Resource {
		mean.EMRID = emrID
		return fhir.DeliveredMeanBloodPressure(mean, externalID)
	}}, nil
}
