package patients

import (
	"context"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// ofAge is from when the practice's default thresholds, which are for adults, hold. Source: docs/decisions/alerts.md, "Minors".
const ofAge = 18

// youngPage is how many patients are looked at together.
const youngPage = 500

// AgeOn is how many birthdays somebody born on a date has had by a date; who was born on February 29 has the birthday on March 1 of
// other years. known is false for what is no date.
func AgeOn(born phi.Text, year int, month time.Month, day int) (age int, known bool) {
	birth, err := time.Parse(time.DateOnly, born.Reveal())
	if err != nil {
		return 0, false
	}
	age = year - birth.Year()
	if month < birth.Month() || (month == birth.Month() && day < birth.Day()) {
		age--
	}
	return max(age, 0), true
}

// Age is how old a patient is today, where the patient lives.
func Age(p *collections.Patient, now time.Time, practice *time.Location) (age int, known bool) {
	year, month, day := now.In(collections.Zone(p.TimeZone(), practice)).Date()
	return AgeOn(phi.Text(p.GetString(collections.PatientDateOfBirth)), year, month, day)
}

// ageGroup is the group of an age. Nobody of unknown age is kept from the alerts of adults.
func ageGroup(age int, known bool) string {
	if known && age < ofAge {
		return collections.AgeMinor
	}
	return collections.AgeAdult
}

// storeAgeGroup stores whether a stored patient is a minor. A minor is ranked anew with every change: the schedule says what is expected.
func storeAgeGroup(tx core.App, p *collections.Patient, now time.Time, practice *time.Location) error {
	was, err := collections.AgeGroupOf(tx, p.Id)
	if err != nil {
		return err
	}
	is := ageGroup(Age(p, now, practice))
	if was != is {
		if err := collections.SetAgeGroup(tx, p.Id, is); err != nil {
			return err
		}
	}
	if was != collections.AgeMinor && is != collections.AgeMinor {
		return nil
	}
	_, err = triage.Rescore(tx, p.Id, now)
	return err
}

// UpdateAgeGroups looks at the minors, and at whose age nobody has looked at: from their 18th birthday on, as it is where they live, the
// practice's thresholds hold for patients. It says how many it has seen and of how many the bounds are others now.
func UpdateAgeGroups(ctx context.Context, app core.App, now time.Time, practice *time.Location) (seen, changed int, err error) {
	for after := ""; ; {
		page, err := collections.YoungAfter(app, after, youngPage)
		if err != nil || len(page) == 0 {
			return seen, changed, err
		}
		after = page[len(page)-1].ID
		seen += len(page)
		if err := ctx.Err(); err != nil {
			return seen, changed, err
		}
		err = app.RunInTransaction(func(tx core.App) error {
			for _, young := range page {
				moved, err := comeOfAge(tx, young, now, practice)
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
			return seen, changed, err
		}
	}
}

// comeOfAge stores the group of one patient; moved when other bounds hold from now on. Whoever cannot be read stays as they are.
func comeOfAge(tx core.App, young collections.Young, now time.Time, practice *time.Location) (moved bool, err error) {
	if young.Unreadable {
		return false, nil
	}
	year, month, day := now.In(collections.Zone(young.TimeZone, practice)).Date()
	is := ageGroup(AgeOn(young.Born, year, month, day))
	if is == young.AgeGroup {
		return false, nil
	}
	if err := collections.SetAgeGroup(tx, young.ID, is); err != nil {
		return false, err
	}
	if young.AgeGroup == collections.AgeUnknown && is == collections.AgeAdult {
		return false, nil // as it was taken to be
	}
	if _, err := triage.Rescore(tx, young.ID, now); err != nil {
		return false, err
	}
	return true, audit.Append(tx, audit.Entry{
		Event: audit.PatientUpdate, Actor: audit.System(), ResourceType: audit.ResourcePatient, ResourceID: young.ID, PatientID: young.ID,
		Changes: audit.Changes{"age_group": {Old: young.AgeGroup, New: is}},
	}, now)
}
