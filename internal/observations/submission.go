package observations

import (
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Submission is a checked reading on its way in.
type Submission struct {
	PatientID string
	Reading   vitals.Reading
	Source    vitals.Source
	// GatewayKey is the deduplication key of a gateway event; "" for readings from anywhere else.
	GatewayKey string
	// Partial readings may have come without what their device measured with them: their vendor may send it by itself, as an
	// Addition to the reading under the GatewayKey.
	Partial, Addition bool
	// Repeatable readings are stored however often they come; only for tests of the gateway.
	Repeatable bool
	// Device is what the gateway told of the device along with the reading.
	Device devices.Envelope
	// By says who sent it, for the audit trail.
	By audit.Actor
	// ReceivedAt is when it reached the door.
	ReceivedAt time.Time
}

// Outcome is what became of a submission.
type Outcome struct {
	Observation Observation
	// Duplicate: this very reading was stored before; nothing was written.
	Duplicate bool
	// Conflict: the gateway sent other values under a key it had used before; nothing was written.
	Conflict bool
	// Completed: the reading was stored before, and has more values now.
	Completed bool
	// CheckDevice: what the reading says of its device asks for more than storing it, see [devices.Engine.CheckDevice].
	CheckDevice bool
	Alerts      []RaisedAlert
	// EscalationID and TransmissionID are "" when there is none.
	EscalationID   string
	TransmissionID string
}

// RaisedAlert is an alert that the reading raised.
type RaisedAlert struct {
	ID      string // record id
	Level   string
	Type    string
	Message string // may be read beside the patient's name: never log it
}
