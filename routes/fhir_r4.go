package routes

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// r4Rows are the rows of the FHIR interface: the capability statement, and read and search for each resource type.
func r4Rows() []route {
	rows := []route{{http.MethodGet, fhirserver.Base + "/metadata", authz.Anyone, ratelimit.User, inFHIR((*api).readCapability)}}
	for _, kind := range fhirserver.PublicTypes {
		path := fhirserver.Base + "/" + kind.Type
		search := inFHIR(func(a *api, c *web.Call) error { return a.searchPublic(c, kind) })
		rows = append(rows,
			route{http.MethodGet, path, authz.Anyone, ratelimit.User, search},
			route{http.MethodPost, path + "/_search", authz.Anyone, ratelimit.User, search},
			route{http.MethodGet, path + "/{id}", authz.Anyone, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.readPublic(c, kind) })},
		)
	}
	for _, kind := range fhirserver.ResourceTypes {
		path, may := fhirserver.Base+"/"+kind.Type, kind.Action.Or(kind.Scope())
		rows = append(rows,
			route{http.MethodGet, path, may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.searchFHIR(c, kind) })},
			route{http.MethodPost, path + "/_search", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.searchFHIR(c, kind) })},
			route{http.MethodGet, path + "/{id}", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.readFHIR(c, kind) })},
			route{http.MethodGet, path + "/{id}/_history/{vid}", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.readFHIR(c, kind) })},
		)
		if kind.InPatientCompartment() {
			path := fhirserver.Base + "/Patient/{id}/" + kind.Type
			rows = append(rows, route{http.MethodGet, path, may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.searchCompartment(c, kind) })})
		}
		if kind.HasLastN() {
			rows = append(rows, route{http.MethodGet, path + "/$lastn", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.readLastObservations(c, kind) })})
		}
	}
	return rows
}

// jsonFormats are the values of _format that mean JSON. Source: FHIR R4, http, "mime-type".
var jsonFormats = []string{"json", "application/json", fhir.ContentType, "text/json"}

// inFHIR serves a row of the interface if the caller accepts JSON, the only format.
func inFHIR(handle handler) handler {
	return func(a *api, c *web.Call) error {
		if len(c.Request.URL.Query()["_format"]) > 1 {
			return fault.Field("_format", web.MsgRepeated)
		}
		requested := c.Request.URL.Query().Get("_format")
		format, _, err := mime.ParseMediaType(strings.Replace(requested, " ", "+", 1)) // an unescaped plus sign
		switch {
		case requested == "" && web.Preferred(c.Request.Header, fhir.ContentType, web.JSONType) == "",
			requested != "" && (err != nil || !slices.Contains(jsonFormats, format)):
			return fault.New(fault.NotAcceptable, "not_acceptable", "Only application/fhir+json is available.")
		}
		return handle(a, c)
	}
}

func (a *api) sendFHIR(c *web.Call, body []byte) error {
	kind := web.Preferred(c.Request.Header, fhir.ContentType, web.JSONType)
	if kind == "" || c.Request.URL.Query().Has("_format") {
		kind = fhir.ContentType
	}
	return c.Send(http.StatusOK, kind, body)
}

func (a *api) sendResource(c *web.Call, r fhir.Resource) error {
	body, err := r.Encode()
	if err != nil {
		return err
	}
	return a.sendFHIR(c, body)
}

// fhirEngine returns the engine that reads and renders resources.
func (a *api) fhirEngine() *fhirserver.Engine {
	return &fhirserver.Engine{Systems: a.FHIRSystems, Zone: a.Zone, Directory: a.Directory, Practice: a.PracticeName, PublicURL: a.PublicURL}
}

func (a *api) readCapability(c *web.Call) error {
	if err := refuseIfStrict(c, c.Request.URL.Query(), "mode"); err != nil {
		return err
	}
	capability := a.fhirEngine().Capability(a.Version)
	capability.TokenURL = a.PublicURL + web.BasePath + tokenPath
	capability.CORS = len(a.AllowedOrigins) > 0
	return a.sendResource(c, fhir.CapabilityStatement(capability))
}

// fhirReader returns what the caller may see of the row's resources, except for the care-team limit, which depends on
// the search.
func fhirReader(c *web.Call) fhirserver.Reader {
	r := fhirserver.Reader{Role: c.Caller.Role, Now: c.Now}
	if c.Reach == authz.Own {
		r.OwnPatientID = &c.Caller.PatientID
	}
	return r
}

// readFHIR answers with a resource, or with its current version if the path names that version: earlier ones are not stored.
func (a *api) readFHIR(c *web.Call, kind *fhirserver.ResourceType) error {
	if err := c.RequireScopes(authz.SystemPart(kind.Type, authz.InteractionRead)); err != nil {
		return err
	}
	view, err := readView(c, kind.Type)
	if err != nil {
		return err
	}
	if err := choosePatientOfResource(c, kind); err != nil {
		return err
	}
	row, found, err := a.fhirEngine().Find(c.App, kind, c.Request.PathValue("id"), fhirReader(c))
	switch {
	case err != nil:
		return err
	case !found:
		return fault.Missing()
	}
	if row.PatientID != "" && kind.Action != authz.ReadAudit {
		if err := a.authorizePatient(c, row.PatientID); err != nil {
			return err
		}
	}
	if row.Unreadable {
		return &collections.UnreadableError{Collection: kind.Type, ID: row.ID}
	}
	body, err := row.Resource.Encode()
	if err != nil {
		return err
	}
	version, err := versionOf(body)
	if err != nil {
		return err
	}
	if requested := c.Request.PathValue("vid"); requested != "" && requested != version.ID {
		return fault.New(fault.NotFound, "not_found", "Only the current version of a resource is stored.")
	}
	if err := recordFHIR(c, kind, row.ID, []fhirserver.Row{row}); err != nil {
		return err
	}
	if version.setHeaders(c) {
		return c.NotModified()
	}
	if body, err = view.Apply(body); err != nil {
		return err
	}
	return a.sendFHIR(c, body)
}

// choosePatientOfResource sets the patient that a portal read is about: that of the path, or of the query for other resources.
func choosePatientOfResource(c *web.Call, kind *fhirserver.ResourceType) error {
	sent := c.Request.URL.Query()["patient_id"]
	if len(sent) > 1 {
		return fault.Field("patient_id", web.MsgRepeated)
	}
	named := strings.Join(sent, "")
	if kind.Type == audit.ResourcePatient || kind.Type == audit.ResourceCareTeam { // a care team has the id of its patient
		named = c.Request.PathValue("id")
	}
	return c.ChoosePatient("patient_id", named, named != "")
}

// refuseIfStrict refuses parameters other than the known ones and _format for a caller that prefers strict handling.
func refuseIfStrict(c *web.Call, params url.Values, known ...string) error {
	if !isStrict(c) {
		return nil
	}
	refused := fault.Fields{}
	for name := range params {
		if !slices.Contains(append(known, "_format", "_pretty"), name) {
			refused[name] = []string{"This parameter is not supported."}
		}
	}
	if len(refused) == 0 {
		return nil
	}
	refusal := fault.Validation(refused)
	refusal.Code = fhirserver.CodeNotSupported
	return refusal
}

// readView reads _summary and _elements of a request for one resource.
func readView(c *web.Call, resourceType string) (v fhir.View, err error) {
	params := c.Request.URL.Query()
	if err := refuseIfStrict(c, params, "_summary", "_elements", "patient_id"); err != nil {
		return v, err
	}
	for _, name := range []string{"_summary", "_elements"} {
		if len(params[name]) > 1 {
			return v, fault.Field(name, web.MsgRepeated)
		}
	}
	if params.Has("_summary") {
		if problem := v.SetSummary(params.Get("_summary")); problem != "" {
			return v, fault.Field("_summary", problem)
		}
	}
	if params.Has("_elements") {
		if problem := v.SetElements(resourceType, params.Get("_elements")); problem != "" {
			return v, fault.Field("_elements", problem)
		}
	}
	return v, nil
}

// resourceVersion is the version of an encoded resource.
type resourceVersion struct {
	ID          string    `json:"versionId"`
	LastUpdated time.Time `json:"lastUpdated"`
}

func versionOf(body []byte) (resourceVersion, error) {
	var resource struct {
		Meta resourceVersion `json:"meta"`
	}
	err := json.Unmarshal(body, &resource)
	return resource.Meta, err
}

// setHeaders sets the version headers of a resource and reports whether the caller already has that version.
// Source: FHIR R4, http, "conditional read"; RFC 9110, 8.8.2.2 and 13.1.
func (v resourceVersion) setHeaders(c *web.Call) (isCurrent bool) {
	tag, changed := `W/"`+v.ID+`"`, v.LastUpdated.Truncate(time.Second)
	isFinal := !c.Now.Before(changed.Add(time.Second)) // within its second it may change again
	c.Header().Set("ETag", tag)
	if !changed.IsZero() {
		modified := changed
		if !isFinal {
			modified = changed.Add(-time.Second)
		}
		c.Header().Set("Last-Modified", modified.UTC().Format(http.TimeFormat))
	}
	if tags := c.Request.Header.Values("If-None-Match"); len(tags) > 0 {
		for one := range strings.SplitSeq(strings.Join(tags, ","), ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(c.Request.Header.Get("If-Modified-Since"))
	return err == nil && isFinal && !changed.IsZero() && !changed.After(since)
}

// recordFHIR records in the audit trail which patients the caller was shown.
func recordFHIR(c *web.Call, kind *fhirserver.ResourceType, id string, rows []fhirserver.Row) error {
	switch {
	case kind.Event == "":
		return nil
	case kind.Action == authz.ReadAudit:
		return recordAudit(c, kind.Event, id)
	}
	shown := []string{}
	for _, row := range rows {
		if row.PatientID != "" && !slices.Contains(shown, row.PatientID) {
			shown = append(shown, row.PatientID)
		}
	}
	return c.RecordRead(kind.Event, kind.AuditResource, id, shown...)
}
