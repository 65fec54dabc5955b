package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// What somebody has decided about a measurement holds however often, and in whatever envelope, its device sends it: nobody hears of it again.
// Source: docs/decisions/observations.md, "Implausible values".

// discardedBefore says whether somebody has discarded an event of a device when its time lay in the future, and why.
func (e *Pipeline) discardedBefore(event gateway.Event, patientID string, d Delivery) func(tx core.App) (phi.Text, bool, error) {
	const why = "The same measurement was discarded."
	return func(tx core.App) (phi.Text, bool, error) {
		quarantined, err := collections.FindGatewayEvent(tx, gateway.BodyID(d.Vendor, d.Body))
		if ignoreMissing(err) != nil {
			return "", false, err
		}
		if err == nil {
			return why, quarantined.Implausible() && quarantined.Status() == collections.EventDiscarded, nil
		}
		if event.Implausible != nil || len(event.LeftOut) > 0 {
			return "", false, nil // what is told is not what was discarded
		}
		earlier, err := e.findDecided(tx, event, *event.Reading, patientID, "")
		return why, earlier != nil && earlier.Status() == collections.EventDiscarded, err
	}
}

// findDiscardedPart is what somebody has discarded of a reading that came in parts: it joins the rest no more. Nil for none.
func (e *Pipeline) findDiscardedPart(app core.App, event gateway.Event, d Delivery) (*collections.GatewayEvent, error) {
	if event.Addition == "" || event.Implausible != nil {
		return nil, nil
	}
	quarantined, err := collections.FindGatewayEvent(app, gateway.BodyID(d.Vendor, d.Body))
	if err != nil || !quarantined.Implausible() || quarantined.Status() != collections.EventDiscarded {
		return nil, ignoreMissing(err)
	}
	return quarantined, nil
}

// findDecided is an event about which somebody has decided and that is the same measurement of the same patient: of one device, at one time by its
// own clock, with the same values. Nil for none.
func (e *Pipeline) findDecided(tx core.App, event gateway.Event, r vitals.Reading, patientID, except string) (*collections.GatewayEvent, error) {
	ids, err := collections.DecidedEvents(tx, event.DeviceID, patientID, event.At)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		earlier, err := FindQuarantined(tx, id)
		if err != nil {
			return nil, err
		}
		same, err := e.parseImplausible(earlier)
		if err == nil && id != except && sourceOrigin(EventSource(earlier)) == vitals.OriginDevice && same.Addition == event.Addition && same.Implausible.Reading.SameValues(r) {
			return earlier, nil
		}
	}
	return nil, nil
}

// applyEarlierDecision ends an event that is the same measurement as one that somebody has decided about, as that was decided.
func (e *Pipeline) applyEarlierDecision(tx core.App, stored *collections.GatewayEvent, event gateway.Event, patientID string, now time.Time) (bool, error) {
	if isManualSource(EventSource(stored)) || EventSource(stored) == SourceImport {
		return false, nil
	}
	earlier, err := e.findDecided(tx, event, event.Implausible.Reading, patientID, stored.Id)
	if err != nil || earlier == nil {
		return false, err
	}
	if err := collections.NotePatientOf(tx, stored.Id, patientID); err != nil {
		return false, err
	}
	return true, closeEvent(tx, stored, closure{
		status: earlier.Status(), observation: earlier.ObservationID(), patient: patientID, reason: "The same measurement was decided about.",
	}, audit.System(), now)
}
