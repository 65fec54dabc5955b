package emr

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Capability is what the EMR's CapabilityStatement says it can do.
type Capability struct {
	FHIRVersion string
	Software    string // name of the server, "" when it does not say
	// Resources are the interactions by resource type, such as "create" for Observation.
	Resources map[string][]string
	// NoConditionalCreate: it says that it stores an Observation again that it has already, whatever the header asks. Most servers say nothing.
	NoConditionalCreate bool
	// Took is the time of the request alone, without waiting for the request rate or a token.
	Took time.Duration
}

// Supports reports whether the server offers the interaction on the resource type.
func (c Capability) Supports(resourceType, interaction string) bool {
	return slices.Contains(c.Resources[resourceType], interaction)
}

// Metadata asks the EMR, once and without retries, what it can do. It is signed like any call, so that it also
// proves the sign-in. The error is always an *Error.
func (c *Client) Metadata(ctx context.Context) (Capability, error) {
	got, attempts, err := c.send(ctx, call{
		method: http.MethodGet, path: "/metadata", requestID: uuid.NewString(), maxBody: maxCapability, once: true,
	})
	if err != nil {
		return Capability{}, err
	}
	capability, ok := readCapability(got.body)
	if !ok {
		return Capability{}, refused(got, attempts)
	}
	c.unfit.Store(capability.NoConditionalCreate)
	capability.Took = got.took
	return capability, nil
}

// conditionalCreate reports whether deliveries ask the EMR not to store what it has: the settings say so, and what the EMR last said of
// itself does not speak against it.
func (c *Client) conditionalCreate() bool { return c.conditional && !c.unfit.Load() }

func readCapability(body []byte) (Capability, bool) {
	var statement struct {
		ResourceType string `json:"resourceType"`
		FHIRVersion  string `json:"fhirVersion"`
		Software     struct {
			Name string `json:"name"`
		} `json:"software"`
		Rest []struct {
			Mode     string `json:"mode"`
			Resource []struct {
				Type        string `json:"type"`
				Interaction []struct {
					Code string `json:"code"`
				} `json:"interaction"`
				ConditionalCreate *bool `json:"conditionalCreate"`
			} `json:"resource"`
		} `json:"rest"`
	}
	if json.Unmarshal(body, &statement) != nil || statement.ResourceType != "CapabilityStatement" {
		return Capability{}, false
	}
	c := Capability{FHIRVersion: statement.FHIRVersion, Software: statement.Software.Name, Resources: map[string][]string{}}
	for _, rest := range statement.Rest {
		if rest.Mode == "client" {
			continue
		}
		for _, resource := range rest.Resource {
			interactions := c.Resources[resource.Type]
			for _, interaction := range resource.Interaction {
				interactions = append(interactions, interaction.Code)
			}
			c.Resources[resource.Type] = interactions
			if says := resource.ConditionalCreate; resource.Type == "Observation" && says != nil {
				c.NoConditionalCreate = !*says
			}
		}
	}
	return c, true
}
