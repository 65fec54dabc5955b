package gateway

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/vitals"
)

// shape is the members of a sender's object by name, each with those of its own object; nil for any other value. Source:
// docs/decisions/gateway.md, "Other spellings".
type shape map[string]shape

// contractShape is an event of the contract.
var contractShape = func() shape {
	values := shape{}
	for _, name := range vitals.GatewayFields() {
		values[name] = nil
	}
	for _, d := range vitals.Definitions {
		for _, name := range d.FieldAliases {
			values[name] = nil
		}
	}
	return shape{
		"event_type": nil, "device_id": nil, "hub_id": nil, "patient_id": nil, "measurement_type": nil, "values": values, "unit": nil,
		"timestamp": nil, "last_seen_at": nil, "device_model": nil, "battery_level": nil, "signal_strength": nil,
	}
}()

// conform normalizes a body: it unwraps an object in a string or a list of one, and renames a
// member in another spelling if it is unambiguous, recursively. Anything else is unchanged.
func (s shape) conform(raw jsontext.Value) jsontext.Value {
	raw = unwrapped(raw, s != nil)
	members, ok := membersOf(raw)
	if s == nil || !ok {
		return raw
	}
	spellings := map[string]int{}
	for _, m := range members {
		spellings[fold(m.Name)]++
	}
	isChanged := false
	for i, sent := range members {
		m := sent
		if _, known := s[m.Name]; !known && spellings[fold(m.Name)] == 1 {
			for _, name := range slices.Sorted(maps.Keys(s)) {
				if fold(name) == fold(m.Name) {
					m.Name = name
				}
			}
		}
		if of, known := s[m.Name]; known {
			m.Raw = of.conform(m.Raw)
		}
		isChanged = isChanged || m.Name != sent.Name || !bytes.Equal(m.Raw, sent.Raw)
		members[i] = m
	}
	if !isChanged {
		return raw
	}
	return objectOf(members)
}

// objects returns the objects of a delivery, see [shape.messagesOf], as their sender documents them.
func (s shape) objects(body []byte, limit int) (list []json.RawMessage) {
	list = s.messagesOf(body, limit)
	for i, raw := range list {
		list[i] = s.conform(raw)
	}
	return list
}

// unwrapped returns the value in a list of one, and the object or list in a text where an object is expected.
func unwrapped(raw jsontext.Value, isObject bool) jsontext.Value {
	var text string
	if isObject && raw.Kind() == '"' && json.Unmarshal(raw, &text) == nil {
		if inner := jsontext.Value(strings.TrimSpace(text)); (inner.Kind() == '{' || inner.Kind() == '[') && inner.IsValid() {
			raw = inner
		}
	}
	var list []json.RawMessage
	if raw.Kind() == '[' && json.Unmarshal(raw, &list) == nil && len(list) == 1 {
		return list[0]
	}
	return raw
}

// memberText is one member of an object as it was written.
type memberText struct {
	Name string
	Raw  jsontext.Value
}

// membersOf returns the members of an object, repeated ones too; ok is false for anything else.
func membersOf(raw jsontext.Value) (members []memberText, ok bool) {
	decoder := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if decoder.PeekKind() != '{' {
		return nil, false
	}
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != '}' {
		var name, value jsontext.Value
		if name, err = decoder.ReadValue(); err != nil {
			return nil, false
		}
		unquoted, _ := jsontext.AppendUnquote(nil, name) // it was just read
		if value, err = decoder.ReadValue(); err != nil {
			return nil, false
		}
		members = append(members, memberText{string(unquoted), value.Clone()})
	}
	if err == nil {
		_, err = decoder.ReadToken() // the end of the object
	}
	_, end := decoder.ReadToken()
	return members, err == nil && errors.Is(end, io.EOF)
}

func objectOf(members []memberText) jsontext.Value {
	object := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			object = append(object, ',')
		}
		object, _ = jsontext.AppendQuote(object, strings.ToValidUTF8(m.Name, "\uFFFD")) // valid text always quotes
		object = append(append(object, ':'), m.Raw...)
	}
	return append(object, '}')
}

// utf8Mark is the byte order mark that some programs write before a text.
var utf8Mark = []byte("\xef\xbb\xbf")

// lenientBody returns the readable part of a rejected body, for an alert: valid UTF-8 without a
// byte order mark, in the documented spelling, each member once.
func (s shape) lenientBody(body []byte) []byte {
	body = bytes.ToValidUTF8(bytes.TrimPrefix(body, utf8Mark), []byte("\uFFFD"))
	if !jsontext.Value(body).IsValid() {
		body = outsideTexts(body, slips)
	}
	return withoutRepeats(s.conform(body), 0)
}
