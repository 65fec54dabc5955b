package validate_test

import (
	"encoding/json/jsontext"
	"errors"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

func TestDecodeList(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":[1,"x",{"b":[]},null]}`:           `1|"x"|{"b":[]}|null`,
		` {"z":{"z":1,"z":2},"a":[ [1] ,2 ] } `: `[1]|2`,
		`{"a":[{"b":1,"b":2}]}`:                 `{"b":1,"b":2}`,
		"{\"a\":[\"\xff\"]}":                    "\"\xff\"",
		`{"a":[]}`:                              "a: Ensure this field has at least 1 item.",
		`{"a":[1,2,3,4,5]}`:                     "a: Ensure this field has no more than 4 items.",
		`{"a":null}`:                            "a: This field may not be null.",
		`{"a":"x"}`:                             "a: Must be a list.",
		`{"a":[1],"a":[2]}`:                     "a: This field is there twice.",
		`{}`:                                    "a: This field is required.",
		`{"A":[1]}`:                             "a: This field is required.",
		``:                                      "parse_error", `[]`: "parse_error", `{"a":[1]}{}`: "parse_error", `{"a":[1}`: "parse_error", `{"a":[1],}`: "parse_error",
		`{"a":[1`: "parse_error", `{"a":[1]`: "parse_error", `{"a" [1]}`: "parse_error", `{"a":[1,,2]}`: "parse_error", `{"b":{,"a":[1]}`: "parse_error",
	} {
		items, err := validate.DecodeList([]byte(body), "a", 4)
		var got []string
		for _, item := range items {
			got = append(got, string(item))
		}
		text := strings.Join(got, "|")
		if refused, ok := errors.AsType[*fault.Error](err); ok {
			if text = refused.Code; refused.Fields != nil {
				text = "a: " + strings.Join(refused.Fields["a"], " ")
			}
		}
		if text != want {
			t.Errorf("%s is %s, want %s", body, text, want)
		}
	}
}

// FuzzDecodeList checks that every returned item is part of the input.
func FuzzDecodeList(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":2}]}`, `{"a":[]}`, `{"b":1,"a":["x"]}`, `{"a":[1]} `, `{"a":nul`, "{\"a\":[\"\xff\"]}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := validate.DecodeList(body, "a", 4)
		if err != nil {
			if refused, ok := errors.AsType[*fault.Error](err); !ok || refused.Kind != fault.Invalid || len(items) > 0 {
				t.Errorf("%q: %v with %d items", body, err, len(items))
			}
			return
		}
		if len(items) < 1 || len(items) > 4 {
			t.Errorf("%q has %d items", body, len(items))
		}
		if !jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
			t.Errorf("%q is no JSON", body)
		}
		for _, item := range items {
			if !strings.Contains(string(body), string(item)) {
				t.Errorf("%q is not in %q", item, body)
			}
		}
	})
}
