package gateway

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"io"
	"regexp"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// messagesOf returns the objects of a delivery: one, those of a list or of several documents, or those in an envelope, a member that holds what the
// sender documents at the top. Each may be written as a text. It returns nil for anything else and for more than limit. Source:
// docs/decisions/gateway.md, "Several events in one delivery".
func (s shape) messagesOf(body []byte, limit int) (list []json.RawMessage) {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		document, err := decoder.ReadValue()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil
		}
		list = append(list, bytes.Clone(document))
	}
	if len(list) == 1 && !s.isMessage(list[0]) {
		list = s.opened(list[0])
	}
	if len(list) > limit {
		return nil
	}
	return list
}

// isMessage reports whether a value is a message as its sender writes it.
func (s shape) isMessage(raw json.RawMessage) bool {
	members, _ := membersOf(raw)
	known := 0
	for _, m := range members {
		if _, is := s[m.Name]; is {
			known++
		}
	}
	return known > 2
}

// maxEnvelopes is how deep messages may be in envelopes.
const maxEnvelopes = 3

// opened returns the messages in a value: the items of a list, those in an envelope, or the value itself.
func (s shape) opened(raw jsontext.Value) (list []json.RawMessage) {
	inner := unwrapped(raw, true)
	if inner.Kind() != '[' {
		if list = s.within(inner, 0); list == nil {
			list = []json.RawMessage{inner}
		}
		return list
	}
	if json.Unmarshal(inner, &list) != nil {
		return nil
	}
	for i, item := range list {
		if item.Kind() == '"' {
			list[i] = unwrapped(item, true)
		}
	}
	return list
}

// within returns the messages that a value is or holds, each with two documented members; nil for none, or where it is uncertain which are meant.
func (s shape) within(raw jsontext.Value, depth int) (found []json.RawMessage) {
	inner := unwrapped(raw, true)
	if inner.Kind() == '[' {
		if json.Unmarshal(inner, &found) != nil {
			return nil
		}
		for _, item := range found {
			if members, isObject := membersOf(unwrapped(item, true)); !isObject || s.documented(members, depth) < 2 {
				return nil
			}
		}
		return found
	}
	members, isObject := membersOf(inner)
	if !isObject || depth > maxEnvelopes {
		return nil
	}
	if s.documented(members, depth) > 1 {
		return []json.RawMessage{inner}
	}
	for _, m := range members {
		held := s.within(m.Raw, depth+1)
		if held == nil {
			continue
		}
		if found != nil {
			return nil
		}
		for _, message := range held {
			found = append(found, s.withMissing(message, members, m.Name))
		}
	}
	return found
}

// documented counts the members that the sender documents, in any spelling; an envelope may be called like one of them.
func (s shape) documented(members []memberText, depth int) (n int) {
	for _, m := range members {
		for name := range s {
			if fold(name) == fold(m.Name) && s.within(m.Raw, depth+1) == nil {
				n++
			}
		}
	}
	return n
}

// withMissing returns a message with the documented member that only its envelope has, such as the type of the event.
func (s shape) withMissing(message json.RawMessage, outer []memberText, envelope string) json.RawMessage {
	members, isObject := membersOf(unwrapped(message, true))
	if !isObject {
		return message
	}
	has := map[string]bool{}
	for _, m := range members {
		has[fold(m.Name)] = true
	}
	for _, m := range outer {
		if _, known := s[m.Name]; known && m.Name != envelope && !has[fold(m.Name)] {
			members = append(members, m)
		}
	}
	return objectOf(members)
}

// readable returns a body as JSON in UTF-8: from UTF-16 or UTF-32, known by their mark or by the zeros of the first character, without
// a mark, and with texts for the words of serializers that are no JSON, so that an unreadable side value costs no reading.
func readable(body []byte) []byte {
	for _, form := range []struct {
		begins string
		as     interface {
			Bytes(b []byte) ([]byte, error)
		}
	}{
		{"\xff\xfe\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.UseBOM).NewDecoder()},
		{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.UseBOM).NewDecoder()},
		{"\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder()},
		{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()},
		{"{\x00", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder()},
		{"[\x00", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewDecoder()},
		{"\x00{", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder()},
		{"\x00[", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewDecoder()},
	} {
		if bytes.HasPrefix(body, []byte(form.begins)) {
			if decoded, err := form.as.Bytes(body); err == nil {
				body = decoded
			}
			break
		}
	}
	body = bytes.TrimRight(bytes.TrimPrefix(body, utf8Mark), "\x00")
	if jsontext.Value(body).IsValid() {
		return body
	}
	return outsideTexts(body, noNumbers)
}

type replacement struct {
	of *regexp.Regexp
	by string
}

// What serializers write outside texts: words in place of a number, and for an alert signs and zeros before one, a point without digits and a last
// comma.
var (
	noNumbers = []replacement{{regexp.MustCompile(`(?i)-?\b(NaN|Infinity|Inf)\b`), `"$1"`}}
	slips     = []replacement{
		{regexp.MustCompile(`([:\[,]\s*)\+(\d)`), `$1$2`},
		{regexp.MustCompile(`([:\[,]\s*-?)0+(\d)`), `$1$2`},
		{regexp.MustCompile(`(\d)\.(\s*[,}\]])`), `$1$2`},
		{regexp.MustCompile(`,(\s*[}\]])`), `$1`},
	}
)

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// outsideTexts replaces patterns outside the texts of a JSON body.
func outsideTexts(body []byte, patterns []replacement) (replaced []byte) {
	segment := func(part []byte) {
		for _, p := range patterns {
			part = p.of.ReplaceAll(part, []byte(p.by))
		}
		replaced = append(replaced, part...)
	}
	end := 0
	for _, at := range quoted.FindAllIndex(body, -1) {
		segment(body[end:at[0]])
		replaced, end = append(replaced, body[at[0]:at[1]]...), at[1]
	}
	segment(body[end:])
	return replaced
}
