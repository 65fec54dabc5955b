package routes

import (
	"encoding/json"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/validate"
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
	return web.ListedWhole(c, viewTemplate)(collections.ListThresholdTemplates(c.App))
}

func (a *api) readTemplate(c *web.Call, number int64) error {
	t, err := collections.FindThresholdTemplate(c.App, number)
	return web.Show(c.OK, viewTemplate)(t, fault.OrMissing(err))
}

func readTemplateBody(c *web.Call) (templates.Draft, error) {
	return web.Read(c, func(body templates.Body, checks *validate.Checks) templates.Draft { return body.Read(checks, c.Now) })
}

func (a *api) createTemplate(c *web.Call) error {
	draft, err := readTemplateBody(c)
	if err != nil {
		return err
	}
	return web.Show(c.Created, viewTemplate)(templates.Create(c.App, draft, c.Actor(), c.Now))
}

func (a *api) replaceTemplate(c *web.Call, number int64) error {
	draft, err := readTemplateBody(c)
	if err != nil {
		return err
	}
	return web.Show(c.OK, viewTemplate)(templates.Replace(c.App, number, draft, c.Actor(), c.Now))
}

func (a *api) deleteTemplate(c *web.Call, number int64) error {
	return c.Done(templates.Delete(c.App, number, c.Actor(), c.Now))
}

func (a *api) applyTemplate(c *web.Call, patient *collections.Patient) error {
	choice, err := web.Read(c, templates.ApplyBody.Read)
	if err != nil {
		return err
	}
	return web.Show(c.OK, thresholdsFor(c))(templates.Apply(c.App, patient.Id, choice, c.Actor(), c.Now))
}

// addThresholdNeeds adds to each view the missing thresholds of its patient. Both lists are in the same order.
func (a *api) addThresholdNeeds(c *web.Call, page []*collections.Patient, views []patients.View) error {
	candidates := make([]templates.Candidate, len(page))
	for i, p := range page {
		age, known := patients.Age(p, c.Now, a.Zone)
		candidates[i] = templates.Candidate{PatientID: p.Id, Codes: p.ICD10Codes(), Age: age, AgeKnown: known}
	}
	needs, err := templates.NeedsOf(c.App, candidates)
	if err != nil {
		return err
	}
	for i := range views {
		need := needs[views[i].ID]
		views[i].NeedsThresholds = need.Thresholds
		if need.Proposed > 0 {
			views[i].ProposedTemplate = &need.Proposed
		}
	}
	return nil
}

// viewPatient renders a patient as the caller may see it, with all parts.
func (a *api) viewPatient(c *web.Call, p *collections.Patient) (patients.View, error) {
	view, err := patients.NewView(p, c.Caller.Role)
	if err != nil {
		return view, err
	}
	views := []patients.View{view}
	err = a.addThresholdNeeds(c, []*collections.Patient{p}, views)
	return views[0], err
}
