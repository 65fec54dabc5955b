package alerts

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// minorBounds replace the practice's bounds, which are for adults, for minors: only bounds that mean danger at every age, birth to 17.
// Everything else needs bounds of the patient's own. Source: docs/decisions/alerts.md, "Minors".
var minorBounds = func() Bounds {
	bounds := Bounds{}
	for _, p := range vitals.ThresholdParameters {
		for _, side := range p.Bounds {
			if value := p.AnyAge.Bound(side); value != nil {
				if bounds[p.Group] == nil {
					bounds[p.Group] = map[string]*float64{}
				}
				bounds[p.Group][p.Prefix+string(side)] = value
			}
		}
	}
	return bounds
}()

// infantBounds are minorBounds with the limit of fever under three months: at that age any fever may be a serious infection.
// Source: docs/decisions/alerts.md, "Minors".
var infantBounds = func() Bounds {
	bounds := minorBounds.clone()
	bounds[vitals.TemperatureC.Group][vitals.TemperatureC.Prefix+string(vitals.Critical)] = new(38.0)
	return bounds
}()

// minorDefaults and infantDefaults are the stored forms.
var minorDefaults, infantDefaults = encoded(minorBounds), encoded(infantBounds)

func encoded(bounds Bounds) string {
	text, err := bounds.Encode()
	if err != nil {
		panic("alerts: encode the bounds of minors: " + err.Error())
	}
	return text
}

// Defaults returns the stored bounds that a patient of an age group inherits: the practice's, or those of minors or infants.
func Defaults(practice *string, ageGroup string) *string {
	switch ageGroup {
	case collections.AgeInfant:
		return &infantDefaults
	case collections.AgeMinor:
		return &minorDefaults
	}
	return practice
}

// defaultsOf is [Defaults] for parsed bounds.
func defaultsOf(practice Bounds, ageGroup string) Bounds {
	switch ageGroup {
	case collections.AgeInfant:
		return infantBounds
	case collections.AgeMinor:
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
