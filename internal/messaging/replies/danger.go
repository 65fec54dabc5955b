package replies

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// hasDanger reports whether a text that is no certain reading has a value of danger in it, by the bounds of a new practice: a pressure in the
// form 188/121, or another value within three words of its name. A false alarm costs a look; a missed danger costs more.
func hasDanger(list []item) bool {
	for i, it := range list {
		if !it.isNumber {
			continue
		}
		if i+2 < len(list) && (list[i+1].text == "/" || vocabulary[list[i+1].text] == over) && list[i+2].isNumber {
			if isDangerousPressure(it.value, list[i+2].value) {
				return true
			}
		}
		for j := i - 1; j >= 0 && j >= i-4 && !list[j].isNumber; j-- {
			if p := parameters[vocabulary[list[j].text]]; p != nil && isDangerous(p, it, unitAfter(list, i)) {
				return true
			}
		}
	}
	return false
}

// isDangerousPressure judges two numbers that may be a pressure. A date, 11/30, is not: its second number is below any diastolic or above the first.
func isDangerousPressure(upper, lower float64) bool {
	return vitals.Systolic.Range.Contains(upper) && vitals.Diastolic.Range.Contains(lower) && lower < upper &&
		(isBeyond(vitals.Systolic, upper) || isBeyond(vitals.Diastolic, lower))
}

func unitAfter(list []item, i int) role {
	if i+1 < len(list) {
		return vocabulary[list[i+1].text]
	}
	return ""
}

func isDangerous(p *vitals.Parameter, it item, unit role) bool {
	value := it.value
	for _, other := range p.Units {
		if string(unit) == other.Field || unit == "" && other.Range.Contains(value) && !p.Range.Contains(value) {
			value = other.Convert(value)
		}
	}
	return p.Range.Contains(value) && isBeyond(p, value) && !strings.ContainsAny(it.text, ",")
}

func isBeyond(p *vitals.Parameter, value float64) bool {
	side, _ := p.Defaults.Met(value)
	return side.IsCritical()
}
