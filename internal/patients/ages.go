package patients

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/internal/triage"
)

// adultAge is from when the practice's default thresholds, which are for adults, apply. Source: docs/decisions/alerts.md, "Minors".
const adultAge = 18

const ageGroupBatch = 500

// infantMonths is until when any fever is critical. Source: docs/decisions/alerts.md, "Minors".
const infantMonths = 3

// Age returns the patient's age today, in the patient's time zone.
func Age(p *collections.Patient, now time.Time, practice *time.Location) (age int, found bool) {
	year, month, day := now.In(collections.Zone(p.TimeZone(), practice)).Date()
	return collections.AgeOn(phi.Text(p.GetString(collections.PatientDateOfBirth)), year, month, day)
}

// ageGroup returns the group of a person on a date. An unknown age gets the alerts of adults.
func ageGroup(born phi.Text, year int, month time.Month, day int) string {
	age, found := collections.AgeOn(born, year, month, day)
	birth, err := time.Parse(time.DateOnly, born.Reveal())
	switch {
	case !found || err != nil || age >= adultAge:
		return collections.AgeAdult
	case time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Before(birth.AddDate(0, infantMonths, 0)):
		return collections.AgeInfant
	}
	return collections.AgeMinor
}

// ageGroupOf returns the patient's group today, in the patient's time zone.
func ageGroupOf(p *collections.Patient, now time.Time, practice *time.Location) string {
	year, month, day := now.In(collections.Zone(p.TimeZone(), practice)).Date()
	return ageGroup(phi.Text(p.GetString(collections.PatientDateOfBirth)), year, month, day)
}

// storeAgeGroup stores whether a patient is a minor. A minor is rescored after every change: the schedule defines the expected kinds.
func storeAgeGroup(tx core.App, p *collections.Patient, now time.Time, practice *time.Location) error {
	was, err := collections.AgeGroupOf(tx, p.Id)
	if err != nil {
		return err
	}
	is := ageGroupOf(p, now, practice)
	if was != is {
		if err := collections.SetAgeGroup(tx, p.Id, is); err != nil {
			return err
		}
	}
	if !collections.IsMinorGroup(was) && !collections.IsMinorGroup(is) {
		return nil
	}
	_, err = triage.Rescore(tx, p.Id, now)
	return err
}

// UpdateAgeGroups checks minors and patients without an age group: from the 18th birthday, in their time zone, the practice's thresholds
// apply, and from three months the bounds of older children. It returns how many it checked and how many changed bounds.
func UpdateAgeGroups(ctx context.Context, app core.App, now time.Time, practice *time.Location) (checked, changed int, err error) {
	for after := ""; ; {
		page, err := collections.MinorsAfter(app, after, ageGroupBatch)
		if err != nil || len(page) == 0 {
			return checked, changed, err
		}
		after = page[len(page)-1].ID
		checked += len(page)
		if err := ctx.Err(); err != nil {
			return checked, changed, err
		}
		err = app.RunInTransaction(func(tx core.App) error {
			for _, young := range page {
				moved, err := updateAgeGroup(tx, young, now, practice)
				if err != nil {
					return err
				}
				if moved {
					changed++
				}
			}
			return nil
		})
		if err != nil {
			return checked, changed, err
		}
	}
}

// updateAgeGroup stores the group of one patient; moved reports whether other bounds now apply. An unreadable patient stays as is.
func updateAgeGroup(tx core.App, young collections.Minor, now time.Time, practice *time.Location) (moved bool, err error) {
	if young.Unreadable {
		return false, nil
	}
	year, month, day := now.In(collections.Zone(young.TimeZone, practice)).Date()
	is := ageGroup(young.Born, year, month, day)
	if is == young.AgeGroup {
		return false, nil
	}
	if err := collections.SetAgeGroup(tx, young.ID, is); err != nil {
		return false, err
	}
	if young.AgeGroup == collections.AgeUnknown && is == collections.AgeAdult {
		return false, nil // unknown ages are treated as adults already
	}
	p, err := collections.FindPatientAnyState(tx, young.ID)
	if err != nil {
		return false, err
	}
	if err := templates.Reconsider(tx, p, nil, now, practice); err != nil { // templates have ages
		return false, err
	}
	if _, err := triage.Rescore(tx, young.ID, now); err != nil {
		return false, err
	}
	return true, audit.Append(tx, audit.Entry{
		Event: audit.PatientUpdate, Actor: audit.System(), ResourceType: audit.ResourcePatient, ResourceID: young.ID, PatientID: young.ID,
		Changes: audit.Changes{"age_group": {Old: young.AgeGroup, New: is}},
	}, now)
}
