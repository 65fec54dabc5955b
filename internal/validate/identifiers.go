package validate

import "regexp"

// ValidNPI reports whether npi is a National Provider Identifier: ten digits, the last by the Luhn formula over "80840" and the first nine (45
// CFR 162.406).
func ValidNPI(npi string) bool {
	if len(npi) != 10 || Digits(npi) != npi || npi[0] != '1' && npi[0] != '2' {
		return false
	}
	sum := 24 // Luhn sum of the constant prefix 80840
	for i := range 10 {
		digit := int(npi[i] - '0')
		if i%2 == 0 {
			if digit *= 2; digit > 9 {
				digit -= 9
			}
		}
		sum += digit
	}
	return sum%10 == 0
}

var icd10 = regexp.MustCompile(`^[A-TV-Z][0-9][0-9AB](?:\.[0-9A-TV-Z]{1,4})?$`)

// ValidICD10 reports whether code has the form of an ICD-10-CM diagnosis code, with its dot and in capitals. Source: docs/decisions/billing.md,
// "ICD-10".
func ValidICD10(code string) bool { return icd10.MatchString(code) }

// TaxonomyCode matches a code of the NUCC Health Care Provider Taxonomy: nine letters and digits and an X, such as "207Q00000X".
var TaxonomyCode = regexp.MustCompile(`^[0-9]{3}[0-9A-Z]{6}X$`)
