package triage

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Minor is what deciding takes whether a minor has the thresholds there should be: the practice's defaults are for adults.
// Source: docs/decisions/alerts.md, "Minors".
type Minor struct {
	Own alerts.Bounds
	// Expected are the kinds that the patient has a device for, or that the schedule asks for.
	Expected []vitals.Kind
}

// FactorThresholds explains that a patient needs thresholds. It has no points: nothing is known to be wrong.
const FactorThresholds = "thresholds"

// readMinor is that of a row; nil for adults, who need none.
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

// needsThresholds explains what of a minor is watched without bounds; "" when nothing is. Somebody new of whom nothing is known yet needs
// some, too: the first reading should find them there.
func (p Picture) needsThresholds() (why string) {
	if p.Minor == nil {
		return ""
	}
	var without []string
	none := true
	for _, group := range alerts.Groups {
		if p.Minor.Own.Sets(group) {
			none = false
		} else if p.Latest.measures(group) || p.Minor.expects(group) {
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

// measures reports whether a value of a group was ever measured.
func (l Latest) measures(group string) bool {
	for _, p := range vitals.Watched {
		if p.Group != group {
			continue
		}
		if value, _ := l.Value(p); value != nil {
			return true
		}
	}
	return false
}

// expects reports whether a kind that is expected cannot be without a value of the group.
func (m *Minor) expects(group string) bool {
	return slices.ContainsFunc(m.Expected, func(kind vitals.Kind) bool {
		return slices.ContainsFunc(kind.Definition().Must, func(p *vitals.Parameter) bool { return p.Group == group })
	})
}

// NeedsThresholds reports whether a minor is watched without bounds.
func (r Row) NeedsThresholds() bool {
	return slices.ContainsFunc(r.Factors, func(f Factor) bool { return f.Factor == FactorThresholds })
}
