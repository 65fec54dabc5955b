package collections

// The columns of how things are shown to somebody.
const (
	UserWeightUnit      = "weight_unit"
	UserTemperatureUnit = "temperature_unit"
	UserSingleKeys      = "single_keys"
)

// What stands in [UserSingleKeys].
const (
	KeysOn  = ""
	KeysOff = "off"
)

// Display is how things are shown to the user: the units of weight and temperature, and whether single keys act.
func (u *User) Display() (weight, temperature string, singleKeys bool) {
	weight, temperature = u.GetString(UserWeightUnit), u.GetString(UserTemperatureUnit)
	if weight == "" {
		weight = "kg"
	}
	if temperature == "" {
		temperature = "C"
	}
	return weight, temperature, u.GetString(UserSingleKeys) != KeysOff
}
