package gateway

import (
	"encoding/json"
	"encoding/json/jsontext"
	"slices"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Some cuffs can be set to kilopascals, in which 120/75 mmHg is 16/10. Source: NIST SP 811, appendix B.8: 1 mmHg is 0.1333224 kPa;
// docs/decisions/gateway.md, "`values` shapes".
const (
	mmHgPerKPa = 1 / 0.1333224
	mmHgPerPa  = mmHgPerKPa / 1000
)

// isKPa reports whether a word spells the unit.
func isKPa(unit string) bool { return strings.EqualFold(strings.TrimSpace(unit), "kPa") }

// fromKPa returns the values with the pressures converted to whole mmHg, as fromPressureUnit does.
func fromKPa(values vitals.Body) (converted vitals.Body, ok bool) {
	return fromPressureUnit(values, mmHgPerKPa)
}

// fromPressureUnit returns the values with the pressures converted to whole mmHg. ok is false if they cannot be a pressure in the unit, or may be one
// in mmHg: both numbers are in range only if converted.
func fromPressureUnit(values vitals.Body, mmHg float64) (converted vitals.Body, ok bool) {
	converted = slices.Clone(values)
	for _, p := range []*vitals.Parameter{vitals.Systolic, vitals.Diastolic} {
		i := slices.IndexFunc(converted, func(m validate.Member) bool { return m.Name == p.Name })
		var sent float64
		if i < 0 || json.Unmarshal(converted[i].Raw, &sent) != nil || p.Range.Contains(sent) {
			return nil, false
		}
		number := vitals.RoundHalfUp(sent*mmHg, 0)
		if !p.Range.Contains(number) {
			return nil, false
		}
		converted[i].Raw = jsontext.Value(strconv.FormatFloat(number, 'f', -1, 64))
	}
	return converted, true
}
