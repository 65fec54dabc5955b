package observations

import (
	"time"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// FromEvent is the submission of a placed measurement that came in the gateway's words, at once or later.
func FromEvent(event gateway.Event, patientID string, by audit.Actor, receivedAt time.Time) Submission {
	return Submission{
		PatientID: patientID, Reading: *event.Reading, Source: vitals.SourceGateway, GatewayKey: event.Key(),
		Device: devices.EnvelopeOf(event), By: by, ReceivedAt: receivedAt,
	}
}
