package replies

import (
	"encoding/json/jsontext"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// role is what a word states about the numbers beside it.
type role string

// The roles of words; the others are kinds.
const (
	filler    role = "filler"
	systolic  role = "systolic"
	diastolic role = "diastolic"
	pulse     role = "pulse"
	over      role = "/"
	fasting   role = "fasting"
)

// vocabulary lists the words that may accompany a reading. Any other word leaves the text to a
// person: it may be about someone else or another day, or be a question.
var vocabulary = roles(map[role]string{
	filler: `my mine is it its the a are was reading readings measurement today this morning afternoon evening tonight now just got took here im i am hi hello hey ok okay
		thanks thank you please good fine feeling feel well great and with of for on rate level blood body arterial weigh weighs yes done sir doctor dr
		mi es el la las los de en con y hoy esta manana tarde noche ahora buenos buenas dias tardes gracias hola por favor si aqui lectura medida medicion
		me siento bien muy tengo doctora tome no chest pain dolor pecho sin level nivel registro`,
	role(vitals.BloodPressure):   "bp pressure presion tension pa ta mmhg",
	systolic:                     "sys systolic sistolica upper top",
	diastolic:                    "dia diastolic diastolica lower bottom",
	pulse:                        "pulse pulso hr heart p bpm lpm beats ppm",
	over:                         "over sobre",
	role(vitals.Weight):          "weight wt peso peza scale",
	role(vitals.BloodGlucose):    "sugar glucose glucosa azucar bg gluc",
	role(vitals.BodyTemperature): "temp temperature temperatura fever fiebre calentura",
	role(vitals.PulseOximetry):   "oxygen oxigeno spo2 o2 sat sats saturation saturacion ox oximeter",
	fasting:                      "fasting ayunas ayuno",
	"weight_lbs":                 "lb lbs pound pounds libra libras",
	"weight_kg":                  "kg kgs kilo kilos kilogramos kilograms",
	"glucose_mg_dl":              "mgdl",
	"glucose_mmol_l":             "mmol mmoll",
	"temperature_f":              "f fahrenheit",
	"temperature_c":              "c celsius centigrados",
})

// units are the kinds that a unit names.
var units = map[role]vitals.Kind{
	"weight_lbs": vitals.Weight, "weight_kg": vitals.Weight, "glucose_mg_dl": vitals.BloodGlucose, "glucose_mmol_l": vitals.BloodGlucose,
	"temperature_f": vitals.BodyTemperature, "temperature_c": vitals.BodyTemperature, "%": vitals.PulseOximetry,
}

// parameters are those that a word may name.
var parameters = map[role]*vitals.Parameter{
	pulse: vitals.Pulse, role(vitals.BloodGlucose): vitals.GlucoseMgDL, role(vitals.BodyTemperature): vitals.TemperatureC,
	role(vitals.PulseOximetry): vitals.SpO2, systolic: vitals.Systolic, diastolic: vitals.Diastolic,
}

func roles(lists map[role]string) map[string]role {
	all := map[string]role{}
	for r, words := range lists {
		for _, w := range strings.Fields(words) {
			all[w] = r
		}
	}
	return all
}

// item is a number, a word or a sign of a text.
type item struct {
	text     string
	isNumber bool
	value    float64
}

// scan returns the numbers, words and separators of a folded text. isPlain is false if the text has
// a sign or a number that no reading has: a question mark, a time, a telephone number, a signed
// number.
func scan(folded string) (list []item, isPlain bool) {
	isPlain = true
	folded = strings.NewReplacer("mg/dl", "mgdl", "mmol/l", "mmoll", "deg ", " ", "degrees", " ", "grados", " ").Replace(folded)
	runes := []rune(folded)
	for i := 0; i < len(runes); {
		j := i
		switch r := runes[i]; {
		case isDigit(r):
			for j < len(runes) && (isDigit(runes[j]) || isPointOfNumber(runes, j)) {
				j++
			}
			n, ok := number(string(runes[i:j]))
			isPlain = isPlain && ok && (j+1 >= len(runes) || runes[j] != ':' || !isDigit(runes[j+1]))
			list = append(list, item{string(runes[i:j]), true, n})
		case unicode.IsLetter(r):
			for j < len(runes) && unicode.IsLetter(runes[j]) {
				j++
			}
			w := string(runes[i:j])
			if (w == "o" || w == "spo") && j < len(runes) && runes[j] == '2' && (j+1 == len(runes) || !isDigit(runes[j+1])) {
				w, j = w+"2", j+1
			}
			list = append(list, item{text: withoutRuns(w)})
		default:
			j++
			if strings.ContainsRune("/\\|-%", r) {
				list = append(list, item{text: string(r)})
			} else if r == '?' || r == '¿' || r == '+' || r == '<' || r == '>' || r == '~' || r == '$' || r == '@' {
				isPlain = false
			}
		}
		i = j
	}
	return list, isPlain
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// isPointOfNumber reports whether the point or comma at i is between digits.
func isPointOfNumber(runes []rune, i int) bool {
	return (runes[i] == '.' || runes[i] == ',') && i > 0 && i+1 < len(runes) && isDigit(runes[i-1]) && isDigit(runes[i+1])
}

// number reads up to four digits with up to two decimals. Three digits after a comma may be thousands.
func number(text string) (float64, bool) {
	whole, decimals, _ := strings.Cut(strings.ReplaceAll(text, ",", "."), ".")
	if len(whole) > 4 || len(decimals) > 2 {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", "."), 64)
	return n, err == nil
}

// labeledNumber is one number with what its neighbors state about it.
type labeledNumber struct {
	value float64
	label role // the last label before it
	unit  role // directly after it
	// joint connects it with the number before: "/", "-", or "" for neither.
	joint string
}

// collect returns the numbers of a text with their labels and units; false if a word does not belong to a reading.
func collect(list []item) (numbers []labeledNumber, named set, ok bool) {
	named = set{}
	label, joint := role(""), ""
	for i, it := range list {
		previous := i > 0 && list[i-1].isNumber
		r := vocabulary[it.text]
		switch {
		case it.isNumber:
			numbers = append(numbers, labeledNumber{value: it.value, label: label, joint: joint})
			label, joint = "", ""
		case it.text == "/" || it.text == "\\" || it.text == "|" || r == over:
			if !previous || i+1 == len(list) || !list[i+1].isNumber {
				return nil, nil, false
			}
			joint = "/"
		case it.text == "-":
			if i+1 < len(list) && list[i+1].isNumber {
				if !previous {
					return nil, nil, false
				}
				joint = "-"
			}
		case it.text == "%" || units[r] != "" || r == pulse && (it.text == "bpm" || it.text == "lpm" || it.text == "ppm" || it.text == "beats"):
			if !previous {
				return nil, nil, false
			}
			numbers[len(numbers)-1].unit = r
			if it.text == "%" {
				numbers[len(numbers)-1].unit = "%"
			}
		case r == fasting:
			named[string(fasting)] = true
		case r == "":
			return nil, nil, false
		case r != filler:
			label = r
			named[string(r)] = true
		}
	}
	return numbers, named, len(numbers) > 0
}

// readingOf returns the reading in a text, or nil if it is not certain.
func readingOf(list []item, asked Requested) *Values {
	numbers, named, ok := collect(list)
	if !ok {
		return nil
	}
	var main, beats []labeledNumber
	for _, n := range numbers {
		if n.label == pulse || n.unit == pulse {
			beats = append(beats, n)
		} else {
			main = append(main, n)
		}
	}
	kinds := namedKinds(main, named)
	if len(beats) > 1 || len(kinds) > 1 || len(main) == 0 {
		return nil
	}
	if len(main) > 1 {
		return pressureOf(main, beats, kinds, asked)
	}
	return singleOf(main[0], beats, kinds, named[string(fasting)], asked)
}

// namedKinds returns the kinds that labels and units name.
func namedKinds(main []labeledNumber, named set) (kinds []vitals.Kind) {
	add := func(k vitals.Kind) {
		if k != "" && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	for _, k := range vitals.Kinds {
		if named[string(k)] {
			add(k)
		}
	}
	if named[string(systolic)] || named[string(diastolic)] {
		add(vitals.BloodPressure)
	}
	if named[string(fasting)] {
		add(vitals.BloodGlucose)
	}
	for _, n := range main {
		add(units[n.unit])
	}
	return kinds
}

// pressureOf returns a blood pressure of two numbers, or of three as a cuff shows them.
func pressureOf(main, beats []labeledNumber, kinds []vitals.Kind, asked Requested) *Values {
	isNamed := slices.Contains(kinds, vitals.BloodPressure)
	isOnlyAsked := len(asked.Kinds) == 1 && asked.Kinds[0] == vitals.BloodPressure
	if len(kinds) > 0 && !isNamed || len(main) > 3 || len(main) == 3 && len(beats) > 0 {
		return nil
	}
	upper, lower := main[0], main[1]
	switch {
	case upper.label == diastolic && lower.label == systolic:
		upper, lower = lower, upper
	case upper.label == diastolic || lower.label == systolic:
		return nil
	case lower.joint == "/":
		// Oxygen and pulse are written in the same way.
		if !isNamed && slices.Contains(asked.Kinds, vitals.PulseOximetry) && upper.value <= vitals.SpO2.Range.Max {
			return nil
		}
	case !isNamed && !isOnlyAsked:
		return nil
	}
	body := vitals.Body{member(vitals.Systolic.Column, upper.value), member(vitals.Diastolic.Column, lower.value)}
	if len(main) == 3 {
		if lower.joint == "-" || main[2].joint == "-" || main[2].joint == "/" && lower.joint != "/" {
			return nil
		}
		beats = main[2:]
	}
	return &Values{vitals.BloodPressure, withPulse(body, beats)}
}

// singleOf returns a reading of one number, of the named kind or of the only one that was requested.
func singleOf(n labeledNumber, beats []labeledNumber, kinds []vitals.Kind, isFasting bool, asked Requested) *Values {
	var kind vitals.Kind
	switch {
	case len(kinds) == 1:
		kind = kinds[0]
	case len(asked.Kinds) == 1:
		kind = asked.Kinds[0]
	}
	if n.unit == "%" && !slices.Contains(asked.Kinds, vitals.PulseOximetry) || kind != vitals.PulseOximetry && len(beats) > 0 {
		return nil
	}
	field := ""
	switch kind {
	case vitals.Weight:
		field = weightField(n, asked.LastWeightKg)
	case vitals.BloodGlucose:
		field = glucoseField(n)
	case vitals.BodyTemperature:
		field = temperatureField(n)
	case vitals.PulseOximetry:
		field = vitals.SpO2.Column
	}
	if field == "" {
		return nil
	}
	body := withPulse(vitals.Body{member(field, n.value)}, beats)
	if isFasting {
		body = append(body, validate.Member{Name: vitals.MealContext.Name, Raw: jsontext.Value(`"` + vitals.MealFasting + `"`)})
	}
	return &Values{kind, body}
}

// nearWeight is the largest difference from the last weight, as a part of it, at which a number without a unit is taken for a weight in a unit.
const nearWeight = 0.15

// weightField returns the field of a weight: without a unit, the one in which it is near the last weight and the other is not.
func weightField(n labeledNumber, lastKg float64) string {
	if n.unit != "" {
		return string(n.unit)
	}
	isNear := func(kg float64) bool { return lastKg > 0 && kg >= lastKg*(1-nearWeight) && kg <= lastKg*(1+nearWeight) }
	switch kilograms, pounds := isNear(n.value), isNear(vitals.KgFromPounds(n.value)); {
	case kilograms && !pounds:
		return "weight_kg"
	case pounds && !kilograms:
		return "weight_lbs"
	}
	return ""
}

// glucoseField returns the field of a glucose; without a unit, a number that may be mmol/L is not certain.
func glucoseField(n labeledNumber) string {
	mmol := vitals.GlucoseMgDL.Units[0]
	if n.unit == "" && n.value <= mmol.Range.Max+1 {
		return ""
	}
	if n.unit == role(mmol.Field) {
		return mmol.Field
	}
	return vitals.GlucoseMgDL.Column
}

// temperatureField returns the field of a temperature. The ranges of Celsius and Fahrenheit do not overlap.
func temperatureField(n labeledNumber) string {
	if n.unit != "" {
		return string(n.unit)
	}
	if vitals.TemperatureC.Range.Contains(n.value) {
		return vitals.TemperatureC.Column
	}
	return vitals.TemperatureC.Units[0].Field
}

func withPulse(body vitals.Body, beats []labeledNumber) vitals.Body {
	for _, n := range beats {
		body = append(body, member(vitals.Pulse.Column, n.value))
	}
	return body
}

func member(name string, value float64) validate.Member {
	return validate.Member{Name: name, Raw: jsontext.Value(vitals.FormatNumber(value))}
}
