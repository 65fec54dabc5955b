package fhirserver

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pocketbase/dbx"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// Param is a search parameter of a resource type.
type Param struct {
	Name string
	Type string // FHIR search parameter type
	// Definition is the URL of the SearchParameter; "" if R4 defines none.
	Definition string
	// Modifiers are the supported modifiers.
	Modifiers []string
	// add adds the condition that one of the values matches, or returns what is wrong with the values.
	add func(s *Search, in *parseContext, v values) (problem string)
}

// values are the alternatives of one parameter; a resource must match at least one.
type values struct {
	modifier string
	any      []string
}

// parseContext holds what the parsing of values depends on.
type parseContext struct {
	engine *Engine
	now    time.Time
}

const definitions = "http://hl7.org/fhir/SearchParameter/"

// commonParams are the parameters of all types.
var commonParams = []Param{
	{Name: "_id", Type: "token", Definition: definitions + "Resource-id", add: func(s *Search, _ *parseContext, v values) string {
		s.FilterIDs(v.any...)
		return ""
	}},
	timeParam("_lastUpdated", definitions+"Resource-lastUpdated", collections.ByUpdated),
}

// AllParams returns the parameters of the type, with the common ones first.
func (t *ResourceType) AllParams() []Param { return slices.Concat(commonParams, t.Params) }

func (t *ResourceType) param(name string) *Param {
	all := t.AllParams()
	if i := slices.IndexFunc(all, func(p Param) bool { return p.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// timeParam returns a date parameter that searches a column of instants.
func timeParam(name, definition, by string) Param {
	return Param{Name: name, Type: "date", Definition: definition, add: func(s *Search, in *parseContext, v values) string {
		stretches := make([]collections.TimeRange, len(v.any))
		for i, text := range v.any {
			var ok bool
			if stretches[i], ok = parseTimeRange(text, in.engine.Zone, in.now); !ok {
				return msgDate
			}
		}
		s.dated = true
		s.addCondition(s.Type.table.During(by, stretches))
		return ""
	}}
}

const msgReference = "Must be the id of a resource on this server, optionally after the resource type and a slash."

// ids parses references to resources of a type: an id, Type/id, or an absolute URL on this server. References to other servers match nothing.
func (c *parseContext) ids(target string, v values) (ids []string, ok bool) {
	if v.modifier != "" && v.modifier != target {
		return nil, false
	}
	ids = []string{}
	for _, text := range v.any {
		text = strings.TrimPrefix(text, c.engine.PublicURL+Base+"/")
		id, typed := strings.CutPrefix(text, target+"/")
		switch {
		case strings.Contains(id, "://"):
			continue
		case strings.Contains(id, "/") && !typed:
			kind, _, _ := strings.Cut(id, "/")
			if !typeName.MatchString(kind) {
				return nil, false
			}
			continue // a resource of another type matches nothing
		case !validID(id):
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// typeName matches the name of a resource type.
var typeName = regexp.MustCompile(`^[A-Z][A-Za-z]+$`)

// validID reports whether text may be the id of a resource. Source: FHIR R4, datatypes, id.
func validID(text string) bool {
	const most = 64
	return text != "" && len(text) <= most && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

// patientParam returns a reference parameter that searches the patient of a resource.
func patientParam(name, definition string) Param {
	return Param{Name: name, Type: "reference", Definition: definition, Modifiers: []string{"Patient"}, add: func(s *Search, in *parseContext, v values) string {
		ids, ok := in.ids("Patient", v)
		if !ok {
			return msgReference
		}
		for i, id := range ids {
			ids[i] = strings.ToLower(id) // patient ids are stored in lower case
		}
		s.FilterPatients(ids...)
		return ""
	}}
}

// token is the value of a token parameter: a code with an optional system.
type token struct {
	system string
	// any: the token matches a code of any system. Otherwise system must match exactly; "" matches codes without a system.
	any  bool
	code string
}

func parseToken(text string) token {
	system, code, hasSystem := strings.Cut(text, "|")
	if !hasSystem {
		return token{any: true, code: text}
	}
	return token{system: system, code: code}
}

// is reports whether the token matches a code of a system. A token with only a system matches all codes of the system.
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

// codeParam returns a token parameter with a fixed list of codes, each mapped to its stored values. A code that is not in the list is invalid.
func codeParam(name, definition, by, system string, list []code) Param {
	return codeParamWith(name, definition, system, list, func(s *Search, stored []string) { s.addCondition(s.Type.table.AnyOf(by, stored)) })
}

// codeParamWith is codeParam with another condition on the stored values.
func codeParamWith(name, definition, system string, list []code, restrict func(s *Search, stored []string)) Param {
	return Param{Name: name, Type: "token", Definition: definition, add: func(s *Search, _ *parseContext, v values) string {
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
		restrict(s, stored)
		return ""
	}}
}

// code is a FHIR code of a fixed list, with its stored values.
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

// matchingKinds returns the kinds of readings that match at least one token.
func matchingKinds(v values, matches func(t token, d *vitals.Definition) bool) []string {
	kinds := []string{}
	for _, d := range vitals.Definitions {
		if slices.ContainsFunc(v.tokens(), func(t token) bool { return matches(t, d) }) {
			kinds = append(kinds, string(d.Kind))
		}
	}
	return kinds
}

// maxExponent bounds the exponent of a number in a search; no measured value comes near it.
const maxExponent = 99

// parseNumberRange parses a prefixed number into a range of values. The written digits set the precision: 140 matches 139.5 up to 140.5.
// Source: FHIR R4, search, "number".
func parseNumberRange(text string) (b collections.ValueRange, ok bool) {
	prefix, digits := cutPrefix(text)
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xXpPiInN_") {
		return b, false
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(digits), "e")
	power := 0
	if scientific {
		if power, err = strconv.Atoi(exponent); err != nil || power < -maxExponent || power > maxExponent {
			return b, false // zero has no limit of its own
		}
	}
	_, fraction, _ := strings.Cut(mantissa, ".")
	step := math.Pow10(max(power, 0) - len(fraction))
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

// addAnyOf restricts the search to resources that meet at least one of the conditions.
func (s *Search) addAnyOf(conditions []dbx.Expression) {
	s.addCondition(collections.AnyCondition(conditions))
}

// identifierSystem is a system of identifiers with the condition that searches it.
type identifierSystem struct {
	system string
	find   func(by string, numbers []string) dbx.Expression
	by     string
}

// filterByIdentifiers restricts the search to resources with one of the identifiers. A system followed by a bar and no value matches any identifier of the
// system.
// Source: FHIR R4, search, "token".
func (s *Search) filterByIdentifiers(v values, systems ...identifierSystem) string {
	conditions := []dbx.Expression{}
	for _, n := range systems {
		numbers := []string{}
		for _, t := range v.tokens() {
			switch {
			case t.code == "" && t.system == "":
				return "Must be an identifier, optionally after its system and a bar."
			case t.code == "" && t.system == n.system:
				conditions = append(conditions, s.Type.table.Has(n.by))
			case t.is(n.system, t.code):
				numbers = append(numbers, t.code)
			}
		}
		conditions = append(conditions, n.find(n.by, numbers))
	}
	s.addAnyOf(conditions)
	return ""
}
