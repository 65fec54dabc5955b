package templates

import (
	"context"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
)

// proposalBatch is how many patients one transaction looks at, to keep readings from waiting.
const proposalBatch = 200

// Propose stores which templates fit the given patients and are not decided, so that readings are evaluated with their stricter bounds, and
// rescores the patients for which that differs, or who have a proposal of a changed template (0 for none). It returns their ids. Source:
// docs/decisions/alerts.md, "Proposed templates".
func Propose(tx core.App, candidates []Candidate, template int64, now time.Time) (changed []string, err error) {
	needs, err := NeedsOf(tx, candidates)
	if err != nil {
		return nil, err
	}
	for _, c := range candidates {
		differs, err := collections.StoreProposedTemplates(tx, c.PatientID, needs[c.PatientID].All)
		if err != nil {
			return nil, err
		}
		if !differs && !slices.Contains(needs[c.PatientID].All, template) {
			continue
		}
		if _, err := triage.Rescore(tx, c.PatientID, now); err != nil {
			return nil, err
		}
		changed = append(changed, c.PatientID)
	}
	return changed, nil
}

// ProposeAll proposes templates to all listed patients: after an upgrade, after a change of a template (its number, otherwise 0), and each
// day for birthdays. It returns how many it looked at and for how many the proposals differ.
func ProposeAll(ctx context.Context, app core.App, template int64, now time.Time, practice *time.Location) (seen, changed int, err error) {
	for after := ""; ; {
		if err := ctx.Err(); err != nil {
			return seen, changed, err
		}
		var page []collections.Diagnosed
		err := app.RunInTransaction(func(tx core.App) error {
			if page, err = collections.DiagnosedAfter(tx, after, proposalBatch); err != nil {
				return err
			}
			differ, err := Propose(tx, candidatesOf(page, now, practice), template, now)
			changed += len(differ)
			if err != nil || len(differ) == 0 {
				return err
			}
			return auditProposals(tx, differ, now)
		})
		if err != nil || len(page) == 0 {
			return seen, changed, err
		}
		seen, after = seen+len(page), page[len(page)-1].ID
	}
}

// ProposeMissing is [ProposeAll] if an earlier version stored patients without proposals; otherwise it does nothing.
func ProposeMissing(ctx context.Context, app core.App, now time.Time, practice *time.Location) error {
	missing, err := collections.HasUnproposed(app)
	if err == nil && missing {
		_, _, err = ProposeAll(ctx, app, 0, now, practice)
	}
	return err
}

// auditProposals records that other bounds are in force for patients without a change of their own record.
func auditProposals(tx core.App, patientIDs []string, now time.Time) error {
	chain, err := audit.NewChain(tx)
	if err != nil {
		return err
	}
	for _, id := range patientIDs {
		err := chain.Add(audit.Entry{
			Event: audit.ThresholdPropose, Actor: audit.System(), ResourceType: audit.ResourceThresholds, ResourceID: id, PatientID: id,
		}, now)
		if err != nil {
			return err
		}
	}
	return chain.Store()
}

// candidatesOf returns the patients as candidates; one with an unreadable date of birth has no known age.
func candidatesOf(page []collections.Diagnosed, now time.Time, practice *time.Location) []Candidate {
	list := make([]Candidate, len(page))
	for i, p := range page {
		list[i] = newCandidate(p.ID, p.Codes, p.Born, p.TimeZone, now, practice)
	}
	return list
}

// CandidateOf returns a patient as a candidate today, in the patient's time zone.
func CandidateOf(p *collections.Patient, now time.Time, practice *time.Location) Candidate {
	return newCandidate(p.Id, p.ICD10Codes(), phi.Text(p.GetString(collections.PatientDateOfBirth)), p.TimeZone(), now, practice)
}

func newCandidate(id string, codes []string, born phi.Text, zone string, now time.Time, practice *time.Location) Candidate {
	c := Candidate{PatientID: id, Codes: codes}
	year, month, day := now.In(collections.Zone(zone, practice)).Date()
	c.Age, c.AgeKnown = collections.AgeOn(born, year, month, day)
	return c
}

// proposeAgain updates the proposals of one patient after a decision.
func proposeAgain(tx core.App, p *collections.Patient, now time.Time) error {
	_, err := Propose(tx, []Candidate{CandidateOf(p, now, collections.PracticeZone(tx))}, 0, now)
	return err
}
