package validate

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"
	"iter"

	"github.com/vigilhealth/vigil/internal/fault"
)

// DecodeList returns the 1 to most items of the list in the named member. It does not decode the items: the caller decodes each one with
// [DecodeObject], so that an invalid item does not affect the others. Other members are ignored.
func DecodeList(raw []byte, name string, most int) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, notAnObject()
	}
	_, _ = dec.ReadToken() // already peeked
	var items []jsontext.Value
	problem, sent := msgRequired, map[string]bool{}
	for dec.PeekKind() == '"' {
		member, err := dec.ReadToken()
		if err != nil {
			return nil, notAnObject()
		}
		memberName := member.String()
		switch {
		case sent[memberName]:
			return nil, fault.Field(echoableName(memberName), "This field is there twice.")
		case memberName == name:
			if items, problem, err = readItems(dec, most); err != nil {
				return nil, err
			}
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return nil, notAnObject()
		}
		sent[memberName] = true
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, notAnObject()
	}
	if _, err := dec.ReadToken(); err != io.EOF { //nolint:errorlint // returned as it is
		return nil, notAnObject() // something follows
	}
	if problem != "" {
		return nil, fault.Field(name, problem)
	}
	return items, nil
}

func notAnObject() *fault.Error {
	return fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.").Because(errShape)
}

// readItems returns the items of a list, or the message for a value that is not a valid list.
func readItems(dec *jsontext.Decoder, most int) (items []jsontext.Value, problem string, err error) {
	if kind := dec.PeekKind(); kind != '[' {
		problem = "Must be a list."
		if kind == 'n' {
			problem = msgNull
		}
		if dec.SkipValue() != nil {
			err = notAnObject()
		}
		return nil, problem, err
	}
	_, _ = dec.ReadToken() // already peeked
	count := 0
	for ; dec.PeekKind() != ']'; count++ {
		item, err := dec.ReadValue()
		if err != nil {
			return nil, "", notAnObject()
		}
		if count < most {
			items = append(items, item.Clone())
		}
	}
	_, _ = dec.ReadToken() // already peeked
	switch {
	case count == 0:
		problem = "Ensure this field has at least 1 item."
	case count > most:
		problem = tooMany(most)
	}
	return items, problem, nil
}

func tooMany(most int) string {
	return fmt.Sprintf("Ensure this field has no more than %d items.", most)
}

// Items iterates over a list and yields each item with its name, such as codes.2. An absent or null list is empty. It rejects a value that is
// not a list, with the message wrongType, and a list with more than most items, and then yields nothing.
func Items[T any](c *Checks, name string, list Field[[]T], most int, wrongType string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		switch {
		case list.wrong:
			c.Reject(name, wrongType)
			return
		case len(list.Value) > most:
			c.Reject(name, tooMany(most))
			return
		}
		for i, item := range list.Value {
			if !yield(fmt.Sprintf("%s.%d", name, i), item) {
				return
			}
		}
	}
}

// Texts is [Items] for texts under a rule. It rejects and skips texts that break the rule.
func Texts(c *Checks, name string, list Field[[]String], most int, wrongType string, rule TextRule) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for name, item := range Items(c, name, list, most, wrongType) {
			if text := c.Text(name, item, rule); text != "" && !yield(name, text) {
				return
			}
		}
	}
}
