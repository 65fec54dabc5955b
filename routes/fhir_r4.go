package routes

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
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
	for _, kind := range fhirserver.ResourceTypes {
		path, may := fhirserver.Base+"/"+kind.Type, kind.Action.Or(kind.Scope())
		rows = append(rows,
			route{http.MethodGet, path, may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.searchFHIR(c, kind) })},
			route{http.MethodPost, path + "/_search", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.searchFHIR(c, kind) })},
			route{http.MethodGet, path + "/{id}", may, ratelimit.User, inFHIR(func(a *api, c *web.Call) error { return a.readFHIR(c, kind) })},
		)
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
	capability := a.fhirEngine().Capability(a.Version)
	capability.TokenURL = a.PublicURL + web.BasePath + "/oauth/token/"
	capability.CORS = len(a.AllowedOrigins) > 0
	return a.sendResource(c, fhir.CapabilityStatement(capability))
}

// fhirReader returns what the caller may see of the row's resources, except for the care-team limit, which depends on
// the search.
func fhirReader(c *web.Call) fhirserver.Reader {
	r := fhirserver.Reader{Role: c.Caller.Role}
	if c.Reach == authz.Own {
		r.OwnPatientID = &c.Caller.PatientID
	}
	return r
}

func (a *api) readFHIR(c *web.Call, kind *fhirserver.ResourceType) error {
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
	if err := recordFHIR(c, kind, row.ID, []fhirserver.Row{row}); err != nil {
		return err
	}
	isCurrent, err := setVersionHeaders(c, body)
	if err != nil {
		return err
	}
	if isCurrent {
		return c.NotModified()
	}
	return a.sendFHIR(c, body)
}

// setVersionHeaders sets the version headers of a resource and reports whether the caller already has that version.
// Source: FHIR R4, http, "conditional read"; RFC 9110, 13.1.
func setVersionHeaders(c *web.Call, body []byte) (isCurrent bool, err error) {
	var resource struct {
		Meta struct {
			VersionID   string    `json:"versionId"`
			LastUpdated time.Time `json:"lastUpdated"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(body, &resource); err != nil {
		return false, err
	}
	tag, changed := `W/"`+resource.Meta.VersionID+`"`, resource.Meta.LastUpdated
	c.Header().Set("ETag", tag)
	if !changed.IsZero() {
		c.Header().Set("Last-Modified", changed.UTC().Format(http.TimeFormat))
	}
	if tags := c.Request.Header.Values("If-None-Match"); len(tags) > 0 {
		for one := range strings.SplitSeq(strings.Join(tags, ","), ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
				return true, nil
			}
		}
		return false, nil
	}
	since, err := http.ParseTime(c.Request.Header.Get("If-Modified-Since"))
	return err == nil && !changed.IsZero() && !changed.Truncate(time.Second).After(since), nil
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
