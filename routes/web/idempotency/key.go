package idempotency

import (
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Header is the request header that carries a key.
const Header = "Idempotency-Key"

// maxKeyLength bounds a key, in characters.
const maxKeyLength = 255

// ParseKey parses the header: one key of 1 to 255 printable ASCII characters. The key is a quoted string of RFC 9651, as the draft requires, or a
// bare one, as most callers send it; both forms are the same key.
// Source: draft-ietf-httpapi-idempotency-key-header-07, section 2.1; RFC 9651, section 3.3.3.
func ParseKey(lines []string) (string, error) {
	if len(lines) != 1 {
		return "", malformed("Send this header once.")
	}
	text := strings.Trim(lines[0], " \t")
	if strings.HasPrefix(text, `"`) {
		quoted, ok := unquote(text)
		if !ok {
			return "", malformed(`Must be a string of printable ASCII characters in double quotes, in which \ stands before " and \ alone.`)
		}
		text = quoted
	}
	switch {
	case text == "":
		return "", malformed("This header may not be blank.")
	case len(text) > maxKeyLength:
		return "", malformed("Ensure this header has no more than 255 characters.")
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return "", malformed("Only printable ASCII characters are allowed.")
		}
	}
	return text, nil
}

func malformed(why string) *fault.Error { return fault.Field(Header, why) }

// unquote parses a structured-field string that spans the whole text.
func unquote(text string) (string, bool) {
	var plain strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return plain.String(), i == len(text)-1
		case '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", false
			}
			plain.WriteByte(text[i])
		default:
			plain.WriteByte(c)
		}
	}
	return "", false
}
