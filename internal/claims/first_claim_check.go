package claims

import (
	"strings"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
)

// FirstClaimCheck is the preflight result of a patient's first claim, limited to what the patient's record can correct.
type FirstClaimCheck struct {
	Patient string
	Findings
	// SelfPay means that there is no payer, SelfPayConfirmed that a user confirmed it.
	SelfPay, SelfPayConfirmed bool
}

// CheckFirstClaims runs the preflight of the first claims of patients, as of a day: one line of a code with a charge of one dollar and the
// patient's current record. For confirmed self-pay it returns only findings that apply to every patient. Source: docs/decisions/patients.md,
// "Enrollment".
func (d Loader) CheckFirstClaims(app core.App, ids []string, code, day string) ([]FirstClaimCheck, error) {
	facts, err := collections.PatientFactsByID(app, ids)
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

// checkFirstClaim checks a patient without a payer as any payer would, so that nothing else is needed when a payer is added.
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
