package fhirserver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Request is the unparsed search of one resource type.
type Request struct {
	Params url.Values
	// Strict rejects unknown parameters instead of ignoring them. Source: FHIR R4, search, "handling errors".
	Strict bool
	Now    time.Time
	Reader Reader
}

// The error codes of searches, other than for invalid values.
const (
	CodeNotSupported = "not_supported"
	CodeTooCostly    = "too_costly"
	CodeTooLong      = "too_long"
)

// parser parses the parameters of one search.
type parser struct {
	Request
	search     *Search
	in         *parseContext
	understood url.Values
	problems   fault.Fields
	code       string
}

// formatParams control the response format; the HTTP handler reads them.
var formatParams = []string{"_format", "_pretty"}

// ParseSearch parses a search. It returns the parameters that it applied, or a fault that names each invalid parameter.
func (e *Engine) ParseSearch(k *ResourceType, r Request) (s *Search, understood url.Values, err error) {
	p := &parser{Request: r, search: NewSearch(k, r.Reader), in: &parseContext{e, r.Now}, understood: url.Values{}, problems: fault.Fields{}}
	sent := 0
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		if base, _, _ := strings.Cut(name, ":"); len(r.Params[name]) > 1 && isSingle(base) {
			p.invalid(base, "Send this parameter once.")
		}
		for _, text := range r.Params[name] {
			if sent += len(alternatives(text)); sent > MaxValues {
				return nil, nil, fault.Field(name, msgTooMany)
			}
			p.parseParam(name, text)
		}
	}
	s = p.search
	if len(s.costly) > 0 && s.patients == nil && !s.ids && !s.dated {
		for _, n := range s.costly {
			p.reject(n.param, CodeTooCostly, n.words)
		}
	}
	if err := p.problems.Err(); err != nil {
		invalid := fault.Validation(p.problems)
		if p.code != "" {
			invalid.Code = p.code
		}
		return nil, nil, invalid
	}
	return s, p.understood, nil
}

// reject records an error for a parameter. Errors with different codes are reported as a plain validation error.
func (p *parser) reject(name, code, words string) {
	if len(p.problems) == 0 {
		p.code = code
	} else if p.code != code {
		p.code = ""
	}
	p.problems.Add(name, words)
}

func (p *parser) invalid(name, words string) { p.reject(name, "", words) }

// rejectIfStrict rejects an unknown parameter of a strict search; other searches ignore it.
func (p *parser) rejectIfStrict(name, words string) {
	if p.Strict {
		p.reject(name, CodeNotSupported, words)
	}
}

// MaxValues is the number of values in all parameters of a search: each is a term of the database's condition, which has at most 1,000.
const MaxValues = 500

var msgTooMany = fmt.Sprintf("A search has at most %d values.", MaxValues)

// isSingle reports whether a search has a parameter of this name at most once. Others may repeat: each narrows the search, or adds resources.
func isSingle(name string) bool {
	_, isResult := resultParams[name]
	return isResult && name != "_include" && name != "_revinclude"
}

const msgUnknown = "This parameter is not supported."

func (p *parser) parseParam(name, text string) {
	base, modifier, _ := strings.Cut(name, ":")
	if read, known := resultParams[base]; known && (modifier == "" || base == "_include" || base == "_revinclude") {
		if problem := read(p, modifier, text); problem != "" {
			p.invalid(base, problem)
		}
		return
	}
	if slices.Contains(formatParams, name) {
		return
	}
	first, _, chained := strings.Cut(base, ".")
	param := p.search.Type.param(first)
	_, further, _ := strings.Cut(modifier, ".")
	switch {
	case base == "_has", chained, further != "":
		// Always refused: ignoring a condition on the patient would return other patients' data. A chained parameter always restricts the result, even if
		// its base is unknown.
		p.reject(name, CodeNotSupported, "Chained searches are not supported.")
	case param == nil:
		p.rejectIfStrict(name, msgUnknown)
	case modifier != "" && !slices.Contains(param.Modifiers, modifier):
		p.reject(name, CodeNotSupported, "This modifier is not supported.")
	case strings.TrimSpace(text) == "":
		p.invalid(base, "A value is required.")
	default:
		v := values{modifier: modifier, any: alternatives(text)}
		isEmpty := func(text string) bool {
			return strings.TrimSpace(text) == "" || param.Type == "token" && strings.ReplaceAll(text, " ", "") == "|"
		}
		if slices.ContainsFunc(v.any, isEmpty) {
			p.invalid(base, "A value is required.")
			return
		}
		if problem := param.add(p.search, p.in, v); problem != "" {
			p.invalid(base, problem)
			return
		}
		p.understood.Add(name, text)
	}
}

// alternatives splits a value at its unescaped commas.
func alternatives(text string) (list []string) {
	var one strings.Builder
	escaped := false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
			one.WriteRune(r)
		case r == '\\':
			escaped = true
		case r == ',':
			list = append(list, one.String())
			one.Reset()
		default:
			one.WriteRune(r)
		}
	}
	return append(list, one.String())
}

// resultParams are the parameters that control the search result, not the matches.
var resultParams = map[string]func(p *parser, modifier, text string) (problem string){
	"_count": (*parser).count, "_sort": (*parser).sort, "_include": (*parser).include, "_revinclude": (*parser).revinclude,
	"_summary": (*parser).summary, "_total": (*parser).total, "_elements": (*parser).elements,
}

func (p *parser) count(_, text string) string {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return "Must be a whole number."
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > MaxCount { // an error means more digits than an int holds
		n = MaxCount
	}
	if n == 0 { // _count=0 requests only the total
		p.search.CountOnly = true
	} else {
		p.search.Limit = n
	}
	p.understood.Set("_count", strconv.Itoa(n))
	return ""
}

func (p *parser) sort(_, text string) string {
	name, descending := strings.CutPrefix(text, "-")
	at := slices.IndexFunc(p.search.Type.Orders, func(o Order) bool { return o.Param == name && o.Descending == descending })
	if at < 0 {
		p.rejectIfStrict("_sort", "Must be one of: "+strings.Join(p.search.Type.SortNames(), ", ")+".")
		return ""
	}
	p.search.Order = &p.search.Type.Orders[at]
	p.understood.Set("_sort", text)
	return ""
}

// SortNames returns the values that _sort accepts.
func (t *ResourceType) SortNames() []string {
	names := make([]string, len(t.Orders))
	for i, o := range t.Orders {
		names[i] = o.Param
		if o.Descending {
			names[i] = "-" + o.Param
		}
	}
	return names
}

func (p *parser) include(modifier, text string) string {
	p.addInclude("_include", modifier, strings.TrimSuffix(text, ":Patient"), text, p.search.Type.Includes, &p.search.Include)
	return ""
}

func (p *parser) revinclude(modifier, text string) string {
	p.addInclude("_revinclude", modifier, text, text, p.search.Type.RevIncludes, &p.search.RevInclude)
	return ""
}

// addInclude adds an _include or _revinclude value. Included resources include nothing further, so the iterate modifier has no effect.
func (p *parser) addInclude(name, modifier, wanted, text string, known []string, list *[]string) {
	if !slices.Contains(known, wanted) || modifier != "" && modifier != "iterate" {
		p.rejectIfStrict(name, "Must be one of: "+strings.Join(known, ", ")+".")
		return
	}
	if !slices.Contains(*list, wanted) {
		*list = append(*list, wanted)
	}
	p.understood.Add(name, text)
}

func (p *parser) summary(_, text string) string {
	if text == "count" {
		p.search.CountOnly = true
	} else if problem := p.search.View.SetSummary(text); problem != "" {
		return "Must be one of: true, text, data, count, false."
	}
	p.understood.Set("_summary", text)
	return ""
}

func (p *parser) elements(_, text string) string {
	if problem := p.search.View.SetElements(p.search.Type.Type, text); problem != "" {
		return problem
	}
	p.understood.Set("_elements", text)
	return ""
}

func (p *parser) total(_, text string) string {
	if !slices.Contains([]string{"none", "estimate", "accurate"}, text) {
		return "Must be one of: none, estimate, accurate."
	}
	p.search.Total = text
	p.understood.Set("_total", text)
	return ""
}
