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

// adultAge is from when the practice's default thresholds, which are for adults, apply. Source: docs/decisions/alerts.md, "Minors".
const adultAge = 18

const ageGroupBatch = 500

// AgeOn returns the completed years of age on a date; born on February 29, the birthday in other years is March 1. found is false for an
// invalid birth date.
func AgeOn(born phi.Text, year int, month time.Month, day int) (age int, found bool) {
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

// Age returns the patient's age today, in the patient's time zone.
func Age(p *collections.Patient, now time.Time, practice *time.Location) (age int, found bool) {
	year, month, day := now.In(collections.Zone(p.TimeZone(), practice)).Date()
	return AgeOn(phi.Text(p.GetString(collections.PatientDateOfBirth)), year, month, day)
}

// ageGroup returns the group of an age. An unknown age gets the alerts of adults.
func ageGroup(age int, found bool) string {
	if found && age < adultAge {
		return collections.AgeMinor
	}
	return collections.AgeAdult
}

// storeAgeGroup stores whether a patient is a minor. A minor is rescored after every change: the schedule defines the expected kinds.
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

// UpdateAgeGroups checks minors and patients without an age group: from the 18th birthday, in their time zone, the practice's thresholds
// apply. It returns how many it checked and how many changed bounds.
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
	is := ageGroup(AgeOn(young.Born, year, month, day))
	if is == young.AgeGroup {
		return false, nil
	}
	if err := collections.SetAgeGroup(tx, young.ID, is); err != nil {
		return false, err
	}
	if young.AgeGroup == collections.AgeUnknown && is == collections.AgeAdult {
		return false, nil // unknown ages are treated as adults already
	}
	if _, err := triage.Rescore(tx, young.ID, now); err != nil {
		return false, err
	}
	return true, audit.Append(tx, audit.Entry{
		Event: audit.PatientUpdate, Actor: audit.System(), ResourceType: audit.ResourcePatient, ResourceID: young.ID, PatientID: young.ID,
		Changes: audit.Changes{"age_group": {Old: young.AgeGroup, New: is}},
	}, now)
}
