package gateway

import (
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/input"
)

// PatientIdentifier is the patient that the body of an event names, whatever else is wrong with it; "" when there is none
// to be made out.
func PatientIdentifier(body []byte) string {
	var sent struct {
		PatientID input.String `json:"patient_id"`
	}
	if err := input.DecodeObject(body, &sent); err != nil || utf8.RuneCountInString(sent.PatientID.Value) > maxPatientID {
		return ""
	}
	return input.CleanLine(sent.PatientID.Value)
}
