// Package object knows JSON objects whose members are decided by values and not by a Go type: it reads the members in
// the order in which they came, and writes them in the order in which they were added. It refuses to know what they mean.
package validate

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
)

var errNoObject = errors.New("not a JSON object")

// Read reads an object: member is called after each name, and reads the value.
func Read(dec *jsontext.Decoder, member func(name string) error) error {
	if token, err := dec.ReadToken(); err != nil {
		return err
	} else if token.Kind() != '{' {
		return errNoObject
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// Sent is an object as it was sent.
type Sent []Member

// Member is one of its members.
type Member struct {
	Name string
	Raw  jsontext.Value
}

// few is how many members most objects have room for.
const few = 8

// UnmarshalJSONFrom keeps the members as they are.
func (s *Sent) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*s = make(Sent, 0, few)
	return Read(dec, func(name string) error {
		raw, err := dec.ReadValue()
		*s = append(*s, Member{name, raw.Clone()})
		return err
	})
}

// Member is the value of a member, nil when it was not sent.
func (s Sent) Member(name string) jsontext.Value {
	for _, m := range s {
		if m.Name == name {
			return m.Raw
		}
	}
	return nil
}

// Shown is an object to be written.
type Shown []shown

type shown struct {
	name  string
	value any
}

// Add adds a member.
func (s *Shown) Add(name string, value any) {
	if *s == nil {
		*s = make(Shown, 0, few)
	}
	*s = append(*s, shown{name, value})
}

// MarshalJSONTo writes the members in their order.
func (s Shown) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range s {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
