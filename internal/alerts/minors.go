package alerts

import "github.com/vigilhealth/vigil/internal/vitals"

// minorBounds replace the practice's bounds, which are for adults, for minors: only bounds that mean danger at every age, birth to 17.
// Everything else needs bounds of the patient's own. Source: docs/decisions/alerts.md, "Minors".
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

// minorDefaults is the stored form of minorBounds.
var minorDefaults = func() string {
	text, err := minorBounds.Encode()
	if err != nil {
		panic("alerts: encode the bounds of minors: " + err.Error())
	}
	return text
}()

// Defaults returns the stored bounds that a patient inherits: the practice's, or those of minors.
func Defaults(practice *string, minor bool) *string {
	if minor {
		return &minorDefaults
	}
	return practice
}

// defaultsOf is [Defaults] for parsed bounds.
func defaultsOf(practice Bounds, minor bool) Bounds {
	if minor {
		return minorBounds
	}
	return practice
}

// IsConfigured reports whether a group has a bound or is switched off.
func (b Bounds) IsConfigured(group string) bool {
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
