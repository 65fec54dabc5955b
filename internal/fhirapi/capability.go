package fhirapi

import "github.com/vigilhealth/vigil/internal/fhir"

// changed is when the interface last learnt something.
const changed = "2026-11-23"

// lastN is the operation of readings that names the last of each kind.
var lastN = fhir.CapableOperation{Name: "lastn", Definition: "http://hl7.org/fhir/OperationDefinition/Observation-lastn"}

// Capability is what the interface can do, as the types are declared.
func (e *Engine) Capability(version string) fhir.Capability {
	c := fhir.Capability{
		URL: e.PublicURL + Base, Version: version, Date: changed, Guides: []string{"http://hl7.org/fhir/us/core/ImplementationGuide/hl7.fhir.us.core|6.1.0"},
	}
	for _, k := range Kinds {
		r := fhir.CapableResource{Type: k.Type, Profiles: k.Profiles, Includes: k.Includes, Joins: k.Joins}
		for _, p := range k.All() {
			r.Params = append(r.Params, fhir.CapableParam{Name: p.Name, Definition: p.Definition, Type: p.Type})
		}
		if k.HasLastN() {
			r.Operations = append(r.Operations, lastN)
		}
		c.Resources = append(c.Resources, r)
	}
	return c
}

// HasLastN reports whether the last few of each kind can be asked for.
func (k *Kind) HasLastN() bool { return k == observed }
