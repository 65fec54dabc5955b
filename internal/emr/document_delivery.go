package emr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// DocumentOptions are the settings of documents.
type DocumentOptions struct {
	// Make makes the report that a document shows; isEmpty: it shows nothing.
	Make   func(app core.App, d Document, now time.Time) (pdf []byte, isEmpty bool, err error)
	Type   string // LOINC code
	Author string // the practice's name
	Zone   *time.Location
}

const (
	emptyDocument   = "Not sent: there are no readings in the period"
	documentIsWrong = "A report in the EMR's chart shows readings that were corrected or entered in error since. Remove it there, or mark it as superseded."
)

// copyOf returns the last staged version of a document. Its period ends no later than the time at
// which it was made.
func (w *Worker) copyOf(c Leased, externalID string) DocumentCopy {
	d := w.documentOf(c)
	v := DocumentCopy{
		ID: fhir.PartID(c.ObservationID, fmt.Sprintf("version %d", c.DocumentVersion)), Patient: strings.TrimPrefix(externalID, "Patient/"),
		Type: w.Documents.Type, Hash: c.DocumentHash, MadeAt: collections.ParseInstant(c.DocumentAt), From: d.From, To: d.To,
	}
	if end := v.MadeAt.Add(time.Second); end.Before(v.To) {
		v.To = end.In(w.Documents.Zone)
	}
	return v
}

// deliverDocument sends a report, or replaces the EMR's copy. After an unknown outcome it first searches for the version that was sent; only one that
// is not there is followed by another.
func (w *Worker) deliverDocument(ctx context.Context, app core.App, c Leased) (d deliveryOutcome, err error) {
	d = deliveryOutcome{startedAt: w.Clock(), requestID: uuid.NewString(), delivered: EMRCopy{EMRID: c.EMRID}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(w.sendCtx, cancel)()
	ctx = WithSharedRetries(ctx)
	externalID, err := w.externalID(app, c, "")
	if err != nil {
		return d, d.setError(err)
	}
	wasTaken := c.ErrorCode == CodeOutcomeUnknown || c.SentHash == collections.StatedPresent && c.EMRID == ""
	if c.DocumentVersion > 0 && (c.Ambiguous || wasTaken) {
		d.requested = true
		found, isFound, err := w.EMR.FindDocument(ctx, w.copyOf(c, externalID))
		switch {
		case err != nil:
			d.unsent = true
			return d, d.setDocumentError(err)
		case isFound:
			d.oldIsCurrent = c.EMRID != "" && c.EMRID != found && w.EMR.IsDocumentCurrent(ctx, c.EMRID)
			d.delivered = EMRCopy{EMRID: found, SentHash: c.DocumentHash}
			if c.DocumentChange == c.Corrections {
				return d, nil
			}
		case wasTaken:
			d.unsent = true
			return d, d.setDocumentError(outcomeUnknown(0))
		}
	}
	return d, d.setDocumentError(w.sendDocument(ctx, app, c, externalID, &d))
}

// sendDocument makes the report, stages it and sends it.
func (w *Worker) sendDocument(ctx context.Context, app core.App, c Leased, externalID string, d *deliveryOutcome) error {
	madeAt := w.Clock()
	of := w.documentOf(c)
	w.rendering <- struct{}{}
	pdf, isEmpty, err := w.Documents.Make(app, of, madeAt)
	<-w.rendering
	if err != nil {
		return fmt.Errorf("make the document: %w", err)
	}
	if isEmpty && d.delivered.EMRID == "" && !c.Ambiguous {
		d.canceled = true
		return nil
	}
	c.DocumentVersion, c.DocumentHash, c.DocumentAt = c.DocumentVersion+1, fhir.AttachmentHash(pdf), collections.FormatInstant(madeAt)
	err = app.RunInTransaction(func(tx core.App) error {
		held, err := collections.StageDocument(tx, c, madeAt)
		if err == nil && !held {
			return ErrLeaseExpired
		}
		return err
	})
	if err != nil {
		return err
	}
	version := w.copyOf(c, externalID)
	document := fhir.Document{
		ID: c.ObservationID, VersionID: version.ID, Type: version.Type, Author: w.Documents.Author, From: version.From, To: version.To, MadeAt: madeAt, PDF: pdf,
		Title: of.title(version.To), EMRID: d.delivered.EMRID,
	}
	created, err := w.exchangeDocument(ctx, c, version, document, externalID, d)
	if err != nil {
		return err
	}
	d.attempts = append(d.attempts, created.Attempts...)
	d.delivered = EMRCopy{EMRID: created.EMRID, SentHash: c.DocumentHash}
	return nil
}

// exchangeDocument updates the EMR's copy in place, or, where it has none or refuses updates, creates the version as a new document.
func (w *Worker) exchangeDocument(ctx context.Context, c Leased, version DocumentCopy, document fhir.Document, externalID string, d *deliveryOutcome) (Created, error) {
	invalid := &Error{Code: CodeInvalidResource, Message: "The document has no FHIR form"}
	if old := document.EMRID; old != "" {
		content, err := fhir.DeliveredDocument(document, externalID).Encode()
		if err != nil {
			return Created{}, invalid
		}
		d.requested = true
		updated, err := w.EMR.UpdateDocument(ctx, version, old, content, d.requestID, c.Ambiguous)
		if e, failed := errors.AsType[*Error](err); !failed || e.Code != CodeUpdateRefused {
			return updated, err
		}
		document.EMRID, document.Replaces = "", old
	}
	content, err := fhir.DeliveredDocument(document, externalID).Encode()
	if err != nil {
		return Created{}, invalid
	}
	d.requested = true
	created, err := w.EMR.CreateDocument(ctx, version, content, d.requestID)
	if err == nil && document.Replaces != "" {
		d.oldIsCurrent = d.oldIsCurrent || w.EMR.IsDocumentCurrent(ctx, document.Replaces)
	}
	return created, err
}

// setDocumentError is setError with texts about the document.
func (d *deliveryOutcome) setDocumentError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		e.Message = strings.Replace(strings.Replace(e.Message, "the observation", "the document", 1), "Observation not found", "Document not found", 1)
	}
	return d.setError(err)
}

// finishDocument marks the readings of a delivered document as transmitted, and opens a task if the
// EMR still shows the replaced document as current.
func finishDocument(tx core.App, c Leased, d deliveryOutcome, now time.Time) error {
	if c.Form != collections.FormDocument {
		return nil
	}
	if err := collections.MarkReadingsInDocument(tx, c.ID, now); err != nil || !d.oldIsCurrent {
		return err
	}
	c.Corrections = max(c.Corrections, 1)
	return openCorrectionTask(tx, c, true, now)
}

// correctDocuments queues a new version of the documents that show a changed reading, or may.
func correctDocuments(tx core.App, observationID string, now time.Time) error {
	documents, err := collections.DocumentsCovering(tx, observationID)
	for _, sent := range documents {
		if err == nil {
			err = applyCorrection(tx, sent, stepAfter(sent, false), now)
		}
	}
	return err
}

// waitForCorrectedDocument keeps a changed reading pending until the corrected document is delivered.
func waitForCorrectedDocument(tx core.App, observationID string, sent collections.FormDelivery, now time.Time) error {
	if err := collections.WaitForCorrectedDocument(tx, sent.ID, now); err != nil || sent.Form != collections.FormReading {
		return err
	}
	return collections.SetFHIRStatus(tx, observationID, collections.FHIRPending, "", collections.FormatInstant(now))
}

// queryDocument queries how the delivery of a document ended.
func (w *Worker) queryDocument(ctx context.Context, app core.App, d collections.UnconfirmedTransmission) (c collections.ReconcileResult, queue bool, err error) {
	externalID, err := w.externalID(app, d.LeasedTransmission, "")
	if err != nil {
		return c, false, err
	}
	emrID, found, err := w.EMR.FindDocument(ctx, w.copyOf(d.LeasedTransmission, externalID))
	switch {
	case err != nil, !found && d.ErrorCode == CodeOutcomeUnknown:
		return c, false, err
	case found && (d.DocumentChange != d.Corrections || d.EMRID != "" && d.EMRID != emrID): // the delivery corrects, or deals with the one before
		return collections.ReconcileResult{Status: collections.FHIRPending, Resolved: true, EMRID: emrID}, true, nil
	case found:
		return collections.ReconcileResult{Status: collections.FHIRTransmitted, Resolved: true, EMRID: emrID, SentHash: d.DocumentHash}, false, nil
	}
	return collections.ReconcileResult{Resolved: w.Clock().Sub(collections.ParseInstant(d.LastAttemptedAt)) >= arrivalTimeout}, false, nil
}
