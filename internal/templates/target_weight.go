package templates

import (
	"slices"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// keyHeartFailure is the key of the template that requires a target weight.
const keyHeartFailure = "heart_failure"

// TargetNeed is a missing target (dry) weight, with the median of the last seven days; nil without a weight in them.
type TargetNeed struct{ ProposedKg *float64 }

// MissingTargets returns the patients, by id, with the applied template for heart failure and without a target weight. A patient
// without watched weight needs none. Source: docs/decisions/alerts.md, "Weight over weeks".
func MissingTargets(app core.App, patientIDs []string, practice *time.Location, now time.Time) (map[string]TargetNeed, error) {
	users, err := collections.TemplateUsers(app, patientIDs, keyHeartFailure)
	if err != nil {
		return nil, err
	}
	needs := map[string]TargetNeed{}
	for _, user := range users {
		applied, err := collections.ParseAppliedTemplates(user.Templates)
		if err != nil {
			return nil, err
		}
		own, err := alerts.ParseBounds(user.Bounds)
		if err != nil {
			return nil, err
		}
		p := vitals.WeightKg
		fields, configured := own[p.Group]
		isApplied := slices.ContainsFunc(applied, func(t collections.AppliedTemplate) bool { return t.Key == keyHeartFailure })
		if !isApplied || configured && fields == nil || fields[p.Change.Target] != nil {
			continue
		}
		proposed, err := proposedTarget(app, user, collections.Zone(user.TimeZone, practice), now)
		if err != nil {
			return nil, err
		}
		needs[user.PatientID] = TargetNeed{proposed}
	}
	return needs, nil
}

// proposedTarget is the median of the weights of the last seven calendar days.
func proposedTarget(app core.App, user collections.TemplateUser, zone *time.Location, now time.Time) (*float64, error) {
	p := vitals.WeightKg
	var weights []float64
	since := collections.StartOfDay(now.In(zone).AddDate(0, 0, 1-alerts.MedianDays))
	err := collections.EachReadingNewestFirst(app, user.PatientID, string(vitals.Weight), since, p.Column, func(rows *dbx.Rows) error {
		var at, device string
		var kg *float64
		if err := rows.Scan(&at, &device, &kg); err != nil || kg == nil {
			return err
		}
		weights = append(weights, *kg)
		return nil
	})
	if err != nil || len(weights) == 0 {
		return nil, err
	}
	return new(vitals.RoundHalfUp(vitals.Median(weights), vitals.Decimals)), nil
}
