package validate

import (
	"strings"
	"unicode"
)

// What nobody sees must not change what a person reads, nor make two names out of one that looks the same.
// Source: docs/decisions/conventions.md, "String normalization"; Unicode Technical Report 36, Unicode Standard Annexes 9 and 31.

const (
	nonJoiner    = '\u200c'
	joiner       = '\u200d'
	blankBraille = '\u2800' // a letter without a dot
)

// hasControl finds control characters; free text may hold newlines and tabs.
func hasControl(text string, multiline bool) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && (!multiline || r != '\n' && r != '\t')
	})
}

// hidden are characters without a shape of their own: they turn the direction of what stands beside them, or are not there at all.
// The two joiners are left to misjoined, variation selectors to identifiers: scripts need both.
func hidden(r rune) bool {
	switch {
	case r < 0xad || r == joiner || r == nonJoiner || unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case r == blankBraille:
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point)
}

// hasHidden finds what may not stand in a name or another line of text.
func hasHidden(text string) bool {
	return !isASCII(text) && (strings.ContainsFunc(text, hidden) || misjoined(text))
}

// misjoined reports whether a joiner or non-joiner stands where no script has one: anywhere but between two letters of a script that
// joins them.
func misjoined(text string) bool {
	if !strings.ContainsAny(text, string([]rune{joiner, nonJoiner})) {
		return false
	}
	letters := []rune(text)
	for i, r := range letters {
		if (r == joiner || r == nonJoiner) && (i == 0 || i == len(letters)-1 || !joins(letters[i-1]) || !joins(letters[i+1])) {
			return true
		}
	}
	return false
}

// joins reports whether letters like this one are joined to others.
func joins(r rune) bool {
	return unicode.In(r, unicode.Letter, unicode.Mark) &&
		!unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Common, unicode.Inherited, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

// unfit finds what may not stand in an identifier, which people compare by eye and programs byte by byte: all but what has a shape of
// its own, and the plain space.
func unfit(text string) bool {
	return !isASCII(text) && strings.ContainsFunc(text, func(r rune) bool {
		return hidden(r) || r != ' ' && !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Cf)
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

// Clean takes out of a text what a line of text may not hold, where refusing would lose more than a character: names of the EMR, and what
// people write at length. Line and paragraph separators become newlines.
func Clean(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case hidden(r):
			return -1
		}
		return r
	}, text)
}

// CleanLine is Clean for a name: it holds no joiners where none belong and no control characters either.
func CleanLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, Clean(text))
	if misjoined(text) {
		text = strings.NewReplacer(string(joiner), "", string(nonJoiner), "").Replace(text)
	}
	return strings.TrimSpace(text)
}
