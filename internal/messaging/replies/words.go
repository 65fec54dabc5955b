package replies

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/vigilhealth/vigil/internal/phi"
)

// maxLength bounds the bytes that are read: a text has up to 1,600 characters.
const maxLength = 8000

// fold returns the text without accents, apostrophes and invisible characters. Case and line breaks stay.
func fold(text string) string {
	text = text[:min(len(text), maxLength)]
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		lines[i] = strings.Map(func(r rune) rune {
			if r == '\'' || unicode.In(r, unicode.Mn, unicode.Me) {
				return -1
			}
			return r
		}, norm.NFD.String(phi.Normalize(line)))
	}
	return strings.Join(lines, "\n")
}

// word is one word of a sentence.
type word struct {
	text string
	// opens: the word is the first of a line or of the part after a comma.
	opens, afterComma bool
	// inCapitals: it has letters, and all are capitals.
	inCapitals bool
}

// sentence is a part of a text between marks that end a sentence.
type sentence []word

// split returns the sentences of a folded text. A point between digits ends none.
func split(folded string) (list []sentence) {
	var current sentence
	opens, afterComma := true, false
	runes := []rune(folded)
	for i := 0; i < len(runes); {
		r := runes[i]
		if isLetterOrDigit(r) {
			j := i
			for j < len(runes) && isLetterOrDigit(runes[j]) {
				j++
			}
			typed := string(runes[i:j])
			lower := strings.ToLower(typed)
			current = append(current, word{withoutRuns(lower), opens, afterComma, typed != lower && typed == strings.ToUpper(typed)})
			opens, afterComma, i = false, false, j
			continue
		}
		isPoint := strings.ContainsRune(".!?;¡¿…", r) && (r != '.' || i == 0 || i+1 >= len(runes) || !unicode.IsDigit(runes[i-1]) || !unicode.IsDigit(runes[i+1]))
		switch {
		case isPoint && len(current) > 0:
			list, current, opens = append(list, joined(current)), nil, true
		case r == '\n':
			opens = true
		case r == ',' || r == ':' || r == '(' || r == ')':
			afterComma = len(current) > 0
		}
		i++
	}
	if len(current) > 0 {
		list = append(list, joined(current))
	}
	return list
}

func isLetterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// withoutRuns shortens a letter that is repeated three times or more to one: heeelp.
func withoutRuns(text string) string {
	var out []rune
	runes := []rune(text)
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && runes[j] == runes[i] {
			j++
		}
		n := j - i
		if n > 2 && unicode.IsLetter(runes[i]) {
			n = 1
		}
		out = append(out, runes[i:i+n]...)
		i = j
	}
	return string(out)
}

// negated are the forms of verbs with "not"; the texts "can not", "cannot" and "can't" are one word.
var negated = map[string]string{
	"can": "cant", "will": "wont", "do": "dont", "does": "doesnt", "did": "didnt", "is": "isnt", "was": "wasnt", "are": "arent", "could": "couldnt",
	"would": "wouldnt", "has": "hasnt", "have": "havent",
}

// joined joins letters that are written apart (S T O P), and a verb with its "not".
func joined(s sentence) (out sentence) {
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && isSingleLetter(s[j].text) {
			j++
		}
		w := s[i]
		switch {
		case j-i >= 3:
			w.text = ""
			for _, letter := range s[i:j] {
				w.text += letter.text
			}
			i = j
		case w.text == "cannot":
			w.text, i = "cant", i+1
		case w.text == "nopuedo":
			out = append(out, word{text: "no", opens: w.opens, afterComma: w.afterComma})
			w, i = word{text: "puedo"}, i+1
		case i+1 < len(s) && s[i+1].text == "not" && negated[w.text] != "":
			w.text, i = negated[w.text], i+2
		case i+1 < len(s) && s[i+1].text == "t" && strings.HasSuffix(w.text, "n"): // can t
			w.text, i = w.text+"t", i+2
		default:
			i++
		}
		out = append(out, w)
	}
	return out
}

func isSingleLetter(text string) bool {
	runes := []rune(text)
	return len(runes) == 1 && unicode.IsLetter(runes[0])
}

// spanish are words that no English text has.
var spanish = setOf("puedo alto parar pare paren mensajes mensaje por favor ayuda dolor pecho hola gracias que mi el los las una en es estoy tengo duele",
	"respirar emergencia suicidio quiero presion azucar peso oxigeno numero equivocado iniciar comenzar informacion ambulancia desmaye desmayo morir",
	"derrame infarto ataque corazon aire ahogo ahogando asfixia asfixiando convulsion convulsiones muero muriendo inconsciente sangre sangrando sangra vomito hemorragia",
	"sobredosis pastillas ayudame ayudeme ayudenme necesito auxilio socorro despierta reacciona responde siento cai cayo golpee cabeza lengua garganta hinchada hinchados",
	"labios azules alergica anafilaxia suicidarme suicidarse matarme vivir vida cancelar detener basta baja revoco quiten borren borrar eliminar terminar mas respira puede")

// IsSpanish reports whether a text is more likely Spanish than English.
func IsSpanish(text string) bool {
	for _, s := range split(fold(text)) {
		for _, w := range s {
			if spanish[w.text] {
				return true
			}
		}
	}
	return false
}

// set is a set of words.
type set map[string]bool

func setOf(lists ...string) set {
	s := set{}
	for _, list := range lists {
		for _, w := range strings.Fields(list) {
			s[w] = true
		}
	}
	return s
}

// resembles reports whether typed is the word, or the word with one typing error: a letter left out, added, replaced or exchanged with its
// neighbor. Words of fewer than five letters, and the first letter, have no errors.
func resembles(typed, correct string) bool {
	if typed == correct {
		return true
	}
	if typed == "" || correct == "" || typed[0] != correct[0] {
		return false
	}
	a, b := []rune(typed), []rune(correct)
	if len(b) < 5 || a[0] != b[0] || len(a)-len(b) > 1 || len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	restA, restB := a[i:], b[i:]
	switch {
	case len(a) > len(b):
		return slices.Equal(restA[1:], restB)
	case len(a) < len(b):
		return slices.Equal(restA, restB[1:])
	case len(restA) > 1 && restA[0] == restB[1] && restA[1] == restB[0] && slices.Equal(restA[2:], restB[2:]):
		return true
	}
	return slices.Equal(restA[1:], restB[1:])
}
