package ingest

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/gateway"
)

// recentWindow is the age up to which nobody asks whether the clock of a device is right: most readings come at once.
const recentWindow = 24 * time.Hour

// isClockWrong reports whether the device's clock is wrong, so that nobody knows when it measured. Source: docs/decisions/devices.md, "Wrong clock".
func isClockWrong(app core.App, event gateway.Event, patientID string) (bool, error) {
	if event.ReceivedAt.Sub(event.At) <= recentWindow {
		return false, nil
	}
	return devices.ClockWrong(app, event.DeviceID, patientID, event.At)
}

// currentHolderIfClockWrong is who holds the device of an event now, when its own time is no time at which it can have measured for them: who held the
// device then says nothing. "" when its time may be right.
func currentHolderIfClockWrong(app core.App, event gateway.Event, holder string) (string, error) {
	if holder == "" {
		return "", nil
	}
	wrong, err := isClockWrong(app, event, holder)
	if !wrong {
		holder = ""
	}
	return holder, err
}
