package claims

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// FirstClaimCheck is what preflight would find of the first claim for a patient, and which of it is the patient's to put right.
type FirstClaimCheck struct {
	Patient string
	Findings
	// SelfPay is set where no payer is asked, SelfPayConfirmed where somebody has said that it is meant so.
	SelfPay, SelfPayConfirmed bool
}

// CheckFirstClaims looks at the first claims for some patients, as of a day: one line of a code for which a dollar is asked, with what is on record of the
// patient now. Of who pays alone it finds what holds for all. Source: docs/decisions/patients.md, "Enrollment".
func (d Loader) CheckFirstClaims(app core.App, ids []string, code, day string) ([]FirstClaimCheck, error) {
	facts, err := collections.FactsOf(app, ids)
	if err != nil {
		return nil, err
	}
	entries := make([]*collections.BillingEntry, len(facts))
	for i, of := range facts {
		if entries[i], err = collections.ProspectiveEntry(app, of, code, day, oneDollarCents); err != nil {
			return nil, err
		}
	}
	list, err := d.Load(app, entries)
	if err != nil {
		return nil, err
	}
	prospects := make([]FirstClaimCheck, len(list))
	for i, claim := range list {
		prospects[i] = checkFirstClaim(claim, day)
	}
	return prospects, nil
}

const oneDollarCents = 100

// checkFirstClaim asks of a patient without a payer what any payer would, so that nothing has to be asked again once there is one.
func checkFirstClaim(claim Claim, day string) FirstClaimCheck {
	p := FirstClaimCheck{Patient: claim.PatientID, Findings: Preflight(claim, day), SelfPay: claim.SelfPay(), SelfPayConfirmed: claim.SelfPay() && claim.Coverage.SelfPay}
	if !p.SelfPay {
		return p
	}
	claim.Payer.ID, claim.Payer.EDI, claim.Payer.Filing = "any", "any", "any"
	for _, finding := range Preflight(claim, day).Errors {
		if strings.HasPrefix(finding.Field, "insurance.") || p.SelfPayConfirmed && finding.Code != MissingRendering && finding.Code != MissingDiagnosis {
			continue
		}
		p.Errors = append(p.Errors, finding)
	}
	return p
}
