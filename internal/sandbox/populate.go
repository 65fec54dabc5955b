package sandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	historyDays = 35 // a whole period of device billing, and the days since
	// Seed is the same for every demo practice.
	Seed = 2026
	// readingsPerTx is how many past readings are stored in one transaction.
	readingsPerTx = 200
)

// Populate fills an empty database with users, patients and a month of readings, through the functions of the API. progress receives the
// number of finished and of all steps.
func Populate(app core.App, engine *ingest.ReadingStore, count int, zone *time.Location, now time.Time, progress func(done, total int)) error {
	staff, err := createUsers(app, now)
	if err != nil {
		return err
	}
	if err := createNoteTemplates(app, now); err != nil {
		return err
	}
	enrolled := now.AddDate(0, 0, -historyDays)
	payers, err := createPayers(app, enrolled)
	if err != nil {
		return err
	}
	var ids []string
	for n := 1; n <= count; n++ {
		id, err := enrollPatient(app, n, staff, payers, enrolled)
		if err != nil {
			return fmt.Errorf("enroll patient %d: %w", n, err)
		}
		ids = append(ids, id)
	}
	if err := createPortalAccount(app, ids, now); err != nil {
		return err
	}
	if err := storeHistory(app, engine, ids, now.In(zone), progress); err != nil {
		return err
	}
	return acknowledgePast(app, staff.provider, now)
}

// acknowledgePast acknowledges alerts older than a day and marks their announcements as sent.
func acknowledgePast(app core.App, provider *collections.User, now time.Time) error {
	yesterday := collections.FormatInstant(now.Add(-24 * time.Hour))
	var open []struct {
		ID        string `db:"id"`
		CreatedAt string `db:"created_at"`
	}
	err := app.DB().NewQuery(`SELECT id, created_at FROM alerts WHERE acknowledged = FALSE AND created_at < {:yesterday} ORDER BY created_at`).
		Bind(dbx.Params{"yesterday": yesterday}).All(&open)
	if err != nil {
		return fmt.Errorf("list the alerts of the past: %w", err)
	}
	by := audit.User(provider.Number(), provider.Email(), string(authz.Provider), audit.Origin{})
	for _, alert := range open {
		at := collections.ParseInstant(alert.CreatedAt).Add(time.Hour)
		if _, err := triage.ActOnAlert(app, collections.Number(alert.ID), alerts.Action{Move: alerts.Acknowledge}, by, at); err != nil {
			return fmt.Errorf("acknowledge an alert of the past: %w", err)
		}
	}
	_, err = app.DB().NewQuery(`UPDATE announcements SET told_at = created_at WHERE told_at = '' AND created_at < {:yesterday}`).
		Bind(dbx.Params{"yesterday": yesterday}).Execute()
	if err != nil {
		return fmt.Errorf("mark old announcements as sent: %w", err)
	}
	return nil
}

// staff are the users who appear in records.
type staff struct{ provider, nurse, biller *collections.User }

func createUsers(app core.App, now time.Time) (hired staff, err error) {
	auth.PermitPassword(app, Password)
	for _, colleague := range DemoUsers {
		if colleague.Role == authz.Patient {
			continue
		}
		user, err := auth.CreateAccount(app, colleague.account(), audit.System(), now)
		if err != nil {
			return hired, fmt.Errorf("hire %s: %w", colleague.Role, err)
		}
		hired.assign(user)
	}
	return hired, nil
}

// assign sets the user of a role.
func (s *staff) assign(user *collections.User) {
	switch authz.Role(user.Role()) {
	case authz.Provider:
		s.provider = user
	case authz.Nurse:
		s.nurse = user
	case authz.DataMonitor:
		s.biller = user
	}
}

// createPortalAccount creates the portal account of the first patient.
func createPortalAccount(app core.App, ids []string, now time.Time) error {
	account := DemoUsers[len(DemoUsers)-1].account()
	if len(ids) > 0 {
		account.PatientID = ids[0]
	}
	if _, err := auth.CreateAccount(app, account, audit.System(), now); err != nil {
		return fmt.Errorf("open the portal: %w", err)
	}
	return nil
}

func enrollPatient(app core.App, n int, staff staff, payers []int64, at time.Time) (string, error) {
	person := NewDemoPatient(n)
	body := patients.Body{
		FirstName: validate.Of(person.FirstName), LastName: validate.Of(person.LastName), DateOfBirth: validate.Of(person.BirthDate), Gender: validate.Of(person.Gender),
		Phone: validate.Of(person.Phone), Email: validate.Of(person.Email), PreferredLanguage: validate.Of(person.Language), GatewayPatientID: validate.Of(person.GatewayID), ExternalID: validate.Of(person.EMRID),
		PrimaryProviderID: validate.Of(staff.provider.Number()), Insurance: insuranceOf(n, payers), ICD10Codes: validate.Of([]validate.String{validate.Of(diagnoses[n%len(diagnoses)])}),
		Address: validate.Of(patients.AddressBody{
			Line1: validate.Of(person.Line1), City: validate.Of(person.City), State: validate.Of(person.State),
			Zip: validate.Of(person.Zip),
		}),
	}
	checks := validate.NewChecks()
	draft := body.Read(checks, at, time.UTC)
	if err := checks.Err(); err != nil {
		return "", err
	}
	patient, err := patients.Create(app, draft, audit.System(), at)
	if err != nil {
		return "", err
	}
	for _, device := range homeDevices(n).Devices {
		if err := assign(app, device, patient.Id, at); err != nil {
			return "", err
		}
	}
	if err := orderMonitoring(app, n, patient.Id, staff, at); err != nil {
		return "", err
	}
	return patient.Id, recordConsent(app, n, patient.Id, staff.provider, at)
}

// diagnoses are assigned to patients in turn.
var diagnoses = []string{"I10", "I50.9", "E11.9", "J44.9"}

// recordConsent records what billing and messages require: consent and patient education. Every
// ninth patient has not consented yet.
func recordConsent(app core.App, n int, patientID string, provider *collections.User, at time.Time) error {
	by := audit.System()
	types := []string{"rpm", patients.ConsentMessaging}
	if n%9 == 0 {
		types = nil
	}
	for _, kind := range types {
		checks := validate.NewChecks()
		draft := patients.ConsentBody{
			Type: validate.Of(kind), Method: validate.Of("written"), GrantedAt: validate.Of(at.Format(time.RFC3339)), ObtainedBy: validate.Of(provider.Email()),
		}.Read(checks, at, time.UTC, "")
		if err := checks.Err(); err != nil {
			return err
		}
		if _, err := patients.GrantConsent(app, patientID, draft, by, at); err != nil {
			return fmt.Errorf("record consent: %w", err)
		}
	}
	setUp := devices.SetUp{EducatedBy: provider.Number(), CompletedAt: at}
	if _, err := devices.CompleteSetUp(app, homeDevices(n).Devices[0].ID, setUp, by, at); err != nil {
		return fmt.Errorf("record the set-up: %w", err)
	}
	return nil
}

func assign(app core.App, device SimulatedDevice, patientID string, at time.Time) error {
	registered, err := collections.NewRecord(app, collections.Devices)
	if err != nil {
		return err
	}
	for field, value := range map[string]any{
		"device_id": device.ID, "device_type": string(device.Kind), "model": device.Model, "status": "assigned",
		"patient": patientID, "assigned_at": collections.FormatInstant(at), "created_at": collections.FormatInstant(at),
	} {
		registered.Set(field, value)
	}
	assignment, err := collections.NewRecord(app, collections.DeviceAssignments)
	if err != nil {
		return err
	}
	for field, value := range map[string]any{"device_id": device.ID, "patient": patientID, "assigned_at": collections.FormatInstant(at)} {
		assignment.Set(field, value)
	}
	for _, record := range []*core.Record{registered, assignment} {
		if err := app.Save(record); err != nil {
			return fmt.Errorf("assign device: %w", err)
		}
	}
	return nil
}

// pastReading is a reading of the past month.
type pastReading struct {
	patientID string
	reading   vitals.Reading
}

// storeHistory stores the past month, each reading a minute after its measurement.
func storeHistory(app core.App, engine *ingest.ReadingStore, ids []string, now time.Time, progress func(done, total int)) error {
	var month []pastReading
	for i, id := range ids {
		for _, reading := range History(homeDevices(i+1), historyDays, Seed, now) {
			month = append(month, pastReading{id, reading})
		}
	}
	slices.SortStableFunc(month, func(a, b pastReading) int { return a.reading.MeasuredAt.Compare(b.reading.MeasuredAt) })
	done := 0
	for group := range slices.Chunk(month, readingsPerTx) {
		err := app.RunInTransaction(func(tx core.App) error {
			for _, p := range group {
				at := p.reading.MeasuredAt.Add(time.Minute).UTC()
				_, err := engine.Ingest(tx, ingest.Submission{
					PatientID: p.patientID, Reading: p.reading, Source: vitals.SourceGateway,
					By: audit.Gateway(audit.Origin{}), ReceivedAt: at,
				}, at)
				if err != nil {
					return fmt.Errorf("store a reading of the past: %w", err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		done += len(group)
		progress(done, len(month))
	}
	return nil
}

// noteTemplates are the practice's note templates, by context.
var noteTemplates = []struct{ name, context, text string }{
	{"No answer", "any", "Called twice, no answer. Left a message to call back."},
	{"Measured again, in range", "alert", "Rested five minutes and measured again: the second value is in range."},
	{"Took no medicine", "alert", "Has not taken the morning medicine. Takes it now, measures again in an hour."},
	{"Cuff was loose", "alert", "The cuff was loose. Shown how to put it on; measured again."},
	{"Feels well", "alert", "Feels well, no dizziness, no chest pain, no shortness of breath."},
	{"Sent to the emergency room", "escalation", "Sent to the emergency room; the provider is informed."},
	{"Dose changed", "escalation", "The provider changed the dose. The patient has read it back."},
	{"Readings reviewed", "note", "Went through the readings of the week with the patient, and how they measure."},
	{"Device explained", "note", "Explained how the device is used and charged. A reading came through while on the phone."},
}

// createNoteTemplates stores the practice's note templates.
func createNoteTemplates(app core.App, now time.Time) error {
	for _, one := range noteTemplates {
		body := templates.NoteBody{Name: validate.Of(one.name), Text: validate.Of(one.text), Context: validate.Of(one.context)}
		checks := validate.NewChecks()
		draft := body.Read(checks)
		if err := checks.Err(); err != nil {
			return fmt.Errorf("read the template %q: %w", one.name, err)
		}
		if _, err := templates.CreateNote(app, draft, audit.System(), now); err != nil {
			return fmt.Errorf("store the template %q: %w", one.name, err)
		}
	}
	return nil
}
