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
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

const (
	historyDays = 35 // a whole period of device billing, and the days since
	// Seed makes every demo practice the same.
	Seed = 2026
	// together is how many readings of the past are stored in one transaction.
	together = 200
)

// Populate fills an empty database with colleagues, patients and a month of readings, through the same functions that the API uses. It is
// the one part of the sandbox that knows Vigil inside. progress is told how many steps of how many are done.
func Populate(app core.App, engine *ingest.Evaluator, count int, zone *time.Location, now time.Time, progress func(done, total int)) error {
	staff, err := hire(app, now)
	if err != nil {
		return err
	}
	if err := writeTexts(app, now); err != nil {
		return err
	}
	enrolled := now.AddDate(0, 0, -historyDays)
	payers, err := contract(app, enrolled)
	if err != nil {
		return err
	}
	var ids []string
	for n := 1; n <= count; n++ {
		id, err := enrol(app, n, staff, payers, enrolled)
		if err != nil {
			return fmt.Errorf("enrol patient %d: %w", n, err)
		}
		ids = append(ids, id)
	}
	if err := openPortal(app, ids, now); err != nil {
		return err
	}
	if err := relive(app, engine, ids, now.In(zone), progress); err != nil {
		return err
	}
	return lookAfter(app, staff.provider, now)
}

// lookAfter does what the colleagues did in that month: alerts older than a day were acknowledged, and what people were to hear of
// then is not news any more.
func lookAfter(app core.App, provider *collections.User, now time.Time) error {
	yesterday := collections.Instant(now.Add(-24 * time.Hour))
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
		return fmt.Errorf("lay old announcements aside: %w", err)
	}
	return nil
}

// staff are the colleagues whose work is on record.
type staff struct{ provider, nurse, biller *collections.User }

func hire(app core.App, now time.Time) (hired staff, err error) {
	for _, colleague := range Colleagues {
		if colleague.Role == authz.Patient {
			continue
		}
		user, err := auth.CreateAccount(app, colleague.account(), audit.System(), now)
		if err != nil {
			return hired, fmt.Errorf("hire %s: %w", colleague.Role, err)
		}
		hired.take(user)
	}
	return hired, nil
}

// take remembers somebody whose work is on record.
func (s *staff) take(user *collections.User) {
	switch authz.Role(user.Role()) {
	case authz.Provider:
		s.provider = user
	case authz.Nurse:
		s.nurse = user
	case authz.DataMonitor:
		s.biller = user
	}
}

func (c Colleague) account() auth.NewAccount {
	account := auth.NewAccount{Email: c.Email, FirstName: c.FirstName, LastName: c.LastName, Role: c.Role, Password: Password}
	if c.Role == authz.Provider {
		account.NPI, account.Taxonomy = "1245319599", "207R00000X" // internal medicine
	}
	return account
}

// openPortal gives the portal account to the first patient.
func openPortal(app core.App, ids []string, now time.Time) error {
	account := Colleagues[len(Colleagues)-1].account()
	if len(ids) > 0 {
		account.PatientID = ids[0]
	}
	if _, err := auth.CreateAccount(app, account, audit.System(), now); err != nil {
		return fmt.Errorf("open the portal: %w", err)
	}
	return nil
}

func enrol(app core.App, n int, staff staff, payers []int64, at time.Time) (string, error) {
	who := NewNeighbour(n)
	body := patients.Body{
		FirstName: validate.Of(who.FirstName), LastName: validate.Of(who.LastName), DateOfBirth: validate.Of(who.BirthDate), Gender: validate.Of(who.Gender),
		Phone: validate.Of(who.Phone), Email: validate.Of(who.Email), GatewayPatientID: validate.Of(who.GatewayID), ExternalID: validate.Of(who.EMRID),
		PrimaryProviderID: validate.Of(staff.provider.Number()), Insurance: insured(n, payers), ICD10Codes: validate.Of([]validate.String{validate.Of(diagnoses[n%len(diagnoses)])}),
		Address: validate.Of(patients.AddressBody{
			Line1: validate.Of(who.Line1), City: validate.Of(who.City), State: validate.Of(who.State),
			Zip: validate.Of(who.Zip),
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
	for _, device := range kit(n).Devices {
		if err := assign(app, device, patient.Id, at); err != nil {
			return "", err
		}
	}
	if err := prescribe(app, n, patient.Id, staff, at); err != nil {
		return "", err
	}
	return patient.Id, document(app, n, patient.Id, staff.provider, at)
}

// diagnoses go round among the patients.
var diagnoses = []string{"I10", "I50.9", "E11.9", "J44.9"}

// document records what billing asks for: consent, and that the patient was taught to measure. Every ninth patient has not consented yet.
func document(app core.App, n int, patientID string, provider *collections.User, at time.Time) error {
	by := audit.System()
	if n%9 != 0 {
		checks := validate.NewChecks()
		draft := patients.ConsentBody{
			Type: validate.Of("rpm"), Method: validate.Of("written"), GrantedAt: validate.Of(at.Format(time.RFC3339)), ObtainedBy: validate.Of(provider.Email()),
		}.Read(checks, at, time.UTC)
		if err := checks.Err(); err != nil {
			return err
		}
		if _, err := patients.GrantConsent(app, patientID, draft, by, at); err != nil {
			return fmt.Errorf("record consent: %w", err)
		}
	}
	setUp := devices.SetUp{EducatedBy: provider.Number(), CompletedAt: at}
	if _, err := devices.CompleteSetUp(app, kit(n).Devices[0].ID, setUp, by, at); err != nil {
		return fmt.Errorf("record the set-up: %w", err)
	}
	return nil
}

// kit is what a patient has at home: every second one has a scale beside the cuff, every fifth an oximeter and a glucose meter.
func kit(n int) SimulatedPatient {
	kinds := []vitals.Kind{vitals.BloodPressure}
	if n%2 == 0 {
		kinds = append(kinds, vitals.Weight)
	}
	if n%5 == 0 {
		kinds = append(kinds, vitals.PulseOximetry, vitals.BloodGlucose)
	}
	all := SimulatedPatients(n, kinds...)
	return all[n-1]
}

// Households are the kits of all patients, for the simulator.
func Households(count int) (households []SimulatedPatient) {
	for n := 1; n <= count; n++ {
		households = append(households, kit(n))
	}
	return households
}

func assign(app core.App, device SimulatedDevice, patientID string, at time.Time) error {
	registered, err := collections.New(app, collections.Devices)
	if err != nil {
		return err
	}
	for field, value := range map[string]any{
		"device_id": device.ID, "device_type": string(device.Kind), "model": device.Model, "status": "assigned",
		"patient": patientID, "assigned_at": collections.Instant(at), "created_at": collections.Instant(at),
	} {
		registered.Set(field, value)
	}
	assignment, err := collections.New(app, collections.DeviceAssignments)
	if err != nil {
		return err
	}
	for field, value := range map[string]any{"device_id": device.ID, "patient": patientID, "assigned_at": collections.Instant(at)} {
		assignment.Set(field, value)
	}
	for _, record := range []*core.Record{registered, assignment} {
		if err := app.Save(record); err != nil {
			return fmt.Errorf("assign device: %w", err)
		}
	}
	return nil
}

// past is a reading of the month that lies behind.
type past struct {
	patientID string
	reading   vitals.Reading
}

// relive stores the month as it would have come in, each reading a minute after it was taken.
func relive(app core.App, engine *ingest.Evaluator, ids []string, now time.Time, progress func(done, total int)) error {
	var month []past
	for i, id := range ids {
		for _, reading := range History(kit(i+1), historyDays, Seed, now) {
			month = append(month, past{id, reading})
		}
	}
	slices.SortStableFunc(month, func(a, b past) int { return a.reading.MeasuredAt.Compare(b.reading.MeasuredAt) })
	done := 0
	for group := range slices.Chunk(month, together) {
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
