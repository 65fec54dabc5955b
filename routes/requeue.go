package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/routes/web"
)

// requeueBody says what of the deliveries that were given up is to be queued again: since when, and by the filters of their list.
type requeueBody struct {
	Since     input.String  `json:"since"`
	DateTo    input.String  `json:"date_to"`
	ErrorCode input.String  `json:"error_code"`
	PatientID input.String  `json:"patient_id"`
	DryRun    input.Boolean `json:"dry_run"`
}

type requeuedView struct {
	Requeued int  `json:"requeued"`
	DryRun   bool `json:"dry_run"`
}

// requeueTransmissions queues again what was given up. Source: docs/decisions/transmissions.md, "Queued again".
func (a *api) requeueTransmissions(c *web.Call, body requeueBody) error {
	checks := input.NewChecks()
	filter := transmissions.GivenUp{
		ErrorCode: checks.Text("error_code", body.ErrorCode, input.Optional(40).Filled().OneOf(transmissions.ErrorCodes()...)),
		PatientID: checks.UUID("patient_id", body.PatientID, false),
	}
	var ok bool
	if since := checks.Text("since", body.Since, input.Required(40)); since != "" {
		if filter.From, ok = transmissions.ParseSince(since, a.Zone, c.Now); !ok {
			checks.Reject("since", "Must be a date, an ISO 8601 date-time or a duration such as 36h.")
		}
	}
	if to := checks.Text("date_to", body.DateTo, input.Optional(40).Filled()); to != "" {
		if filter.To, ok = web.Edge(to, a.Zone, true); !ok {
			checks.Reject("date_to", web.MsgEdge)
		} else if filter.From.After(filter.To) {
			checks.Reject("since", "Must not be after date_to.")
		}
	}
	dry := checks.Boolean("dry_run", body.DryRun, false)
	if err := checks.Err(); err != nil {
		return err
	}
	if dry != nil && *dry {
		counted, err := transmissions.CountGivenUp(c.App, filter)
		return c.Answer(requeuedView{counted, true}, err)
	}
	requeued, err := transmissions.Requeue(c.Request.Context(), c.App, filter, c.Actor(), c.Now)
	if requeued > 0 {
		a.Transmissions.Wake()
	}
	return c.Answer(requeuedView{Requeued: requeued}, err)
}

// remedyView is what to do about a delivery that failed.
type remedyView struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

func remedyOf(t *collections.Transmission) *remedyView {
	if t.Status() != collections.FHIRFailed {
		return nil
	}
	remedy, ok := transmissions.RemedyFor(t.ErrorCode(), t.ErrorMessage(), t.GivenUp())
	if !ok {
		return nil
	}
	return &remedyView{remedy.Code, remedy.Text}
}

// wordsOfEMR are the EMR's own words about its refusal, for those who have to mend it; they may name the patient, so whoever is shown them is noted.
// Source: docs/decisions/transmissions.md, "The EMR's own words".
func wordsOfEMR(c *web.Call, t *collections.Transmission) (*string, error) {
	if access.Reach(c.Caller.Role, access.RequeueTransmissions) != access.All || t.ErrorCode() == "" {
		return nil, nil
	}
	if err := collections.Readable(t.ProxyRecord()); err != nil {
		return nil, err
	}
	words := t.Diagnostics()
	if words == "" {
		return nil, nil
	}
	return &words, c.RecordRead(audit.EMRWordsRead, audit.ResourceTransmission, t.Id, t.PatientID())
}
