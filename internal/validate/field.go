// Package validate reads request bodies: JSON fields that record whether they were absent, null or of the wrong type, and checks that return
// their values or collect one message per invalid field. It does not coerce types: a numeric string is not a number. A field of the wrong type
// does not hide errors of other fields.
package validate

import (
	"bytes"
	"encoding/json"
	"encoding/json/jsontext"
	jsonv2 "encoding/json/v2"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/fault"
)

// maxDepth bounds the nesting of a body. Source: docs/decisions/conventions.md, "Content types".
const maxDepth = 32

// exactNames matches member names case-sensitively: "ROLE" is not "role". All other options are those of encoding/json.
var exactNames = jsonv2.JoinOptions(json.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false))

// Field is one JSON member of a request body. Decoding never fails: a wrong type is recorded for the checks.
type Field[T any] struct {
	Value   T
	present bool
	null    bool
	wrong   bool
}

// Field types of request bodies.
type (
	String  = Field[string]
	Number  = Field[float64]
	Boolean = Field[bool]
	Integer = Field[int64]
	Strings = Field[[]string]
	Object  = Field[map[string]json.RawMessage]
)

// UnmarshalJSON stores the value, or that it is null or of the wrong type.
func (f *Field[T]) UnmarshalJSON(raw []byte) error {
	*f = Field[T]{present: true}
	if bytes.Equal(raw, []byte("null")) {
		f.null = true
		return nil
	}
	isObject := len(raw) > 0 && raw[0] == '{'                                                         // its members are read one by one
	f.wrong = jsonv2.Unmarshal(raw, &f.Value, exactNames, jsontext.AllowInvalidUTF8(isObject)) != nil // no half of a surrogate pair
	return nil
}

// Of returns a field as if it had been sent with the value.
func Of[T any](value T) Field[T] { return Field[T]{Value: value, present: true} }

// Sent reports whether the member was in the body, including null.
func (f Field[T]) Sent() bool { return f.present }

// Null reports whether the member was sent as null.
func (f Field[T]) Null() bool { return f.null }

// Given reports whether the member was sent with a value of the right type.
func (f Field[T]) Given() bool { return f.present && !f.null && !f.wrong }

// Wrong reports whether the member was sent with a wrong type, except null.
func (f Field[T]) Wrong() bool { return f.wrong }

// DecodeObject decodes one JSON object in UTF-8 into dst. It returns a parse_error fault for other encodings, malformed JSON, trailing data,
// another root type and nesting deeper than 32, and a validation fault for a duplicate member name.
func DecodeObject(raw []byte, dst any) error {
	refused := fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.")
	if !utf8.Valid(raw) { // the decoder would substitute U+FFFD, and a name in Latin-1 would be stored wrong
		return refused.Because(errShape)
	}
	if err := checkShape(raw); errors.Is(err, errShape) {
		return refused.Because(err)
	} else if err != nil {
		return err
	}
	if err := jsonv2.Unmarshal(raw, dst, exactNames); err != nil {
		return refused.Because(errShape)
	}
	return nil
}

// DecodeMember decodes a member of a body that [DecodeObject] has checked, with case-sensitive names.
func DecodeMember(raw []byte, dst any) error {
	if err := jsonv2.Unmarshal(raw, dst, exactNames); err != nil {
		return errShape
	}
	return nil
}

type shapeError string

func (e shapeError) Error() string { return string(e) }

const errShape = shapeError("not a JSON object of the expected shape")

// checkShape checks depth, root type and names before decoding. Duplicate names are rejected,
// because programs differ in which of the two they use. Source: RFC 8259, section 4.
func checkShape(raw []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return errShape
	}
	for {
		_, err := dec.ReadToken()
		switch {
		case errors.Is(err, jsontext.ErrDuplicateName):
			return fault.Field(memberName(err), "This field is there twice.")
		case err != nil:
			return errShape // the decoder's own text may quote the body
		case dec.StackDepth() > maxDepth:
			return errShape
		case dec.StackDepth() > 0:
			continue
		}
		if _, err := dec.ReadToken(); err != io.EOF { //nolint:errorlint // returned as it is
			return errShape // something follows the object
		}
		return nil
	}
}

// maxEchoedName bounds a member name of the caller that is repeated in a message.
const maxEchoedName = 100

// memberName returns the dotted name of the member that the error is about.
func memberName(err error) string {
	at, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return fault.NonField
	}
	return echoableName(strings.Join(slices.Collect(at.JSONPointer.Tokens()), "."))
}

// echoableName returns a member name of the caller, or NonField if it is not safe to repeat.
func echoableName(name string) string {
	if name == "" || len(name) > maxEchoedName || hasControl(name, false) || hasNonIdentifierRune(name) {
		return fault.NonField
	}
	return name
}

// NotNull rejects null in a member that may be absent. Source: docs/decisions/conventions.md, "Null in requests".
func NotNull[T any](c *Checks, name string, f Field[T]) {
	if f.null {
		c.Reject(name, msgNull)
	}
}
