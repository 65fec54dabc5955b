package auth

import (
	"encoding/json"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// chartLinkLife is how long a link to a chart can be opened.
const chartLinkLife = 10 * time.Minute

// chartLinkPurpose binds the seal of a link.
const chartLinkPurpose = "chart link"

// chartLink is the sealed content of a link, so that the address names no patient.
type chartLink struct {
	PatientID string    `json:"p"`
	Ends      time.Time `json:"e"`
}

// ChartLinkBody is the code of a link.
type ChartLinkBody struct {
	Code validate.String `json:"code"`
}

// ShareChart returns a code that names a patient to a colleague once, within ten minutes, and its end. It grants nothing: the reader's own rights
// apply. Source: docs/decisions/security.md, "Links to a chart".
func ShareChart(app core.App, patientID string, by audit.Actor, now time.Time) (code string, ends time.Time, err error) {
	ends = now.Add(chartLinkLife)
	text, err := json.Marshal(chartLink{patientID, ends})
	if err != nil {
		return "", time.Time{}, err
	}
	if code, err = collections.Seal(string(text), chartLinkPurpose, "once"); err != nil {
		return "", time.Time{}, err
	}
	return code, ends, audit.Append(app, audit.Entry{
		Event: audit.PatientShare, Actor: by, ResourceType: audit.ResourcePatient, ResourceID: patientID, PatientID: patientID,
	}, now)
}

// OpenSharedChart uses a code and returns its patient. It refuses a code that was used or has ended, or another text (invalid_state), and what
// mayRead refuses; then the code stays valid.
func OpenSharedChart(app core.App, body ChartLinkBody, mayRead func(patientID string) error, now time.Time) (string, error) {
	checks := validate.NewChecks()
	code := checks.Secret("code", body.Code, 1000)
	if err := checks.Err(); err != nil {
		return "", err
	}
	ended := fault.State("invalid_state", "This link was used, or has ended. Request a new one.")
	var link chartLink
	text, err := collections.Open(code, chartLinkPurpose, "once")
	if err != nil || json.Unmarshal([]byte(text), &link) != nil || !now.Before(link.Ends) {
		return "", ended
	}
	if err := mayRead(link.PatientID); err != nil {
		return "", err
	}
	first, err := collections.UseChallenge(app, HashSecret(code), now, link.Ends)
	if err == nil && !first {
		err = ended
	}
	return link.PatientID, err
}
