package templates

import (
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// keyHeartFailure is the key of the template that requires a target weight; that of a practice's variant of it continues it.
const keyHeartFailure = "heart_failure"

// TargetNeed is a missing target (dry) weight, with the median of the last seven days; nil without a weight in them.
type TargetNeed struct{ ProposedKg *float64 }

// MissingTargets returns the patients, by id, who are watched for heart failure without a target
// weight: its template or a variant was applied, or their own bounds limit the gain over weeks,
// which only heart failure does, no matter who set them. A patient without watched weight needs none.
// Source: docs/decisions/alerts.md, "Weight over weeks".
func MissingTargets(app core.App, patientIDs []string, practice *time.Location, now time.Time) (map[string]TargetNeed, error) {
	change := vitals.WeightKg.Change
	users, err := collections.PatientsWithTemplateOrBounds(app, patientIDs, keyHeartFailure, vitals.WeightKg.Group, change.SlowGain, change.SlowCritical)
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
		fields, configured := own[vitals.WeightKg.Group]
		isApplied := slices.ContainsFunc(applied, func(t collections.AppliedTemplate) bool {
			return t.Key == keyHeartFailure || strings.HasPrefix(t.Key, keyHeartFailure+"_")
		})
		isWatched := isApplied || fields[change.SlowGain] != nil || fields[change.SlowCritical] != nil
		if !isWatched || configured && fields == nil || fields[change.Target] != nil {
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
func proposedTarget(app core.App, user collections.PatientWithBounds, zone *time.Location, now time.Time) (*float64, error) {
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
