package replies

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// dangerOf reports whether a text that is no certain reading has a value of danger in it, by the bounds of a new practice: a pressure in the form
// 188/121, another value within three words of its name, or a bare answer that is critical in each way to read it. isImplausible: the value is
// beyond what a device shows, as in "pulse 25". A false alarm costs a look; a missed danger costs more.
func dangerOf(list []item, isPlain bool, asked Requested) (isDanger, isImplausible bool) {
	for i, it := range list {
		if !it.isNumber {
			continue
		}
		if i+2 < len(list) && (list[i+1].text == "/" || vocabulary[list[i+1].text] == over) && list[i+2].isNumber {
			if isDanger, isImplausible := judgePressure(it.value, list[i+2].value, followsPressure(list, i)); isDanger {
				return true, isImplausible
			}
			// An oximeter shows oxygen and pulse.
			if slices.Contains(asked.Kinds, vitals.PulseOximetry) && vitals.SpO2.Range.Contains(it.value) && isBeyond(vitals.SpO2, it.value) {
				return true, false
			}
		}
		if isDanger, isImplausible := judgeNamed(list, i); isDanger {
			return true, isImplausible
		}
	}
	return isPlain && isDangerousAnswer(list, asked.Kinds), false
}

// judgeNamed judges the number at i by a name before it. A value beyond what a device shows counts only directly after its name: in "pulse after
// 20 minutes" the number is another.
func judgeNamed(list []item, i int) (isDanger, isImplausible bool) {
	if strings.Contains(list[i].text, ",") {
		return false, false
	}
	unit, counted := role(""), false
	if i+1 < len(list) {
		unit, counted = vocabulary[list[i+1].text], counts[list[i+1].text]
	}
	isDirect := !counted
	for j := i - 1; j >= 0 && j >= i-4 && !list[j].isNumber; j-- {
		if p := parameters[vocabulary[list[j].text]]; p != nil {
			isDanger, isImplausible := judge(p, list[i].value, unit)
			if isDanger && (isDirect || !isImplausible) {
				return true, isImplausible
			}
		}
		isDirect = isDirect && vocabulary[list[j].text] != ""
	}
	return false, false
}

// counts are units of something else that a number may count.
var counts = setOf("times sec seconds min mins minute minutes hour hours day days week weeks year years pills tablets steps am pm l liter liters veces minutos horas dias semanas pastillas litros")

// conceivable are the values that a text may mean, of those that no device shows: others are numbers of something else.
var conceivable = map[*vitals.Parameter]vitals.Range{
	vitals.Systolic: {Min: 40, Max: 400}, vitals.Diastolic: {Min: 20, Max: 300}, vitals.Pulse: {Min: 10, Max: 400}, vitals.SpO2: {Min: 20, Max: 100},
	vitals.GlucoseMgDL: {Min: 10, Max: 2000}, vitals.TemperatureC: {Min: 28, Max: 50},
}

// judge reports whether a number is critical in each unit that it may have.
func judge(p *vitals.Parameter, value float64, unit role) (isDanger, isImplausible bool) {
	if values := meanings(p, value, unit, p.Range); len(values) > 0 {
		return areBeyond(p, values), false
	}
	return areBeyond(p, meanings(p, value, unit, conceivable[p])), true
}

// meanings returns what a number may mean in the unit of the parameter, within a range of it.
func meanings(p *vitals.Parameter, value float64, unit role, within vitals.Range) (values []float64) {
	if within.Contains(value) && !slices.ContainsFunc(p.Units, func(other vitals.Unit) bool { return other.Field == string(unit) }) {
		values = append(values, value)
	}
	for _, other := range p.Units {
		if converted := other.Convert(value); (string(unit) == other.Field || units[unit] == "") && within.Contains(converted) {
			values = append(values, converted)
		}
	}
	return values
}

func areBeyond(p *vitals.Parameter, values []float64) bool {
	return len(values) > 0 && !slices.ContainsFunc(values, func(v float64) bool { return !isBeyond(p, v) })
}

// judgePressure judges two numbers that may be a pressure. A date, 11/30, is not: its second number is below any diastolic or above the first.
// Numbers that no cuff shows, or in the wrong order, count beside the name of a pressure, and above the highest without it.
func judgePressure(upper, lower float64, isNamed bool) (isDanger, isImplausible bool) {
	isImplausible = lower >= upper || !vitals.Systolic.Range.Contains(upper) || !vitals.Diastolic.Range.Contains(lower)
	if isImplausible && !isNamed && (upper <= vitals.Systolic.Range.Max || lower >= upper) {
		return false, false
	}
	upper, lower = max(upper, lower), min(upper, lower)
	isPressure := conceivable[vitals.Systolic].Contains(upper) && conceivable[vitals.Diastolic].Contains(lower)
	return isPressure && (isBeyond(vitals.Systolic, upper) || isBeyond(vitals.Diastolic, lower)), isImplausible
}

// followsPressure reports whether one of the three words before the number at i names a pressure.
func followsPressure(list []item, i int) bool {
	for j := i - 1; j >= 0 && j >= i-4 && !list[j].isNumber; j-- {
		if r := vocabulary[list[j].text]; r == role(vitals.BloodPressure) || r == systolic {
			return true
		}
	}
	return false
}

// answered are the parameters of which a bare number may be the answer to a request.
var answered = map[vitals.Kind][]*vitals.Parameter{
	vitals.BloodPressure: {vitals.Systolic, vitals.Diastolic, vitals.Pulse}, vitals.PulseOximetry: {vitals.SpO2, vitals.Pulse},
	vitals.BloodGlucose: {vitals.GlucoseMgDL}, vitals.BodyTemperature: {vitals.TemperatureC},
}

// isDangerousAnswer reports whether bare numbers, which are no certain answer to a request, are critical in each way to read them.
func isDangerousAnswer(list []item, kinds []vitals.Kind) bool {
	numbers, named, ok := collect(list)
	if !ok || len(named) > 0 || len(numbers) > 2 {
		return false
	}
	if len(numbers) == 2 {
		isDanger, _ := judgePressure(numbers[0].value, numbers[1].value, false)
		return isDanger && slices.Contains(kinds, vitals.BloodPressure)
	}
	found := false
	for _, kind := range kinds {
		if answered[kind] == nil { // a single weight is never critical
			return false
		}
		for _, p := range answered[kind] {
			values := meanings(p, numbers[0].value, numbers[0].unit, p.Range)
			if len(values) > 0 && !areBeyond(p, values) {
				return false
			}
			found = found || len(values) > 0
		}
	}
	return found
}

// meters are the words before what a glucose meter shows in place of a value beyond its range.
var meters = setOf("sugar sugars glucose glucosa azucar bg gluc meter glucometer glucometro medidor")

// isBeyondMeter reports whether a meter shows LO or HI: in capitals or at the end of the sentence, because "hi" is a greeting and Spanish has a
// "lo". Alone it answers a request for glucose.
func isBeyondMeter(sentences []sentence, asked Requested) bool {
	isGlucose := len(asked.Kinds) == 1 && asked.Kinds[0] == vitals.BloodGlucose
	for _, s := range sentences {
		isNamed := isGlucose && len(sentences) == 1 && len(s) == 1
		for i, w := range s {
			isShown := (w.text == "lo" || w.text == "hi") && (w.inCapitals || i == len(s)-1 && (len(s) > 1 || w.text == "lo"))
			if isNamed && (isShown || w.text == "low" || w.text == "high") || isShown && slices.ContainsFunc(s[:i], func(w word) bool { return meters[w.text] }) {
				return true
			}
		}
	}
	return false
}

func isBeyond(p *vitals.Parameter, value float64) bool {
	side, _ := p.Defaults.Breached(value)
	return side.IsCritical()
}
