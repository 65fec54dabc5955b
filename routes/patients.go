package routes

import (
	"net/http"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// answerPatient answers with a patient as the caller may see it, and its entity tag.
func (a *api) answerPatient(c *web.Call, status int) func(*collections.Patient, error) error {
	return func(patient *collections.Patient, err error) error {
		if err != nil {
			return err
		}
		view, err := a.viewPatient(c, patient)
		if err != nil {
			return err
		}
		return c.Tagged(status, view)
	}
}

// preconditions returns the conditions of an If-Match or If-None-Match header; they are checked in the transaction of the
// update.
func (a *api) preconditions(c *web.Call) (conditions []patients.Precondition) {
	if !c.Conditional() {
		return nil
	}
	return []patients.Precondition{func(tx core.App, patient *collections.Patient) error {
		view, err := a.viewPatient(c.InTx(tx), patient)
		if err != nil {
			return err
		}
		return c.CheckCondition(view)
	}}
}

// showPatient answers with a view of a patient as the caller may see it.
func (a *api) showPatient(c *web.Call, answer func(any) error, view func(patients.View) any) func(*collections.Patient, error) error {
	return func(patient *collections.Patient, err error) error {
		if err != nil {
			return err
		}
		return web.RespondWith(answer, view)(a.viewPatient(c, patient))
	}
}

func (a *api) createPatient(c *web.Call) error {
	return create(c, fromBodyIn(a.Zone, patients.Body.Read), patients.Create, a.answerPatient(c, http.StatusCreated))
}

func (a *api) readPatient(c *web.Call) error {
	find := collections.FindPatient
	if deleted, err := a.wantsDeleted(c); err != nil {
		return err
	} else if deleted {
		find = collections.FindPatientAnyState
	}
	patient, err := a.patient(c, find)
	if err != nil {
		return err
	}
	view, err := a.viewPatient(c, patient)
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.Tagged(http.StatusOK, view)
}

// wantsDeleted reads the parameter that includes deleted patients, for administrators only.
func (a *api) wantsDeleted(c *web.Call) (bool, error) {
	q := c.Query()
	if !q.IsTrue("deleted") {
		return false, q.Err()
	}
	if authz.ReachOf(c.Caller.Role, authz.RestorePatients) != authz.All {
		return false, fault.Denied()
	}
	return true, nil
}

func (a *api) listPatients(c *web.Call) error {
	deleted, err := a.wantsDeleted(c)
	if err != nil {
		return err
	}
	q, p := c.Listing()
	query := patients.Query{
		Search: q.Text("search", 100), Active: q.Boolean("active"), Deleted: deleted, Offset: p.Offset(), Limit: p.Size,
		Ordering: patients.ListOrder(q.Ordering(string(patients.ByLastName), string(patients.ByCreation), string(patients.ByCreationDescending))),
	}
	mrn, externalID := q.Text("mrn", 50), q.Text("external_id", 110)
	if err := q.Err(); err != nil {
		return err
	}
	if err := narrow(c.App, &query, mrn, collections.FindPatientByMRN); err != nil {
		return err
	}
	if err := narrow(c.App, &query, externalID, findByExternalID); err != nil {
		return err
	}
	page, total, unreadable, err := a.findPatients(c, query)
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, page, unreadable)
}

// narrow limits a list to the patient with an identifier, if one was sent.
func narrow(app core.App, query *patients.Query, value string, find func(core.App, string) (*collections.Patient, error)) error {
	if value == "" {
		return nil
	}
	found := []string{}
	switch patient, err := find(app, value); {
	case collections.IsNotFound(err):
	case err != nil:
		return err
	default:
		found = append(found, patient.Id)
	}
	query.Only = common(query.Only, found)
	return nil
}

// common returns the ids that are in both lists; a nil list holds all.
func common(a, b []string) []string {
	if a == nil {
		return b
	}
	return slices.DeleteFunc(slices.Clone(a), func(id string) bool { return !slices.Contains(b, id) })
}

// archivedView is an archived patient in a list.
type archivedView struct {
	ID            string  `json:"id"`
	FirstName     *string `json:"first_name"`
	LastName      *string `json:"last_name"`
	MRN           string  `json:"mrn"`
	Status        string  `json:"status"`
	ArchivedAt    *string `json:"archived_at"`
	ArchivedBy    *string `json:"archived_by"`
	ArchiveReason *string `json:"archive_reason"`
	DeceasedAt    *string `json:"deceased_at"`
	EffectiveAt   *string `json:"effective_at"`
}

func (a *api) listArchivedPatients(c *web.Call) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	page, total, unreadable, err := a.findPatients(c, patients.Query{Active: new(false), Offset: p.Offset(), Limit: p.Size})
	if err != nil {
		return err
	}
	return web.RespondPage(c, p, total, web.Map(page, func(v patients.View) archivedView {
		return archivedView{v.ID, v.FirstName, v.LastName, v.MRN, v.Status, v.ArchivedAt, v.ArchivedBy, v.ArchiveReason, v.DeceasedAt, v.EffectiveAt}
	}), unreadable)
}

// findPatients returns a page of the patients that the caller may see and records those shown; unreadable patients are
// left out and counted.
func (a *api) findPatients(c *web.Call, query patients.Query) (views []patients.View, total, unreadable int, err error) {
	switch {
	case c.Reach == authz.Own:
		own := web.Map(c.Caller.Patients, func(access auth.PortalAccess) string { return access.PatientID })
		query.Only = common(query.Only, own)
	case a.confinedToTeams(c):
		team, err := collections.PatientIDsOfTeam(c.App, c.Caller.RecordID, "")
		if err != nil {
			return nil, 0, 0, err
		}
		query.Only = common(query.Only, team)
	}
	page, total, err := patients.List(c.App, a.Directory, query)
	if err != nil {
		return nil, 0, 0, err
	}
	page, unreadable = collections.ReadableOnly(page)
	ids, views := make([]string, len(page)), make([]patients.View, len(page))
	for i, patient := range page {
		ids[i] = patient.Id
		if views[i], err = patients.NewView(patient, c.Caller.Role, c.Now); err != nil {
			return nil, 0, 0, err
		}
	}
	if err := a.addThresholdNeeds(c, page, views); err != nil {
		return nil, 0, 0, err
	}
	event := audit.PatientRead
	if query.Search != "" {
		event = audit.PatientSearch
	}
	return views, total, unreadable, c.RecordRead(event, audit.ResourcePatient, "", ids...)
}

func (a *api) replacePatient(c *web.Call, patient *collections.Patient) error {
	draft, err := web.Read(c, func(body patients.Body, checks *validate.Checks) patients.Draft {
		return body.ReadReplacement(checks, c.Now, a.Zone)
	})
	if err != nil {
		return err
	}
	return a.answerPatient(c, http.StatusOK)(patients.Replace(c.App, patient.Id, draft, c.Actor(), c.Now, a.preconditions(c)...))
}

// changePatient applies a merge patch.
func (a *api) changePatient(c *web.Call, patient *collections.Patient) error {
	var patch patients.Patch
	if err := c.DecodeMergePatch(&patch); err != nil {
		return err
	}
	return a.answerPatient(c, http.StatusOK)(patients.ApplyPatch(c.App, patient.Id, patch, c.Actor(), c.Now, a.Zone, a.preconditions(c)...))
}

func (a *api) deletePatient(c *web.Call, patient *collections.Patient) error {
	return c.NoContent(patients.Delete(c.App, patient.Id, c.Actor(), c.Now, a.preconditions(c)...))
}

func (a *api) restorePatient(c *web.Call, patient *collections.Patient) error {
	return a.answerPatient(c, http.StatusOK)(patients.Restore(c.App, patient.Id, c.Actor(), c.Now))
}

type archivingView struct {
	ID            string  `json:"id"`
	Status        string  `json:"status"`
	ArchivedAt    *string `json:"archived_at"`
	ArchivedBy    *string `json:"archived_by"`
	ArchiveReason *string `json:"archive_reason"`
	DeceasedAt    *string `json:"deceased_at"`
	EffectiveAt   *string `json:"effective_at"`
}

func (a *api) archivePatient(c *web.Call, patient *collections.Patient) error {
	view := func(v patients.View) any {
		return archivingView{v.ID, v.Status, v.ArchivedAt, v.ArchivedBy, v.ArchiveReason, v.DeceasedAt, v.EffectiveAt}
	}
	began, err := patients.MonitoringBegan(c.App, patient)
	if err != nil {
		return err
	}
	read := fromBodyIn(collections.Zone(patient.TimeZone(), a.Zone),
		func(body patients.ArchiveBody, checks *validate.Checks, now time.Time, zone *time.Location) patients.ArchiveDraft {
			return body.Read(checks, now, zone, patient.Demographics().DateOfBirth, began)
		})
	return change(c, patient.Id, read, patients.Archive, a.showPatient(c, c.OK, view))
}

type unarchivingView struct {
	ID           string  `json:"id"`
	Status       string  `json:"status"`
	UnarchivedAt *string `json:"unarchived_at"`
	UnarchivedBy *string `json:"unarchived_by"`
}

func (a *api) unarchivePatient(c *web.Call, patient *collections.Patient) error {
	view := func(v patients.View) any { return unarchivingView{v.ID, v.Status, v.UnarchivedAt, v.UnarchivedBy} }
	return a.showPatient(c, c.OK, view)(patients.Unarchive(c.App, patient.Id, c.Actor(), c.Now))
}

// reason reads a body with one required reason of up to 500 characters.
func reason(c *web.Call) (phi.Text, error) {
	type reasonBody struct {
		Reason validate.String `json:"reason"`
	}
	return web.Read(c, func(body reasonBody, checks *validate.Checks) phi.Text {
		return phi.Text(checks.Text("reason", body.Reason, validate.Required(500).Multiline()))
	})
}

// careTeamView is a patient's care team.
type careTeamView struct {
	PrimaryProviderID   *int64             `json:"primary_provider_id"`
	PrimaryProviderName *string            `json:"primary_provider_name"`
	Members             []careTeamItemView `json:"members"`
}

type careTeamItemView struct {
	UserID int64  `json:"user_id"`
	Role   string `json:"role"`
	Name   string `json:"name"`
}

func viewCareTeam(team patients.CareTeam) careTeamView {
	view := careTeamView{Members: []careTeamItemView{}}
	if primary := team.PrimaryProvider; primary != nil {
		view.PrimaryProviderID, view.PrimaryProviderName = &primary.UserID, orNull(primary.Name.Reveal())
	}
	for _, m := range team.Members {
		view.Members = append(view.Members, careTeamItemView{m.UserID, m.Role, m.Name.Reveal()})
	}
	return view
}

func (a *api) readCareTeam(c *web.Call, patient *collections.Patient) error {
	team, err := patients.FindCareTeam(c.App, patient)
	if err != nil {
		return err
	}
	return c.Respond(viewCareTeam(team), c.RecordRead(audit.PatientRead, audit.ResourceCareTeam, patient.Id, patient.Id))
}

func (a *api) updateCareTeam(c *web.Call, patient *collections.Patient) error {
	return change(c, patient.Id, fromBody(patients.CareTeamBody.Read), patients.SetCareTeam, web.RespondWith(c.OK, viewCareTeam))
}

type consentView struct {
	ID                int64   `json:"id"`
	PatientID         string  `json:"patient_id"`
	Type              string  `json:"type"`
	Method            string  `json:"method"`
	Status            string  `json:"status"`
	GrantedAt         *string `json:"granted_at"`
	ExpiresAt         *string `json:"expires_at"`
	ObtainedBy        *string `json:"obtained_by"`
	RecordedBy        *string `json:"recorded_by"`
	DocumentReference *string `json:"document_reference"`
	Notes             *string `json:"notes"`
	RevokedAt         *string `json:"revoked_at"`
	RevokedBy         *string `json:"revoked_by"`
	RevokeReason      *string `json:"revoke_reason"`
	EffectiveAt       *string `json:"effective_at"` // when a revoked consent ended, if earlier
	RecordedAt        *string `json:"recorded_at"`  // granted_at is the start of the consent, recorded_at when it was entered
	CreatedAt         *string `json:"created_at"`
}

// viewConsent renders a consent; the portal shows no names of staff.
func viewConsent(c *web.Call, consent *collections.Consent) consentView {
	view := consentView{
		ID: consent.Number(), PatientID: consent.PatientID(), Type: consent.Type(), Method: consent.Method(),
		Status: patients.ConsentStatus(consent, c.Now), GrantedAt: instantOrNull(consent.GrantedAt()), ExpiresAt: instantOrNull(consent.ExpiresAt()),
		ObtainedBy: orNull(consent.ObtainedBy()), RecordedBy: orNull(consent.RecordedBy()),
		DocumentReference: orNull(consent.DocumentReference().Reveal()), Notes: orNull(consent.Notes().Reveal()),
		RevokedAt: instantOrNull(consent.RevokedAt()), RevokedBy: orNull(consent.RevokedBy()), RevokeReason: orNull(consent.RevokeReason().Reveal()),
		EffectiveAt: instantOrNull(consent.EffectiveAt()), RecordedAt: instantOrNull(consent.CreatedAt()), CreatedAt: instantOrNull(consent.CreatedAt()),
	}
	if c.Caller.Role == authz.Patient {
		view.ObtainedBy, view.RecordedBy, view.RevokedBy = nil, nil, nil
	}
	return view
}

func consentFor(c *web.Call) func(*collections.Consent) consentView {
	return func(consent *collections.Consent) consentView { return viewConsent(c, consent) }
}

func (a *api) listConsents(c *web.Call, patient *collections.Patient) error {
	q, p := c.Listing()
	if err := q.Err(); err != nil {
		return err
	}
	return listOfPatient(c, p, patient.Id, audit.ResourceConsent, eachWithoutLookup(consentFor(c)))(
		collections.PageOfConsents(c.App, patient.Id, p.Offset(), p.Size))
}

func (a *api) grantConsent(c *web.Call, patient *collections.Patient) error {
	read := fromBodyIn(a.Zone, func(body patients.ConsentBody, checks *validate.Checks, now time.Time, practice *time.Location) patients.Draft {
		return body.Read(checks, now, practice, patient.Demographics().DateOfBirth)
	})
	return change(c, patient.Id, read, patients.GrantConsent, web.RespondWith(c.Created, consentFor(c)))
}

func (a *api) revokeConsent(c *web.Call, patient *collections.Patient) error {
	number, err := c.PathInteger("consent_id")
	if err != nil {
		return err
	}
	revocation, err := fromBodyIn(a.Zone, patients.RevokeBody.Read)(c)
	if err != nil {
		return err
	}
	return web.RespondWith(c.OK, consentFor(c))(patients.RevokeConsent(c.App, patient.Id, number, revocation, c.Actor(), c.Now))
}
