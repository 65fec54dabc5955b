package emr

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"
)

// DeliverySetting is how the practice wants its readings sent to the EMR.
type DeliverySetting string

// The delivery settings.
const (
	DeliverAuto        DeliverySetting = "auto" // as the EMR's CapabilityStatement allows
	DeliverObservation DeliverySetting = "observation"
	DeliverDocument    DeliverySetting = "document" // each month's report in place of its readings
	DeliverBoth        DeliverySetting = "both"
)

// DeliveryMode is how readings reach the EMR.
type DeliveryMode string

// The ways. With ModeNone the EMR takes neither Observations nor documents: readings wait.
const (
	ModeObservation DeliveryMode = "observation"
	ModeDocument    DeliveryMode = "document"
	ModeBoth        DeliveryMode = "both"
	ModeNone        DeliveryMode = "nothing"
)

// ModeReason is the reason for the chosen delivery mode.
type ModeReason string

// The reasons, the first that holds. Source: docs/decisions/transmissions.md, "Delivery mode".
const (
	ModeBySetting      ModeReason = "setting"
	ModeCreateOffered  ModeReason = "create_offered"
	ModeAcceptedBefore ModeReason = "accepted_before"
	ModeNoStatement    ModeReason = "no_statement"
	ModeDocumentsOnly  ModeReason = "documents_offered"
	ModeNotOffered     ModeReason = "create_not_offered"
)

// DeliveryPlan is how readings reach the EMR, and what prevents duplicates.
type DeliveryPlan struct {
	Mode   DeliveryMode
	Reason ModeReason
	// ConditionalCreate: the EMR declares conditional create and the setting uses it; nil when the EMR does not state it.
	ConditionalCreate *bool
	ObservationSearch []string       // search parameters of Observations; never nil
	Documents         *DocumentOffer // nil if the EMR states nothing of documents
	ReadAt            time.Time      // of the last readable CapabilityStatement; zero when there was none
}

// Offer is what the EMR's last readable CapabilityStatement states about Observations.
type Offer struct {
	Create            bool     `json:"create"`
	Search            bool     `json:"search"`
	ConditionalCreate *bool    `json:"conditional_create"`
	SearchParameters  []string `json:"search_parameters"`
	// Documents is nil if the statement does not name DocumentReference.
	Documents *DocumentOffer `json:"documents,omitempty"`
}

// StoredCapabilities is what is known of one EMR.
type StoredCapabilities struct {
	Offer  *Offer // nil before the first readable statement
	ReadAt time.Time
	// HasAccepted: the EMR has taken an Observation.
	HasAccepted bool
}

// CapabilityStore stores what is known of an EMR, which audience identifies. It is called outside of transactions.
type CapabilityStore interface {
	// Load returns what is stored, zero if nothing is.
	Load(audience string) (StoredCapabilities, error)
	Store(audience string, known StoredCapabilities) error
}

const (
	// statementLife is how long a statement is used before it is read again.
	statementLife = 24 * time.Hour
	// statementRetry is the time between two attempts to read a missing statement.
	statementRetry = 15 * time.Minute
)

// capabilities is what is known of the EMR. A statement that is missing or unreadable changes nothing.
type capabilities struct {
	store    CapabilityStore
	audience string
	setting  DeliverySetting

	mu       sync.Mutex
	isLoaded bool
	known    StoredCapabilities
	stored   *StoredCapabilities // what the store has; nil when that is not known
	triedAt  time.Time
}

// current returns what is known, at first what is stored.
func (c *capabilities) current() StoredCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load()
	return c.known
}

func (c *capabilities) load() {
	if c.isLoaded || c.store == nil {
		return
	}
	stored, err := c.store.Load(c.audience)
	if err != nil {
		return // loaded with the next call
	}
	c.isLoaded, c.stored = true, &stored
	if c.known.Offer == nil {
		c.known.Offer, c.known.ReadAt = stored.Offer, stored.ReadAt
	}
	c.known.HasAccepted = c.known.HasAccepted || stored.HasAccepted
}

// change applies a change and stores the result if it differs from what the store has, or if the last one could not be stored.
func (c *capabilities) change(apply func(*StoredCapabilities)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.load()
	apply(&c.known)
	now, was := c.known, c.stored
	if c.store == nil || was != nil && was.HasAccepted == now.HasAccepted && reflect.DeepEqual(was.Offer, now.Offer) && now.ReadAt.Sub(was.ReadAt) < statementLife {
		return
	}
	if c.stored = nil; c.store.Store(c.audience, now) == nil {
		c.stored = &now
	}
}

// learn records what a statement states. One without resources of a server states nothing.
func (c *capabilities) learn(statement Capability, now time.Time) {
	if len(statement.Resources) == 0 {
		return
	}
	offer := &Offer{
		// Conditional create without create contradicts itself, and does not stop deliveries.
		Create:            statement.Supports("Observation", "create") || statement.ConditionalCreate != nil && *statement.ConditionalCreate,
		Search:            statement.Supports("Observation", "search-type") || len(statement.ObservationSearch) > 0,
		ConditionalCreate: statement.ConditionalCreate, SearchParameters: statement.ObservationSearch,
		Documents: statement.Documents,
	}
	c.change(func(known *StoredCapabilities) { known.Offer, known.ReadAt = offer, now })
}

// accept records that the EMR has taken an Observation.
func (c *capabilities) accept() {
	c.change(func(known *StoredCapabilities) { known.HasAccepted = true })
}

// chooseMode chooses how readings are sent. Source: docs/decisions/transmissions.md, "Delivery mode".
func (c *capabilities) chooseMode(known StoredCapabilities) (DeliveryMode, ModeReason) {
	switch {
	case c.setting == DeliverObservation, c.setting == DeliverDocument, c.setting == DeliverBoth:
		return DeliveryMode(c.setting), ModeBySetting
	case known.Offer != nil && known.Offer.Create:
		return ModeObservation, ModeCreateOffered
	case known.HasAccepted:
		return ModeObservation, ModeAcceptedBefore
	case known.Offer == nil:
		return ModeObservation, ModeNoStatement
	case known.Offer.Documents != nil && known.Offer.Documents.Create:
		return ModeDocument, ModeDocumentsOnly
	}
	return ModeNone, ModeNotOffered
}

// isDue reports whether the statement must be read, and records the attempt.
func (c *capabilities) isDue(now time.Time) bool {
	known := c.current()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(known.ReadAt) < statementLife || now.Sub(c.triedAt) < statementRetry {
		return false
	}
	c.triedAt = now
	return true
}

// Plan returns how readings are sent. It sends no request.
func (c *Client) Plan() DeliveryPlan {
	known := c.capabilities.current()
	p := DeliveryPlan{ObservationSearch: []string{}, ReadAt: known.ReadAt}
	p.Mode, p.Reason = c.capabilities.chooseMode(known)
	if known.Offer != nil {
		p.ConditionalCreate = known.Offer.ConditionalCreate
		p.ObservationSearch = append(p.ObservationSearch, known.Offer.SearchParameters...)
		p.Documents = known.Offer.Documents
	}
	if !c.conditional {
		p.ConditionalCreate = new(false)
	}
	return p
}

// CanReceive reports whether readings are sent at all.
func (c *Client) CanReceive() bool { return c.Plan().Mode != ModeNone }

// TakesReadings reports whether readings are sent one by one.
func (c *Client) TakesReadings() bool {
	way := c.Plan().Mode
	return way == ModeObservation || way == ModeBoth
}

// TakesDocuments reports whether documents may be sent: by the way of delivery, or because the EMR's statement offers it.
func (c *Client) TakesDocuments() bool {
	way, offer := c.Plan().Mode, c.documents()
	return c.Configured() && (way == ModeDocument || way == ModeBoth || offer != nil && offer.Create)
}

// Prepare reads the CapabilityStatement if the last one is missing or a day old. A failure changes nothing.
func (c *Client) Prepare(ctx context.Context) {
	if c.Configured() && c.capabilities.isDue(c.transport.now()) {
		_, _ = c.Metadata(ctx) // deliveries continue with what is known
	}
}

// sendsConditional reports whether deliveries send If-None-Exist: the setting is on, and the EMR does not rule it out.
func (c *Client) sendsConditional() bool {
	offered := c.Plan().ConditionalCreate
	return offered == nil || *offered
}

// preventsDuplicates reports whether the EMR itself stores nothing twice: deliveries send If-None-Exist, and the EMR declares to honor it.
func (c *Client) preventsDuplicates() bool {
	offered := c.Plan().ConditionalCreate
	return offered != nil && *offered
}

// searchesBy reports whether the EMR may be searched for Observations by a parameter; everything may be tried where it does not state it.
func (o *Offer) searchesBy(parameter string) bool {
	return o == nil || o.Search && slices.Contains(o.SearchParameters, parameter)
}
