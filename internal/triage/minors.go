package triage

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Minor is the input for deciding whether a minor has thresholds; the practice's defaults are for adults.
// Source: docs/decisions/alerts.md, "Minors".
type Minor struct {
	Own alerts.Bounds
	// Expected are the kinds with a device or in the schedule.
	Expected []vitals.Kind
}

// FactorThresholds explains that a patient needs thresholds. It has no points.
const FactorThresholds = "thresholds"

// readMinor reads a row; nil for adults.
func readMinor(bounds *string, expected []byte) (*Minor, error) {
	if expected == nil {
		return nil, nil //nolint:nilnil // an adult is an answer
	}
	m := &Minor{}
	var err error
	if bounds != nil {
		if m.Own, err = alerts.ParseBounds(*bounds); err != nil {
			return nil, err
		}
	}
	m.Expected, err = parseList(expected, "expected kinds", func(kind string) vitals.Kind { return vitals.Kind(kind) })
	return m, err
}

// missingThresholdsText names what is measured of a minor without bounds; "" if nothing is. A new minor without any bounds needs some before the
// first reading.
func (p PatientSnapshot) missingThresholdsText() (why string) {
	if p.Minor == nil {
		return ""
	}
	var without []string
	none := true
	for _, group := range alerts.Groups {
		if p.Minor.Own.IsConfigured(group) {
			none = false
		} else if p.Latest.hasValueOf(group) || p.Minor.expects(group) {
			without = append(without, strings.ReplaceAll(group, "_", " "))
		}
	}
	switch {
	case len(without) > 0:
		return "A minor without thresholds for: " + strings.Join(without, ", ") + "."
	case none:
		return "A minor without thresholds."
	}
	return ""
}

// hasValueOf reports whether a value of a group was ever measured.
func (l Latest) hasValueOf(group string) bool {
	for _, p := range vitals.ThresholdParameters {
		if p.Group != group {
			continue
		}
		if value, _ := l.Value(p); value != nil {
			return true
		}
	}
	return false
}

// expects reports whether an expected kind always includes a value of the group.
func (m *Minor) expects(group string) bool {
	return slices.ContainsFunc(m.Expected, func(kind vitals.Kind) bool {
		return slices.ContainsFunc(kind.Definition().Required, func(p *vitals.Parameter) bool { return p.Group == group })
	})
}

// NeedsThresholds reports whether a minor is measured without bounds.
func (r Row) NeedsThresholds() bool {
	return slices.ContainsFunc(r.Factors, func(f Factor) bool { return f.Factor == FactorThresholds })
}
