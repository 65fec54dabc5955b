package fhirserver

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Request is what somebody asks of a type.
type Request struct {
	Params url.Values
	// Strict refuses what is not known, instead of leaving it out. Source: FHIR R4, search, "handling errors".
	Strict bool
	Now    time.Time
	Reader Reader
}

// The codes of what is wrong with a search besides what its values are.
const (
	CodeNotSupported = "not_supported"
	CodeTooCostly    = "too_costly"
	CodeTooLong      = "too_long"
)

// parser reads the parameters of one search.
type parser struct {
	Request
	search     *Search
	in         *reading
	understood url.Values
	problems   fault.Fields
	code       string
}

// passing are parameters that say how to answer, not what to look for; whoever answers reads them.
var passing = []string{"_format", "_pretty"}

// Read reads what is asked. Understood are the parameters that were taken into account; a fault names each one that is wrong.
func (e *Engine) Read(k *Kind, r Request) (s *Search, understood url.Values, err error) {
	p := &parser{Request: r, search: NewSearch(k, r.Reader), in: &reading{e, r.Now}, understood: url.Values{}, problems: fault.Fields{}}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		for _, text := range r.Params[name] {
			p.one(name, text)
		}
	}
	s = p.search
	if len(s.needs) > 0 && s.patients == nil && !s.ids && !s.dated {
		for _, n := range s.needs {
			p.refuse(n.param, CodeTooCostly, n.words)
		}
	}
	if err := p.problems.Err(); err != nil {
		wrong := fault.Validation(p.problems)
		if p.code != "" {
			wrong.Code = p.code
		}
		return nil, nil, wrong
	}
	return s, p.understood, nil
}

// refuse notes what is wrong with a parameter. Wrong values weigh more than what is not supported.
func (p *parser) refuse(name, code, words string) {
	if len(p.problems) == 0 {
		p.code = code
	} else if p.code != code {
		p.code = ""
	}
	p.problems.Add(name, words)
}

func (p *parser) invalid(name, words string) { p.refuse(name, "", words) }

// unknown is a parameter that nobody knows here: refused where that was asked for, else left out.
func (p *parser) unknown(name, words string) {
	if p.Strict {
		p.refuse(name, CodeNotSupported, words)
	}
}

const msgUnknown = "This parameter is not known here."

func (p *parser) one(name, text string) {
	base, modifier, _ := strings.Cut(name, ":")
	if read, known := results[base]; known && (modifier == "" || base == "_include" || base == "_revinclude") {
		if problem := read(p, modifier, text); problem != "" {
			p.invalid(base, problem)
		}
		return
	}
	if slices.Contains(passing, name) {
		return
	}
	first, _, chained := strings.Cut(base, ".")
	param := p.search.Kind.param(first)
	_, further, _ := strings.Cut(modifier, ".")
	switch {
	case base == "_has", chained, further != "":
		// To leave a condition out that narrows whose data is shown would show others' data. That holds of parameters that nobody knows here, too: what
		// has a chain is sure to narrow.
		p.refuse(name, CodeNotSupported, "Chained searches are not known here.")
	case param == nil:
		p.unknown(name, msgUnknown)
	case modifier != "" && !slices.Contains(param.Modifiers, modifier):
		p.refuse(name, CodeNotSupported, "This modifier is not known here.")
	case strings.TrimSpace(text) == "":
		p.invalid(base, "A value is required.")
	default:
		v := values{modifier: modifier, any: alternatives(text)}
		if slices.Contains(v.any, "") {
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

// alternatives parts a value at its commas, but for those that are escaped.
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

// results are the parameters that say what is shown of what was found.
var results = map[string]func(p *parser, modifier, text string) (problem string){
	"_count": (*parser).count, "_sort": (*parser).sort, "_include": (*parser).include, "_revinclude": (*parser).join,
	"_summary": (*parser).summary, "_total": (*parser).total,
}

func (p *parser) count(_, text string) string {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return "Must be a whole number."
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > MaxCount { // too many digits are too many resources
		n = MaxCount
	}
	if n == 0 { // which is how to ask for the number alone
		p.search.CountOnly = true
	} else {
		p.search.Limit = n
	}
	p.understood.Set("_count", strconv.Itoa(n))
	return ""
}

func (p *parser) sort(_, text string) string {
	name, descending := strings.CutPrefix(text, "-")
	at := slices.IndexFunc(p.search.Kind.Orders, func(o Order) bool { return o.Param == name && o.Descending == descending })
	if at < 0 {
		p.unknown("_sort", "Must be one of: "+strings.Join(p.search.Kind.Sorts(), ", ")+".")
		return ""
	}
	p.search.Order = &p.search.Kind.Orders[at]
	p.understood.Set("_sort", text)
	return ""
}

// Sorts are the orders that may be asked for.
func (k *Kind) Sorts() []string {
	names := make([]string, len(k.Orders))
	for i, o := range k.Orders {
		names[i] = o.Param
		if o.Descending {
			names[i] = "-" + o.Param
		}
	}
	return names
}

func (p *parser) include(modifier, text string) string {
	p.bring("_include", modifier, strings.TrimSuffix(text, ":Patient"), text, p.search.Kind.Includes, &p.search.Include)
	return ""
}

func (p *parser) join(modifier, text string) string {
	p.bring("_revinclude", modifier, text, text, p.search.Kind.Joins, &p.search.Join)
	return ""
}

// bring notes what is to be brought along. What is brought along brings nothing itself, so that asking for it again and again changes nothing.
func (p *parser) bring(name, modifier, wanted, text string, known []string, list *[]string) {
	if !slices.Contains(known, wanted) || modifier != "" && modifier != "iterate" {
		p.unknown(name, "Must be one of: "+strings.Join(known, ", ")+".")
		return
	}
	if !slices.Contains(*list, wanted) {
		*list = append(*list, wanted)
	}
	p.understood.Add(name, text)
}

func (p *parser) summary(_, text string) string {
	switch text {
	case "count":
		p.search.CountOnly = true
	case "false":
	case "true", "text", "data":
		p.unknown("_summary", "Must be one of: count, false.")
		return ""
	default:
		return "Must be one of: count, false."
	}
	p.understood.Set("_summary", text)
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
