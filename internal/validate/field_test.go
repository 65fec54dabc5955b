package validate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

type body struct {
	Name  validate.String  `json:"name"`
	Value validate.Number  `json:"value"`
	Count validate.Integer `json:"count"`
	Flag  validate.Boolean `json:"flag"`
}

func TestDecodeObject(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 32) + "1" + strings.Repeat("}", 32)
	for _, test := range []struct {
		raw string
		ok  bool
	}{
		{`{}`, true},
		{` {"name":"x","other":[1,{"y":null}]} `, true},
		{deep, true},
		{`{"a":` + deep + `}`, false},
		{strings.Repeat("[", 10_000), false},
		{``, false},
		{`null`, false},
		{`[]`, false},
		{`"x"`, false},
		{`{} {}`, false},
		{`{"name":"x"`, false},
		{`{"name":}`, false},
		{`{"value":1e999}`, true}, // wrong in its own field
		{`{"name":"José"}`, true},
		{"{\"name\":\"Jos\xe9\"}", false}, // Latin-1
	} {
		var b body
		err := validate.DecodeObject([]byte(test.raw), &b)
		if test.ok != (err == nil) {
			t.Errorf("%.60s: %v", test.raw, err)
		}
		var refused *fault.Error
		if err != nil && (!errors.As(err, &refused) || refused.Code != "parse_error") {
			t.Errorf("%.60s: %v", test.raw, err)
		}
	}
}

// Half of a surrogate pair is no text (RFC 8259, section 8.2), and would be stored as another character.
func TestLoneSurrogates(t *testing.T) {
	for raw, want := range map[string]bool{`{"name":"A\ud83d\ude00"}`: true, `{"name":"A\ud800"}`: false, `{"name":"\udc00B"}`: false, `{"name":"\ud800\ud800"}`: false} {
		var b body
		if err := validate.DecodeObject([]byte(raw), &b); err != nil {
			t.Fatal(err)
		}
		if b.Name.Given() != want || b.Name.Wrong() == want {
			t.Errorf("%s: %+v", raw, b.Name)
		}
	}
}

// TestFields checks that a field records whether it was absent, null or of the wrong type, and that every error is reported at once.
func TestFields(t *testing.T) {
	var b body
	if err := validate.DecodeObject([]byte(`{"name":5,"value":"5","count":5.5,"flag":"true"}`), &b); err != nil {
		t.Fatal(err)
	}
	checks := validate.NewChecks()
	checks.Text("name", b.Name, validate.Optional(10))
	checks.Number("value", b.Value, false)
	checks.Integer("count", b.Count, false)
	checks.Boolean("flag", b.Flag, false)
	for _, name := range []string{"name", "value", "count", "flag"} {
		if len(checks.Fields[name]) != 1 {
			t.Errorf("%s: %v", name, checks.Fields[name])
		}
	}
	b = body{}
	if err := validate.DecodeObject([]byte(`{"NAME":"x","Value":1}`), &b); err != nil || b.Name.Sent() || b.Value.Sent() {
		t.Errorf("members of other names are taken: %+v, %v", b, err)
	}
	if err := validate.DecodeObject([]byte(`{"name":null,"value":2}`), &b); err != nil {
		t.Fatal(err)
	}
	if !b.Name.Sent() || !b.Name.Null() || b.Name.Given() || b.Count.Sent() {
		t.Error("presence is not recorded")
	}
	if value := validate.NewChecks().Number("value", b.Value, true); value == nil || *value != 2 {
		t.Error("the value is lost")
	}
	checks = validate.NewChecks()
	checks.Text("name", b.Name, validate.Required(10))
	checks.Integer("count", b.Count, true)
	want := []string{"This field may not be null.", "This field is required."}
	if got := slices.Concat(checks.Fields["name"], checks.Fields["count"]); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestDuplicateMembers checks that duplicate names are refused at every level, with the dotted name of the nested field.
func TestDuplicateMembers(t *testing.T) {
	for raw, field := range map[string]string{
		`{"name":"a","name":"a"}`:                       "name",
		`{"name":"a","value":1,"name":null}`:            "name",
		`{"name":"a","n\u0061me":"b"}`:                  "name", // written otherwise, and the same
		`{"other":{"a":1,"a":2}}`:                       "other.a",
		`{"other":[{"a":1},{"b":1,"c":{"d":1,"d":2}}]}`: "other.1.c.d",
		`{"a/b":1,"a/b":2}`:                             "a/b",
		`{"":1,"":2}`:                                   "non_field_errors",
		`{"a\u202eb":1,"a\u202eb":2}`:                   "non_field_errors",
		`{"` + strings.Repeat("x", 200) + `":1,"` + strings.Repeat("x", 200) + `":1}`: "non_field_errors",
	} {
		var b body
		var refused *fault.Error
		if err := validate.DecodeObject([]byte(raw), &b); !errors.As(err, &refused) || refused.Code != "validation_error" || len(refused.Fields[field]) != 1 || len(refused.Fields) != 1 {
			t.Errorf("%.60s: %v", raw, err)
		}
	}
	for _, raw := range []string{`{"name":"a","Name":"b","NAME":"c"}`, `{"a":{"name":1},"b":{"name":2},"c":[{"name":1},{"name":1}]}`} {
		var b body
		if err := validate.DecodeObject([]byte(raw), &b); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestText(t *testing.T) {
	for _, test := range []struct {
		sent string
		rule validate.TextRule
		want string
		ok   bool
	}{
		{"  Ada ", validate.Required(10), "Ada", true},
		{"e\u0301", validate.Required(1), "é", true}, // NFC
		{"   ", validate.Required(10), "", false},
		{"   ", validate.Optional(10), "", true},
		{"éééé", validate.Required(3), "", false},
		{"a\x00b", validate.Optional(10), "", false},
		{"a\nb", validate.Optional(10), "", false},
		{"a\nb", validate.Optional(10).Multiline(), "a\nb", true},
		{"red", validate.Required(0).OneOf("red", "blue"), "red", true},
		{"green", validate.Required(0).OneOf("red", "blue"), "", false},
	} {
		checks := validate.NewChecks()
		got := checks.Text("field", validate.Of(test.sent), test.rule)
		if got != test.want || (checks.Err() == nil) != test.ok {
			t.Errorf("%q: %q, %v", test.sent, got, checks.Fields)
		}
	}
}

func TestParseInstant(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"2026-01-15T13:45:00Z", "2026-01-15T13:45:00Z"},
		{"2026-01-15 13:45:00", "2026-01-15T13:45:00Z"},
		{"2026-01-15t13:45:00.5z", "2026-01-15T13:45:00.500Z"},
		{"2026-01-15T13:45:00.123456789+02:00", "2026-01-15T11:45:00.123456Z"},
		{"2026-11-01T01:30:00-04:00", "2026-11-01T05:30:00Z"}, // the hour that daylight saving repeats
		{"2026-11-01T01:30:00-05:00", "2026-11-01T06:30:00Z"},
		{"2016-12-31T23:59:60Z", "2016-12-31T23:59:59.999Z"},
		{"1899-12-31T23:59:59Z", ""},
		{"2201-01-01T00:00:00Z", ""},
		{"2026-02-30T00:00:00Z", ""},
		{"2026-01-15", ""},
		{"1768484700", ""},
		{"2026-01-15T13:45Z", "2026-01-15T13:45:00Z"}, // Java's OffsetDateTime leaves out zero seconds
		{"2026-01-15T13:45-05:00[America/New_York]", "2026-01-15T18:45:00Z"},
		{"2026-01-15T13:45:00+0000", "2026-01-15T13:45:00Z"},
		{"2026-01-15T13:45:00-0630", "2026-01-15T20:15:00Z"},
		{"2026-01-15T13:45:00-06", "2026-01-15T19:45:00Z"},
		{"2026-01-15T13:45:00,123Z", "2026-01-15T13:45:00.123Z"},
		{"2026-01-15T13:45:00.1234567+00:00", "2026-01-15T13:45:00.123456Z"}, // .NET
		{"20260115T134500Z", "2026-01-15T13:45:00Z"},
		{"20260115T134500.5-0500", "2026-01-15T18:45:00.500Z"},
		{"20260115T1345", "2026-01-15T13:45:00Z"},
		{"20260115", ""},
		{"202601-15T13:45:00Z", ""},
		{"2026-01-15T1345Z", ""},
		{"2026-01-15T13Z", ""},
		{"2026-01-15T13:45:00.Z", ""},
		{"2026-01-15T13:45.5Z", ""},
		{"2026-01-15T13:45:00+1", ""},
		{"2026-01-15T13:45:00+99:00", ""},
		{"2026-01-15T13:45:00Z[", ""},
		{"2026-01-15T25:00:00Z", ""},
		{"2026-01-15T10:00:00+24:00", ""},
		{"2026-01-15T10:00:00-2400", ""},
		{"2026-01-15T10:00:00+23:59", "2026-01-14T10:01:00Z"},
		{"", ""},
	} {
		at, err := validate.ParseInstant(test.text)
		if (err == nil) != (test.want != "") || (err == nil && validate.FormatInstant(at) != test.want) {
			t.Errorf("%q: %s (%v), want %q", test.text, validate.FormatInstant(at), err, test.want)
		}
	}
}

func TestNotFuture(t *testing.T) {
	now := time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)
	for ahead, ok := range map[time.Duration]bool{0: true, 5 * time.Minute: true, 5*time.Minute + time.Microsecond: false} {
		checks := validate.NewChecks()
		checks.NotFuture("measured_at", now.Add(ahead), now, 5*time.Minute)
		if (checks.Err() == nil) != ok {
			t.Errorf("%s ahead: %v", ahead, checks.Fields)
		}
	}
}

// FuzzParseInstant checks that a formatted instant parses as the same instant.
func FuzzParseInstant(f *testing.F) {
	f.Add("2026-01-15T13:45:00.123456Z")
	f.Add("2016-12-31 23:59:60+14:00")
	f.Fuzz(func(t *testing.T, text string) {
		at, err := validate.ParseInstant(text)
		if err != nil {
			return
		}
		again, err := validate.ParseInstant(validate.FormatInstant(at))
		if err != nil || !again.Equal(at) {
			t.Errorf("%q: %s reads back as %s (%v)", text, at, again, err)
		}
	})
}

// FuzzDecodeObject checks that any input is either refused or leaves fields that can be checked.
func FuzzDecodeObject(f *testing.F) {
	f.Add([]byte(`{"name":"x","value":1.5,"count":3,"flag":true}`))
	f.Add([]byte(`{"name":{"name":[]},"value":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var b body
		if err := validate.DecodeObject(raw, &b); err != nil {
			return
		}
		checks := validate.NewChecks()
		if text := checks.Text("name", b.Name, validate.Optional(5)); len([]rune(text)) > 5 {
			t.Errorf("too long: %q", text)
		}
		checks.UUID("name", b.Name, false)
		checks.Number("value", b.Value, true)
		checks.Integer("count", b.Count, true)
		checks.Boolean("flag", b.Flag, true)
		_ = checks.Err()
	})
}
