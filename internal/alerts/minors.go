package alerts

import "github.com/vigilhealth/vigil/internal/vitals"

// minorBounds are the bounds that hold for minors in place of the practice's, which are for adults: those alone that mean danger at every
// age, from birth to 17. All else awaits bounds of the patient's own. Source: docs/decisions/alerts.md, "Minors".
var minorBounds = func() Bounds {
	bounds := Bounds{}
	for _, p := range vitals.Watched {
		for _, side := range p.Sides {
			if value := p.AnyAge.Of(side); value != nil {
				if bounds[p.Group] == nil {
					bounds[p.Group] = map[string]*float64{}
				}
				bounds[p.Group][p.Prefix+string(side)] = value
			}
		}
	}
	return bounds
}()

// minorDefaults are the same as they would be stored.
var minorDefaults = func() string {
	text, err := minorBounds.Encode()
	if err != nil {
		panic("alerts: the bounds of minors cannot be written: " + err.Error())
	}
	return text
}()

// Defaults are the stored bounds that a patient inherits: the practice's, or those of minors.
func Defaults(practice *string, minor bool) *string {
	if minor {
		return &minorDefaults
	}
	return practice
}

// defaultsOf is [Defaults] of bounds that were read.
func defaultsOf(practice Bounds, minor bool) Bounds {
	if minor {
		return minorBounds
	}
	return practice
}

// Sets reports whether somebody decided about a group: bounds of it were set, or it was switched off.
func (b Bounds) Sets(group string) bool {
	fields, configured := b[group]
	if configured && fields == nil {
		return true
	}
	for _, value := range fields {
		if value != nil {
			return true
		}
	}
	return false
}
