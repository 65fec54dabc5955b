package fhirserver

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/fault"
)

// Level is what an export is about.
type Level int

// The levels. Source: HL7 Bulk Data Access 2.0, "Bulk Data Kick-off Request".
const (
	System   Level = iota // all there is
	Patients              // patients and what is about them
)

// ofSystem and patientRecord are the types of each level, in the order in which they are written. Those of the system alone are about nobody: but who
// cared for a patient helps to read what was written about him.
var (
	ofPatients = []string{"Patient", "Observation", "Device", "Practitioner", "CareTeam", "Flag", "Provenance"}
	ofSystem   = append(slices.Clone(ofPatients), auditEvent)
)

// auditEvent is exported to who names it, and not to who names nothing: every export adds to it.
const auditEvent = "AuditEvent"

// formats are the names of the one format there is.
var formats = []string{"application/fhir+ndjson", "application/ndjson", "ndjson"}

// ExportRequest is what a client asks for.
type ExportRequest struct {
	URL     string // as the manifest is to repeat it
	Types   []string
	Since   time.Time // zero is since ever
	Ignored []string  // parameters, and types, that are not known and were to be passed over
}

// Parameters are what a request says, by name: those of a query, or of a FHIR Parameters resource.
type Parameters map[string][]string

// InQuery are the parameters of a query.
func InQuery(raw string) (Parameters, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, invalid("The query string is malformed.")
	}
	return Parameters(values), nil
}

// InBody adds the parameters of a Parameters resource.
func (p Parameters) InBody(raw []byte) error {
	var body struct {
		ResourceType string                       `json:"resourceType"`
		Parameter    []map[string]json.RawMessage `json:"parameter"`
	}
	if err := json.Unmarshal(raw, &body); err != nil || body.ResourceType != "Parameters" {
		return invalid("The body must be a Parameters resource.")
	}
	for _, parameter := range body.Parameter {
		var name string
		if json.Unmarshal(parameter["name"], &name) != nil || name == "" {
			return invalid("Every parameter needs a name.")
		}
		value := ""
		for member, content := range parameter {
			if !strings.HasPrefix(member, "value") {
				continue
			}
			if json.Unmarshal(content, &value) != nil {
				value = "" // of a kind that none of ours has
			}
		}
		p[name] = append(p[name], value)
	}
	return nil
}

// Prefer is what the header of that name asks for. Source: RFC 7240; FHIR R4, "Managing Return Content".
type Prefer struct{ Async, Lenient bool }

// ReadPrefer reads the header.
func ReadPrefer(headers []string) (p Prefer) {
	for _, said := range strings.FieldsFunc(strings.ToLower(strings.Join(headers, ",")), func(r rune) bool { return r == ',' || r == ';' }) {
		switch strings.ReplaceAll(strings.ReplaceAll(said, " ", ""), `"`, "") {
		case "respond-async":
			p.Async = true
		case "handling=lenient":
			p.Lenient = true
		}
	}
	return p
}

// Read reads what is asked for. allowed are the types that the client may have: it is refused by another, which it names, as it is by may.
func Read(level Level, parameters Parameters, prefer Prefer, address string, may func(kind string) error) (ExportRequest, error) {
	asked := ExportRequest{URL: address}
	if !prefer.Async && !prefer.Lenient {
		return asked, invalid("An export is answered later: send Prefer: respond-async.")
	}
	for _, name := range sortedNames(parameters) {
		var err error
		switch values := parameters[name]; name {
		case "_format": // answers are JSON
		case "_type":
			err = asked.readTypes(level, values, prefer)
		case "_since":
			asked.Since, err = readInstant(values)
		case "_outputFormat":
			if len(values) != 1 || !slices.Contains(formats, strings.ReplaceAll(values[0], " ", "+")) {
				err = invalid("_outputFormat can only be application/fhir+ndjson.")
			}
		case "patient": // to pass it over would be to hand out everybody
			err = unsupported("patient is not supported: an export is of all patients.")
		default:
			if !prefer.Lenient {
				err = unsupported("A parameter is not supported. Those that are: _type, _since, _outputFormat.")
			}
			asked.Ignored = append(asked.Ignored, spoken(name))
		}
		if err != nil {
			return asked, err
		}
	}
	return asked, asked.permit(may)
}

// unbuilt are parameters of the standard that nothing is done with.
var unbuilt = []string{"_typeFilter", "_elements", "_until", "includeAssociatedData", "organizeOutputBy", "allowPartialManifests"}

// spoken names a parameter of the standard. What else somebody has sent is not repeated.
func spoken(name string) string {
	if slices.Contains(unbuilt, name) {
		return name
	}
	return "A parameter"
}

// permit checks the types that were named, and otherwise chooses those that the client may have.
func (r *ExportRequest) permit(may func(kind string) error) error {
	if len(r.Types) > 0 {
		for _, kind := range r.Types {
			if err := may(kind); err != nil {
				return err
			}
		}
		return nil
	}
	var refused error
	for _, kind := range ofPatients {
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

func (r *ExportRequest) readTypes(level Level, values []string, prefer Prefer) error {
	known := ofPatients
	if level == System {
		known = ofSystem
	}
	named := strings.FieldsFunc(strings.Join(values, ","), func(c rune) bool { return c == ',' || c == ' ' })
	for _, kind := range named {
		if !slices.Contains(known, kind) {
			if !prefer.Lenient {
				return unsupported("_type names what cannot be exported here. What can: " + strings.Join(known, ", ") + ".")
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
		return unsupported("_type names nothing that can be exported here. What can: " + strings.Join(known, ", ") + ".")
	}
	return nil
}

// readInstant reads a FHIR instant. A plus that nobody has escaped arrives as a space.
func readInstant(values []string) (time.Time, error) {
	if len(values) != 1 {
		return time.Time{}, invalid("_since must be given once.")
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ReplaceAll(values[0], " ", "+"))
	if err != nil {
		return time.Time{}, invalid("_since must be an instant with its zone, such as 2026-01-15T13:45:00Z.")
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

func invalid(detail string) error { return fault.New(fault.Invalid, "invalid_parameter", detail) }

func unsupported(detail string) error {
	return fault.New(fault.Invalid, "unsupported_parameter", detail)
}
