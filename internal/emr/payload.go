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

// sendable is one form of something, ready to be sent.
type sendable struct {
	id string // under which the EMR finds it by its identifier
	// withdrawn: it is to be nowhere but where it is already.
	withdrawn bool
	// content is the resource for a new copy, update that for the EMR's copy with an id.
	content []byte
	update  func(emrID string) fhir.Resource
}

// hash tells one content from another.
func (s sendable) hash() string {
	sum := sha256.Sum256(s.content)
	return hex.EncodeToString(sum[:])
}

// render makes the FHIR form as delivered, which names the patient by the EMR's own id. A record that cannot be sent as
// it is fails as if the EMR had said so.
func (w *Worker) render(app core.App, c Claimed) (s sendable, err error) {
	if c.Form == collections.FormMeanPressure {
		s, err = w.renderMean(app, c)
	} else {
		s, err = w.renderReading(app, c)
	}
	if refusal, ok := errors.AsType[*Error](err); ok {
		return s, refusal
	}
	if _, refused := errors.AsType[*fault.Error](err); refused {
		return s, &Error{Code: CodeInvalidResource, Message: "The observation could not be read"}
	}
	if err != nil {
		return s, fmt.Errorf("load the observation: %w", err)
	}
	if s.content, err = s.update("").Encode(); err != nil {
		return s, &Error{Code: CodeInvalidResource, Message: "The observation has no FHIR form"}
	}
	return s, nil
}

// externalID is the EMR's id of the patient, which is known already unless "".
func (w *Worker) externalID(app core.App, c Claimed, known string) (id string, err error) {
	if known != "" {
		return known, nil
	}
	id, err = collections.ExternalIDOf(app, c.PatientID)
	if err == nil && id == "" && w.EMR.Configured() { // else it fails of that first
		err = &Error{Code: CodePatientNotFound, Message: notLinked}
	}
	return id, err
}

func (w *Worker) renderReading(app core.App, c Claimed) (sendable, error) {
	stored, unread := w.Load(app, c.ObservationID)
	externalID, err := w.externalID(app, c, stored.ExternalID)
	if err = cmp.Or(err, unread); err != nil { // whom the EMR does not know comes first: that is for people to mend
		return sendable{}, err
	}
	s := sendable{id: c.ObservationID, withdrawn: stored.EnteredInError}
	deliver := fhir.Delivered
	if c.Form == collections.FormHeartRate {
		s.id, deliver = fhir.PartID(c.ObservationID, fhir.HeartRatePart), fhir.DeliveredHeartRate
	}
	s.update = func(emrID string) fhir.Resource {
		stored.EMRID = emrID
		return deliver(stored, externalID)
	}
	return s, nil
}

func (w *Worker) renderMean(app core.App, c Claimed) (sendable, error) {
	externalID, err := w.externalID(app, c, "")
	if err != nil {
		return sendable{}, err
	}
	if w.LoadMean == nil {
		return sendable{}, fault.Missing()
	}
	mean, err := w.LoadMean(app, c.PatientID, c.From, c.To)
	if err != nil {
		return sendable{}, err
	}
	mean.ID, mean.CreatedAt = c.ObservationID, collections.ParseInstant(c.CreatedAt)
	return sendable{id: c.ObservationID, withdrawn: mean.Readings == 0, update: func(emrID string) fhir.Resource {
		mean.EMRID = emrID
		return fhir.DeliveredMean(mean, externalID)
	}}, nil
}
