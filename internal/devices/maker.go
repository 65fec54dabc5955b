package devices

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/validate"
)

// MakerBody is what a body may say of who made a device, and which one it is.
type MakerBody struct {
	Manufacturer validate.String `json:"manufacturer"`
	Model        validate.String `json:"model"`
	SerialNumber validate.String `json:"serial_number"`
	UDI          validate.String `json:"udi"`
}

// Maker is what is known of who made a device, and which one it is; what is "" is not known.
type Maker struct{ Manufacturer, Model, SerialNumber, UDI string }

func (b MakerBody) read(c *validate.Checks) Maker {
	return Maker{
		Manufacturer: c.Text("manufacturer", b.Manufacturer, validate.Optional(100)), Model: c.Text("model", b.Model, validate.Optional(100)),
		SerialNumber: c.Text("serial_number", b.SerialNumber, validate.Optional(100)), UDI: c.Text("udi", b.UDI, validate.Optional(300)),
	}
}

// note writes what is known; what is not said stays as it was.
func (m Maker) note(device *collections.Device) {
	for column, said := range map[string]string{
		collections.DeviceManufacturer: m.Manufacturer, collections.DeviceModel: m.Model,
		collections.DeviceSerialNumber: m.SerialNumber, collections.DeviceUDI: m.UDI,
	} {
		if said != "" {
			device.Set(column, said)
		}
	}
	if made := MadeOn(m.UDI); made != "" {
		device.Set(collections.DeviceMadeOn, made)
	}
}

// learn notes what is said of a device that its holder keeps.
func learn(tx core.App, device *collections.Device, a Assignment, by audit.Actor, now time.Time) error {
	if (a.Maker == Maker{}) {
		return nil
	}
	a.note(device)
	if err := save(tx, device); err != nil {
		return err
	}
	return audit.Append(tx, audit.Entry{
		Event: audit.DeviceAssign, Actor: by, ResourceType: audit.ResourceDevice, ResourceID: a.DeviceID, PatientID: a.PatientID,
	}, now)
}
