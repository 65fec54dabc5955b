package validate

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
)

var errNotObject = errors.New("not a JSON object")

// ReadObject reads a JSON object. It calls member after each name; member reads the value.
func ReadObject(dec *jsontext.Decoder, member func(name string) error) error {
	if token, err := dec.ReadToken(); err != nil {
		return err
	} else if token.Kind() != '{' {
		return errNotObject
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

// RawObject holds the members of a JSON object undecoded and in order.
type RawObject []Member

// Member is one member of a [RawObject].
type Member struct {
	Name string
	Raw  jsontext.Value
}

// typicalMembers is the initial capacity for members.
const typicalMembers = 8

// UnmarshalJSONFrom stores the members.
func (ro *RawObject) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*ro = make(RawObject, 0, typicalMembers)
	return ReadObject(dec, func(name string) error {
		raw, err := dec.ReadValue()
		*ro = append(*ro, Member{name, raw.Clone()})
		return err
	})
}

// Member returns the value of a member, or nil if it was not sent.
func (ro RawObject) Member(name string) jsontext.Value {
	for _, m := range ro {
		if m.Name == name {
			return m.Raw
		}
	}
	return nil
}

// OrderedObject is a JSON object that is written with its members in the order of the Add calls.
type OrderedObject []orderedMember

type orderedMember struct {
	name  string
	value any
}

// Add appends a member.
func (oo *OrderedObject) Add(name string, value any) {
	if *oo == nil {
		*oo = make(OrderedObject, 0, typicalMembers)
	}
	*oo = append(*oo, orderedMember{name, value})
}

// MarshalJSONTo writes the members in order.
func (oo OrderedObject) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range oo {
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
