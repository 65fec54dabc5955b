package gateway

import (
	"encoding/json"
	"unicode/utf8"
)

// PatientIdentifier is the patient that the body of an event names, whatever else is wrong with it; "" when there is none
// to be made out.
func PatientIdentifier(body []byte) string {
	var sent struct {
		PatientID string `json:"patient_id"`
	}
	if err := json.Unmarshal(body, &sent); err != nil || utf8.RuneCountInString(sent.PatientID) > maxPatientID {
		return ""
	}
	return sent.PatientID
}
