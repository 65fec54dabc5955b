// Package input knows how to read what a caller sent: JSON fields that remember whether they were left out,
// null or of the wrong type, and the checks that turn them into values or into one message per wrong field.
// It refuses to guess: a numeric string is not a number, and a field of the wrong type never hides the others.
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

// exact matches members by their very names: "ROLE" is another member than "role", and unknown. All else is as encoding/json has it.
var exact = jsonv2.JoinOptions(json.DefaultOptionsV1(), jsonv2.MatchCaseInsensitiveNames(false))

// Field is one JSON member of a request body. Decoding it never fails: a wrong type is kept for the checks.
type Field[T any] struct {
	Value   T
	present bool
	null    bool
	wrong   bool
}

// The field types of request bodies.
type (
	String  = Field[string]
	Number  = Field[float64]
	Boolean = Field[bool]
	Integer = Field[int64]
	Strings = Field[[]string]
	Object  = Field[map[string]json.RawMessage]
)

// UnmarshalJSON keeps the value, or that it was null or of the wrong type.
func (f *Field[T]) UnmarshalJSON(raw []byte) error {
	*f = Field[T]{present: true}
	if bytes.Equal(raw, []byte("null")) {
		f.null = true
		return nil
	}
	f.wrong = jsonv2.Unmarshal(raw, &f.Value, exact) != nil
	return nil
}

// Of returns a field that was sent with the given value.
func Of[T any](value T) Field[T] { return Field[T]{Value: value, present: true} }

// Sent reports whether the member was in the body, null included.
func (f Field[T]) Sent() bool { return f.present }

// Null reports whether the member was sent as null.
func (f Field[T]) Null() bool { return f.null }

// Given reports whether the member was sent with a usable value.
func (f Field[T]) Given() bool { return f.present && !f.null && !f.wrong }

// Wrong reports whether something else was sent than the member may be, null apart.
func (f Field[T]) Wrong() bool { return f.wrong }

// DecodeObject reads one JSON object in UTF-8 into dst. It refuses other bytes, malformed JSON, trailing data, a root that is not an
// object and nesting deeper than 32 with a parse_error fault, and an object with two members of one name with a validation fault that
// names it.
func DecodeObject(raw []byte, dst any) error {
	refused := fault.New(fault.Invalid, "parse_error", "The request body is not a valid JSON object.")
	if !utf8.Valid(raw) { // the decoder would put U+FFFD in its place, and a name in Latin-1 would be stored wrong
		return refused.Because(errShape)
	}
	if err := checkShape(raw); errors.Is(err, errShape) {
		return refused.Because(err)
	} else if err != nil {
		return err
	}
	if err := jsonv2.Unmarshal(raw, dst, exact); err != nil {
		return refused.Because(errShape)
	}
	return nil
}

// DecodeMember reads a member of a body that [DecodeObject] has read, by its very names.
func DecodeMember(raw []byte, dst any) error {
	if err := jsonv2.Unmarshal(raw, dst, exact); err != nil {
		return errShape
	}
	return nil
}

type shapeError string

func (e shapeError) Error() string { return string(e) }

const errShape = shapeError("not a JSON object of the expected shape")

// checkShape walks the tokens once, so that depth, root and names are known before anything is built. Of two members of one name
// programs take either: what was checked by one could be read otherwise by the next. Source: RFC 8259, 4.
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

// longestName bounds what is said again of a name that the sender made up.
const longestName = 100

// memberName is the dotted name of the member that an error is about.
func memberName(err error) string {
	at, ok := errors.AsType[*jsontext.SyntacticError](err)
	if !ok {
		return fault.NonField
	}
	return nameable(strings.Join(slices.Collect(at.JSONPointer.Tokens()), "."))
}

// nameable is a name that the sender made up, unless it is not fit to be said again.
func nameable(name string) string {
	if name == "" || len(name) > longestName || hasControl(name, false) || unfit(name) {
		return fault.NonField
	}
	return name
}
