package routes

import (
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

type orderView struct {
	ID         int64   `json:"id"`
	PatientID  string  `json:"patient_id"`
	Kind       string  `json:"kind"`
	Dated      string  `json:"dated"`
	Until      *string `json:"until"`
	AuthorID   int64   `json:"author_id"`
	Author     string  `json:"author"`
	Text       *string `json:"text"`
	RecordedBy string  `json:"recorded_by"`
	RecordedAt *string `json:"recorded_at"`

	OrderingProvider *patients.PractitionerView `json:"ordering_provider"`
}

func viewOrders(app core.App, page []*collections.Order) ([]orderView, error) {
	names, err := billing.ProviderNames(app, distinct(page, (*collections.Order).AuthorID))
	return web.Map(page, func(o *collections.Order) orderView {
		ordering, _ := o.OrderingProvider() // unreadable orders are left out of lists
		return orderView{
			o.Number(), o.PatientID(), o.Kind(), o.Dated(), orNull(o.Until()), collections.Number(o.AuthorID()), names[o.AuthorID()], orNull(o.Text().Reveal()), o.RecordedBy(),
			instantOrNull(o.RecordedAt()), patients.ViewPractitioner(ordering),
		}
	}), err
}

func (a *api) listOrders(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	kind := q.OneOf("kind", collections.OrderKinds...)
	if err := q.Err(); err != nil {
		return err
	}
	return listOfPatient(c, p, patient.Id, audit.ResourceOrder, viewOrders)(collections.PageOfOrders(c.App, patient.Id, kind, p.Offset(), p.Size))
}

func (a *api) recordOrder(c *web.Call, patient *collections.Patient) error {
	draft, err := web.Read(c, func(body patients.OrderBody, checks *validate.Checks) patients.OrderDraft {
		return body.Read(checks, c.Now, a.Zone)
	})
	if err != nil {
		return err
	}
	return show(c, c.Created, viewOrders)(patients.RecordOrder(c.App, patient.Id, draft, c.Actor(), c.Caller.RecordID, c.Now))
}
