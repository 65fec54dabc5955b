package devices

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Band is how a battery stands.
type Band string

// The bands. Source: docs/decisions/devices.md, "Battery".
const (
	BatteryNormal   Band = "normal"
	BatteryLow      Band = "low"
	BatteryCritical Band = "critical"
)

// Limits in percent: low up to and including lowLimit, critical below criticalLimit, a new charge above fullLimit.
const (
	lowLimit      = 20
	criticalLimit = 10
	fullLimit     = 30
)

// BandOf is the band of a level in percent.
func BandOf(level float64) Band {
	switch {
	case level < criticalLimit:
		return BatteryCritical
	case level <= lowLimit:
		return BatteryLow
	}
	return BatteryNormal
}

// BatteryMove is what a battery's state asks for.
type BatteryMove struct {
	// Told is the worst band that was told of in this discharge, from now on; "" for none.
	Told Band
	// Raise is the band to raise an alert for; "" for none.
	Raise Band
	// Recovered: open battery alerts are over.
	Recovered bool
}

// JudgeBattery says what follows from a battery's band. level is nil when the device did not tell it. Each of the two
// bands is told of once in a discharge, and again only after a level that means a new charge.
// Source: docs/decisions/devices.md, "Battery".
func JudgeBattery(told, band Band, level *float64) BatteryMove {
	switch {
	case band == BatteryCritical && told != BatteryCritical:
		return BatteryMove{Told: BatteryCritical, Raise: BatteryCritical}
	case band == BatteryLow && told == "":
		return BatteryMove{Told: BatteryLow, Raise: BatteryLow}
	case band == BatteryNormal && level != nil && *level > fullLimit:
		return BatteryMove{Recovered: true}
	}
	return BatteryMove{Told: told, Recovered: band == BatteryNormal}
}

// checkBattery carries out what the battery of a stored device asks for. Nobody is told of a device that nobody holds;
// whoever gets it is.
func (e *Engine) checkBattery(tx core.App, device *collections.Device, now time.Time) error {
	band := Band(device.BatteryState())
	if band == "" {
		return nil
	}
	move := JudgeBattery(Band(device.BatteryTold()), band, device.BatteryLevel())
	if move.Recovered {
		if err := resolveAlerts(tx, device.DeviceID(), alerts.TypeDeviceBattery, "", "The battery of device "+device.DeviceID()+" is charged again or was replaced.", now); err != nil {
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
	device.Set(collections.DeviceBatteryTold, string(move.Told))
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
