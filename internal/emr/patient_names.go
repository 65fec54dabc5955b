package emr

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/validate"
)

// mostWays bounds the searches that one name is put to the EMR with.
const mostWays = 5

// namesAsked are the ways to ask for a name, the best one first; a server that knows nobody by one may by the next.
//
// A string search looks at the start of a whole part of a name, so several words at once match no part. Given and family name in parameters of their own
// are understood by HAPI and Epic alike; Epic wants them for a match, takes `name` once, and not beside them. Each word in a `name` of its own, which
// are then ANDed, finds the parts in any order wherever search is done by the book. Where a name has more than two words nobody can tell where the
// family name begins: the last word is the likeliest, "van der Berg" comes after. A comma says it.
// Source: FHIR R4, search.html, string and multiple parameters; docs/decisions/emr.md, "Patient search".
func namesAsked(name string) []url.Values {
	family, given, parted := strings.Cut(name, ",")
	words := strings.Fields(strings.ReplaceAll(name, ",", " "))
	switch {
	case len(words) == 0:
		return []url.Values{{}}
	case len(words) == 1:
		return []url.Values{{"name": escaped(words...)}}
	}
	var ways []url.Values
	split := func(given, family []string) {
		if len(given) > 0 && len(family) > 0 {
			ways = append(ways, url.Values{"given": escaped(strings.Join(given, " ")), "family": escaped(strings.Join(family, " "))})
		}
	}
	if parted {
		split(strings.Fields(strings.ReplaceAll(given, ",", " ")), strings.Fields(family))
	} else {
		split(words[:len(words)-1], words[len(words)-1:])
	}
	ways = append(ways, url.Values{"name": escaped(words...)})
	for at := len(words) - 2; at > 0 && !parted; at-- {
		split(words[:at], words[at:])
	}
	return ways[:min(len(ways), mostWays)]
}

// escaped keeps what means something in a search value from meaning it. Source: FHIR R4, search.html, escaping search parameters.
func escaped(values ...string) []string {
	quote := strings.NewReplacer(`\`, `\\`, `$`, `\$`, `|`, `\|`)
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = quote.Replace(value)
	}
	return texts
}

// searchByName asks in one way after the other until somebody is found. A way that the EMR does not understand is passed over, unless it understands
// none.
func searchByName(name string, about url.Values, search func(url.Values) ([]Patient, error)) (found []Patient, err error) {
	understood := false
	for _, way := range namesAsked(name) {
		maps.Copy(way, about)
		some, refusal := search(way)
		if len(some) > 0 {
			return some, nil
		}
		if e, ok := refusal.(*Error); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) { //nolint:errorlint // always our own
			if err == nil {
				err = refusal
			}
			continue
		}
		if refusal != nil {
			return nil, refusal
		}
		understood = true
	}
	if understood {
		return nil, nil
	}
	return nil, err
}

// SearchPatients asks once for each way to put the name, without retries: a person is waiting and can ask again. It follows links to further pages until
// it has as many as were asked for, but never to another address. The error is always an *Error.
// Source: docs/decisions/emr.md, "Patient search".
func (c *Client) SearchPatients(ctx context.Context, q PatientQuery) ([]Patient, error) {
	return searchByName(q.Name.Reveal(), q.beside(), func(values url.Values) ([]Patient, error) { return c.search(ctx, values, q.Count) })
}

// fhirName is as much of a HumanName as we take.
type fhirName struct {
	Use    string     `json:"use"`
	Family string     `json:"family"`
	Given  []string   `json:"given"`
	Period fhirPeriod `json:"period"`
}

type fhirPeriod struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// nameUses are the uses of a name, the best one first; a use that is not among them is as good as none. A name of old is nobody's any more.
// Source: FHIR R4, value set name-use.
var nameUses = []string{"official", "usual", "", "temp", "nickname", "anonymous", "maiden"}

// parts are first and last name; of several given names the first.
func (n fhirName) parts() (first, last string) {
	if len(n.Given) > 0 {
		first = validate.CleanLine(n.Given[0])
	}
	return first, validate.CleanLine(n.Family)
}

// rank orders names: one with first and last name comes before one that lacks either, then the use counts.
func (n fhirName) rank() int {
	use := slices.Index(nameUses, n.Use)
	if use < 0 {
		use = slices.Index(nameUses, "")
	}
	if first, last := n.parts(); first == "" || last == "" {
		use += len(nameUses)
	}
	return use
}

// name is the official one, else the usual, else any that can be used: a nickname alone does not hide a whole name. Names of old, and those whose time is
// over or has not come, are passed over.
func (f fhirPatient) name(now time.Time) (first, last string) {
	best := -1
	for i, n := range f.Name {
		if n.Use == "old" || !n.Period.holds(now) {
			continue
		}
		if best < 0 || n.rank() < f.Name[best].rank() {
			best = i
		}
	}
	if best < 0 {
		return "", ""
	}
	return f.Name[best].parts()
}

// holds reports whether a moment is in the period. Dates may be of any precision: an end includes all of its day, month or year. What cannot be read
// bounds nothing. Source: FHIR R4, datatypes.html, Period.
func (p fhirPeriod) holds(now time.Time) bool {
	if start, _, ok := span(p.Start); ok && now.Before(start) {
		return false
	}
	_, end, ok := span(p.End)
	return !ok || now.Before(end)
}

// span is from when to when, excluded, a FHIR date or time lasts.
func span(text string) (from, to time.Time, ok bool) {
	for _, precision := range []struct {
		layout        string
		years, months int
		days          int
	}{{"2006", 1, 0, 0}, {"2006-01", 0, 1, 0}, {time.DateOnly, 0, 0, 1}} {
		if at, err := time.Parse(precision.layout, text); err == nil {
			return at, at.AddDate(precision.years, precision.months, precision.days), true
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, at, err == nil
}
