package fhirserver

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Param is one search parameter of a type.
type Param struct {
	Name string
	Type string // of FHIR's kinds of search parameters
	// Definition is where it is defined; "" where that is nowhere in R4.
	Definition string
	// Modifiers are those that it takes.
	Modifiers []string
	// add adds the condition that one of the values holds, or says what is wrong with them.
	add func(s *Search, in *reading, v values) (problem string)
}

// values are what one parameter was sent with: alternatives, of which one has to hold.
type values struct {
	modifier string
	any      []string
}

// reading is what values are read with.
type reading struct {
	engine *Engine
	now    time.Time
}

const definitions = "http://hl7.org/fhir/SearchParameter/"

// common are the parameters of all types.
var common = []Param{
	{Name: "_id", Type: "token", Definition: definitions + "Resource-id", add: func(s *Search, _ *reading, v values) string {
		s.IDs(v.any...)
		return ""
	}},
	moment("_lastUpdated", definitions+"Resource-lastUpdated", collections.ByUpdated),
}

// All are the parameters of a type, those of all types first.
func (k *Kind) All() []Param { return slices.Concat(common, k.Params) }

func (k *Kind) param(name string) *Param {
	all := k.All()
	if i := slices.IndexFunc(all, func(p Param) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// moment is a parameter of a time.
func moment(name, definition, by string) Param {
	return Param{Name: name, Type: "date", Definition: definition, add: func(s *Search, in *reading, v values) string {
		stretches := make([]collections.TimeRange, len(v.any))
		for i, text := range v.any {
			var ok bool
			if stretches[i], ok = stretch(text, in.engine.Zone, in.now); !ok {
				return msgDate
			}
		}
		s.dated = true
		s.narrow(s.Kind.table.During(by, stretches))
		return ""
	}}
}

const msgReference = "Must be the id of a resource here, after the name of its type and a slash if need be."

// ids reads references to resources of a type: an id, Type/id, or the whole address of one here. Of others' addresses nothing is known.
func (in *reading) ids(target string, v values) (ids []string, ok bool) {
	if v.modifier != "" && v.modifier != target {
		return nil, false
	}
	ids = []string{}
	for _, text := range v.any {
		text = strings.TrimPrefix(text, in.engine.PublicURL+Base+"/")
		id, typed := strings.CutPrefix(text, target+"/")
		switch {
		case strings.Contains(id, "://"):
			continue
		case strings.Contains(id, "/") && !typed:
			kind, _, _ := strings.Cut(id, "/")
			if !typeName.MatchString(kind) {
				return nil, false
			}
			continue // a resource of another type is none that is meant
		case !validID(id):
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// typeName is how the name of a type looks.
var typeName = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// validID reports whether text may be the id of a resource. Source: FHIR R4, datatypes, id.
func validID(text string) bool {
	const most = 64
	return text != "" && len(text) <= most && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

// ofPatient is a parameter of whose a resource is.
func ofPatient(name, definition string) Param {
	return Param{Name: name, Type: "reference", Definition: definition, Modifiers: []string{"Patient"}, add: func(s *Search, in *reading, v values) string {
		ids, ok := in.ids("Patient", v)
		if !ok {
			return msgReference
		}
		for i, id := range ids {
			ids[i] = strings.ToLower(id) // as everywhere else
		}
		s.OfPatients(ids...)
		return ""
	}}
}

// token is a code, perhaps with its system before a bar.
type token struct {
	system string
	// any: whatever system; else it is the one that is named, "" being none.
	any  bool
	code string
}

func parseToken(text string) token {
	system, code, barred := strings.Cut(text, "|")
	if !barred {
		return token{any: true, code: text}
	}
	return token{system: system, code: code}
}

// is reports whether a code of a system is meant; a system alone means all of its codes.
func (t token) is(system, code string) bool {
	return (t.any || t.system == system) && (t.code == code || t.code == "" && !t.any)
}

func (v values) tokens() []token {
	tokens := make([]token, len(v.any))
	for i, text := range v.any {
		tokens[i] = parseToken(text)
	}
	return tokens
}

// coded is a parameter of a code of a list that is fixed: what stands in it is found by what is stored for it. What no list has is a mistake.
func coded(name, definition, by, system string, list []code) Param {
	return Param{Name: name, Type: "token", Definition: definition, add: func(s *Search, _ *reading, v values) string {
		stored := []string{}
		for _, t := range v.tokens() {
			known := false
			for _, c := range list {
				if t.is(system, c.code) {
					stored, known = append(stored, c.stored...), true
				}
			}
			if !known && (t.any || t.system == system) {
				return "Must be one of: " + codes(list) + "."
			}
		}
		s.narrow(s.Kind.table.AnyOf(by, stored))
		return ""
	}}
}

// code is one of a fixed list, with the values that are stored for it.
type code struct {
	code   string
	stored []string
}

func codes(list []code) string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.code
	}
	return strings.Join(names, ", ")
}

// kindsLike are the kinds of readings of which one of the codes says so.
func kindsLike(v values, says func(t token, d *vitals.Definition) bool) []string {
	kinds := []string{}
	for _, d := range vitals.Definitions {
		if slices.ContainsFunc(v.tokens(), func(t token) bool { return says(t, d) }) {
			kinds = append(kinds, string(d.Kind))
		}
	}
	return kinds
}

// number is a number with a prefix, as a range of values. A number is as exact as it is written: 140 is what rounds to it.
// Source: FHIR R4, search, "number".
func number(text string) (b collections.ValueRange, ok bool) {
	prefix, digits := cutPrefix(text)
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpPiInN_") {
		return b, false
	}
	step := 1.0
	if mantissa, exponent, scientific := strings.Cut(strings.ToLower(digits), "e"); scientific {
		digits = mantissa
		for n, err := strconv.Atoi(exponent); err == nil && n > 0; n-- {
			step *= 10
		}
	}
	if _, fraction, fractional := strings.Cut(digits, "."); fractional {
		for range fraction {
			step /= 10
		}
	}
	low, high := value-step/2, value+step/2
	switch prefix {
	case "gt", "sa":
		return collections.ValueRange{From: &value}, true
	case "ge":
		return collections.ValueRange{From: &value, FromIncluded: true}, true
	case "lt", "eb":
		return collections.ValueRange{To: &value}, true
	case "le":
		return collections.ValueRange{To: &value, ToIncluded: true}, true
	case "ap":
		low, high = min(value*0.9, value*1.1), max(value*0.9, value*1.1)
		return collections.ValueRange{From: &low, To: &high, FromIncluded: true, ToIncluded: true}, true
	}
	return collections.ValueRange{From: &low, FromIncluded: true, To: &high, Outside: prefix == "ne"}, true
}

// either keeps what one of the conditions holds for.
func (s *Search) either(conditions []dbx.Expression) { s.narrow(collections.AnyCondition(conditions)) }
