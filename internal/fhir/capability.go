package fhir

// Capability is what the FHIR interface can do, as its statement says it.
type Capability struct {
	URL     string // where it answers
	Version string // of the program
	Date    string // when what it can do last changed, YYYY-MM-DD
	// Resources in the order in which they are to stand.
	Resources []CapableResource
	// Operations of the whole system.
	Operations []CapableOperation
	// TokenURL is where clients sign in; "" leaves it out.
	TokenURL string
	// CORS: pages of other origins may call.
	CORS bool
	// Guides are the canonical addresses of what it follows.
	Guides []string
}

// CapableResource is one type.
type CapableResource struct {
	Type     string
	Profiles []string // of US Core, by name
	Params   []CapableParam
	Includes []string
	Joins    []string

	Operations []CapableOperation
}

// CapableParam is a search parameter; CapableOperation an operation.
type (
	CapableParam struct {
		Name       string `json:"name"`
		Definition string `json:"definition,omitempty"`
		Type       string `json:"type"`
	}
	CapableOperation struct {
		Name       string `json:"name"`
		Definition string `json:"definition"`
	}
)

type (
	interaction struct {
		Code string `json:"code"`
	}
	capableResource struct {
		Type             string             `json:"type"`
		SupportedProfile []string           `json:"supportedProfile,omitempty"`
		Interaction      []interaction      `json:"interaction,omitempty"`
		Versioning       string             `json:"versioning,omitempty"`
		ConditionalRead  string             `json:"conditionalRead,omitempty"`
		SearchInclude    []string           `json:"searchInclude,omitempty"`
		SearchRevInclude []string           `json:"searchRevInclude,omitempty"`
		SearchParam      []CapableParam     `json:"searchParam,omitempty"`
		Operation        []CapableOperation `json:"operation,omitempty"`
	}
	uriExtension struct {
		URL      string `json:"url"`
		ValueURI string `json:"valueUri"`
	}
	oauthURIs struct {
		URL       string         `json:"url"`
		Extension []uriExtension `json:"extension"`
	}
	capableSecurity struct {
		Extension   []oauthURIs `json:"extension,omitempty"`
		CORS        bool        `json:"cors"`
		Service     []concept   `json:"service"`
		Description string      `json:"description"`
	}
	capableREST struct {
		Mode      string             `json:"mode"`
		Security  capableSecurity    `json:"security"`
		Resource  []capableResource  `json:"resource"`
		Operation []CapableOperation `json:"operation,omitempty"`
	}
	software struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	implementation struct {
		Description string `json:"description"`
		URL         string `json:"url,omitempty"`
	}
	capabilityStatement struct {
		ResourceType        string         `json:"resourceType"`
		Status              string         `json:"status"`
		Date                string         `json:"date"`
		Kind                string         `json:"kind"`
		Software            software       `json:"software"`
		Implementation      implementation `json:"implementation"`
		FHIRVersion         string         `json:"fhirVersion"`
		Format              []string       `json:"format"`
		ImplementationGuide []string       `json:"implementationGuide,omitempty"`
		REST                []capableREST  `json:"rest"`
	}
)

// CapabilityStatement says what the interface can do. Source: FHIR R4, capabilitystatement.html.
func CapabilityStatement(c Capability) Resource {
	rest := capableREST{
		Mode: "server", Operation: c.Operations,
		Security: capableSecurity{
			CORS: c.CORS, Description: "A person's access token, or a client's by SMART Backend Services.",
			Service: []concept{{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/restful-security-service", "SMART-on-FHIR", "SMART-on-FHIR"}}}},
		},
	}
	if c.TokenURL != "" {
		rest.Security.Extension = []oauthURIs{{
			"http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris", []uriExtension{{"token", c.TokenURL}},
		}}
	}
	for _, r := range c.Resources {
		said := capableResource{
			Type: r.Type, SearchInclude: r.Includes, SearchRevInclude: r.Joins, SearchParam: r.Params, Operation: r.Operations,
		}
		if r.Params != nil { // otherwise it is there for its operations alone
			said.Interaction, said.Versioning, said.ConditionalRead = []interaction{{"read"}, {"search-type"}}, "versioned", "full-support"
		}
		for _, name := range r.Profiles {
			said.SupportedProfile = append(said.SupportedProfile, profilePrefix+name)
		}
		rest.Resource = append(rest.Resource, said)
	}
	return Resource{content: capabilityStatement{
		ResourceType: "CapabilityStatement", Status: "active", Date: c.Date, Kind: "instance", Software: software{"Vigil", c.Version},
		Implementation: implementation{"Readings, patients and alerts of a practice that monitors patients at home.", c.URL}, FHIRVersion: "4.0.1",
		Format: []string{ContentType, "json"}, ImplementationGuide: c.Guides, REST: []capableREST{rest},
	}}
}
