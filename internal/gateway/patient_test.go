package gateway

import (
	"strings"
	"testing"
)

// The patient is the one that reading the event finds too: members go by their exact names.
func TestPatientIdentifier(t *testing.T) {
	for body, want := range map[string]string{
		`{"patient_id":"gw-1"}`:                                        "gw-1",
		`{"patient_id":"gw-1","timestamp":"never"}`:                    "gw-1",
		`{"PATIENT_ID":"gw-2"}`:                                        "",
		`{"patient_id":"gw-1","PATIENT_ID":"gw-2"}`:                    "gw-1",
		`{"patient_id":"gw-1","patient_id":"gw-2"}`:                    "",
		`{"patient_id":"gw\u202e-1"}`:                                  "gw-1",
		`{"patient_id":7}`:                                             "",
		`{"patient_id":null}`:                                          "",
		`["gw-1"]`:                                                     "",
		`[{"patient_id":"gw-1"},{"patient_id":"gw-2"}]`:                "gw-1",
		`{"patient_id":"gw-1"`:                                         "",
		`{"patient_id":"` + strings.Repeat("é", maxPatientID) + `"}`:   strings.Repeat("é", maxPatientID),
		`{"patient_id":"` + strings.Repeat("é", maxPatientID+1) + `"}`: "",
	} {
		if got := PatientIdentifier([]byte(body)); got != want {
			t.Errorf("%.60s names %q, want %q", body, got, want)
		}
	}
}
