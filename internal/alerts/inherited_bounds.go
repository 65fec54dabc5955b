package alerts

import (
	"fmt"
	"slices"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// checkInherited rejects bounds of the patient's own that contradict inherited ones. The practice inherits nothing.
func (s stored) checkInherited(c *validate.Checks, patientID string, after Bounds) {
	if patientID == "" {
		s.checkFasting(c, InForce(after, nil), after)
		return
	}
	s.checkFasting(c, InForce(s.practice, after), after)
	s.checkCritical(c, after)
}

// checkCritical rejects a change after which an own bound and an inherited critical one exclude each other: a mistyped warning bound (240 for
// 140) would cost the patient a critical bound that the caller did not name. A caller that sends the critical bound too, or null for it, decides about both.
// Source: docs/decisions/alerts.md, "Extra threshold fields".
func (s stored) checkCritical(c *validate.Checks, after Bounds) {
	for _, order := range boundOrders {
		for at, critical := range order {
			inherited := s.practice[critical.group][critical.field]
			if inherited == nil || !critical.isCritical() || critical.hasInheritedTwice() || hasField(after[critical.group], critical.field) {
				continue
			}
			for i, f := range order {
				own := after[f.group][f.field]
				isKnown := s.own.sameBound(after, f) && s.own.sameBound(after, critical)
				if own == nil || isKnown || len(c.Fields[f.Name()]) > 0 || !isContradiction(i, *own, at, *inherited) {
					continue
				}
				relation := "less"
				if i > at {
					relation = "greater"
				}
				c.Reject(f.Name(), fmt.Sprintf("Must be %s than %s (%s), which is inherited and would be lost. Send %s too, or null for none.",
					relation, critical.field, vitals.FormatNumber(*inherited), critical.field))
			}
		}
	}
}

// hasInheritedTwice reports whether a bound out of order is replaced by twice the change, so that it is never lost.
func (f boundField) hasInheritedTwice() bool {
	return slices.ContainsFunc(vitals.ChangeParameters, func(p *vitals.Parameter) bool { return p.Group == f.group && p.Change.Critical == f.field })
}

// isContradiction reports whether two bounds of one parameter, with their places in ascending order, exclude each other.
func isContradiction(i int, one float64, j int, other float64) bool {
	return i < j && one >= other || i > j && one <= other
}

// checkFasting rejects a patient's fasting bound above the inherited high bound, which would apply
// instead, or not above the inherited low bounds.
func (s stored) checkFasting(c *validate.Checks, inForce Thresholds, after Bounds) {
	for _, p := range vitals.ThresholdParameters {
		name, limits := p.Prefix+string(vitals.FastingHigh), inForce.Limits(p)
		own := after[p.Group][name]
		if own == nil || len(c.Fields[p.Group+"."+name]) > 0 {
			continue
		}
		if limits.High != nil && *own > *limits.High && after[p.Group][p.Prefix+string(vitals.High)] == nil {
			c.Reject(p.Group+"."+name, fmt.Sprintf("Must not be greater than %s (%s).", vitals.High, vitals.FormatNumber(*limits.High)))
		}
		for _, side := range []vitals.Bound{vitals.Low, vitals.CriticalLow} {
			if low := limits.Bound(side); low != nil && *own <= *low {
				c.Reject(p.Group+"."+name, fmt.Sprintf("Must be greater than %s (%s).", side, vitals.FormatNumber(*low)))
				break
			}
		}
	}
}
