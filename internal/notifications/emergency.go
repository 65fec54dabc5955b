package notifications

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/phi"
)

// EmergencyAccess is the type of notices that somebody opened a patient outside their care teams.
const EmergencyAccess = "emergency_access"

// TellOfEmergencyAccess tells the patient's primary provider and every active clinical manager who opened the patient
// and why. The same person and patient are told once a day, however many requests it takes. Source: docs/decisions/security.md, "Emergency access".
func TellOfEmergencyAccess(tx core.App, patientID, actorEmail string, reason phi.Text, now time.Time) error {
	patient, err := collections.FindPatientAnyState(tx, patientID)
	if collections.Missing(err) {
		return nil // nobody's record was opened
	}
	if err != nil {
		return err
	}
	active := true
	managers, err := collections.UserList(tx, collections.UserFilter{Role: string(access.ClinicalManager), Active: &active})
	if err != nil {
		return err
	}
	told := map[string]bool{}
	if provider := patient.GetString(collections.PatientPrimaryProvider); provider != "" {
		told[provider] = true
	}
	for _, manager := range managers {
		told[manager.Id] = true
	}
	for userID := range told {
		err := Notify(tx, userID, Notice{
			Channel: "alerts", Type: EmergencyAccess, Severity: "warning", Title: "Emergency access to a patient",
			Body: actorEmail + " opened the record of " + collections.TextOf(patient.ProxyRecord(), collections.PatientFirstName) + " " + collections.TextOf(patient.ProxyRecord(), collections.PatientLastName) +
				" (" + patient.MRN() + ") in an emergency: " + reason.Reveal(),
			DedupeKey: "emergency/" + patientID + "/" + actorEmail + "/" + now.UTC().Format(time.DateOnly),
		}, now)
		if err != nil {
			return err
		}
	}
	return nil
}
