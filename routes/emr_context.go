package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/emrcontext"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

func emrContextRows() []route {
	return []route{
		{http.MethodGet, "/patients/{id}/emr-context/", authz.ReadEMRContext, ratelimit.User, withPatient((*api).readEMRContext)},
		{http.MethodPost, "/patients/{id}/emr-context/refresh/", authz.ReadEMRContext, ratelimit.User, withPatient((*api).refreshEMRContext)},
		{http.MethodPost, "/patients/{id}/emr-context/proposals/{proposal_id}/accept/", authz.DecideEMRProposals, ratelimit.User, withPatient((*api).acceptEMRProposal)},
		{http.MethodPost, "/patients/{id}/emr-context/proposals/{proposal_id}/dismiss/", authz.DecideEMRProposals, ratelimit.User, withPatient((*api).dismissEMRProposal)},
	}
}

// emrContextView is what the EMR's chart has of a patient.
type emrContextView struct {
	State     emrcontext.State `json:"state"`
	FetchedAt *string          `json:"fetched_at"`

	Conditions  []emrcontext.Condition   `json:"conditions"`
	Medications []emrcontext.Medication  `json:"medications"`
	Encounters  []emrcontext.Encounter   `json:"encounters"`
	Orders      []emrcontext.Order       `json:"orders"`
	Coverage    []emrcontext.Coverage    `json:"coverage"`
	Allergies   []emrcontext.Allergy     `json:"allergies"`
	Unavailable []emrcontext.Unavailable `json:"unavailable"`
	Proposals   []emrcontext.Proposal    `json:"proposals"`
}

// readEMRContext answers with the stored context; each read is audited.
func (a *api) readEMRContext(c *web.Call, patient *collections.Patient) error {
	return a.showEMRContext(c, patient)
}

func (a *api) showEMRContext(c *web.Call, patient *collections.Patient) error {
	v, err := a.EMR.Context.Read(c.App, patient, c.Now)
	if err != nil {
		return err
	}
	if !v.FetchedAt.IsZero() {
		if err := c.RecordRead(audit.EMRContextRead, audit.ResourceEMRContext, patient.Id, patient.Id); err != nil {
			return err
		}
	}
	c.Header().Set("Cache-Control", "no-store")
	content := v.Content
	return c.OK(emrContextView{
		State: v.State, FetchedAt: instantOrNull(v.FetchedAt), Conditions: content.Conditions, Medications: content.Medications, Encounters: content.Encounters,
		Orders: content.Orders, Coverage: content.Coverage, Allergies: content.Allergies, Unavailable: content.Unavailable, Proposals: v.Proposals,
	})
}

// refreshEMRContext reads the chart now, and answers with the result.
func (a *api) refreshEMRContext(c *web.Call, patient *collections.Patient) error {
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	if err := a.EMR.Context.Refresh(c.Request.Context(), c.App, patient.Id, a.Now); err != nil {
		return emrFault(err)
	}
	c.Now = a.Now()
	if err := emrcontext.RecordRefresh(c.App, patient.Id, c.Actor(), c.Now); err != nil {
		return err
	}
	patient, err := collections.FindPatient(c.App, patient.Id)
	if err != nil {
		return fault.OrMissing(err)
	}
	return a.showEMRContext(c, patient)
}

// decisionBody is what a person adds to a proposal.
type decisionBody struct {
	PayerID  validate.Integer        `json:"payer_id"`
	AuthorID validate.Integer        `json:"author_id"`
	Until    validate.String         `json:"until"`
	Confirm  validate.Boolean        `json:"confirm"`
	Others   validate.UnknownMembers `json:",embed"`
}

func (b decisionBody) read(checks *validate.Checks) emrcontext.Decision {
	checks.RejectUnknown("", b.Others)
	d := emrcontext.Decision{Until: checks.Text("until", b.Until, validate.Optional(40))}
	for _, named := range []struct {
		name string
		f    validate.Integer
		into *int64
	}{{"payer_id", b.PayerID, &d.PayerID}, {"author_id", b.AuthorID, &d.AuthorID}} {
		if value := checks.Integer(named.name, named.f, false); value != nil {
			if *value < 1 {
				checks.Reject(named.name, "Must be 1 or larger.")
			}
			*named.into = *value
		}
	}
	if confirmed := checks.Boolean("confirm", b.Confirm, false); confirmed != nil {
		d.Confirm = *confirmed
	}
	return d
}

// acceptEMRProposal applies a proposal to the patient's record and answers with the updated
// context.
func (a *api) acceptEMRProposal(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("proposal_id")
	if err != nil {
		return err
	}
	d, err := web.ReadOptional(c, decisionBody.read)
	if err != nil {
		return err
	}
	if err := a.EMR.Context.Accept(c.App, patient.Id, number, d, decider(c), c.Now); err != nil {
		return err
	}
	return a.showDecided(c, patient.Id)
}

func (a *api) dismissEMRProposal(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("proposal_id")
	if err != nil {
		return err
	}
	if err := c.DecodeOptional(&struct{}{}); err != nil {
		return err
	}
	if err := a.EMR.Context.Dismiss(c.App, patient.Id, number, decider(c), c.Now); err != nil {
		return err
	}
	return a.showDecided(c, patient.Id)
}

func decider(c *web.Call) emrcontext.Caller {
	return emrcontext.Caller{Actor: c.Actor(), Role: c.Caller.Role, RecordID: c.Caller.RecordID}
}

func (a *api) showDecided(c *web.Call, patientID string) error {
	patient, err := collections.FindPatient(c.App, patientID)
	if err != nil {
		return fault.OrMissing(err)
	}
	return a.showEMRContext(c, patient)
}
