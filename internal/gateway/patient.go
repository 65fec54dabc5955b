package gateway

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/vigilhealth/vigil/internal/input"
)

// PatientIdentifier is the patient that the body of an event names, whatever else is wrong with it; "" when there is none
// to be made out. Where several came together it is the first one's.
func PatientIdentifier(body []byte) string {
	var all []json.RawMessage
	if json.Unmarshal(body, &all) == nil && len(all) > 0 {
		body = all[0]
	}
	var sent struct {
		PatientID input.String `json:"patient_id"`
	}
	if err := input.DecodeObject(body, &sent); err != nil || utf8.RuneCountInString(sent.PatientID.Value) > maxPatientID {
		return ""
	}
	return input.CleanLine(sent.PatientID.Value)
}
