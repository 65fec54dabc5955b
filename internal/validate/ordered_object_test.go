package validate

import (
	"encoding/json"
	"testing"
)

// TestObjectsKeepTheirOrder checks that members that are read and written again give the same text.
func TestObjectsKeepTheirOrder(t *testing.T) {
	const text = `{"z":1,"a":null,"m":{"b":[1,2],"a":"\u003c"},"n":true}`
	var sent RawObject
	if err := json.Unmarshal([]byte(text), &sent); err != nil {
		t.Fatal(err)
	}
	var shown OrderedObject
	for _, m := range sent {
		shown.Add(m.Name, m.Raw)
	}
	if got, err := json.Marshal(shown); err != nil || string(got) != text {
		t.Errorf("%s became %s (%v)", text, got, err)
	}
	if string(sent.Member("n")) != "true" || sent.Member("N") != nil {
		t.Errorf("n is %s", sent.Member("n"))
	}
}

func TestInvalidObjects(t *testing.T) {
	for _, text := range []string{`[]`, `1`, `"{}"`, `{"a"`, `{"a":}`} {
		var sent RawObject
		if json.Unmarshal([]byte(text), &sent) == nil {
			t.Errorf("%s was read", text)
		}
	}
	var none OrderedObject
	if got, err := json.Marshal(none); err != nil || string(got) != "{}" {
		t.Errorf("nothing is %s (%v)", got, err)
	}
	var failing OrderedObject
	failing.Add("f", func() {})
	if _, err := json.Marshal(failing); err == nil {
		t.Error("a function has no JSON")
	}
}
