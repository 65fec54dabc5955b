package routes

import (
	"encoding/json"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/routes/web"
)

// templateView is a threshold template; it holds only the bounds that the template sets.
type templateView struct {
	ID          int64           `json:"id"`
	Key         string          `json:"key"`
	Name        string          `json:"name"`
	Diagnoses   []string        `json:"diagnoses"`
	MinAge      *float64        `json:"min_age"`
	MaxAge      *float64        `json:"max_age"`
	Thresholds  json.RawMessage `json:"thresholds"`
	Sources     []string        `json:"sources"`
	Version     int             `json:"version"`
	SignedOffBy *string         `json:"signed_off_by"`
	SignedOffAt *string         `json:"signed_off_at"`
}

func viewTemplate(t *collections.ThresholdTemplate) templateView {
	return templateView{
		ID: t.Number(), Key: t.Key(), Name: t.Name(), Diagnoses: append([]string{}, t.Diagnoses()...), MinAge: t.MinAge(), MaxAge: t.MaxAge(),
		Thresholds: json.RawMessage(t.Bounds()), Sources: append([]string{}, t.Sources()...), Version: t.Version(),
		SignedOffBy: orNull(t.SignedOffBy()), SignedOffAt: instantOrNull(t.SignedOffAt()),
	}
}

func (a *api) listTemplates(c *web.Call) error {
	return web.RespondSliceOf(c, viewTemplate)(collections.ListThresholdTemplates(c.App))
}

func (a *api) readTemplate(c *web.Call, number int64) error {
	t, err := collections.FindThresholdTemplate(c.App, number)
	return web.RespondWith(c.OK, viewTemplate)(t, fault.OrMissing(err))
}

func (a *api) createTemplate(c *web.Call) error {
	return create(c, fromBodyAt(templates.Body.Read), templates.Create, web.RespondWith(c.Created, viewTemplate))
}

func (a *api) replaceTemplate(c *web.Call, number int64) error {
	return change(c, number, fromBodyAt(templates.Body.Read), templates.Replace, web.RespondWith(c.OK, viewTemplate))
}

func (a *api) deleteTemplate(c *web.Call, number int64) error {
	return c.NoContent(templates.Delete(c.App, number, c.Actor(), c.Now))
}

func (a *api) applyTemplate(c *web.Call, patient *collections.Patient) error {
	return change(c, patient.Id, fromBody(templates.ApplyBody.Read), withAlerts(a.ReadingStore, templates.Apply), web.RespondWith(c.OK, thresholdsFor(c)))
}

func (a *api) declineTemplate(c *web.Call, patient *collections.Patient) error {
	return change(c, patient.Id, fromBody(templates.DeclineBody.Read), templates.Decline, web.RespondWith(c.OK, thresholdsFor(c)))
}

// addThresholdNeeds adds to each view the missing thresholds of its patient. Both lists are in the same order.
func (a *api) addThresholdNeeds(c *web.Call, page []*collections.Patient, views []patients.View) error {
	candidates := web.Map(page, func(p *collections.Patient) templates.Candidate { return templates.CandidateOf(p, c.Now, a.Zone) })
	needs, err := templates.NeedsOf(c.App, candidates)
	if err != nil {
		return err
	}
	ids := web.Map(page, func(p *collections.Patient) string { return p.Id })
	targets, err := templates.MissingTargets(c.App, ids, a.Zone, c.Now)
	if err != nil {
		return err
	}
	for i := range views {
		need := needs[views[i].ID]
		views[i].NeedsThresholds = need.Thresholds
		missing, needsTarget := targets[views[i].ID]
		views[i].NeedsTargetWeight, views[i].ProposedTargetKg = needsTarget, missing.ProposedKg
		if need.Proposed > 0 {
			views[i].ProposedTemplate = &need.Proposed
		}
		views[i].ProposedTemplates = append([]int64{}, need.All...)
		views[i].Provisional, views[i].DecideBy = need.Provisional, instantOrNull(need.DecideBy)
	}
	return patients.AddMessagingConsent(c.App, views, c.Now)
}

// viewPatient renders a patient as the caller may see it, with all parts.
func (a *api) viewPatient(c *web.Call, p *collections.Patient) (patients.View, error) {
	view, err := patients.NewView(p, c.Caller.Role, c.Now)
	if err != nil {
		return view, err
	}
	views := []patients.View{view}
	err = a.addThresholdNeeds(c, []*collections.Patient{p}, views)
	return views[0], err
}
