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

// maxNameQueries bounds the searches for one name.
const maxNameQueries = 5

// nameQueries returns the searches for a name, the likeliest first, since servers support different ones.
//
// A string search matches the start of one part of a name, so several words at once match nothing. HAPI and Epic both support given and
// family name in parameters of their own; Epic requires them for a match, and accepts `name` once and not together with them. Each word in
// a `name` of its own (ANDed) finds the parts in any order on servers that follow the specification. With more than two words the start of
// the family name is unknown: the last word is tried first, "van der Berg" later. A comma marks it.
// Source: FHIR R4, search.html, string and multiple parameters; docs/decisions/emr.md, "Patient search".
func nameQueries(name string) []url.Values {
	family, given, hasComma := strings.Cut(name, ",")
	words := strings.Fields(strings.ReplaceAll(name, ",", " "))
	switch {
	case len(words) == 0:
		return []url.Values{{}}
	case len(words) == 1:
		return []url.Values{{"name": escaped(words...)}}
	}
	var queries []url.Values
	add := func(given, family []string) {
		if len(given) > 0 && len(family) > 0 {
			queries = append(queries, url.Values{"given": escaped(strings.Join(given, " ")), "family": escaped(strings.Join(family, " "))})
		}
	}
	if hasComma {
		add(strings.Fields(strings.ReplaceAll(given, ",", " ")), strings.Fields(family))
	} else {
		add(words[:len(words)-1], words[len(words)-1:])
	}
	queries = append(queries, url.Values{"name": escaped(words...)})
	for at := len(words) - 2; at > 0 && !hasComma; at-- {
		add(words[:at], words[at:])
	}
	return queries[:min(len(queries), maxNameQueries)]
}

// escaped escapes the characters with a meaning in search values. Source: FHIR R4, search.html, escaping search parameters.
func escaped(values ...string) []string {
	quote := strings.NewReplacer(`\`, `\\`, `$`, `\$`, `|`, `\|`)
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = quote.Replace(value)
	}
	return texts
}

// searchByName runs the queries in turn until one finds a patient. It skips queries that the EMR rejects (400 or
// 422), and returns that error only if the EMR rejects all.
func searchByName(name string, criteria url.Values, search func(url.Values) (PatientMatches, error)) (found PatientMatches, err error) {
	accepted := false
	for _, query := range nameQueries(name) {
		maps.Copy(query, criteria)
		matches, refusal := search(query)
		if len(matches.Patients) > 0 {
			return matches, nil
		}
		found.Truncated = found.Truncated || matches.Truncated
		if e, ok := refusal.(*Error); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) { //nolint:errorlint // always our own
			if err == nil {
				err = refusal
			}
			continue
		}
		if refusal != nil {
			return PatientMatches{}, refusal
		}
		accepted = true
	}
	if accepted {
		return found, nil
	}
	return PatientMatches{}, err
}

// SearchPatients sends each query for the name once, without retries: the person at the screen can search again. It follows links to
// further pages until it has Count patients, but never to another origin. The error is always an *Error.
// Source: docs/decisions/emr.md, "Patient search".
func (c *Client) SearchPatients(ctx context.Context, q PatientQuery) (PatientMatches, error) {
	return searchByName(q.Name.Reveal(), q.paramsWithoutName(), func(values url.Values) (PatientMatches, error) {
		return c.search(ctx, values, q.Count)
	})
}

// fhirName is the part of a HumanName that the service reads.
type fhirName struct {
	timed
	Family string   `json:"family"`
	Given  []string `json:"given"`
}

type fhirPeriod struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// nameUses are the uses of a name, best first; a use not listed ranks like a missing one. Old names are not used.
// Source: FHIR R4, value set name-use.
var nameUses = []string{"official", "usual", "", "temp", "nickname", "anonymous", "maiden"}

// parts returns the first given name that is not empty, and the family name.
func (n fhirName) parts() (first, last string) {
	for _, given := range n.Given { // null where an extension takes the place of a name
		if first = validate.CleanLine(given); first != "" {
			break
		}
	}
	return first, validate.CleanLine(n.Family)
}

// rank orders names: those with first and last name before others, then by use.
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

// name returns the official name, else the usual, else any: a nickname alone does not precede a full name. Old names, and those outside
// their period, are skipped.
func (f fhirPatient) name(now time.Time) (first, last string) {
	best := -1
	for i, n := range f.Name {
		if !n.current(now) {
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

// contains reports whether a time is in the period. Dates may have any precision: an end includes all of its day, month or year. A bound
// that cannot be parsed is ignored. Source: FHIR R4, datatypes.html, Period.
func (p fhirPeriod) contains(now time.Time) bool {
	if start, _, ok := span(p.Start); ok && now.Before(start) {
		return false
	}
	_, end, ok := span(p.End)
	return !ok || now.Before(end)
}

// span returns the start and the (excluded) end of a FHIR date or time.
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
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} { // some EMRs leave out the zone
		if at, err := time.Parse(layout, text); err == nil {
			return at, at, true
		}
	}
	return from, to, false
}
