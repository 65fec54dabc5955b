package emr

import "slices"

const documentType = "DocumentReference"

// DocumentOffer is what a CapabilityStatement states about DocumentReferences.
type DocumentOffer struct {
	Create            bool     `json:"create"`
	Update            bool     `json:"update"`
	ConditionalCreate *bool    `json:"conditional_create"`
	SearchParameters  []string `json:"search_parameters"`
}

// addDocuments adds an entry of a statement, as [Capability.add] does.
func (c *Capability) addDocuments(resource capabilityResource) {
	if c.Documents == nil {
		c.Documents = &DocumentOffer{}
	}
	o := c.Documents
	o.Create, o.Update = o.Create || c.Supports(documentType, "create"), o.Update || c.Supports(documentType, "update")
	for _, param := range resource.SearchParam {
		if !slices.Contains(o.SearchParameters, param.Name) {
			o.SearchParameters = append(o.SearchParameters, param.Name)
		}
	}
	if offered := resource.ConditionalCreate; offered != nil && (o.ConditionalCreate == nil || !*offered) {
		o.ConditionalCreate = offered
	}
}

// searchesBy reports whether documents may be searched by all parameters; where the EMR states nothing of them everything may be tried.
func (o *DocumentOffer) searchesBy(parameters ...string) bool {
	return o == nil || !slices.ContainsFunc(parameters, func(name string) bool { return !slices.Contains(o.SearchParameters, name) })
}

// documents returns what the EMR offers for documents; nil where it states nothing.
func (c *Client) documents() *DocumentOffer {
	if offer := c.capabilities.current().Offer; offer != nil {
		return offer.Documents
	}
	return nil
}

// updatesDocuments reports whether a document may be updated in place.
func (c *Client) updatesDocuments() bool {
	offer := c.documents()
	return offer == nil || offer.Update
}

// conditionalDocuments reports whether documents are created with If-None-Exist, and whether the EMR declares to honor it.
func (c *Client) conditionalDocuments() (isSent, isSafe bool) {
	offer := c.documents()
	if !c.conditional || offer != nil && offer.ConditionalCreate != nil && !*offer.ConditionalCreate {
		return false, false
	}
	return true, offer != nil && offer.ConditionalCreate != nil
}
