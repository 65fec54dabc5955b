package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// recent is the age up to which nobody asks whether the clock of a device is right: most readings come at once.
const recent = 24 * time.Hour

// undated reports whether the device's clock is wrong, so that nobody knows when it measured. Source: docs/decisions/devices.md, "Wrong clock".
func undated(app core.App, event gateway.Event, patientID string) (bool, error) {
	if event.ReceivedAt.Sub(event.At) <= recent {
		return false, nil
	}
	return devices.ClockWrong(app, event.DeviceID, patientID, event.At)
}

// undatedHolder is who holds the device of an event now, when its own time is no time at which it can have measured for them: who held the
// device then says nothing. "" when its time may be right.
func undatedHolder(app core.App, event gateway.Event, holder string) (string, error) {
	if holder == "" {
		return "", nil
	}
	wrong, err := undated(app, event, holder)
	if !wrong {
		holder = ""
	}
	return holder, err
}
