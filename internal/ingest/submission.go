package ingest

import (
	"cmp"
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Submission is a checked reading to be stored.
type Submission struct {
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
	// Origin defaults to that of the source.
	Origin vitals.Origin
	// GatewayKey is the deduplication key of a gateway event; "" for other sources.
	GatewayKey string
	// AwaitsParts readings may lack values that the vendor sends separately, as a part of the reading with the GatewayKey.
	AwaitsParts, IsPart bool
	// AllowDuplicates stores repeats too; for tests of the gateway.
	AllowDuplicates bool
	// ConfirmedBy is the user who confirmed values that no device should report; "" if not needed.
	ConfirmedBy string
	// UsesReceiptTime readings have the time of receipt, because the device has a future clock and a person confirmed them.
	UsesReceiptTime bool
	// Arrival is how the event of a device arrived, by which its time is judged; the zero value accepts any time.
	Arrival Arrival
	// TimeInDoubt readings are dated by receipt until a person confirms a time. It is set where a reading is stored, and for values that a
	// person confirms without a time.
	TimeInDoubt bool
	// LeftOut are the fields that its event was sent with, and that could not be read.
	LeftOut []string
	// Device is the device data that the gateway sent with the reading.
	Device devices.GatewayReport
	// NewerInBatch are the patient's later readings of the same batch, which supersede a late reading. It holds only readings that are,
	// or will be, stored.
	NewerInBatch []vitals.Reading
	// DiscardedBefore reports whether a person discarded this measurement before, and why. It is called only if the device sent this time
	// before, when it was in the future. Nil for never.
	DiscardedBefore func(tx core.App) (why phi.Text, dismissed bool, err error)
	// By is the sender, for the audit trail.
	By audit.Actor
	// ReceivedAt is the time of receipt.
	ReceivedAt time.Time
	// key is the reading key, computed outside the writer; "" if not computed.
	key string
	// isClockUnproven: no earlier reading shows that the device's clock is right. endsClockProof: one did, and this reading contradicts it.
	isClockUnproven, endsClockProof bool
	// record is work to run in the transaction of a reading that is not rejected; nil for none.
	record func(tx core.App) error
	// joinTx is work to run in the transaction instead of a reading.
	joinTx func(tx core.App) error
}

// Arrival is how an event of a device arrived.
type Arrival struct {
	At time.Time // of the first receipt
	// IsDeferred: it is stored later, by a person or a replay. IsUnnamed: it names no patient.
	IsDeferred, IsUnnamed bool
}

// origin returns the origin of the reading.
func (s Submission) origin() vitals.Origin { return cmp.Or(s.Origin, s.Source.Origin()) }

// Outcome is the result of a submission.
type Outcome struct {
	Observation Observation
	// Duplicate: the same reading was stored before; nothing was written.
	Duplicate bool
	// KeyAlias: it is a duplicate under a gateway key that no reading has.
	KeyAlias bool
	// Conflict: the gateway sent other values under the same key before; nothing was written.
	Conflict bool
	// Merged: its values were added to a stored reading.
	Merged bool
	// CheckDevice: the device needs a check after the commit, see [devices.Engine.CheckDevice].
	CheckDevice bool
	Alerts      []RaisedAlert
	// EscalationID and TransmissionID are "" if there is none.
	EscalationID   string
	TransmissionID string
}

// RaisedAlert is an alert that the reading raised.
type RaisedAlert struct {
	ID      string // record id
	Level   string
	Type    string
	Message string // may be read together with the patient's name: never log it
}

// gatewaySubmission returns the submission of a matched measurement.
func gatewaySubmission(event gateway.Event, patientID string, by audit.Actor, receivedAt time.Time) Submission {
	return Submission{
		PatientID: patientID, Reading: *event.Reading, Source: vitals.SourceGateway, GatewayKey: event.Key(),
		AwaitsParts: len(event.Parts) > 0, IsPart: event.Part != "", LeftOut: event.LeftOut, Device: devices.NewGatewayReport(event), By: by, ReceivedAt: receivedAt,
	}
}

// Submit stores a reading of a caller who names the patient. The result is stored, a duplicate, or a fault.
func (e *Pipeline) Submit(
	ctx context.Context, patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time,
) (Outcome, error) {
	return e.Writer.Submit(ctx, callerSubmission(patientID, r, source, by, at))
}

// callerSubmission returns the submission of a caller who names the patient.
func callerSubmission(patientID string, r vitals.Reading, source vitals.Source, by audit.Actor, at time.Time) Submission {
	s := Submission{PatientID: patientID, Reading: r, Source: source, By: by, ReceivedAt: at}
	if by.Type == audit.ByClient {
		s.Origin = vitals.OriginMachine
	}
	return s
}
