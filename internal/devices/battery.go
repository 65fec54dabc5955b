package devices

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
