package patients

import (
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// separator stands between the parts of a directory entry; fold never returns it.
const separator = '\x00'

// letters that are not decomposed by Unicode but that people type without their strokes, and the apostrophes and
// hyphens that keyboards do not have. Commas separate words, so that "Lovelace, Ada" finds her.
var letters = strings.NewReplacer("ø", "o", "ł", "l", "đ", "d", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe", "ħ", "h", "ŧ", "t", "ı", "i",
	"\u2018", "'", "\u2019", "'", "\u02bc", "'", "\u2010", "-", "\u2013", "-", ",", " ")

// fold is text without case, accents and control characters: what equal names have in common.
// Source: docs/decisions/conventions.md, "Encrypted columns and searching".
func fold(text string) string {
	if !isASCII(text) {
		text = norm.NFKD.String(text)
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, text)
		text = cases.Fold().String(text)
	}
	text = letters.Replace(strings.ToLower(text))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// words are the folded words of a search, the longest first, because it is the rarest.
func words(search string) [][]byte {
	var list [][]byte
	for word := range strings.FieldsSeq(fold(search)) {
		list = append(list, []byte(word))
		if last := len(list) - 1; len(list[last]) > len(list[0]) {
			list[0], list[last] = list[last], list[0]
		}
	}
	return list
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
