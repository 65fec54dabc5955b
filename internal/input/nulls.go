package input

import (
	"bytes"
	"encoding/json/jsontext"
	"strconv"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Members say which members of a body may not be null, however deep they lie; nil knows of none.
type Members struct {
	Forbidden bool                // null in this place
	Inside    map[string]*Members // by name, where this is an object
	Items     *Members            // where it is a list
}

// RefuseNulls complains of every null that stands where the members forbid one. The body is one that [DecodeObject] has read. What is left out
// is not looked at: that a field is required, its own check says.
func RefuseNulls(raw []byte, members *Members) error {
	if members == nil || !bytes.Contains(raw, []byte("null")) {
		return nil
	}
	found := fault.Fields{}
	if err := members.walk(jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowInvalidUTF8(true)), "", found); err != nil {
		return fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.").Because(errShape)
	}
	return found.Err()
}

func (m *Members) walk(dec *jsontext.Decoder, at string, found fault.Fields) error {
	kind := dec.PeekKind()
	switch {
	case m == nil, kind != '{' && kind != '[' && kind != 'n':
		return dec.SkipValue()
	case kind == 'n':
		if m.Forbidden {
			found.Add(at, msgNull)
		}
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; i++ {
		member, name := m.Items, strconv.Itoa(i)
		if kind == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
			member = m.Inside[name]
		}
		if at != "" {
			name = at + "." + name
		}
		if err := member.walk(dec, name, found); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
