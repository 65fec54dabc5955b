package messaging

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

const (
	monthNames = `(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?` +
		`|ene(?:ro)?|febrero|marzo|abr(?:il)?|mayo|junio|julio|ago(?:sto)?|septiembre|setiembre|octubre|noviembre|dic(?:iembre)?)`
	weekdays = `(?:mon|tues|wednes|thurs|fri|satur|sun)day|mon|tues?|wed|thu(?:rs?)?|fri|lunes|martes|miercoles|jueves|viernes|sabado|domingo`
	monthDay = `(?:3[01]|[12]\d|[1-9])`
	hour     = `(?:1[0-2]|[1-9])`
)

// numberWords are the numbers in both languages. "Once" is missing, because it is more often English than eleven; "un" and "una" are articles.
var numberWords = func() map[string]int {
	values := map[string]int{"hundred": 100, "cien": 100, "ciento": 100, "cientos": 100, "doscientos": 200, "trescientos": 300}
	for n, text := range []string{
		"zero cero", "one uno", "two dos", "three tres", "four cuatro", "five cinco", "six seis", "seven siete", "eight ocho", "nine nueve", "ten diez", "eleven",
		"twelve doce", "thirteen trece", "fourteen catorce", "fifteen quince", "sixteen dieciseis", "seventeen diecisiete", "eighteen dieciocho", "nineteen diecinueve",
	} {
		for _, word := range strings.Fields(text) {
			values[word] = n
		}
	}
	for i, text := range []string{
		"twenty twenties veinte", "thirty thirties treinta", "forty forties cuarenta", "fifty fifties cincuenta", "sixty sixties sesenta", "seventy seventies setenta",
		"eighty eighties ochenta", "ninety nineties noventa",
	} {
		for _, word := range strings.Fields(text) {
			values[word] = 10 * (i + 2)
		}
	}
	for i, word := range strings.Fields("veintiuno veintidos veintitres veinticuatro veinticinco veintiseis veintisiete veintiocho veintinueve") {
		values[word] = 21 + i
	}
	return values
}()

// The expressions match folded text: lower case, without accents.
var (
	wordRuns = regexp.MustCompile(`[a-z]+`)
	tensOnes = regexp.MustCompile(`\b([2-9])0(?:-| y | )([1-9])\b`)

	// allowedNumbers are phone numbers of the North American plan, times of day, days without a year, durations, and 911.
	allowedNumbers = regexp.MustCompile(`(?:\+?1[-. ])?(?:\([2-9]\d\d\) ?|\b[2-9]\d\d[-. ])[2-9]\d\d[-. ]\d{4}\b` +
		`|\b(?:[01]?\d|2[0-3]):[0-5]\d(?: ?[ap]\.?m\b\.?)?|\b` + hour + ` ?[ap]\.?m\b\.?|\b(?:at|a las?|las) ` + hour + `(?:$|[.,!?;]?(?:\s|$))` +
		`|\b` + monthNames + `\.? ` + monthDay + `(?:st|nd|rd|th)?\b(?:, ?(?:19|20)\d\d)?|\b` + monthDay + ` (?:de )?` + monthNames + `\b` +
		`|\b(?:the|(?:` + weekdays + `),?) (?:the )?` + monthDay + `(?:st|nd|rd|th)\b|\b(?:` + weekdays + `),? ` + monthDay + `\b` +
		`|\b(?:[1-9]\d? ?(?:-|a|to|o|or|y|and) ?)?(?:[1-9]\d? ?-?(?:min(?:ute|uto)?s?|h(?:ou)?rs?|horas?|days?|dias?|weeks?|semanas?)|[1-9] (?:times|veces))\b|\b911\b`)
	year       = regexp.MustCompile(`\b(?:19|20)\d\d\b`)
	digitByOne = regexp.MustCompile(`\d[\s.,;/-]+\d|\d (?:point|punto|coma|o|oh|over|sobre|con|entre) \d`)
	loneDigit  = regexp.MustCompile(`(?:^|[^\pL\d.,/%-])[1-9](?:[.,!?;:)]*(?:\s|$))`)
	dose       = regexp.MustCompile(`\d ?(?:mg|mcg|ug|ml|g|kg|lbs?|libras|pounds|units?|unidades|tablets?|tabletas?|pills?|pastillas?|puffs?|drops|gotas|%|percent|por ciento|mmol|mmhg|bpm)\b` +
		`|\d ?%|\b(?:half|media|medio|double|doble)\b[^.!?]{0,12}\b(?:tablet|tableta|pill|pastilla|dose|dosis)\b`)
)

// inFigures writes the numbers in words as figures, so that one set of rules holds for both: "ochenta y cinco" is 85.
func inFigures(folded string) string {
	folded = wordRuns.ReplaceAllStringFunc(folded, func(word string) string {
		if n, ok := numberWords[word]; ok {
			return strconv.Itoa(n)
		}
		return word
	})
	return tensOnes.ReplaceAllString(folded, "$1$2")
}

// hasPrivateNumber reports a number that is no time, day, duration, phone number or single digit, in figures or in words.
func hasPrivateNumber(folded string) bool {
	rest := inFigures(folded)
	if dose.MatchString(rest) || year.MatchString(allowedNumbers.ReplaceAllStringFunc(rest, withoutPhone)) {
		return true
	}
	rest = allowedNumbers.ReplaceAllString(rest, " ")
	if digitByOne.MatchString(rest) {
		return true
	}
	for before := ""; before != rest; {
		before, rest = rest, loneDigit.ReplaceAllString(rest, " ")
	}
	return strings.ContainsFunc(rest, unicode.IsDigit)
}

// withoutPhone keeps what [allowedNumbers] found, unless it is a phone number: its last digits are no year.
func withoutPhone(found string) string {
	if strings.Count(found, "") > len("555-555-555") && !strings.ContainsFunc(found, unicode.IsLetter) {
		return " "
	}
	return found
}
