package routes

import "github.com/vigilhealth/vigil/internal/emr"

// deliveryPlanView is how readings reach the EMR.
type deliveryPlanView struct {
	Way               emr.Way       `json:"way"`
	Reason            emr.WayReason `json:"reason"`
	ConditionalCreate *bool         `json:"conditional_create"`
	ObservationSearch []string      `json:"observation_search"`
	StatementReadAt   *string       `json:"statement_read_at"`
}

// viewDeliveryPlan returns nil without an EMR.
func (a *api) viewDeliveryPlan() *deliveryPlanView {
	if !a.EMR.Client.Configured() {
		return nil
	}
	p := a.EMR.Client.Plan()
	return &deliveryPlanView{p.Way, p.Reason, p.ConditionalCreate, p.ObservationSearch, instantOrNull(p.ReadAt)}
}
