package validate

import (
	"strings"
	"unicode"
)

// Invisible characters must not change what a person reads or make two names that look the same. Source: docs/decisions/conventions.md, "String
// normalization"; Unicode Technical Report 36, Unicode Standard Annexes 9 and 31.

const (
	nonJoiner    = '\u200c'
	joiner       = '\u200d'
	blankBraille = '\u2800' // prints as a blank
)

// hasControl reports control characters. Multiline text may contain newlines and tabs.
func hasControl(text string, multiline bool) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && (!multiline || r != '\n' && r != '\t')
	})
}

// isHidden reports characters without a visible glyph: those that change text direction and those that are ignored. Joiners are checked by
// hasMisplacedJoiner and variation selectors by hasNonIdentifierRune, because scripts need both.
func isHidden(r rune) bool {
	switch {
	case r < 0xad || r == joiner || r == nonJoiner || unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case r == blankBraille:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// hasHidden reports characters that a name or another single-line text must not contain.
func hasHidden(text string) bool {
	return !isASCII(text) && (strings.ContainsFunc(text, isHidden) || hasMisplacedJoiner(text))
}

// hasMisplacedJoiner reports a joiner or non-joiner that is not between two letters of a script that uses joiners.
func hasMisplacedJoiner(text string) bool {
	if !strings.ContainsAny(text, string([]rune{joiner, nonJoiner})) {
		return false
	}
	letters := []rune(text)
	for i, r := range letters {
		if (r == joiner || r == nonJoiner) && (i == 0 || i == len(letters)-1 || !isJoining(letters[i-1]) || !isJoining(letters[i+1])) {
			return true
		}
	}
	return false
}

// isJoining reports whether the letter's script uses joiners.
func isJoining(r rune) bool {
	return unicode.In(r, unicode.Letter, unicode.Mark) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common, unicode.Inherited, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

// hasNonIdentifierRune reports characters that an identifier must not contain. People compare identifiers by eye and programs by bytes, so only
// visible characters and the plain space are allowed.
func hasNonIdentifierRune(text string) bool {
	return !isASCII(text) && strings.ContainsFunc(text, func(r rune) bool {
		return isHidden(r) || r != ' ' && !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Cf)
	})
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}

// Clean removes hidden characters where rejecting the text would lose too much: names from the EMR and free text. Line and paragraph separators
// become newlines.
func Clean(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case isHidden(r):
			return -1
		}
		return r
	}, text)
}

// CleanLine is Clean for a name: it also removes control characters and misplaced joiners.
func CleanLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, Clean(text))
	if hasMisplacedJoiner(text) {
		text = strings.NewReplacer(string(joiner), "", string(nonJoiner), "").Replace(text)
	}
	return strings.TrimSpace(text)
}
