package patients

import (
	"encoding/json"
	"encoding/json/jsontext"
	"reflect"
	"testing"
)

// Source: RFC 7396, appendix A.
func TestMerge(t *testing.T) {
	for _, test := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`},
		{`{"a":"b"}`, `["c"]`, `["c"]`},
		{`{"a":"foo"}`, `null`, `null`},
		{`{"a":"foo"}`, `"bar"`, `"bar"`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{``, `{"a":{"b":null,"c":1}}`, `{"a":{"c":1}}`}, // onto nothing
	} {
		got, err := merge(jsontext.Value(test[0]), jsontext.Value(test[1]))
		if err != nil || !same(got, jsontext.Value(test[2])) {
			t.Errorf("%s onto %s is %s (%v), want %s", test[1], test[0], got, err, test[2])
		}
	}
}

func same(a, b jsontext.Value) bool {
	var one, two any
	return json.Unmarshal(a, &one) == nil && json.Unmarshal(b, &two) == nil && reflect.DeepEqual(one, two)
}

// Merging twice equals merging once, no null appears that was not there before, and an empty patch changes no object.
func FuzzMerge(f *testing.F) {
	f.Add(`{"a":{"b":1}}`, `{"a":{"b":null,"c":{"d":null}}}`)
	f.Add(`{"a":[null]}`, `{"b":[{"c":null}]}`)
	f.Add(`null`, `{"a":{}}`)
	f.Fuzz(func(t *testing.T, target, patch string) {
		var plain any
		if json.Unmarshal([]byte(target), &plain) != nil || json.Unmarshal([]byte(patch), &plain) != nil ||
			!jsontext.Value(target).IsValid() || !jsontext.Value(patch).IsValid() {
			t.Skip()
		}
		once, err := merge(jsontext.Value(target), jsontext.Value(patch))
		if err != nil {
			t.Fatalf("%s onto %s: %v", patch, target, err)
		}
		twice, err := merge(once, jsontext.Value(patch))
		if err != nil || !same(once, twice) {
			t.Errorf("%s onto %s is %s, and then %s (%v)", patch, target, once, twice, err)
		}
		if unchanged, err := merge(once, jsontext.Value(`{}`)); once.Kind() == '{' && (err != nil || !same(once, unchanged)) {
			t.Errorf("nothing onto %s is %s (%v)", once, unchanged, err)
		}
		if members, ok := membersIn(jsontext.Value(patch)); ok {
			merged, _ := membersIn(once)
			for name, value := range members {
				if _, there := merged[name]; there == (value.Kind() == 'n') {
					t.Errorf("%s of %s onto %s is in %s: %t", name, patch, target, once, there)
				}
			}
		}
	})
}
