package devices

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// attendBattery carries out what the battery of a stored device asks for. Nobody is told of a device that nobody holds;
// whoever gets it is.
func (e *Engine) attendBattery(tx core.App, device *collections.Device, now time.Time) error {
	band := Band(device.BatteryState())
	if band == "" {
		return nil
	}
	move := JudgeBattery(Band(device.BatteryTold()), band, device.BatteryLevel())
	if move.Recovered {
		if err := resolveAbout(tx, device.DeviceID(), alerts.TypeDeviceBattery, "", "The battery of device "+device.DeviceID()+" is charged again or was replaced.", now); err != nil {
			return err
		}
	}
	if move.Raise != "" {
		watched, err := monitored(tx, device.PatientID())
		if err != nil || !watched {
			return err
		}
		if _, err := raise(tx, alarm{draft: batteryDraft(device, move.Raise), kind: notifications.DeviceAlertRaised}, now); err != nil {
			return err
		}
		if err := notifications.QueueForCareTeam(tx, notifications.BatteryLow, device.PatientID(), now); err != nil {
			return err
		}
		if err := e.orderBattery(tx, device, move.Raise, now); err != nil {
			return err
		}
	}
	if string(move.Told) == device.BatteryTold() {
		return nil
	}
	device.Set("battery_told", string(move.Told))
	return save(tx, device)
}

func batteryDraft(device *collections.Device, band Band) alerts.Draft {
	finding := alerts.Finding{Type: alerts.TypeDeviceBattery, Level: alerts.Warning, Parameter: "battery_level", Threshold: lowLimit}
	word := "low"
	if band == BatteryCritical {
		finding.Level, finding.Threshold, word = alerts.Critical, criticalLimit, "nearly empty"
	}
	finding.Message = fmt.Sprintf("The battery of device %s is %s.", device.DeviceID(), word)
	level := device.BatteryLevel()
	if level != nil {
		finding.Value = *level
		finding.Message = fmt.Sprintf("The battery of device %s is %s: %.0f %%.", device.DeviceID(), word, *level)
	}
	return alerts.Draft{
		PatientID: device.PatientID(), DeviceID: device.DeviceID(), Finding: finding, MeasuredAt: device.BatteryAt(), Unmeasured: level == nil,
	}
}

// orderBattery asks staff for a replacement of a device that will soon fall silent.
func (e *Engine) orderBattery(tx core.App, device *collections.Device, band Band, now time.Time) error {
	if band != BatteryCritical || !e.rules.ManagedMode {
		return nil
	}
	open, err := collections.ReplacementOpen(tx, device.DeviceID(), device.PatientID())
	if err != nil || open {
		return err
	}
	_, err = e.order(tx, device.DeviceID(), device.PatientID(), collections.OrderReplacement, "", alerts.System, now)
	return err
}
