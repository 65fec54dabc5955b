package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/json/jsontext"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Parse parses the body of an event by its sender's parser. A body that repeats a member is refused like any other body, and what else can be read of
// it is returned for an alert. Source: docs/decisions/gateway.md, "Side values".
func Parse(sender Parser, body []byte, now time.Time) (Event, error) {
	event, err := sender.Parse(body, now)
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok || event.Implausible != nil || len(refused.Fields) == 0 {
		return event, err
	}
	single := withoutRepeats(body, 0)
	if bytes.Equal(single, body) {
		return event, err
	}
	read, otherwise := sender.Parse(single, now)
	if _, isRefusal := errors.AsType[*fault.Error](otherwise); otherwise != nil && !isRefusal {
		return event, err
	}
	read.bodyHash, read.LeftOut = sha256.Sum256(body), nil
	if read.Reading != nil {
		read.Implausible, read.Reading = read.newImplausible(*read.Reading, nil), nil
	}
	if read.Implausible != nil { // never only implausible: a person cannot confirm what has two values
		read.Implausible.RejectedFor = slices.Sorted(maps.Keys(refused.Fields))
	}
	return read, err
}

// unreadable takes the place of a member with different values.
var unreadable = jsontext.Value("[]")

// maxRepeatDepth is how deep repeated members are looked for; events are not deeper.
const maxRepeatDepth = 4

// withoutRepeats returns an object with each member once: with its value if all are equal, else unreadable. Anything else is returned as it is.
func withoutRepeats(raw jsontext.Value, depth int) jsontext.Value {
	decoder := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if decoder.PeekKind() != '{' || depth > maxRepeatDepth {
		return raw
	}
	var names []jsontext.Value // as written, quotes included
	values := map[string]jsontext.Value{}
	key := func(name jsontext.Value) string {
		unquoted, _ := jsontext.AppendUnquote(nil, name) // it was just read
		return string(unquoted)
	}
	_, err := decoder.ReadToken()
	for err == nil && decoder.PeekKind() != '}' {
		var name, value jsontext.Value
		if name, err = decoder.ReadValue(); err != nil {
			break
		}
		name = name.Clone()
		if value, err = decoder.ReadValue(); err != nil {
			break
		}
		value = withoutRepeats(value.Clone(), depth+1)
		if before, isRepeated := values[key(name)]; !isRepeated {
			names = append(names, name)
			values[key(name)] = value
		} else if !isSame(before, value) {
			values[key(name)] = unreadable
		}
	}
	if err == nil {
		_, err = decoder.ReadToken() // the end of the object
	}
	if _, end := decoder.ReadToken(); err != nil || !errors.Is(end, io.EOF) {
		return raw
	}
	single := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			single = append(single, ',')
		}
		single = append(append(append(single, name...), ':'), values[key(name)]...)
	}
	return append(single, '}')
}

// isSame reports whether two values are equal but for their spelling.
func isSame(a, b jsontext.Value) bool {
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}
