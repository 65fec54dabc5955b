package fhir

// Capability holds the content of a capability statement.
type Capability struct {
	URL     string // base URL of the API
	Version string // version of Vigil
	Date    string // date of the last change of the capabilities, YYYY-MM-DD
	// Resources are listed in this order.
	Resources []CapabilityResource
	// Operations are those at the system level.
	Operations []CapabilityOperation
	// TokenURL is where clients sign in.
	TokenURL string
	// CORS: the API accepts requests from pages of other origins.
	CORS bool
	// Guides are the canonical URLs of the implementation guides.
	Guides []string
	// Instantiates are the canonical URLs of the capability statements that the API meets.
	Instantiates []string
}

// CapabilityResource is a supported resource type.
type CapabilityResource struct {
	Type        string
	Profiles    []string // US Core profiles, by name
	Params      []CapabilityParam
	Includes    []string
	RevIncludes []string

	Operations []CapabilityOperation
	// Unversioned: there is no version of a resource to read by its number.
	Unversioned bool
}

// CapabilityParam is a search parameter; CapabilityOperation is an operation.
type (
	CapabilityParam struct {
		Name       string `json:"name"`
		Definition string `json:"definition,omitempty"`
		Type       string `json:"type"`
	}
	CapabilityOperation struct {
		Name       string `json:"name"`
		Definition string `json:"definition"`
	}
)

type (
	interaction struct {
		Code string `json:"code"`
	}
	capabilityResource struct {
		Type             string                `json:"type"`
		SupportedProfile []string              `json:"supportedProfile,omitempty"`
		Interaction      []interaction         `json:"interaction,omitempty"`
		Versioning       string                `json:"versioning,omitempty"`
		ConditionalRead  string                `json:"conditionalRead,omitempty"`
		SearchInclude    []string              `json:"searchInclude,omitempty"`
		SearchRevInclude []string              `json:"searchRevInclude,omitempty"`
		SearchParam      []CapabilityParam     `json:"searchParam,omitempty"`
		Operation        []CapabilityOperation `json:"operation,omitempty"`
	}
	// oauthURIs names the token address for clients that read it here rather than in the SMART configuration. Source: SMART App Launch 1.0,
	// "Conformance".
	oauthURIs struct {
		URL       string     `json:"url"`
		Extension []oauthURI `json:"extension"`
	}
	oauthURI struct {
		URL      string `json:"url"`
		ValueURI string `json:"valueUri"`
	}
	capabilitySecurity struct {
		Extension   []oauthURIs `json:"extension,omitempty"`
		CORS        bool        `json:"cors"`
		Service     []concept   `json:"service"`
		Description string      `json:"description"`
	}
	capabilityREST struct {
		Mode      string                `json:"mode"`
		Security  capabilitySecurity    `json:"security"`
		Resource  []capabilityResource  `json:"resource"`
		Operation []CapabilityOperation `json:"operation,omitempty"`

		Compartment []string `json:"compartment,omitempty"`
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
		ResourceType        string           `json:"resourceType"`
		Status              string           `json:"status"`
		Date                string           `json:"date"`
		Kind                string           `json:"kind"`
		Instantiates        []string         `json:"instantiates,omitempty"`
		Software            software         `json:"software"`
		Implementation      implementation   `json:"implementation"`
		FHIRVersion         string           `json:"fhirVersion"`
		Format              []string         `json:"format"`
		ImplementationGuide []string         `json:"implementationGuide,omitempty"`
		REST                []capabilityREST `json:"rest"`
	}
)

// CapabilityStatement returns the capability statement of the API. Source: FHIR R4, capabilitystatement.html.
func CapabilityStatement(c Capability) Resource {
	rest := capabilityREST{
		Mode: "server", Operation: c.Operations, Compartment: []string{"http://hl7.org/fhir/CompartmentDefinition/patient"},
		Security: capabilitySecurity{
			CORS: c.CORS, Description: "A person's access token, or a client's by SMART Backend Services.",
			Service: []concept{{Coding: []coding{{"http://terminology.hl7.org/CodeSystem/restful-security-service", "SMART-on-FHIR", "SMART-on-FHIR"}}}},
		},
	}
	if c.TokenURL != "" {
		rest.Security.Extension = []oauthURIs{{"http://fhir-registry.smarthealthit.org/StructureDefinition/oauth-uris", []oauthURI{{"token", c.TokenURL}}}}
	}
	for _, r := range c.Resources {
		resource := capabilityResource{
			Type: r.Type, SearchInclude: r.Includes, SearchRevInclude: r.RevIncludes, SearchParam: r.Params, Operation: r.Operations,
		}
		if r.Params != nil { // a type without parameters supports operations only
			resource.Interaction, resource.Versioning, resource.ConditionalRead = []interaction{{"read"}, {"vread"}, {"search-type"}}, "versioned", "full-support"
		}
		if r.Unversioned {
			resource.Interaction, resource.Versioning, resource.ConditionalRead = []interaction{{"read"}, {"search-type"}}, "no-version", ""
		}
		for _, name := range r.Profiles {
			resource.SupportedProfile = append(resource.SupportedProfile, profilePrefix+name)
		}
		rest.Resource = append(rest.Resource, resource)
	}
	return Resource{content: capabilityStatement{
		ResourceType: "CapabilityStatement", Status: "active", Date: c.Date, Kind: "instance", Instantiates: c.Instantiates, Software: software{"Vigil", c.Version},
		Implementation: implementation{"Readings, patients and alerts of a practice that monitors patients at home.", c.URL}, FHIRVersion: "4.0.1",
		Format: []string{ContentType, "json"}, ImplementationGuide: c.Guides, REST: []capabilityREST{rest},
	}}
}
