package routes

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/routes/web"
)

// asked is what a request looks for, and the address of its result.
type asked struct {
	search     *fhirserver.Search
	understood url.Values
	self       string
}

// parameters are those of the address and, of a search that is sent in a body, those of the form.
func parameters(c *web.Call) (url.Values, error) {
	params, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return nil, fault.Field(fault.NonField, "The query string is malformed.")
	}
	if c.Request.Method != http.MethodPost {
		return params, nil
	}
	raw, err := c.Body()
	if err != nil {
		return nil, err
	}
	kind, _, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if len(raw) > 0 && (err != nil || kind != "application/x-www-form-urlencoded") {
		return nil, fault.New(fault.UnsupportedMediaType, "unsupported_media_type", "The request body must be application/x-www-form-urlencoded.")
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, fault.Field(fault.NonField, "The form is malformed.")
	}
	for name, values := range form {
		params[name] = append(params[name], values...)
	}
	return params, nil
}

// strict reports whether the caller wants what is not known refused. Source: FHIR R4, search, "handling errors"; RFC 7240.
func strict(c *web.Call) bool {
	for preference := range strings.SplitSeq(strings.ReplaceAll(strings.Join(c.Request.Header.Values("Prefer"), ","), ";", ","), ",") {
		name, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(preference), " ", ""), "=")
		if strings.EqualFold(name, "handling") {
			return strings.EqualFold(strings.Trim(value, `"`), "strict")
		}
	}
	return false
}

// ask reads what a request looks for: a search, or the next page of one.
func (a *api) ask(c *web.Call, kind *fhirserver.Kind, params url.Values) (q asked, err error) {
	request := fhirserver.Request{Params: params, Strict: strict(c), Now: c.Now, Reader: reader(c)}
	page, after := params.Get(fhirserver.PageParam), fhirserver.Position{}
	if params.Has(fhirserver.PageParam) {
		request.Strict = true // it was understood before
		if request.Params, after, err = fhirserver.OpenPage(kind, page); err != nil {
			return q, err
		}
	}
	if q.search, q.understood, err = a.reads().Read(kind, request); err != nil {
		return q, err
	}
	q.search.After = after
	q.search.Within(c.Request.Context())
	if q.search.Reader.CareTeamOf, err = a.team(c, q.search.Patient()); err != nil {
		return q, err
	}
	q.self = a.PublicURL + fhirserver.Base + "/" + kind.Type
	switch {
	case page != "":
		q.self += "?" + url.Values{fhirserver.PageParam: {page}}.Encode()
	case len(q.understood) > 0:
		q.self += "?" + q.understood.Encode()
	}
	return q, nil
}

func (a *api) searchFHIR(c *web.Call, kind *fhirserver.Kind) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	q, err := a.ask(c, kind, params)
	if err != nil {
		return err
	}
	found, err := a.reads().Search(c.App, q.search)
	if err != nil {
		return err
	}
	links := []fhir.Link{{Relation: "self", URL: q.self}}
	if found.Next != nil {
		next, err := fhirserver.NextPage(kind, q.understood, *found.Next)
		if err != nil {
			return err
		}
		links = append(links, fhir.Link{Relation: "next", URL: a.PublicURL + fhirserver.Base + "/" + kind.Type + "?" + fhirserver.PageParam + "=" + next})
	}
	return a.answerFound(c, q, found, links)
}

// The number of readings of each kind that are the last, when nobody says how many, and at most.
const (
	lastCount = 1
	mostLast  = 100
)

// lastFHIR answers the last readings of each kind of one patient. Source: FHIR R4, Observation, "$lastn".
func (a *api) lastFHIR(c *web.Call, kind *fhirserver.Kind) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	most := lastCount
	if params.Has("max") {
		if most, err = strconv.Atoi(params.Get("max")); err != nil || most < 1 {
			return fault.Field("max", "Must be a positive integer.")
		}
	}
	most = min(most, mostLast)
	given := params.Has("max")
	delete(params, "max")
	q, err := a.ask(c, kind, params)
	if err != nil {
		return err
	}
	if q.search.Patient() == "" {
		return fault.Field("patient", "One patient is required.")
	}
	found, err := a.reads().LastN(c.App, q.search, most, q.understood.Has("status"))
	if err != nil {
		return err
	}
	if given {
		q.understood.Set("max", strconv.Itoa(most))
	}
	self := a.PublicURL + fhirserver.Base + "/" + kind.Type + "/$lastn?" + q.understood.Encode()
	return a.answerFound(c, q, found, []fhir.Link{{Relation: "self", URL: self}})
}

// answerFound answers a page with what was to be brought along, and records who was shown. What cannot be read, or is not for the caller, is told
// of and left out.
func (a *api) answerFound(c *web.Call, q asked, found fhirserver.Result, links []fhir.Link) error {
	besides, withheld, err := a.reads().Besides(c.App, q.search, found.Rows, func(kind *fhirserver.Kind) bool {
		if c.Caller.Client != nil {
			return c.Caller.Client.Scopes.Allow(kind.Scope())
		}
		return authz.Reach(c.Caller.Role, kind.May) != authz.None
	})
	if err != nil {
		return err
	}
	page := foundPage{base: a.PublicURL + fhirserver.Base}
	if err := page.add(q.search.Kind, fhir.Match, found.Rows); err != nil {
		return err
	}
	shown := found.Rows
	for _, kind := range fhirserver.Kinds {
		if err := page.add(kind, fhir.Include, besides[kind]); err != nil {
			return err
		}
		shown = append(shown, besides[kind]...)
	}
	for _, kind := range withheld {
		page.remarks = append(page.remarks, fhir.Issue{Type: "suppressed", Severity: "warning", Text: kind.Type + " is left out: it is not for this caller."})
	}
	if err := page.remark(); err != nil {
		return err
	}
	if err := recordSearch(c, q, shown); err != nil {
		return err
	}
	return a.sendResource(c, fhir.Searchset(found.Total, links, page.entries))
}

// recordSearch notes whose data a search showed; one for people by what they are called is a search for patients.
func recordSearch(c *web.Call, q asked, shown []fhirserver.Row) error {
	kind := *q.search.Kind
	if q.search.ForSomebody() {
		kind.Event = audit.PatientSearch
	}
	return recordFHIR(c, &kind, "", shown)
}

// foundPage are the entries of a result.
type foundPage struct {
	base    string
	entries []fhir.Found
	remarks []fhir.Issue
}

func (p *foundPage) add(kind *fhirserver.Kind, mode string, rows []fhirserver.Row) error {
	unreadable := 0
	for _, row := range rows {
		if row.Unreadable {
			unreadable++
			continue
		}
		body, err := row.Resource.Encode()
		if err != nil {
			return err
		}
		p.entries = append(p.entries, fhir.Found{URL: p.base + "/" + kind.Type + "/" + row.ID, Resource: body, Mode: mode})
	}
	if unreadable > 0 {
		p.remarks = append(p.remarks, fhir.Issue{
			Type: "incomplete", Severity: "warning", Text: fmt.Sprintf("%d of type %s left out: a stored value cannot be read.", unreadable, kind.Type),
		})
	}
	return nil
}

// remark adds what is to be said of the result.
func (p *foundPage) remark() error {
	if len(p.remarks) == 0 {
		return nil
	}
	body, err := fhir.OperationOutcome(p.remarks...)
	if err != nil {
		return err
	}
	p.entries = append(p.entries, fhir.Found{Resource: body, Mode: fhir.Remark})
	return nil
}
