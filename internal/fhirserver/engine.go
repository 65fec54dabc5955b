// Package fhirserver reads, searches and bulk-exports stored records as FHIR R4 resources. Each resource type is declared once, with its search
// parameters, sort orders and rendering; routes, the capability statement and the exporter use the declarations. The package does not depend on HTTP or
// on the caller's identity: Reader states what the caller may see.
//
// No resource is stored in FHIR form. Pages are read by keyset from the last row, not by offset, so that concurrent writes neither hide nor repeat a row.
//
// BulkExporter writes the files of an export once, from one snapshot of the database, so repeated downloads return the same content. Each export has
// its own key, sealed in the database; removing the export deletes the key, which makes its files unreadable.
// Source: docs/decisions/fhir.md, "Bulk export".
package fhirserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
)

// ResourceType declares a FHIR resource type.
type ResourceType struct {
	Type     string
	Profiles []string // US Core profiles, by name
	// Action is the permission to read and search the type.
	Action authz.Action
	// Event and AuditResource are the event and resource type of a read in the audit trail. Event is empty for types without PHI.
	Event         audit.Event
	AuditResource string
	Params        []Param // in addition to commonParams
	// Orders are the supported sort orders; the first is the default.
	Orders []Order
	// Includes and RevIncludes are the supported values of _include and _revinclude.
	Includes, RevIncludes []string
	// IsLarge: there are so many resources that they are counted only if the search requests a total.
	IsLarge bool

	table     *collections.SearchTable
	numericID bool // the FHIR id is the record's number
	// orderedByTime: ids are in the order of time, so searches without a date condition sort by id.
	orderedByTime bool
	// ofPatients: each resource belongs to a patient. shared: a resource may also belong to no patient.
	ofPatients, shared bool
	// render converts records to rows, in order.
	render func(e *Engine, app core.App, rows []*core.Record, r Reader) ([]Row, error)
}

// Order is a sort order by a search parameter.
type Order struct {
	Param      string
	Descending bool
	by         string
}

// ResourceTypes are all types, by name.
var ResourceTypes = []*ResourceType{auditEventType, careTeamType, deviceType, flagType, observationType, patientType, practitionerType, provenanceType, questionnaireResponseType, relatedPersonType}

// ResourceTypeByName returns the type with a name, or nil.
func ResourceTypeByName(name string) *ResourceType {
	for _, k := range ResourceTypes {
		if k.Type == name {
			return k
		}
	}
	return nil
}

// Scope returns the scope that lets machine clients read the type.
func (t *ResourceType) Scope() authz.ClientScope { return authz.SystemScope(t.Type) }

// Row is one resource on a page.
type Row struct {
	ID        string
	PatientID string // the patient it belongs to; "" for none
	DeviceID  string // the Device that it refers to; "" for none
	Resource  fhir.Resource
	// Unreadable: a sealed value cannot be opened, so ExportLine is nil.
	Unreadable bool
}

// Reader limits a search to what the caller may see.
type Reader struct {
	Role authz.Role
	// OwnPatientID limits results to this patient; nil does not limit them.
	OwnPatientID *string
	// CareTeamOf limits results to patients with this user (record id) on their care team, and to shared resources without a patient; "" does not limit them.
	CareTeamOf string
	Now        time.Time
}

// Engine searches records and renders them as FHIR resources.
type Engine struct {
	Systems   fhir.Systems
	Zone      *time.Location // the practice's
	Directory *patients.Directory
	Practice  string // name of the organization in Provenance
	PublicURL string
}

// Base is the path of the FHIR API.
const Base = "/fhir/R4"

// Page returns the next rows of a search and the position of the last one. done means that no rows follow.
func (e *Engine) Page(app core.App, s *Search) (rows []Row, last Position, done bool, err error) {
	where, err := s.conditions(e, app)
	if err != nil {
		return nil, last, false, err
	}
	order := s.order()
	page := collections.SearchPage{By: order.by, Descending: order.Descending, After: s.After.Value, AfterID: s.After.ID, Limit: s.Limit + 1}
	if order.by == collections.ByMeasured && s.isOfOnePatient() {
		page.Kinds = s.requestedKinds()
	}
	records, err := s.Type.table.Page(s.context(), app, where, page)
	if err != nil {
		return nil, last, false, err
	}
	if done = len(records) <= s.Limit; !done {
		records = records[:s.Limit]
	}
	if len(records) > 0 {
		end := records[len(records)-1]
		last = Position{Value: s.Type.table.SortKey(end, order.by), ID: end.Id}
	}
	rows, err = s.Type.render(e, app, records, s.Reader)
	return rows, last, done, err
}

// Count returns the number of matches.
func (e *Engine) Count(app core.App, s *Search) (int, error) {
	where, err := s.conditions(e, app)
	if err != nil {
		return 0, err
	}
	return s.Type.table.Count(s.context(), app, where)
}

// Find returns one resource; ok is false if it does not exist or the reader may not see it.
func (e *Engine) Find(app core.App, k *ResourceType, id string, r Reader) (row Row, ok bool, err error) {
	s := NewSearch(k, r)
	s.FilterIDs(id)
	s.Limit = 1
	rows, _, _, err := e.Page(app, s)
	if err != nil || len(rows) == 0 {
		return Row{}, false, err
	}
	return rows[0], true, nil
}

// recordIDs returns the record ids of resource ids; invalid ids are omitted.
func (t *ResourceType) recordIDs(ids []string) []string {
	found := []string{}
	for _, id := range ids {
		if t.numericID {
			id = numberedID(id)
		}
		if id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found
}

func numberedID(id string) string {
	var n int64
	if _, err := fmt.Sscanf(id, "%d", &n); err != nil || fmt.Sprint(n) != id || n <= 0 || n > 999_999_999_999_999 {
		return ""
	}
	return collections.NumberID(n)
}

// idOrders are the sort orders of types that sort by id only, because their time of change is not in one column.
var idOrders = ascendingFirst("_id", collections.ByID)

// ascendingFirst and newestFirst return the two sort orders by a parameter. The first order of a type is its default.
func ascendingFirst(param, by string) []Order { return []Order{{param, false, by}, {param, true, by}} }

func newestFirst(param, by string) []Order { return []Order{{param, true, by}, {param, false, by}} }

// idsOf returns the ids of records, in order.
func idsOf(records []*core.Record) []string {
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = record.Id
	}
	return ids
}

// lastChanged is the date of the last change to the API.
const lastChanged = "2026-11-30"

// lastN is the Observation operation that returns the newest readings of each kind.
var lastN = fhir.CapabilityOperation{Name: "lastn", Definition: "http://hl7.org/fhir/OperationDefinition/Observation-lastn"}

// exportOperations are the bulk export operations by resource type; "" is the system level.
var exportOperations = map[string]fhir.CapabilityOperation{
	"":        {Name: "export", Definition: bulkData + "OperationDefinition/export"},
	"Group":   {Name: "export", Definition: bulkData + "OperationDefinition/group-export"},
	"Patient": {Name: "export", Definition: bulkData + "OperationDefinition/patient-export"},
}

const bulkData = "http://hl7.org/fhir/uv/bulkdata/"

// Capability returns the capabilities of the API, from the declared resource types.
func (e *Engine) Capability(version string) fhir.Capability {
	c := fhir.Capability{
		URL: e.PublicURL + Base, Version: version, Date: lastChanged, Guides: []string{"http://hl7.org/fhir/us/core/ImplementationGuide/hl7.fhir.us.core|6.1.0"},
		Operations:   []fhir.CapabilityOperation{exportOperations[""]},
		Instantiates: []string{"http://hl7.org/fhir/us/core/CapabilityStatement/us-core-server"},
	}
	for _, k := range ResourceTypes {
		r := fhir.CapabilityResource{Type: k.Type, Profiles: k.Profiles, Includes: k.Includes, RevIncludes: k.RevIncludes}
		for _, p := range k.AllParams() {
			r.Params = append(r.Params, fhir.CapabilityParam{Name: p.Name, Definition: p.Definition, Type: p.Type})
		}
		if k.HasLastN() {
			r.Operations = append(r.Operations, lastN)
		}
		if export, can := exportOperations[k.Type]; can {
			r.Operations = append(r.Operations, export)
		}
		c.Resources = append(c.Resources, r)
	}
	for _, k := range PublicTypes {
		c.Resources = append(c.Resources, fhir.CapabilityResource{Type: k.Type, Params: k.params(), Unversioned: true})
	}
	c.Resources = append(c.Resources,
		fhir.CapabilityResource{Type: "Group", Operations: []fhir.CapabilityOperation{exportOperations["Group"]}},
	)
	return c
}

// InPatientCompartment reports whether the type's resources can be searched below their patient. Devices are in no compartment.
// Source: FHIR R4, compartmentdefinition-patient.
func (t *ResourceType) InPatientCompartment() bool {
	return t == auditEventType || t == careTeamType || t == flagType || t == observationType || t == provenanceType || t == questionnaireResponseType ||
		t == relatedPersonType
}

// HasLastN reports whether the type supports $lastn.
func (t *ResourceType) HasLastN() bool { return t == observationType }
