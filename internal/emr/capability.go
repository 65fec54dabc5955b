package emr

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Capability is the part of the EMR's CapabilityStatement that the service uses.
type Capability struct {
	FHIRVersion string
	Software    string // name of the server, "" when the EMR omits it
	// Resources are the interactions by resource type, such as "create" for Observation.
	Resources map[string][]string
	// ConditionalCreate: the EMR declares that it supports conditional create of Observations, or that it does not; nil when it declares nothing.
	ConditionalCreate *bool
	// ObservationSearch are the search parameters of Observations, in order, each once.
	ObservationSearch []string
	// Documents is what it states about DocumentReferences; nil when it does not name them.
	Documents *DocumentOffer
	// Took is the time of the request alone, without waiting for pacing or a token.
	Took time.Duration
}

// Supports reports whether the server offers the interaction on the resource type.
func (c Capability) Supports(resourceType, interaction string) bool {
	return slices.Contains(c.Resources[resourceType], interaction)
}

// Metadata requests the EMR's CapabilityStatement, once and without retries, and stores what it states about Observations. The request carries a
// token, so that it also tests the sign-in. The error is always an *Error.
func (c *Client) Metadata(ctx context.Context) (Capability, error) {
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/metadata", requestID: uuid.NewString(), maxBody: maxCapability, once: true,
	})
	if err != nil {
		return Capability{}, err
	}
	capability, ok := readCapability(got.body)
	if !ok {
		e := invalidSuccess(got, attempts)
		e.tooLong = len(got.body) == maxCapability
		return Capability{}, e
	}
	c.capabilities.learn(capability, c.transport.now())
	capability.Took = got.took
	return capability, nil
}

// capabilityStatement is the JSON of a CapabilityStatement. Source: FHIR R4, capabilitystatement.html.
type capabilityStatement struct {
	ResourceType string `json:"resourceType"`
	FHIRVersion  string `json:"fhirVersion"`
	Software     struct {
		Name string `json:"name"`
	} `json:"software"`
	Rest []struct {
		Mode     string               `json:"mode"`
		Resource []capabilityResource `json:"resource"`
	} `json:"rest"`
}

type capabilityResource struct {
	Type        string `json:"type"`
	Interaction []struct {
		Code string `json:"code"`
	} `json:"interaction"`
	ConditionalCreate *bool `json:"conditionalCreate"`
	SearchParam       []struct {
		Name string `json:"name"`
	} `json:"searchParam"`
}

func readCapability(body []byte) (Capability, bool) {
	var statement capabilityStatement
	if json.Unmarshal(body, &statement) != nil || statement.ResourceType != "CapabilityStatement" {
		return Capability{}, false
	}
	c := Capability{FHIRVersion: statement.FHIRVersion, Software: statement.Software.Name, Resources: map[string][]string{}}
	for _, rest := range statement.Rest {
		if rest.Mode == "client" {
			continue
		}
		for _, resource := range rest.Resource {
			c.add(resource)
		}
	}
	slices.Sort(c.ObservationSearch)
	c.ObservationSearch = slices.Compact(c.ObservationSearch)
	return c, true
}

// add adds a resource's entry; a statement may have several of one type, which then add up. Conditional create must hold in all of them.
func (c *Capability) add(resource capabilityResource) {
	interactions := c.Resources[resource.Type]
	for _, interaction := range resource.Interaction {
		interactions = append(interactions, interaction.Code)
	}
	c.Resources[resource.Type] = interactions
	if resource.Type == documentType {
		c.addDocuments(resource)
	}
	if resource.Type != "Observation" {
		return
	}
	for _, param := range resource.SearchParam {
		c.ObservationSearch = append(c.ObservationSearch, param.Name)
	}
	if offered := resource.ConditionalCreate; offered != nil && (c.ConditionalCreate == nil || !*offered) {
		c.ConditionalCreate = offered
	}
}
