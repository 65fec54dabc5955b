package fhirserver

import "github.com/vigilhealth/vigil/internal/fhir"

// lastChanged is the date of the last change to the API.
const lastChanged = "2026-11-23"

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
		Operations: []fhir.CapabilityOperation{exportOperations[""]},
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
	c.Resources = append(c.Resources, fhir.CapabilityResource{Type: "Group", Operations: []fhir.CapabilityOperation{exportOperations["Group"]}})
	return c
}

// HasLastN reports whether the type supports $lastn.
func (k *ResourceType) HasLastN() bool { return k == observationType }
