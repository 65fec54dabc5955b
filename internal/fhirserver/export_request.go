package fhirserver

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// ExportLevel is the scope of an export.
type ExportLevel int

// The export levels. Source: HL7 Bulk Data Access 2.0, "Bulk Data Kick-off Request".
const (
	SystemLevel  ExportLevel = iota // all resources
	PatientLevel                    // patients and the resources in their compartments
)

// patientLevelTypes and systemLevelTypes are the types of each level, in the order in which their files are written. Practitioner belongs to no patient,
// but patient resources refer to it.
var (
	patientLevelTypes = []string{"Patient", "Observation", "Device", "Practitioner", "CareTeam", "Flag", "Provenance"}
	systemLevelTypes  = append(slices.Clone(patientLevelTypes), auditEvent)
)

// auditEvent is exported only if _type names it, because every export adds audit events.
const auditEvent = "AuditEvent"

// exportFormats are the accepted names of the only output format.
var exportFormats = []string{"application/fhir+ndjson", "application/ndjson", "ndjson"}

// ExportRequest is a client's parsed export request.
type ExportRequest struct {
	URL     string // repeated in the manifest
	Types   []string
	Since   time.Time // zero exports all times
	Ignored []string  // unsupportedParameter parameters and types that lenient handling skips
}

// Parameters are the values of a request by parameter name, from a query or a FHIR Parameters resource.
type Parameters map[string][]string

// ParseQuery returns the parameters of a query string.
func ParseQuery(raw string) (Parameters, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalidParameter("The query string is malformed.")
	}
	return Parameters(values), nil
}

// AddBody adds the parameters of a FHIR Parameters resource.
func (p Parameters) AddBody(raw []byte) error {
	var body struct {
		ResourceType string                       `json:"resourceType"`
		Parameter    []map[string]json.RawMessage `json:"parameter"`
	}
	if err := json.Unmarshal(raw, &body); err != nil || body.ResourceType != "Parameters" {
		return invalidParameter("The body must be a Parameters resource.")
	}
	for _, parameter := range body.Parameter {
		var name string
		if json.Unmarshal(parameter["name"], &name) != nil || name == "" {
			return invalidParameter("Every parameter needs a name.")
		}
		value := ""
		for member, content := range parameter {
			if !strings.HasPrefix(member, "value") {
				continue
			}
			if json.Unmarshal(content, &value) != nil {
				value = "" // no supported parameter has a value of this type
			}
		}
		p[name] = append(p[name], value)
	}
	return nil
}

// Prefer holds the supported preferences of the Prefer header. Source: RFC 7240; FHIR R4, "Managing Return Content".
type Prefer struct{ Async, Lenient bool }

// ParsePrefer parses Prefer headers and ignores unsupported preferences.
func ParsePrefer(headers []string) (p Prefer) {
	for _, preference := range strings.FieldsFunc(strings.ToLower(strings.Join(headers, ",")), func(r rune) bool { return r == ',' || r == ';' }) {
		switch strings.ReplaceAll(strings.ReplaceAll(preference, " ", ""), `"`, "") {
		case "respond-async":
			p.Async = true
		case "handling=lenient":
			p.Lenient = true
		}
	}
	return p
}

// ParseExportRequest validates an export request. If it names types, it fails with the first error that may returns; if it names none, it selects the
// types that may permits.
func ParseExportRequest(level ExportLevel, parameters Parameters, prefer Prefer, address string, may func(kind string) error) (ExportRequest, error) {
	request := ExportRequest{URL: address}
	if !prefer.Async && !prefer.Lenient {
		return request, invalidParameter("Exports run asynchronously. Send the header Prefer: respond-async.")
	}
	for _, name := range sortedNames(parameters) {
		var err error
		switch values := parameters[name]; name {
		case "_format": // responses are always JSON
		case "_type":
			err = request.parseTypes(level, values, prefer)
		case "_since":
			request.Since, err = parseInstant(values)
		case "_outputFormat":
			if len(values) != 1 || !slices.Contains(exportFormats, strings.ReplaceAll(values[0], " ", "+")) {
				err = invalidParameter("_outputFormat can only be application/fhir+ndjson.")
			}
		case "patient": // ignoring it would export all patients
			err = unsupportedParameter("patient is not supported: an export covers all patients.")
		default:
			if !prefer.Lenient {
				err = unsupportedParameter("A parameter is not supported. Supported parameters: _type, _since, _outputFormat.")
			}
			request.Ignored = append(request.Ignored, displayName(name))
		}
		if err != nil {
			return request, err
		}
	}
	return request, request.checkTypes(may)
}

// unsupportedParams are parameters of the standard that Vigil does not support.
var unsupportedParams = []string{"_typeFilter", "_elements", "_until", "includeAssociatedData", "organizeOutputBy", "allowPartialManifests"}

// displayName returns the name of a parameter of the standard. It hides any other name, which may contain PHI.
func displayName(name string) string {
	if slices.Contains(unsupportedParams, name) {
		return name
	}
	return "A parameter"
}

// checkTypes checks the named types, or selects the types that the client may read if the request names none.
func (r *ExportRequest) checkTypes(may func(kind string) error) error {
	if len(r.Types) > 0 {
		for _, kind := range r.Types {
			if err := may(kind); err != nil {
				return err
			}
		}
		return nil
	}
	var refused error
	for _, kind := range patientLevelTypes {
		if err := may(kind); err != nil {
			refused = err
			continue
		}
		r.Types = append(r.Types, kind)
	}
	if len(r.Types) == 0 {
		return refused
	}
	return nil
}

func (r *ExportRequest) parseTypes(level ExportLevel, values []string, prefer Prefer) error {
	known := patientLevelTypes
	if level == SystemLevel {
		known = systemLevelTypes
	}
	named := strings.FieldsFunc(strings.Join(values, ","), func(c rune) bool { return c == ',' || c == ' ' })
	for _, kind := range named {
		if !slices.Contains(known, kind) {
			if !prefer.Lenient {
				return unsupportedParameter("_type names a type that cannot be exported at this level. Types that can: " + strings.Join(known, ", ") + ".")
			}
			r.Ignored = append(r.Ignored, "A type")
		}
	}
	for _, kind := range known {
		if slices.Contains(named, kind) {
			r.Types = append(r.Types, kind)
		}
	}
	if len(r.Types) == 0 {
		return unsupportedParameter("_type names no type that can be exported at this level. Types that can: " + strings.Join(known, ", ") + ".")
	}
	return nil
}

// parseInstant parses a FHIR instant. An unescaped plus sign arrives as a space.
func parseInstant(values []string) (time.Time, error) {
	if len(values) != 1 {
		return time.Time{}, invalidParameter("_since must be sent once.")
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(values[0], " ", "+"))
	if err != nil {
		return time.Time{}, invalidParameter("_since must be an instant with a time zone, such as 2026-01-15T13:45:00Z.")
	}
	return at.UTC(), nil
}

func sortedNames(parameters Parameters) []string {
	names := make([]string, 0, len(parameters))
	for name := range parameters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func invalidParameter(detail string) error {
	return fault.New(fault.Invalid, "invalid_parameter", detail)
}

func unsupportedParameter(detail string) error {
	return fault.New(fault.Invalid, "unsupported_parameter", detail)
}
