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

// searchRequest is a parsed search and the URL of its result.
type searchRequest struct {
	search     *fhirserver.Search
	understood url.Values
	self       string
}

// parameters returns the parameters of the query string and, for a POST search, of the form in the body.
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

// isStrict reports whether the caller prefers that unknown parameters are rejected. Source: FHIR R4, search, "handling
// errors"; RFC 7240.
func isStrict(c *web.Call) bool {
	for preference := range strings.SplitSeq(strings.ReplaceAll(strings.Join(c.Request.Header.Values("Prefer"), ","), ";", ","), ",") {
		name, value, _ := strings.Cut(strings.ReplaceAll(strings.TrimSpace(preference), " ", ""), "=")
		if strings.EqualFold(name, "handling") {
			return strings.EqualFold(strings.Trim(value, `"`), "strict")
		}
	}
	return false
}

// readSearch parses a search, or the next page of one.
func (a *api) readSearch(c *web.Call, kind *fhirserver.ResourceType, params url.Values) (q searchRequest, err error) {
	if err := c.RequireScopes(authz.SystemPart(kind.Type, authz.InteractionSearch)); err != nil {
		return q, err
	}
	request := fhirserver.Request{Params: params, Strict: isStrict(c), Now: c.Now, Reader: fhirReader(c)}
	if len(params[fhirserver.PageParam]) > 1 {
		return q, fault.Field(fhirserver.PageParam, web.MsgRepeated)
	}
	page, after := params.Get(fhirserver.PageParam), fhirserver.Position{}
	if params.Has(fhirserver.PageParam) {
		request.Strict = true // the first page was accepted already
		if request.Params, after, err = fhirserver.OpenPage(kind, page); err != nil {
			return q, err
		}
	}
	if q.search, q.understood, err = a.fhirEngine().ParseSearch(kind, request); err != nil {
		return q, err
	}
	if err := choosePatientOfSearch(c, q.search, request.Params); err != nil {
		return q, err
	}
	q.search.Reader, q.search.After = fhirReader(c), after
	q.search.SetContext(c.Request.Context())
	if q.search.Reader.CareTeamOf, err = a.careTeamFilter(c, q.search.SinglePatient()); err != nil {
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

// choosePatientOfSearch sets the patient that a portal search is about: the only one it names.
func choosePatientOfSearch(c *web.Call, search *fhirserver.Search, params url.Values) error {
	field, named := "patient", search.SinglePatient()
	if search.Type.Type == audit.ResourcePatient {
		field = "_id"
		if ids := params["_id"]; len(ids) == 1 && !strings.Contains(ids[0], ",") {
			named = ids[0]
		}
	}
	return c.ChoosePatient(field, named, named != "")
}

func (a *api) searchFHIR(c *web.Call, kind *fhirserver.ResourceType) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	return a.answerSearch(c, kind, params)
}

// searchCompartment searches the resources of the patient in the path. Source: FHIR R4, http, "search", compartments.
func (a *api) searchCompartment(c *web.Call, kind *fhirserver.ResourceType) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	delete(params, fhirserver.PageParam)
	params.Add("patient", c.Request.PathValue("id"))
	return a.answerSearch(c, kind, params)
}

func (a *api) answerSearch(c *web.Call, kind *fhirserver.ResourceType, params url.Values) error {
	q, err := a.readSearch(c, kind, params)
	if err != nil {
		return err
	}
	found, err := a.fhirEngine().Search(c.App, q.search)
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
	return a.answerBundle(c, q, found, links)
}

// The default and the largest number of readings of each kind in $lastn.
const (
	lastCount    = 1
	maxLastCount = 100
)

// readLastObservations answers with the latest readings of each kind of one patient. Source: FHIR R4, Observation,
// "$lastn".
func (a *api) readLastObservations(c *web.Call, kind *fhirserver.ResourceType) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	most := lastCount
	if len(params["max"]) > 1 {
		return fault.Field("max", web.MsgRepeated)
	}
	if params.Has("max") {
		if most, err = strconv.Atoi(params.Get("max")); err != nil || most < 1 {
			return fault.Field("max", "Must be a positive integer.")
		}
	}
	most = min(most, maxLastCount)
	given := params.Has("max")
	delete(params, "max")
	q, err := a.readSearch(c, kind, params)
	if err != nil {
		return err
	}
	if q.search.SinglePatient() == "" {
		return fault.Field("patient", "Give one patient.")
	}
	found, err := a.fhirEngine().LastN(c.App, q.search, most, q.understood.Has("status"))
	if err != nil {
		return err
	}
	if given {
		q.understood.Set("max", strconv.Itoa(most))
	}
	self := a.PublicURL + fhirserver.Base + "/" + kind.Type + "/$lastn?" + q.understood.Encode()
	return a.answerBundle(c, q, found, []fhir.Link{{Relation: "self", URL: self}})
}

// answerBundle answers with a page and its included resources, and records the patients shown. Unreadable and forbidden
// resources are left out, with a warning in the bundle.
func (a *api) answerBundle(c *web.Call, q searchRequest, found fhirserver.Result, links []fhir.Link) error {
	besides, withheld, err := a.fhirEngine().LoadIncludes(c.App, q.search, found.Rows, func(kind *fhirserver.ResourceType) bool {
		if c.Caller.Client != nil {
			return c.Caller.Client.Scopes.Allow(kind.Scope())
		}
		return authz.ReachOf(c.Caller.Role, kind.Action) != authz.None
	})
	if err != nil {
		return err
	}
	page := searchPage{base: a.PublicURL + fhirserver.Base, view: q.search.View}
	if err := page.add(q.search.Type, fhir.ModeMatch, found.Rows); err != nil {
		return err
	}
	shown := found.Rows
	for _, kind := range fhirserver.ResourceTypes {
		if err := page.add(kind, fhir.ModeInclude, besides[kind]); err != nil {
			return err
		}
		shown = append(shown, besides[kind]...)
	}
	for _, kind := range withheld {
		page.remarks = append(page.remarks, fhir.Issue{Type: "suppressed", Severity: "warning", Text: kind.Type + " is left out: the caller may not read it."})
	}
	if err := page.addRemarks(); err != nil {
		return err
	}
	if err := recordSearch(c, q, shown); err != nil {
		return err
	}
	return a.sendResource(c, fhir.Searchset(found.Total, links, page.entries))
}

// recordSearch records the patients that a search showed; a search by a person's name is recorded as a patient search.
func recordSearch(c *web.Call, q searchRequest, shown []fhirserver.Row) error {
	kind := *q.search.Type
	if q.search.UsesIdentity() {
		kind.Event = audit.PatientSearch
	}
	return recordFHIR(c, &kind, "", shown)
}

// searchPage collects the entries of a search result.
type searchPage struct {
	base    string
	view    fhir.View // of the matches and, as far as it is a summary, of the included resources
	entries []fhir.SearchEntry
	remarks []fhir.Issue
}

func (p *searchPage) add(kind *fhirserver.ResourceType, mode string, rows []fhirserver.Row) error {
	return p.addRows(kind.Type, mode, rows)
}

func (p *searchPage) addRows(resourceType, mode string, rows []fhirserver.Row) error {
	view := p.view
	if mode != fhir.ModeMatch {
		view = view.WithoutElements()
	}
	unreadable := 0
	for _, row := range rows {
		if row.Unreadable {
			unreadable++
			continue
		}
		body, err := row.Resource.Encode()
		if err == nil {
			body, err = view.Apply(body)
		}
		if err != nil {
			return err
		}
		p.entries = append(p.entries, fhir.SearchEntry{URL: p.base + "/" + resourceType + "/" + row.ID, Resource: body, Mode: mode})
	}
	if unreadable > 0 {
		p.remarks = append(p.remarks, fhir.Issue{
			Type: "incomplete", Severity: "warning", Text: fmt.Sprintf("%d of type %s left out: a stored value cannot be read.", unreadable, resourceType),
		})
	}
	return nil
}

// addRemarks adds an OperationOutcome with the warnings.
func (p *searchPage) addRemarks() error {
	if len(p.remarks) == 0 {
		return nil
	}
	body, err := fhir.OperationOutcome(p.remarks...)
	if err != nil {
		return err
	}
	p.entries = append(p.entries, fhir.SearchEntry{Resource: body, Mode: fhir.ModeOutcome})
	return nil
}
