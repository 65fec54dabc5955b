package routes

import (
	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/input"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
)

func (a *api) createPatient(c *call) error {
	var body patients.Body
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.Read(checks, c.Now, a.Zone)
	if err := checks.Err(); err != nil {
		return err
	}
	patient, err := patients.Create(c.App, draft, c.actor(), c.Now)
	if err != nil {
		return err
	}
	view, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	return c.created(view)
}

func (a *api) readPatient(c *call) error {
	find := collections.FindPatient
	deleted, err := a.wantsDeleted(c)
	if err != nil {
		return err
	}
	if deleted {
		find = collections.FindPatientAnyState
	}
	patient, err := a.patient(c, find)
	if err != nil {
		return err
	}
	view, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	if err := c.recordRead(audit.PatientRead, audit.ResourcePatient, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.ok(view)
}

// wantsDeleted reads the parameter that shows deleted patients, to administrators only.
func (a *api) wantsDeleted(c *call) (bool, error) {
	q := c.query()
	wanted := q.boolean("deleted")
	if wanted == nil || !*wanted {
		return false, q.err()
	}
	if access.Reach(c.Caller.Role, access.RestorePatients) != access.All {
		return false, fault.Denied()
	}
	return true, nil
}

func (a *api) listPatients(c *call) error {
	deleted, err := a.wantsDeleted(c)
	if err != nil {
		return err
	}
	q := c.query()
	p := q.paging()
	wanted := patients.Query{
		Search: q.text("search", 100), Active: q.boolean("active"), Deleted: deleted, Offset: p.Offset(), Limit: p.Size,
		Ordering: patients.Order(q.ordering(string(patients.ByLastName), string(patients.ByCreation), string(patients.ByCreationLast))),
	}
	if err := q.err(); err != nil {
		return err
	}
	page, total, unreadable, err := a.findPatients(c, wanted)
	if err != nil {
		return err
	}
	views := make([]patients.View, len(page))
	for i, patient := range page {
		if views[i], err = patients.NewView(patient, c.Caller.Role); err != nil {
			return err
		}
	}
	return list(c, p, total, views, unreadable)
}

// archivedView is an item of the list of archived patients.
type archivedView struct {
	ID            string  `json:"id"`
	FirstName     *string `json:"first_name"`
	LastName      *string `json:"last_name"`
	MRN           string  `json:"mrn"`
	Status        string  `json:"status"`
	ArchivedAt    *string `json:"archived_at"`
	ArchivedBy    *string `json:"archived_by"`
	ArchiveReason *string `json:"archive_reason"`
}

func (a *api) listArchivedPatients(c *call) error {
	q := c.query()
	p := q.paging()
	if err := q.err(); err != nil {
		return err
	}
	page, total, unreadable, err := a.findPatients(c, patients.Query{Active: new(false), Offset: p.Offset(), Limit: p.Size})
	if err != nil {
		return err
	}
	views := make([]archivedView, len(page))
	for i, patient := range page {
		v, err := patients.NewView(patient, c.Caller.Role)
		if err != nil {
			return err
		}
		views[i] = archivedView{v.ID, v.FirstName, v.LastName, v.MRN, v.Status, v.ArchivedAt, v.ArchivedBy, v.ArchiveReason}
	}
	return list(c, p, total, views, unreadable)
}

// findPatients finds a page of the patients that the caller may see, and records who was shown; those who cannot be read are left out.
func (a *api) findPatients(c *call, wanted patients.Query) (page []*collections.Patient, total, unreadable int, err error) {
	switch {
	case c.Scope == access.Own:
		wanted.Only = []string{}
		if c.Caller.PatientID != "" {
			wanted.Only = append(wanted.Only, c.Caller.PatientID)
		}
	case a.confinedToTeams(c):
		if wanted.Only, err = patients.OwnPatients(c.App, c.Caller.RecordID); err != nil {
			return nil, 0, 0, err
		}
	}
	if page, total, err = patients.List(c.App, a.Directory, wanted); err != nil {
		return nil, 0, 0, err
	}
	page, unreadable = collections.ReadableOnly(page)
	ids := make([]string, len(page))
	for i, patient := range page {
		ids[i] = patient.Id
	}
	event := audit.PatientRead
	if wanted.Search != "" {
		event = audit.PatientSearch
	}
	return page, total, unreadable, c.recordRead(event, audit.ResourcePatient, "", ids...)
}

func (a *api) replacePatient(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	var body patients.Body
	if err := c.decode(&body); err != nil {
		return err
	}
	checks := input.NewChecks()
	draft := body.ReadReplacement(checks, c.Now, a.Zone)
	if err := checks.Err(); err != nil {
		return err
	}
	if patient, err = patients.Replace(c.App, patient.Id, draft, c.actor(), c.Now); err != nil {
		return err
	}
	view, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	return c.ok(view)
}

func (a *api) deletePatient(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	if err := patients.Delete(c.App, patient.Id, c.actor(), c.Now); err != nil {
		return err
	}
	return c.noContent()
}

func (a *api) restorePatient(c *call) error {
	patient, err := a.patient(c, collections.FindPatientAnyState)
	if err != nil {
		return err
	}
	if patient, err = patients.Restore(c.App, patient.Id, c.actor(), c.Now); err != nil {
		return err
	}
	view, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	return c.ok(view)
}

// archivingView is the answer to archiving.
type archivingView struct {
	ID            string  `json:"id"`
	Status        string  `json:"status"`
	ArchivedAt    *string `json:"archived_at"`
	ArchivedBy    *string `json:"archived_by"`
	ArchiveReason *string `json:"archive_reason"`
}

func (a *api) archivePatient(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	reason, err := c.reason()
	if err != nil {
		return err
	}
	if patient, err = patients.Archive(c.App, patient.Id, reason, c.actor(), c.Now); err != nil {
		return err
	}
	v, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	return c.ok(archivingView{v.ID, v.Status, v.ArchivedAt, v.ArchivedBy, v.ArchiveReason})
}

// unarchivingView is the answer to unarchiving.
type unarchivingView struct {
	ID           string  `json:"id"`
	Status       string  `json:"status"`
	UnarchivedAt *string `json:"unarchived_at"`
	UnarchivedBy *string `json:"unarchived_by"`
}

func (a *api) unarchivePatient(c *call) error {
	patient, err := a.patient(c, collections.FindPatient)
	if err != nil {
		return err
	}
	if patient, err = patients.Unarchive(c.App, patient.Id, c.actor(), c.Now); err != nil {
		return err
	}
	v, err := patients.NewView(patient, c.Caller.Role)
	if err != nil {
		return err
	}
	return c.ok(unarchivingView{v.ID, v.Status, v.UnarchivedAt, v.UnarchivedBy})
}

// reason reads a body that is one required reason of up to 500 characters.
func (c *call) reason() (phi.Text, error) {
	var body struct {
		Reason input.String `json:"reason"`
	}
	if err := c.decode(&body); err != nil {
		return "", err
	}
	checks := input.NewChecks()
	text := checks.Text("reason", body.Reason, input.Required(500).Multiline())
	return phi.Text(text), checks.Err()
}
