package fhirserver

import "github.com/vigilhealth/vigil/internal/fhir"

// changed is when the interface last learnt something.
const changed = "2026-11-23"

// lastN is the operation of readings that names the last of each kind.
var lastN = fhir.CapableOperation{Name: "lastn", Definition: "http://hl7.org/fhir/OperationDefinition/Observation-lastn"}

// exporting are the operations of the bulk export, by the type that they are asked of; "" for the whole system.
var exporting = map[string]fhir.CapableOperation{
	"":        {Name: "export", Definition: bulkData + "OperationDefinition/export"},
	"Group":   {Name: "export", Definition: bulkData + "OperationDefinition/group-export"},
	"Patient": {Name: "export", Definition: bulkData + "OperationDefinition/patient-export"},
}

const bulkData = "http://hl7.org/fhir/uv/bulkdata/"

// Capability is what the interface can do, as the types are declared.
func (e *Engine) Capability(version string) fhir.Capability {
	c := fhir.Capability{
		URL: e.PublicURL + Base, Version: version, Date: changed, Guides: []string{"http://hl7.org/fhir/us/core/ImplementationGuide/hl7.fhir.us.core|6.1.0"},
		Operations: []fhir.CapableOperation{exporting[""]},
	}
	for _, k := range Kinds {
		r := fhir.CapableResource{Type: k.Type, Profiles: k.Profiles, Includes: k.Includes, Joins: k.Joins}
		for _, p := range k.All() {
			r.Params = append(r.Params, fhir.CapableParam{Name: p.Name, Definition: p.Definition, Type: p.Type})
		}
		if k.HasLastN() {
			r.Operations = append(r.Operations, lastN)
		}
		if export, can := exporting[k.Type]; can {
			r.Operations = append(r.Operations, export)
		}
		c.Resources = append(c.Resources, r)
	}
	c.Resources = append(c.Resources, fhir.CapableResource{Type: "Group", Operations: []fhir.CapableOperation{exporting["Group"]}})
	return c
}

// HasLastN reports whether the last few of each kind can be asked for.
func (k *Kind) HasLastN() bool { return k == observed }
