package routes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/routes/web"
)

// readPublic answers with a resource of a public type.
func (a *api) readPublic(c *web.Call, kind *fhirserver.PublicType) error {
	view, err := readView(c, kind.Type)
	if err != nil {
		return err
	}
	rows := kind.Rows([]string{c.Request.PathValue("id")}, nil)
	if len(rows) == 0 {
		return fault.Missing()
	}
	body, err := rows[0].Resource.Encode()
	if err == nil {
		body, err = view.Apply(body)
	}
	if err != nil {
		return err
	}
	return a.sendFHIR(c, body)
}

// searchPublic answers with the resources of a public type that have the ids and URLs searched for.
func (a *api) searchPublic(c *web.Call, kind *fhirserver.PublicType) error {
	params, err := parameters(c)
	if err != nil {
		return err
	}
	if err := refuseIfStrict(c, params, "_id", "url"); err != nil {
		return err
	}
	ids, urls := alternatives(params["_id"]), alternatives(params["url"])
	for name, values := range map[string][]string{"_id": ids, "url": urls} {
		if len(values) > fhirserver.MaxValues {
			return fault.Field(name, fmt.Sprintf("A search has at most %d values.", fhirserver.MaxValues))
		}
		if slices.Contains(values, "") {
			return fault.Field(name, "A value is required.")
		}
	}
	page := searchPage{base: a.PublicURL + fhirserver.Base}
	rows := kind.Rows(ids, urls)
	if err := page.addRows(kind.Type, fhir.ModeMatch, rows); err != nil {
		return err
	}
	self := fhir.Link{Relation: "self", URL: page.base + "/" + kind.Type}
	return a.sendResource(c, fhir.Searchset(new(len(rows)), []fhir.Link{self}, page.entries))
}

// alternatives returns the values of a parameter, of which one must match; nil without the parameter.
func alternatives(values []string) (list []string) {
	for _, value := range values {
		list = append(list, strings.Split(value, ",")...)
	}
	return list
}
