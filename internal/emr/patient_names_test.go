package emr

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

var testTime = time.Date(2026, 1, 15, 13, 45, 0, 0, time.UTC)

// Names of several words are searched in forms that HAPI and Epic-like servers support, the likeliest first.
func TestNameQueries(t *testing.T) {
	for name, want := range map[string]string{
		"":                    "",
		"Lovelace":            "name=Lovelace",
		"  Ada   Lovelace ":   "family=Lovelace&given=Ada | name=Ada&name=Lovelace",
		"Lovelace, Ada":       "family=Lovelace&given=Ada | name=Lovelace&name=Ada",
		"Lovelace,":           "name=Lovelace",
		", Ada":               "name=Ada",
		",":                   "",
		"Maria van der Berg":  "family=Berg&given=Maria van der | name=Maria&name=van&name=der&name=Berg | family=der Berg&given=Maria van | family=van der Berg&given=Maria",
		"van der Berg, Maria": "family=van der Berg&given=Maria | name=van&name=der&name=Berg&name=Maria",
		`A|b $c\`:             `family=\$c\\&given=A\|b | name=A\|b&name=\$c\\`,
		"a b c d e f g h":     "family=h&given=a b c d e f g | name=a&name=b&name=c&name=d&name=e&name=f&name=g&name=h | family=g h&given=a b c d e f | family=f g h&given=a b c d e | family=e f g h&given=a b c d",
	} {
		var ways []string
		for _, way := range nameQueries(name) {
			text, err := url.QueryUnescape(way.Encode())
			if err != nil {
				t.Fatal(err)
			}
			ways = append(ways, text)
		}
		if got := strings.Join(ways, " | "); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestChoiceOfName(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{`{"use":"nickname","given":["Bob"]},{"use":"usual","family":"Doe","given":["Robert"]}`, "Robert Doe"},
		{`{"use":"usual","family":"Doe","given":["Rob"]},{"use":"official","family":"Doe","given":["Robert","J"]}`, "Robert Doe"},
		{`{"use":"nickname","family":"Doe","given":["Bob"]},{"family":"Doe","given":["Robert"]}`, "Robert Doe"},
		{`{"use":"official","family":"Doe"},{"use":"nickname","family":"Doe","given":["Bob"]}`, "Bob Doe"},
		{`{"use":"official","family":"Doe"}`, " Doe"},
		{`{"use":"maiden","family":"Byron","given":["Ada"]},{"use":"anonymous","family":"X","given":["Y"]}`, "Y X"},
		{`{"use":"old","family":"Byron","given":["Ada"]}`, " "},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"end":"1835-07-08"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada King"},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"end":"2026"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada Byron"},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"end":"2025-12"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada King"},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"end":"2026-01-15"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada Byron"},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"end":"2026-01-15T13:00:00Z"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada King"},
		{`{"use":"official","family":"Lovelace","given":["Ada"],"period":{"start":"2026-02"}},{"use":"usual","family":"King","given":["Ada"]}`, "Ada King"},
		{`{"use":"official","family":"Byron","given":["Ada"],"period":{"start":"when","end":"ever"}}`, "Ada Byron"},
		{`{"use":"invented","family":"Byron","given":["Ada"]},{"use":"nickname","family":"B","given":["A"]}`, "Ada Byron"},
		{`{"text":"Ada Lovelace"}`, " "},
		{``, " "},
	} {
		p, ok := readPatient([]byte(`{"resourceType":"Patient","id":"a","name":[`+c.names+`]}`), testTime)
		if got := p.Who.FirstName + " " + p.Who.LastName; !ok || got != c.want {
			t.Errorf("%s: %q, want %q", c.names, got, c.want)
		}
	}
}
