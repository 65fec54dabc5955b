package fhirserver

import (
	"strconv"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// relatedPersonType is the caregivers; those with an ended access are inactive. Source: docs/decisions/fhir.md, "Caregivers".
var relatedPersonType = &ResourceType{
	Type: "RelatedPerson", Action: authz.ReadCaregivers, Event: audit.PatientRead, AuditResource: audit.ResourceRelatedPerson, Profiles: []string{"us-core-relatedperson"},
	Params: []Param{
		patientParam("patient", definitions+"RelatedPerson-patient"),
		{Name: "identifier", Type: "token", Definition: definitions + "RelatedPerson-identifier", add: filterByCaregiverAccount},
		{Name: "active", Type: "token", Definition: definitions + "RelatedPerson-active", add: filterByInForce},
		{Name: "name", Type: "string", Definition: definitions + "RelatedPerson-name", Modifiers: []string{"exact", "contains"}, add: filterByCaregiverName},
	},
	Orders: idOrders, ofPatients: true, table: collections.CaregiverSearch, numericID: true, render: renderRelatedPersons,
}

func filterByCaregiverAccount(s *Search, _ *parseContext, v values) string {
	byNumber := func(by string, numbers []string) dbx.Expression {
		return s.Type.table.AnyOf(by, s.Type.recordIDs(numbers))
	}
	s.hasIdentifier = true
	return s.filterByIdentifiers(v, identifierSystem{"urn:rpm:user", byNumber, collections.ByUser})
}

// filterByCaregiverName refuses a patient, who is not shown the names: a search would tell them.
func filterByCaregiverName(s *Search, in *parseContext, v values) string {
	if s.Reader.Role == authz.Patient {
		return "Is not available to patients."
	}
	return filterByUserName(s, in, v)
}

func filterByInForce(s *Search, in *parseContext, v values) string {
	conditions := []dbx.Expression{}
	for _, t := range v.tokens() {
		isInForce, err := strconv.ParseBool(t.code)
		if err != nil || t.code != strconv.FormatBool(isInForce) {
			return "Must be true or false."
		}
		conditions = append(conditions, collections.CaregiversInForce(isInForce, in.now))
	}
	s.addAnyOf(conditions)
	return ""
}

func renderRelatedPersons(_ *Engine, app core.App, records []*core.Record, r Reader) ([]Row, error) {
	ids, patients := make([]string, len(records)), make([]string, len(records))
	for i, record := range records {
		c := collections.AsCaregiver(record)
		ids[i], patients[i] = c.UserID(), c.PatientID()
	}
	deaths, err := collections.DatesOfDeath(app, patients)
	if err != nil {
		return nil, err
	}
	found, err := collections.UsersByID(app, ids)
	if err != nil {
		return nil, err
	}
	accounts := map[string]*collections.User{}
	for _, user := range found {
		accounts[user.Id] = user
	}
	rows := make([]Row, len(records))
	for i, record := range records {
		c := collections.AsCaregiver(record)
		id := strconv.FormatInt(c.Number(), 10)
		person := fhir.Caregiver{
			ID: id, PatientID: c.PatientID(), UserID: strconv.FormatInt(collections.Number(c.UserID()), 10), Relationship: c.Relationship(),
			Active: c.InForce(r.Now) && deaths[c.PatientID()] == "", Since: c.CreatedAt(), Until: c.Until(), UpdatedAt: latest(c.CreatedAt(), c.EndedAt()),
		}
		switch ended := c.EndedAt(); {
		case !ended.IsZero() && ended != c.EndsAt():
			person.Until = validate.FormatInstant(ended)
		case c.InForce(r.Now) && !person.Active:
			person.Until = max(deaths[c.PatientID()], c.CreatedAt().Format(time.DateOnly)) // a period ends after it began
		case !person.Active:
			person.UpdatedAt = latest(person.UpdatedAt, c.EndsAt())
		}
		if user := accounts[c.UserID()]; user != nil {
			person.Email = phi.Text(user.Email())
			if r.Role != authz.Patient { // an address must not show a patient the name of its account
				person.First, person.Last = phi.Text(user.FirstName()), phi.Text(user.LastName())
			}
		}
		rows[i] = Row{ID: id, PatientID: c.PatientID(), Resource: fhir.RelatedPerson(person)}
	}
	return rows, nil
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
