package gateway

import "testing"

func TestWithoutRepeats(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a":1,"a":1}`: `{"a":1}`, `{"a":10,"a":1e1}`: `{"a":10}`, `{"a":1,"a":2}`: `{"a":[]}`, `{"a":1,"a":1,"a":2}`: `{"a":[]}`, `{"a":1,"\u0061":1}`: `{"a":1}`,
		`{"a":{"b":1,"b":2},"c":3}`: `{"a":{"b":[]},"c":3}`, `{"a":{"b":1,"c":2},"a":{"c":2,"b":1}}`: `{"a":{"b":1,"c":2}}`,
		`{"a":1,"a":1}{}`: `{"a":1,"a":1}{}`, `{"a":1,"a":1`: `{"a":1,"a":1`, `[{"a":1,"a":1}]`: `[{"a":1,"a":1}]`, ``: ``,
	} {
		if got := string(withoutRepeats([]byte(raw), 0)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func FuzzWithoutRepeats(f *testing.F) {
	for _, seed := range []string{`{"a":1,"a":1}`, `{"a":{"b":1,"b":2},"a":{"b":2}}`, `{"\ud800":1,"\ud800":2}`, `{`, `{"a":1,"a":1} x`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := withoutRepeats([]byte(text), 0)
		if twice := withoutRepeats(once, 0); string(twice) != string(once) {
			t.Errorf("%q, then %q", once, twice)
		}
	})
}
