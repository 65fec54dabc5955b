package emr

import (
	"cmp"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
)

// Document is a report for a patient's chart: of a month, or about an escalation.
type Document struct {
	ID, PatientID string // the id is the same for all versions
	EscalationID  string // "" for a month
	// From and To are the half-open span that it covers, in the practice's zone.
	From, To time.Time
	// ChangedAt is when what it shows besides readings changed last; zero for a month.
	ChangedAt time.Time
}

// The days around an escalation that a document shows. Source: docs/decisions/transmissions.md, "Documents".
const (
	daysBefore = 7
	maxDays    = 90
)

// MonthDocument returns the document of the month that begins at a time, in the practice's zone.
func MonthDocument(patientID string, month time.Time) Document {
	return Document{
		ID: fhir.PartID(patientID, collections.FormDocument+"/"+month.Format("2006-01")), PatientID: patientID, From: month, To: monthStart(month, 1),
	}
}

// EscalationDocument returns the document about an escalation: its week before, and the days until it was closed, or today's.
func EscalationDocument(e *collections.Escalation, changedAt time.Time, zone *time.Location, now time.Time) Document {
	end := now
	for _, closed := range []time.Time{e.ResolvedAt(), e.CancelledAt()} {
		if !closed.IsZero() {
			end = closed
		}
	}
	year, month, day := e.CreatedAt().In(zone).Date()
	start := func(later int) time.Time {
		return collections.ParseDay(time.Date(year, month, day+later, 12, 0, 0, 0, time.UTC).Format(time.DateOnly), zone)
	}
	d := Document{
		ID: fhir.PartID(e.PatientID(), collections.FormDocument+"/escalation/"+e.Id), PatientID: e.PatientID(), EscalationID: e.Id, ChangedAt: changedAt,
		From: start(-daysBefore), To: collections.StartOfNextDay(end.In(zone)),
	}
	if last := start(maxDays - daysBefore); last.Before(d.To) {
		d.To = last
	}
	return d
}

// documentOf returns the document of a delivery.
func (w *Worker) documentOf(c Leased) Document {
	return Document{
		ID: c.ObservationID, PatientID: c.PatientID, EscalationID: c.EscalationID,
		From: collections.ParseInstant(c.DocumentFrom).In(w.Documents.Zone), To: collections.ParseInstant(c.DocumentTo).In(w.Documents.Zone),
	}
}

// title returns the title of a version that covers the time to an exclusive end.
func (d Document) title(end time.Time) string {
	title := "Home monitoring report " + d.From.Format(time.DateOnly) + " to " + end.Add(-time.Second).Format(time.DateOnly)
	if d.EscalationID != "" {
		title += ", about an escalation"
	}
	return title
}

// QueueDocument queues a document, once for each id; again, as a correction, if the EMR has it and what it shows was changed or added to since. It
// returns the delivery's number.
func (w *Worker) QueueDocument(app core.App, d Document, now time.Time) (transmission string, queued bool, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		transmission, queued, err = w.queueDocument(tx, d, now)
		return err
	})
	if queued && err == nil {
		w.Wake()
	}
	return transmission, queued, err
}

func (w *Worker) queueDocument(tx core.App, d Document, now time.Time) (transmission string, queued bool, err error) {
	sent, status, ok, err := collections.FindDocument(tx, d.ID)
	switch {
	case err != nil:
		return "", false, err
	case ok && status != collections.FHIRTransmitted:
		return sent.ID, false, nil // the next attempt sends the current report
	case ok:
		queued = d.ChangedAt.After(collections.ParseInstant(sent.DocumentAt))
		if !queued {
			queued, err = collections.HasNewReadings(tx, sent.ID)
		}
		if until := collections.ParseInstant(sent.DocumentTo); !queued && err == nil && until.Before(d.To) {
			queued, err = collections.HasTrustedReadings(tx, d.PatientID, until, d.To)
		}
		if err != nil || !queued {
			return sent.ID, false, err
		}
		err = collections.QueueCorrection(tx, sent.ID, now)
	default:
		sent.ID, err = Queue(tx, Draft{
			ObservationID: d.ID, PatientID: d.PatientID, Form: collections.FormDocument,
			From: d.From.Format(time.DateOnly), To: d.To.Add(-time.Second).Format(time.DateOnly),
		}, now)
	}
	if err != nil {
		return "", false, err
	}
	return sent.ID, true, collections.SetDocument(tx, sent.ID, d.EscalationID, d.From, d.To)
}

// SendDocument queues a document at a person's request; a failed one is tried again. isDelivered: the EMR has it as it is now. The faults are
// conflicts: the EMR takes no documents, or the patient is not linked, or there is nothing to report.
// Source: docs/decisions/transmissions.md, "Documents".
func (w *Worker) SendDocument(app core.App, d Document, by audit.Actor, now time.Time) (transmission string, isDelivered bool, err error) {
	if !w.EMR.TakesDocuments() {
		return "", false, fault.New(fault.Conflict, "documents_not_accepted",
			"The EMR takes no documents: neither its CapabilityStatement nor the way of delivery allows it. EMR, Connection lists what to request of its administrator.")
	}
	err = app.RunInTransaction(func(tx core.App) error {
		patient, err := collections.FindPatient(tx, d.PatientID)
		switch {
		case err != nil:
			return fault.OrMissing(err)
		case patient.ExternalID() == "":
			return fault.New(fault.Conflict, "patient_not_linked", "The patient is not linked to the EMR. Link the patient first.")
		}
		found, status, ok, err := collections.FindDocument(tx, d.ID)
		if err != nil {
			return err
		}
		if ok && status == collections.FHIRFailed {
			transmission = found.ID
			return retry(tx, transmission, by, now)
		}
		if !ok && d.EscalationID == "" {
			if has, err := collections.HasTrustedReadings(tx, d.PatientID, d.From, d.To); err != nil || !has {
				return cmp.Or(err, error(fault.New(fault.Conflict, "no_readings", "The patient has no readings in this month.")))
			}
		}
		var queued bool
		if transmission, queued, err = w.queueDocument(tx, d, now); err != nil {
			return err
		}
		isDelivered = ok && !queued && status == collections.FHIRTransmitted
		return audit.Append(tx, audit.Entry{
			Event: audit.EMRTransmit, Actor: by, ResourceType: audit.ResourceTransmission, ResourceID: transmission, PatientID: d.PatientID,
		}, now)
	})
	if err == nil && !isDelivered {
		w.Wake()
	}
	return transmission, isDelivered, err
}
