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

// enrollmentView is the state of a patient's enrollment.
type enrollmentView struct {
	PatientID string `json:"patient_id"`
	patients.Enrollment
}

func (a *api) readEnrollment(c *web.Call, patient *collections.Patient) error {
	found, err := a.enrolled.ForPatient(c.App, patient, c.Now)
	if err != nil {
		return err
	}
	return c.Respond(enrollmentView{patient.Id, found}, c.RecordRead(audit.PatientRead, audit.ResourceEnrollment, "", patient.Id))
}

// unfinishedView is a patient with an incomplete enrollment.
type unfinishedView struct {
	PatientID   string                    `json:"patient_id"`
	PatientName string                    `json:"patient_name"`
	MRN         string                    `json:"mrn"`
	CreatedAt   *string                   `json:"created_at"`
	State       string                    `json:"state"`
	Done        int                       `json:"done"`
	Total       int                       `json:"of"`
	Missing     []patients.EnrollmentItem `json:"missing"`
	Steps       []string                  `json:"steps"`
	Stops       []string                  `json:"stops"`
}

// unfinishedPage is a page of incomplete enrollments; its counts ignore the filter.
type unfinishedPage struct {
	web.Page[unfinishedView]
	Total   int            `json:"total"`
	Missing int            `json:"missing"`
	Waiting int            `json:"waiting"`
	Steps   map[string]int `json:"steps"`
	Stops   map[string]int `json:"stops"`
}

func (a *api) listEnrollments(c *web.Call) error {
	q, p := c.Listing()
	filter := patients.EnrollmentFilter{
		State: q.OneOf("state", patients.EnrollmentMissing, patients.EnrollmentWaiting), Step: q.OneOf("step", patients.EnrollmentSteps...), Stops: q.OneOf("stops", patients.AllStops...),
	}
	if err := q.Err(); err != nil {
		return err
	}
	team, err := a.careTeamFilter(c, "")
	if err != nil {
		return err
	}
	found, err := a.enrolled.Incomplete(c.App, team, filter, c.Now)
	if err != nil {
		return err
	}
	rows := web.Cut(p, found.Rows)
	names, err := patients.Names(c.App, web.Map(rows, func(r patients.EnrollmentRow) string { return r.Patient }))
	if err != nil {
		return err
	}
	if err := recordShown(c, audit.ResourceEnrollment, "", rows, func(r patients.EnrollmentRow) string { return r.Patient }); err != nil {
		return err
	}
	page, err := web.PageOf(c, p, len(found.Rows), web.Map(rows, func(r patients.EnrollmentRow) unfinishedView { return viewUnfinished(r, names[r.Patient]) }))
	return c.Respond(unfinishedPage{page, found.Total, found.Missing, found.Waiting, found.Steps, found.Stops}, err)
}

func viewUnfinished(r patients.EnrollmentRow, name patients.Name) unfinishedView {
	v := unfinishedView{
		PatientID: r.Patient, PatientName: name.LastFirst(), MRN: name.MRN, CreatedAt: instantOrNull(r.CreatedAt), State: r.State, Done: r.Done, Total: r.Total,
		Missing: []patients.EnrollmentItem{}, Steps: []string{}, Stops: r.Stops,
	}
	for _, step := range r.Steps {
		if step.State != patients.EnrollmentDone {
			v.Steps = append(v.Steps, step.Step)
		}
		v.Missing = append(v.Missing, step.Missing...)
	}
	return v
}

// delivers reports whether readings are delivered to an EMR.
func (e EMR) delivers() bool { return e.Client != nil && e.Client.Configured() }

func enrollmentRows() []route {
	return []route{
		{http.MethodGet, "/icd10/", authz.ReadCodes.Or(authz.ScopeBillingRead), ratelimit.User, (*api).searchICD10},
		{http.MethodGet, "/enrolments/", authz.ReadEnrollment.Or(authz.ScopePatientsRead), ratelimit.User, (*api).listEnrollments},
		{http.MethodGet, "/patients/{id}/enrolment/", authz.ReadEnrollment.Or(authz.ScopePatientsRead), ratelimit.User, withPatient((*api).readEnrollment)},
	}
}
