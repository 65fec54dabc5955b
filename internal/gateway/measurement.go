package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vigilhealth/vigil/internal/object"
)

// Measurement is an event as the gateway sends it, for the simulator and for tests: Body and Sign make a delivery
// of it. Members left empty are not sent, so that with another EventType it makes the events of devices and hubs.
type Measurement struct {
	EventType       EventType `json:"event_type"` // measurement.created when empty
	DeviceID        string    `json:"device_id,omitempty"`
	PatientID       string    `json:"patient_id,omitempty"`
	MeasurementType string    `json:"measurement_type,omitempty"`
	Values          Values    `json:"values,omitzero"`
	Unit            string    `json:"unit,omitempty"`
	Timestamp       time.Time `json:"timestamp,omitzero"`
	DeviceModel     string    `json:"device_model,omitempty"`
	BatteryLevel    *int      `json:"battery_level,omitempty"`   // percent
	SignalStrength  *int      `json:"signal_strength,omitempty"` // dBm
	HubID           string    `json:"hub_id,omitempty"`
}

// Values are the values of a Measurement, in its Unit.
type Values = object.Shown

// Body is the JSON of the event.
func (m Measurement) Body() ([]byte, error) {
	m.EventType = cmp.Or(m.EventType, MeasurementCreated)
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", m.EventType, err)
	}
	return body, nil
}
