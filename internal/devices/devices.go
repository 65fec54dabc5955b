// Package devices knows the measuring devices and their hubs: who holds which device and since when, how batteries and
// connections stand, and when silence, missed days or readings that never change deserve an alert. What happened is
// told by the gateway's events and by stored readings; the rules are plain functions of that and of the time they are
// handed, so a check that runs late, or twice, comes to the same end. It refuses to judge the values of a reading (see
// alerts), to say who is told and how (see notifications), and to call the gateway.
package devices

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Rules are the settings of the practice.
type Rules struct {
	PracticeZone *time.Location
	// ManagedMode: the practice ships devices, so they are ordered and expected at a date.
	ManagedMode bool
	// DeliveryWorkingDays is how long a shipment takes.
	DeliveryWorkingDays int
	// MissedDaysBeforeEscalation is the run of missed days that makes an escalation.
	MissedDaysBeforeEscalation int
}

// Engine applies the rules.
type Engine struct {
	rules Rules
}

// NewEngine returns an engine with the given rules.
func NewEngine(rules Rules) *Engine { return &Engine{rules: rules} }

var slugForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$`)

// ParseType reads a device type: a kind, another word for the device of one, or any other slug, kept as sent. kind is what such a
// device measures, "" for the others. ok is false for what is no slug.
// Source: docs/decisions/devices.md, "Device assignment".
func ParseType(text string) (deviceType string, kind vitals.Kind, ok bool) {
	word := strings.ToLower(text)
	if kind := vitals.Kind(word); kind.Valid() {
		return word, kind, true
	}
	for _, d := range vitals.Definitions {
		if slices.Contains(d.Devices, word) {
			return string(d.Kind), d.Kind, true
		}
	}
	return text, "", slugForm.MatchString(text)
}

// find finds a device, or a not-found fault.
func find(app core.App, deviceID string) (*collections.Device, error) {
	device, err := collections.FindDevice(app, deviceID)
	if err != nil {
		return nil, fault.IfMissing(err)
	}
	return device, collections.Readable(device.ProxyRecord())
}

func save(tx core.App, model core.Model) error {
	if err := tx.Save(model); err != nil {
		return fmt.Errorf("store %T: %w", model, err)
	}
	return nil
}
