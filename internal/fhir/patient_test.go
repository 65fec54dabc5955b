package fhir_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/phi"
)

var systems = fhir.Systems{MRN: "https://vigil.example.org/fhir/identifier/mrn", EMRID: "https://vigil.example.org/fhir/identifier/emr"}

func ada() fhir.StoredPatient {
	return fhir.StoredPatient{
		ID: patientID, MRN: "MRN-00001042", ExternalID: "a-1234", Gender: "female", Language: "es", Active: true, Version: 7, UpdatedAt: measuredAt,
		Demographics: phi.Demographics{
			FirstName: "Ada", LastName: "Lovelace", DateOfBirth: "1955-12-10", SSN: "123456789", Phone: "+1 (555) 010-0199", Email: "ada@mail.test",
			Address: &phi.Address{Line1: "1 Main St", Line2: "Apt 4", City: "Springfield", State: "IL", Zip: "62701", Country: "US"},
		},
	}
}

// patientCases returns the resources of the golden files, by name.
func patientCases() map[string]fhir.Resource {
	archived, abroad, damaged := ada(), ada(), ada()
	archived.Active = false
	abroad.Demographics.Address = &phi.Address{Line1: "Hauptstraße 1", City: "Köln", Country: "Germany"}
	abroad.Demographics.Phone = ""
	damaged.Demographics = phi.Demographics{}
	return map[string]fhir.Resource{
		"patient_full":     fhir.Patient(ada(), systems),
		"patient_archived": fhir.Patient(archived, systems),
		"patient_minimal": fhir.Patient(fhir.StoredPatient{
			ID: patientID, MRN: "MRN-00000001", Gender: "unknown", Active: true, UpdatedAt: measuredAt,
			Demographics: phi.Demographics{FirstName: "Bob", LastName: "O’Brien & Söhne", DateOfBirth: "2001-02-03"},
		}, systems),
		"patient_abroad":  fhir.Patient(abroad, systems),
		"patient_damaged": fhir.Patient(damaged, systems),
	}
}

func TestPatientGolden(t *testing.T) {
	for name, resource := range patientCases() {
		t.Run(name, func(t *testing.T) {
			encoded, err := resource.Encode()
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			if err := json.Indent(&got, encoded, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			path := filepath.Join("testdata", "patients", name+".golden.json")
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs:\n%s", path, got.String())
			}
		})
	}
}

// FHIR forbids null and empty members, and the resource must not contain the social security number.
func TestPatientInvariants(t *testing.T) {
	for name, resource := range patientCases() {
		root := decode(t, resource)
		walk("Patient", root, func(path string, node any) {
			empty := node == nil
			switch node := node.(type) {
			case string:
				empty = strings.TrimSpace(node) == ""
			case []any:
				empty = len(node) == 0
			case map[string]any:
				empty = len(node) == 0
			}
			if empty {
				t.Errorf("%s: %s is empty", name, path)
			}
			if text, ok := node.(string); ok && strings.Contains(text, "123456789") {
				t.Errorf("%s: %s holds the social security number", name, path)
			}
		})
		for _, member := range []string{"identifier", "name", "gender", "active"} { // mandatory in US Core, or always present
			if root[member] == nil {
				t.Errorf("%s: no %s", name, member)
			}
		}
		if text := fmt.Sprint(resource); text != "[fhir resource]" {
			t.Errorf("%s prints as %s", name, text)
		}
	}
}
