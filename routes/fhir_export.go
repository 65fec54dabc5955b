package routes

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// The paths of the bulk export. Source: HL7 Bulk Data Access 2.0.
const (
	exportPath = fhirserver.Base + "/$export-status/"
	ndjsonType = "application/fhir+ndjson"
	// allPatientsGroup is the only group: all patients.
	allPatientsGroup = "all"
)

// exportRows are the endpoints of the bulk export.
func exportRows() (rows []route) {
	for path, level := range map[string]fhirserver.ExportLevel{
		fhirserver.Base + "/$export": fhirserver.SystemLevel, fhirserver.Base + "/Patient/$export": fhirserver.PatientLevel, fhirserver.Base + "/Group/{group}/$export": fhirserver.PatientLevel,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			rows = append(rows, route{method, path, authz.ExportResources.Or(authz.AnySystemScope), ratelimit.User, startExport(level)})
		}
	}
	return append(rows, []route{
		{http.MethodGet, fhirserver.Base + "/.well-known/smart-configuration", authz.Anyone, ratelimit.User, (*api).readSmartConfiguration},
		{http.MethodGet, exportPath + "{id}", authz.ExportResources.Or(authz.AnySystemScope), ratelimit.User, (*api).readExport},
		{http.MethodDelete, exportPath + "{id}", authz.ExportResources.Or(authz.AnySystemScope), ratelimit.User, (*api).removeExport},
		{http.MethodGet, exportPath + "{id}/{file}", authz.ExportResources.Or(authz.AnySystemScope), ratelimit.User, (*api).readExportFile},
	}...)
}

func startExport(level fhirserver.ExportLevel) handler {
	return func(a *api, c *web.Call) error {
		if c.Request.Method == http.MethodHead { // GET starts an export here, and HEAD must not
			return fault.New(fault.MethodNotAllowed, "method_not_allowed", "This path does not allow HEAD. Use GET.")
		}
		if group := c.Request.PathValue("group"); group != "" && group != allPatientsGroup {
			return fault.Missing()
		}
		parameters, err := fhirserver.ParseQuery(c.Request.URL.RawQuery)
		if err != nil {
			return err
		}
		if c.Request.Method == http.MethodPost {
			raw, err := c.Body()
			if err != nil {
				return err
			}
			if len(raw) > 0 {
				if err := parameters.AddBody(raw); err != nil {
					return err
				}
			}
		}
		request, err := fhirserver.ParseExportRequest(level, parameters, fhirserver.ParsePrefer(c.Request.Header.Values("Prefer")), a.PublicURL+c.Request.URL.RequestURI(),
			func(kind string) error { return c.RequireScopes(authz.SystemScope(kind)) })
		if err != nil {
			return err
		}
		c.Header().Del("WWW-Authenticate") // of unnamed types, which the export omits
		id, err := a.Exports.Start(c.App, c.Caller.RecordID, request, c.Actor(), c.Now)
		if err != nil {
			return err
		}
		c.Header().Set("Content-Location", a.PublicURL+exportPath+id)
		return answerOutcome(c, http.StatusAccepted, "information", "informational", "The export is queued. Poll the URL in Content-Location for its state.")
	}
}

// answerOutcome answers with a single OperationOutcome issue.
func answerOutcome(c *web.Call, status int, severity, kind, words string) error {
	body, err := fhir.OperationOutcome(fhir.Issue{Severity: severity, Type: kind, Text: words})
	if err != nil {
		return err
	}
	return c.Send(status, fhir.ContentType, body)
}

// export finds the export of the path, only for the client that started it.
func (a *api) export(c *web.Call) (*collections.Export, error) {
	id, err := c.PathUUID()
	if err != nil {
		return nil, err
	}
	return a.Exports.Find(c.App, c.Caller.RecordID, id, c.Now)
}

// The bounds of the Retry-After of an export in progress.
const (
	minRetryAfter = time.Second
	maxRetryAfter = 30 * time.Second
)

func (a *api) readExport(c *web.Call) error {
	export, err := a.export(c)
	if err != nil {
		return err
	}
	switch export.Status() {
	case collections.ExportComplete:
		return a.showManifest(c, export)
	case collections.ExportFailed:
		return answerOutcome(c, http.StatusInternalServerError, "error", "exception", "The export failed. Start another one.")
	}
	wait := min(max(c.Now.Sub(export.CreatedAt())/10, minRetryAfter), maxRetryAfter)
	c.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	c.Header().Set("X-Progress", fmt.Sprintf("%d resources", a.Exports.Progress(export.Id)))
	return answerOutcome(c, http.StatusAccepted, "information", "informational", "The export is being made.")
}

// manifestView is the manifest of a finished export. Source: HL7 Bulk Data Access 2.0, "Response - Complete Status".
type manifestView struct {
	TransactionTime     string             `json:"transactionTime"`
	Request             string             `json:"request"`
	RequiresAccessToken bool               `json:"requiresAccessToken"`
	Output              []manifestFileView `json:"output"`
	Deleted             []manifestFileView `json:"deleted"`
	Error               []manifestFileView `json:"error"`
}

type manifestFileView struct {
	Type  string `json:"type"`
	URL   string `json:"url"`
	Count int    `json:"count"`
}

func (a *api) showManifest(c *web.Call, export *collections.Export) error {
	files, err := export.Files()
	if err != nil {
		return err
	}
	view := manifestView{
		TransactionTime: export.TransactionTime().Format(time.RFC3339Nano), Request: export.Request(), RequiresAccessToken: true,
		Output: []manifestFileView{}, Deleted: []manifestFileView{}, Error: []manifestFileView{},
	}
	lists := map[string]*[]manifestFileView{fhirserver.Output: &view.Output, fhirserver.Deleted: &view.Deleted, fhirserver.Errors: &view.Error}
	for _, file := range files {
		list := lists[file.Kind]
		*list = append(*list, manifestFileView{file.Type, a.PublicURL + exportPath + export.Id + "/" + file.Name + fhirserver.Extension, file.Count})
	}
	c.Header().Set("Expires", export.ExpiresAt().Format(http.TimeFormat))
	return c.OK(view)
}

func (a *api) removeExport(c *web.Call) error {
	export, err := a.export(c)
	if err != nil {
		return err
	}
	if err := a.Exports.Remove(c.App, c.Caller.RecordID, export.Id, c.Actor(), c.Now); err != nil {
		return err
	}
	return answerOutcome(c, http.StatusAccepted, "information", "informational", "The export and its files have been deleted.")
}

func (a *api) readExportFile(c *web.Call) error {
	export, err := a.export(c)
	if err != nil {
		return err
	}
	name := c.Request.PathValue("file")
	packed, file, err := fhirserver.OpenFile(c.App, export, name)
	if err != nil {
		return err
	}
	defer func() { _ = packed.Close() }() // read only
	needed := export.Types()
	if file.Kind == fhirserver.Output {
		needed = []string{file.Type}
	}
	for _, kind := range needed { // this token may have fewer scopes than the one that started the export
		if err := c.RequireScopes(authz.SystemScope(kind)); err != nil {
			return err
		}
	}
	if c.Request.Method != http.MethodHead {
		err := audit.Append(c.App, audit.Entry{
			Event: audit.ExportRead, Actor: c.Actor(), ResourceType: audit.ResourceExport, ResourceID: export.Id,
			Changes: audit.Changes{"file": {New: name}, "resources": {New: file.Count}},
		}, c.Now)
		if err != nil {
			return err
		}
	}
	c.Header().Set("Vary", "Accept-Encoding")
	if c.AcceptsGzip() {
		c.Header().Set("Content-Encoding", "gzip")
		return c.Stream(ndjsonType, packed)
	}
	lines, err := packed.Lines()
	if err != nil {
		return fmt.Errorf("unpack file of an export: %w", err)
	}
	return c.Stream(ndjsonType, lines)
}

// smartConfiguration describes the sign-in of machine clients. There is no authorization endpoint: users cannot
// delegate their rights to programs. Source: HL7 SMART App Launch 2.2, "Conformance"; docs/decisions/fhir.md, "SMART
// discovery".
type smartConfiguration struct {
	TokenEndpoint        string   `json:"token_endpoint"`
	Methods              []string `json:"token_endpoint_auth_methods_supported"`
	Algorithms           []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	Grants               []string `json:"grant_types_supported"`
	Scopes               []string `json:"scopes_supported"`
	Capabilities         []string `json:"capabilities"`
	CodeChallengeMethods []string `json:"code_challenge_methods_supported"`
}

func (a *api) readSmartConfiguration(c *web.Call) error {
	scopes := authz.AllClientScopes.Strings()
	scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !strings.HasPrefix(scope, "system/") })
	return c.OK(smartConfiguration{
		TokenEndpoint: a.PublicURL + web.BasePath + tokenPath, Methods: []string{"private_key_jwt", "client_secret_basic"},
		Algorithms: []string{"RS384", "ES384"}, Grants: []string{"client_credentials"}, Scopes: scopes,
		Capabilities:         []string{"client-confidential-asymmetric", "client-confidential-symmetric", "permission-v1", "permission-v2"},
		CodeChallengeMethods: []string{"S256"},
	})
}
