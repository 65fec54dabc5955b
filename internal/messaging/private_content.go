package messaging

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/vigilhealth/vigil/internal/phi"
)

// Kinds of private content that a text to a patient must not have: others may read it on the phone.
const (
	PrivateNumber     = "number" // may be a value, a dose, an identifier or a date
	PrivateDiagnosis  = "diagnosis"
	PrivateMedicine   = "medicine"
	PrivateResult     = "result" // how a reading turned out, in words
	PrivateName       = "name"
	PrivateIdentifier = "identifier"
	PrivateLink       = "link"
)

// privateHints describe each kind for the error, in this order.
var privateHints = []struct{ kind, hint string }{
	{PrivateNumber, "a number that is no time, day or duration"},
	{PrivateIdentifier, "an address"},
	{PrivateDiagnosis, "a diagnosis"},
	{PrivateMedicine, "a medicine"},
	{PrivateResult, "how a reading turned out"},
	{PrivateName, "a name"},
	{PrivateLink, "a link"},
}

// PrivateHint returns the sentence that refuses a text, without quoting it.
func PrivateHint(kinds []string) string {
	var found []string
	for _, h := range privateHints {
		for _, kind := range kinds {
			if kind == h.kind {
				found = append(found, h.hint)
			}
		}
	}
	return "A message can be read by others. Leave this out: " + strings.Join(found, "; ") + "."
}

// PrivateContent returns the kinds of private content in a text that staff wrote, in English or Spanish; nil for none. known are the patient, and
// staff; their names are refused too. It prefers to refuse: "please call us" is always possible.
// Source: 45 CFR 164.502(b) and 164.530(c); docs/decisions/messages.md, "Content of a text".
func PrivateContent(text, practice string, known ...phi.KnownPatient) (kinds []string) {
	text = phi.Normalize(text)
	folded := phi.Fold(text)
	without := strings.ReplaceAll(folded, phi.Fold(phi.Normalize(practice)), " ")
	found := map[string]bool{
		PrivateNumber:     hasPrivateNumber(without),
		PrivateDiagnosis:  diagnoses.MatchString(without) || diagnosisCode.MatchString(text),
		PrivateMedicine:   medicines.MatchString(without),
		PrivateResult:     results.MatchString(without),
		PrivateLink:       links.MatchString(without),
		PrivateName:       hasName(text, practice),
		PrivateIdentifier: strings.Contains(without, "@"),
	}
	const nothing = "-"
	if clean := phi.Sanitize(text, nothing, known...); phi.Sanitize(text, nothing) != clean {
		found[PrivateName] = true
	}
	for _, h := range privateHints {
		if found[h.kind] {
			kinds = append(kinds, h.kind)
		}
	}
	return kinds
}

// The expressions match folded text: lower case, without accents.
const (
	monthNames = `jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?` +
		`|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|setiembre|octubre|noviembre|diciembre`
	measures = `pressure|presion|tension|bp|sugar|azucar|glucose|glucosa|oxygen|oxigeno|saturation|saturacion|spo2|weight|peso|pulse|pulso|heart ?rate|ritmo|` + //nolint:misspell // Spanish
		`frecuencia|temperature|temperatura|fever|fiebre|readings?|lecturas?|levels?|niveles|values?|valor(?:es)?|numbers?|numeros?|results?|resultados?|labs?`
	verdicts = `high(?:er)?|low(?:er)?|elevated|abnormal|critical|dangerous|irregular|rising|falling|bad|worse|worsening|raised|normal|fine|good|` +
		`alt[oa]s?|baj[oa]s?|elevad[oa]s?|anormal(?:es)?|critic[oa]s?|peligros[oa]s?|irregular(?:es)?|mal[oa]?s?|peor(?:es)?|normales|buen[oa]s?|subio|bajo`
)

var (
	// allowedNumbers are times of day, days without a year, durations, counts of a single digit, and 911.
	allowedNumbers = regexp.MustCompile(`\b(?:[01]?\d|2[0-3]):[0-5]\d(?: ?[ap]\.?m\b\.?)?|\b(?:1[0-2]|[1-9]) ?[ap]\.?m\b\.?` +
		`|\b(?:` + monthNames + `)\.? (?:3[01]|[12]\d|[1-9])(?:st|nd|rd|th)?\b(?:, ?(?:19|20)\d\d)?|\b(?:3[01]|[12]\d|[1-9]) (?:de )?(?:` + monthNames + `)\b` +
		`|\b(?:5|10|15|20|30|45|60|90|[1-9]) ?(?:-| a | to )?(?:min(?:ute|uto)?s?|h(?:ou)?rs?|horas?|days?|dias?|weeks?|semanas?|times|veces)\b|\b911\b`)
	year       = regexp.MustCompile(`\b(?:19|20)\d\d\b`)
	loneDigit  = regexp.MustCompile(`(?:^|[^\d.,/%-])[1-9](?:[.,!?;:)]?(?:\s|$))`)
	dose       = regexp.MustCompile(`\d ?(?:mg|mcg|ug|ml|g|kg|lbs?|libras|pounds|units?|unidades|tablets?|tabletas?|pills?|pastillas?|puffs?|%|percent|por ciento|mmol|mmhg|bpm)\b|\d ?%`)
	spelledOut = regexp.MustCompile(`\b(?:hundred|ciento|cien|doscientos|trescientos|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)[ -]?\w* (?:over|percent)|(?:over|sobre) (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa))\b`)
	links      = regexp.MustCompile(`https?:|www\.|\b[a-z0-9-]+\.(?:com|org|net|edu|gov|health|us|me|io|ly|co)\b`)
	results    = regexp.MustCompile(`\b(?:` + measures + `)\b[^.!?]{0,40}\b(?:` + verdicts + `)\b|\b(?:` + verdicts + `)\b[^.!?]{0,15}\b(?:` + measures + `)\b`)

	diagnosisCode = regexp.MustCompile(`\b[A-TV-Z]\d[0-9AB](?:\.[0-9A-Z]{1,4})?\b`)
	diagnoses     = regexp.MustCompile(`\b(?:diagnos\w*|hyperten\w*|hiperten\w*|hypoten\w*|hipoten\w*|diabet\w*|prediabet\w*|pre-diabet\w*|heart (?:failure|disease|attack)|` +
		`insuficiencia|infarto|chf|hf|copd|epoc|asthma\w*|asma\w*|cancer\w*|tumou?r\w*|hiv|vih|aids|sida|depress\w*|depresi\w*|anxiety|ansiedad|bipolar|schizo\w*|esquizo\w*|` +
		`kidney|renal\w*|rinon\w*|dialysis|dialisis|ckd|stroke|derrame|ictus|pregnan\w*|embaraz\w*|preeclamp\w*|afib|atrial|auricular|arrhythm\w*|arritmi\w*|` +
		`hepat\w*|cirrho\w*|cirro\w*|dementia|demencia|alzheimer\w*|parkinson\w*|epilep\w*|obes\w*|cholesterol|colesterol|apnea|pneumonia|neumonia|covid\w*|` +
		`addict\w*|adiccion\w*|alcoholi\w*|overdose|sobredosis|suicid\w*|angina|anemi\w*|thyroid\w*|tiroid\w*|seizures?|convulsion\w*|sepsis|infect\w*|infecci\w*|` +
		`carcinom\w*|lymphom\w*|linfom\w*|melanom\w*|glaucom\w*|\w*(?:glyc|gluc|leuk|leuc|lipid|natr|kal|ur|isch|isqu)emi[ac]\w*|` +
		`\w{3,}(?:itis|osis|pathy|patia|algia|ectomy|ectomia))\b`)
	medicines = regexp.MustCompile(`\b(?:\w{2,}(?:pril|sartan|olol|statin|statina|dipine|dipino|formin|formina|gliptin|gliptina|gliflozin|gliflozina|glutide|glutida|` +
		`thiazide|tiazida|semide|semida|parin|parina|xaban|oxetine|oxetina|azepam|zolam|azole|azol|mycin|micina|cillin|cilina|prazole|prazol|tidine|lactone|lactona|afil|afilo|caine|caina)|` +
		`insulin\w*|warfarin\w*|coumadin|aspirin\w*|digoxin\w*|lasix|eliquis|xarelto|ozempic|wegovy|mounjaro|jardiance|farxiga|entresto|lipitor|norvasc|zoloft|prozac|xanax|` +
		`amiodaron\w*|hydralazin\w*|hidralazin\w*|clonidin\w*|metolazon\w*|prednison\w*|gabapentin\w*|levothyrox\w*|levotirox\w*|albuterol|salbutamol|tylenol|acetaminophen|` +
		`paracetamol|ibuprofen\w*|naproxen\w*|opioid\w*|morphin\w*|morfina|oxycodon\w*|methadon\w*|metadona|suboxone|sertralin\w*|citalopram|escitalopram|clopidogrel|plavix)\b`)
)

// hasPrivateNumber reports a number that is no time, day, duration or single digit, in figures or in words.
func hasPrivateNumber(folded string) bool {
	if dose.MatchString(folded) || spelledOut.MatchString(folded) || year.MatchString(folded) {
		return true
	}
	rest := allowedNumbers.ReplaceAllString(folded, " ")
	for before := ""; before != rest; {
		before, rest = rest, loneDigit.ReplaceAllString(rest, " ")
	}
	return strings.ContainsFunc(rest, unicode.IsDigit)
}

var (
	titled = regexp.MustCompile(`(?i)\b(?:dr|dra|doctor|doctora|mr|mrs|ms|miss|sr|sra|srta|señor|señora|don|doña|nurse|enfermera|enfermero)\.? (?:\p{Lu}[\p{L}'-]+)`)
	words  = regexp.MustCompile(`[\p{L}][\p{L}'-]*`)
)

// hasName reports a word with a capital letter inside a sentence that is no name of a day, month or holiday, and a word after a title. Words in
// capitals, such as STOP, and the first of a sentence are no evidence.
func hasName(text, practice string) bool {
	text = strings.ReplaceAll(text, phi.Normalize(practice), " ")
	if m := titled.FindString(text); m != "" && unicode.IsUpper([]rune(m[strings.LastIndex(m, " ")+1:])[0]) {
		return true
	}
	for _, at := range words.FindAllStringIndex(text, -1) {
		word := []rune(text[at[0]:at[1]])
		before := strings.TrimRight(text[:at[0]], " \"'(¿¡")
		starts := before == "" || strings.ContainsAny(before[len(before)-1:], ".!?:")
		if starts || !unicode.IsUpper(word[0]) || len(word) == 1 || strings.ToUpper(string(word)) == string(word) {
			continue
		}
		if !commonCapitals[phi.Fold(string(word))] {
			return true
		}
	}
	return false
}

// commonCapitals are words that English writes with a capital letter.
var commonCapitals = func() map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(`monday tuesday wednesday thursday friday saturday sunday lunes martes miercoles jueves viernes sabado domingo
		january february march april may june july august september october november december
		enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
		english spanish ingles espanol thanksgiving christmas easter navidad medicare medicaid bluetooth wi-fi wifi internet i'm i'll i'd i've`) {
		set[word] = true
	}
	return set
}()
