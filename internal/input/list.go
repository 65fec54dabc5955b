package input

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
	"io"

	"github.com/vigilhealth/vigil/internal/fault"
)

// DecodeList reads the list of 1 to most items that an object holds under a name, and does not look into the items: each is read by itself,
// with [DecodeObject], so that one that cannot be read spoils no other. What else is in the object is ignored.
func DecodeList(raw []byte, name string, most int) ([]jsontext.Value, error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return nil, notAnObject()
	}
	_, _ = dec.ReadToken() // which was looked at
	var items []jsontext.Value
	problem, sent := msgRequired, map[string]bool{}
	for dec.PeekKind() == '"' {
		member, err := dec.ReadToken()
		if err != nil {
			return nil, notAnObject()
		}
		said := member.String()
		switch {
		case sent[said]:
			return nil, fault.Field(nameable(said), "This field is there twice.")
		case said == name:
			if items, problem, err = readItems(dec, most); err != nil {
				return nil, err
			}
		default:
			err = dec.SkipValue()
		}
		if err != nil {
			return nil, notAnObject()
		}
		sent[said] = true
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

// readItems reads a list, or says what is wrong with what stands in its place.
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
	_, _ = dec.ReadToken() // which was looked at
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
	_, _ = dec.ReadToken() // which was looked at
	switch {
	case count == 0:
		problem = "Ensure this field has at least 1 item."
	case count > most:
		problem = fmt.Sprintf("Ensure this field has no more than %d items.", most)
	}
	return items, problem, nil
}
