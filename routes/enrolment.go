package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/routes/web"
)

// enrolmentView is where a patient's enrolment stands.
type enrolmentView struct {
	PatientID string `json:"patient_id"`
	patients.Enrolment
}

func (a *api) readEnrolment(c *web.Call, patient *collections.Patient) error {
	found, err := a.enrolled.Of(c.App, patient, c.Now)
	if err != nil {
		return err
	}
	return c.Answer(enrolmentView{patient.Id, found}, c.RecordRead(audit.PatientRead, audit.ResourceEnrolment, "", patient.Id))
}

// unfinishedView is a patient whose enrolment is not done.
type unfinishedView struct {
	PatientID   string          `json:"patient_id"`
	PatientName string          `json:"patient_name"`
	MRN         string          `json:"mrn"`
	CreatedAt   *string         `json:"created_at"`
	State       string          `json:"state"`
	Done        int             `json:"done"`
	Of          int             `json:"of"`
	Missing     []patients.Item `json:"missing"`
	Steps       []string        `json:"steps"`
	Stops       []string        `json:"stops"`
}

// unfinishedPage is a page of them, with the counts of all before the filter.
type unfinishedPage struct {
	web.Page[unfinishedView]
	Total   int            `json:"total"`
	Missing int            `json:"missing"`
	Waiting int            `json:"waiting"`
	Steps   map[string]int `json:"steps"`
	Stops   map[string]int `json:"stops"`
}

func (a *api) listEnrolments(c *web.Call) error {
	q, p := c.Listing()
	filter := patients.Filter{
		State: q.OneOf("state", patients.Missing, patients.Waiting), Step: q.OneOf("step", patients.Steps...), Stops: q.OneOf("stops", patients.Stopped...),
	}
	if err := q.Err(); err != nil {
		return err
	}
	team, err := a.team(c, "")
	if err != nil {
		return err
	}
	found, err := a.enrolled.Unfinished(c.App, team, filter, c.Now)
	if err != nil {
		return err
	}
	rows := found.Rows[min(p.Offset(), len(found.Rows)):min(p.Offset()+p.Size, len(found.Rows))]
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.Patient
	}
	names, err := patients.Names(c.App, ids)
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceEnrolment, "", rows, func(r patients.Row) string { return r.Patient }); err != nil {
		return err
	}
	page, err := web.PageOf(c, p, len(found.Rows), web.Views(rows, func(r patients.Row) unfinishedView { return viewUnfinished(r, names[r.Patient]) }))
	return c.Answer(unfinishedPage{page, found.Total, found.Missing, found.Waiting, found.Steps, found.Stops}, err)
}

func viewUnfinished(r patients.Row, name patients.Name) unfinishedView {
	v := unfinishedView{
		PatientID: r.Patient, PatientName: name.LastFirst(), MRN: name.MRN, CreatedAt: instantOrNull(r.CreatedAt), State: r.State, Done: r.Done, Of: r.Of,
		Missing: []patients.Item{}, Steps: []string{}, Stops: r.Stops,
	}
	for _, step := range r.Steps {
		if step.State != patients.Done {
			v.Steps = append(v.Steps, step.Step)
		}
		v.Missing = append(v.Missing, step.Missing...)
	}
	return v
}

// delivers reports whether readings go to an EMR.
func (e EMR) delivers() bool { return e.Client != nil && e.Client.Configured() }

func enrolmentRows() []route {
	return []route{
		{http.MethodGet, "/icd10/", authz.ReadCodes.Or(authz.ScopeBillingRead), ratelimit.User, (*api).searchICD10},
		{http.MethodGet, "/enrolments/", authz.ReadEnrolment.Or(authz.ScopePatientsRead), ratelimit.User, (*api).listEnrolments},
		{http.MethodGet, "/patients/{id}/enrolment/", authz.ReadEnrolment.Or(authz.ScopePatientsRead), ratelimit.User, ofPatient((*api).readEnrolment)},
	}
}
