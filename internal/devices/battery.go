package devices

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/triage"
)

// BatteryBand is the state of a battery.
type BatteryBand string

// The bands. Source: docs/decisions/devices.md, "Battery".
const (
	BatteryNormal   BatteryBand = "normal"
	BatteryLow      BatteryBand = "low"
	BatteryCritical BatteryBand = "critical"
)

// Limits in percent: low up to and including lowLimit, critical below criticalLimit, a new charge above fullLimit.
const (
	lowLimit      = 20
	criticalLimit = 10
	fullLimit     = 30
)

// BatteryBandFor returns the band of a level in percent.
func BatteryBandFor(level float64) BatteryBand {
	switch {
	case level < criticalLimit:
		return BatteryCritical
	case level <= lowLimit:
		return BatteryLow
	}
	return BatteryNormal
}

// BatteryAction is the result of evaluating a battery.
type BatteryAction struct {
	// Notified is the worst band that was announced in this discharge; "" for none.
	Notified BatteryBand
	// Raise is the band to raise an alert for; "" for none.
	Raise BatteryBand
	// Recovered: open battery alerts are to be resolved.
	Recovered bool
}

// EvaluateBattery returns what a battery's band requires. level is nil if the device did not report it. Each band alerts once per
// discharge, and again only after a level that means a new charge. Source: docs/decisions/devices.md, "Battery".
func EvaluateBattery(notified, band BatteryBand, level *float64) BatteryAction {
	switch {
	case band == BatteryCritical && notified != BatteryCritical:
		return BatteryAction{Notified: BatteryCritical, Raise: BatteryCritical}
	case band == BatteryLow && notified == "":
		return BatteryAction{Notified: BatteryLow, Raise: BatteryLow}
	case band == BatteryNormal && level != nil && *level > fullLimit:
		return BatteryAction{Recovered: true}
	}
	return BatteryAction{Notified: notified, Recovered: band == BatteryNormal}
}

// checkBattery raises or resolves the battery alerts of a stored device. An unassigned device alerts when it is assigned.
func (e *Engine) checkBattery(tx core.App, device *collections.Device, now time.Time) error {
	band := BatteryBand(device.BatteryState())
	if band == "" {
		return nil
	}
	action := EvaluateBattery(BatteryBand(device.BatteryNotified()), band, device.BatteryLevel())
	if action.Recovered {
		if err := resolveAlerts(tx, device.DeviceID(), alerts.TypeDeviceBattery, "", "The battery of device "+device.DeviceID()+" is charged again or was replaced.", now); err != nil {
			return err
		}
	}
	if action.Raise != "" {
		watched, err := triage.IsMonitored(tx, device.PatientID())
		if err != nil || !watched {
			return err
		}
		if _, err := raise(tx, deviceAlert{draft: batteryDraft(device, action.Raise), kind: notifications.DeviceAlertRaised}, now); err != nil {
			return err
		}
		if err := notifications.QueueMailForCareTeam(tx, notifications.BatteryLow, device.PatientID(), now); err != nil {
			return err
		}
		if err := e.orderBattery(tx, device, action.Raise, now); err != nil {
			return err
		}
	}
	if string(action.Notified) == device.BatteryNotified() {
		return nil
	}
	device.Set(collections.DeviceBatteryNotified, string(action.Notified))
	return save(tx, device)
}

func batteryDraft(device *collections.Device, band BatteryBand) alerts.Draft {
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
		PatientID: device.PatientID(), DeviceID: device.DeviceID(), Finding: finding, MeasuredAt: device.BatteryAt(), OmitsValue: level == nil,
	}
}

// orderBattery orders a replacement of a device with a critical battery.
func (e *Engine) orderBattery(tx core.App, device *collections.Device, band BatteryBand, now time.Time) error {
	if band != BatteryCritical || !e.rules.ManagedMode {
		return nil
	}
	open, err := collections.HasOpenReplacement(tx, device.DeviceID(), device.PatientID())
	if err != nil || open {
		return err
	}
	_, err = e.order(tx, device.DeviceID(), device.PatientID(), collections.OrderReplacement, "", alerts.System, now)
	return err
}
