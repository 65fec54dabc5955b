package fhir_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Rules of FHIR R4, US Core and LOINC that the validators in use do not check: value sets, unit codes, empty members.

var observationStatuses = []string{"registered", "preliminary", "final", "amended", "corrected", "cancelled", "entered-in-error", "unknown"}

// units are the permitted UCUM codes by LOINC code. Source: US Core; R4 vital signs.
var units = map[string]string{
	"8480-6": "mm[Hg]", "8462-4": "mm[Hg]", "8867-4": "/min", "29463-7": "kg", "59408-5": "%", "2708-6": "%", "61006-3": "%",
	"96608-5": "mm[Hg]", "96609-3": "mm[Hg]", "41653-7": "mg/dL", "2339-0": "mg/dL", "8310-5": "Cel",
}

// violations returns the rule violations of an Observation.
func violations(root map[string]any) (found []string) {
	complain := func(path, what string) { found = append(found, path+" "+what) }
	if status, _ := root["status"].(string); !slices.Contains(observationStatuses, status) {
		complain("status", "is not of the value set observation-status")
	}
	walk("", root, func(path string, node any) {
		switch node := node.(type) {
		case nil:
			complain(path, "is null")
		case string:
			if strings.TrimSpace(node) == "" {
				complain(path, "is empty")
			}
		case []any:
			if len(node) == 0 {
				complain(path, "is empty")
			}
		case map[string]any:
			if len(node) == 0 {
				complain(path, "is empty")
			}
			checkCoding(path, node, complain)
			checkUnit(path, node, complain)
			checkPresence(path, node, complain)
		}
	})
	return found
}

// walk visits every value of a resource, depth first, with its path.
func walk(path string, node any, visit func(path string, node any)) {
	visit(path, node)
	switch node := node.(type) {
	case map[string]any:
		for name, child := range node {
			walk(strings.TrimPrefix(path+"."+name, "."), child, visit)
		}
	case []any:
		for i, child := range node {
			walk(fmt.Sprintf("%s[%d]", path, i), child, visit)
		}
	}
}

// checkCoding checks a coding against its code system.
func checkCoding(path string, node map[string]any, complain func(path, what string)) {
	code, coded := node["code"].(string)
	if !coded {
		return
	}
	known := map[string][]string{
		"http://terminology.hl7.org/CodeSystem/observation-category":         {"vital-signs", "laboratory"},
		"http://terminology.hl7.org/CodeSystem/data-absent-reason":           {"unknown", "error"},
		"http://terminology.hl7.org/CodeSystem/v3-ObservationValue":          {"DEVRPT", "HCPRPT", "PATRPT"},
		"http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation": {"N", "H", "HH", "L", "LL"},
		"http://terminology.hl7.org/CodeSystem/referencerange-meaning":       {"normal"},
		"http://snomed.info/sct":                          {"258057004", "19892000", "448703006", "337414009", "27991004", "246432004"},
		"urn:iso:std:iso:11073:10101":                     {"8417864", "8417868", "8417872", "8417876", "8417880"},
		"http://terminology.hl7.org/CodeSystem/ASN1ToHL7": {"8410608.2"},
		"http://unitsofmeasure.org":                       {"mm[Hg]", "/min", "kg", "%", "mg/dL", "Cel"},
	}
	system, _ := node["system"].(string)
	if codes, ok := known[system]; ok {
		if !slices.Contains(codes, code) {
			complain(path, code+" is not one of the codes we use of "+system)
		}
		return
	}
	number, digit, _ := strings.Cut(code, "-")
	if system != "http://loinc.org" || digit != string(loincCheckDigit(number)) {
		complain(path, code+" is no code of "+system)
	}
}

// loincCheckDigit returns the Luhn mod 10 check digit that LOINC uses.
func loincCheckDigit(number string) byte {
	sum := 0
	for i := range len(number) {
		digit := int(number[len(number)-1-i] - '0')
		if i%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return byte('0' + (10-sum%10)%10)
}

// checkUnit checks the unit of a value against the LOINC code.
func checkUnit(path string, node map[string]any, complain func(path, what string)) {
	quantity, _ := node["valueQuantity"].(map[string]any)
	concept, _ := node["code"].(map[string]any)
	codings, _ := concept["coding"].([]any)
	if quantity == nil {
		return
	}
	if quantity["system"] != "http://unitsofmeasure.org" {
		complain(path, "has a unit of another system than UCUM")
	}
	for _, coding := range codings {
		code, _ := coding.(map[string]any)["code"].(string)
		if unit, known := units[code]; !known || quantity["code"] != unit {
			complain(path, fmt.Sprintf("has %v as the unit of %s", quantity["code"], code))
		}
	}
}

// checkPresence checks the R4 vital-signs invariants vs-2 and vs-3: a value or a reason, never both.
func checkPresence(path string, node map[string]any, complain func(path, what string)) {
	isResource := node["resourceType"] == "Observation"
	_, isComponent := node["code"].(map[string]any)
	if !isResource && !isComponent {
		return
	}
	n := 0
	for name := range node {
		if strings.HasPrefix(name, "value") || name == "dataAbsentReason" {
			n++
		}
	}
	if _, parts := node["component"]; n > 1 || n == 0 && !parts {
		complain(path, fmt.Sprintf("has %d of value and reason", n))
	}
}

func TestGoldensFollowRules(t *testing.T) {
	for name, resource := range cases() {
		for _, violation := range violations(decode(t, resource)) {
			t.Errorf("%s: %s", name, violation)
		}
	}
}
