package routes

import "github.com/vigilhealth/vigil/internal/emr"

// deliveryPlanView shows how readings reach the EMR, and why that way.
type deliveryPlanView struct {
	Way               emr.DeliveryMode   `json:"way"`
	Reason            emr.ModeReason     `json:"reason"`
	ConditionalCreate *bool              `json:"conditional_create"`
	ObservationSearch []string           `json:"observation_search"`
	Documents         *documentOfferView `json:"documents"`
	StatementReadAt   *string            `json:"statement_read_at"`
}

// documentOfferView is what the EMR states about DocumentReferences.
type documentOfferView struct {
	Create bool     `json:"create"`
	Update bool     `json:"update"`
	Search []string `json:"search"`
}

// viewDeliveryPlan returns nil without an EMR.
func (a *api) viewDeliveryPlan() *deliveryPlanView {
	if !a.EMR.Client.Configured() {
		return nil
	}
	p := a.EMR.Client.Plan()
	view := &deliveryPlanView{
		Way: p.Mode, Reason: p.Reason, ConditionalCreate: p.ConditionalCreate, ObservationSearch: p.ObservationSearch, StatementReadAt: instantOrNull(p.ReadAt),
	}
	if p.Documents != nil {
		view.Documents = &documentOfferView{p.Documents.Create, p.Documents.Update, append([]string{}, p.Documents.SearchParameters...)}
	}
	return view
}
