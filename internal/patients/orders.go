package patients

import (
	"strconv"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// OrderBody is the body that records an order of monitoring, a plan of care, an established-patient visit, or a competing service that
// another practice bills.
type OrderBody struct {
	Kind     validate.String  `json:"kind"`
	Dated    validate.String  `json:"dated"`
	Until    validate.String  `json:"until"`
	AuthorID validate.Integer `json:"author_id"`
	Text     validate.String  `json:"text"`

	OrderingProvider validate.Field[PractitionerBody] `json:"ordering_provider"`
}

// OrderDraft is a validated [OrderBody].
type OrderDraft struct {
	kind, dated string
	until       string // of a competing service; "" while it continues
	author      int64  // 0 for the caller
	text        phi.Text
	ordering    *phi.Practitioner // who ordered, if not the author
}

const (
	msgAuthor          = "Must be the id of a provider, a clinical manager or an administrator."
	msgCompetingAuthor = "Must be the id of a user with a clinical role." // of a competing service
)

func (b OrderBody) Read(c *validate.Checks, now time.Time, practice *time.Location) OrderDraft {
	d := OrderDraft{
		kind:  c.Text("kind", b.Kind, validate.Required(0).OneOf(collections.OrderKinds...)),
		dated: c.Date("dated", b.Dated, true),
		text:  phi.Text(c.Text("text", b.Text, validate.Optional(4000).Multiline())),
	}
	if d.dated > now.In(practice).Format(time.DateOnly) {
		c.Reject("dated", "Must not be in the future.")
	}
	switch d.until = c.Date("until", b.Until, false); {
	case d.until != "" && d.kind != collections.CompetingService:
		c.Reject("until", "Only a competing service has a last day.")
	case d.until != "" && d.until < d.dated:
		c.Reject("until", "Must not be before dated.")
	}
	if d.ordering = practitioner(c, "ordering_provider", b.OrderingProvider); d.ordering != nil && d.kind != collections.OrderOfMonitoring {
		c.Reject("ordering_provider", "Only an order of monitoring has one.")
	}
	if b.AuthorID.Sent() {
		d.author = readNumber(c, "author_id", b.AuthorID, msgAuthor)
	}
	return d
}

// RecordOrder records an order of a patient who is not deleted; the caller is the author unless another is named.
func RecordOrder(app core.App, patientID string, d OrderDraft, by audit.Actor, caller string, now time.Time) (order *collections.Order, err error) {
	author := caller
	if d.author != 0 {
		author = collections.NumberID(d.author)
	}
	err = app.RunInTransaction(func(tx core.App) error {
		if _, err := collections.FindPatient(tx, patientID); err != nil {
			return fault.OrMissing(err)
		}
		user, err := collections.FindUser(tx, author)
		if err != nil && !collections.IsNotFound(err) {
			return err
		}
		if d.kind == collections.CompetingService {
			if err != nil || authz.ReachOf(authz.Role(user.Role()), authz.RecordOrders) == authz.None {
				return fault.Field("author_id", msgCompetingAuthor)
			}
		} else if err != nil || !CanOrder(authz.Role(user.Role())) {
			return fault.Field("author_id", msgAuthor)
		}
		order, err = collections.AddOrder(tx, collections.OrderDraft{
			PatientID: patientID, Kind: d.kind, Dated: d.dated, Until: d.until, AuthorID: author, Text: d.text, OrderingProvider: d.ordering, RecordedBy: by.Email,
		}, now)
		if err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Event: audit.OrderRecord, Actor: by, ResourceType: audit.ResourceOrder, ResourceID: strconv.FormatInt(order.Number(), 10), PatientID: patientID,
			Changes: audit.Changes{"kind": {New: d.kind}, "dated": {New: d.dated}, "until": {New: d.until}, "author_id": {New: collections.Number(author)}},
		}, now)
	})
	return order, err
}

// CanOrder reports whether a role may order monitoring. An administrator may: the profession is not recorded.
func CanOrder(role authz.Role) bool {
	return role == authz.Provider || role == authz.ClinicalManager || role == authz.Admin
}
