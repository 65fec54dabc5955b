package billing

import (
	"regexp"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
)

// What to do about a denial.
const (
	StepCorrect   = "correct_and_resubmit"
	StepNewClaim  = "new_claim"
	StepAppeal    = "appeal"
	StepWriteOff  = "write_off"
	StepDuplicate = "check_duplicate"
)

const carcDuplicate = "18"

// denialReason is a claim adjustment reason code in words, and the next step after a denial for it.
type denialReason struct{ words, step string }

// denialReasons are the codes that payers give for remote monitoring. The step follows the code's text: what the practice left out or got wrong is
// corrected, coverage by another payer is a new claim, a judgment is appealed, and what no appeal changes is written off. Source: X12 code source
// 139, claim adjustment reason codes; CMS Claims Processing Manual (Pub. 100-04), chapters 1, 22 and 29.
var denialReasons = map[string]denialReason{
	"4": {"the modifier is missing or inconsistent with the procedure", StepCorrect}, "5": {"procedure and place of service do not agree", StepCorrect},
	"6": {"procedure and age do not agree", StepCorrect}, "7": {"procedure and sex do not agree", StepCorrect},
	"8": {"procedure and provider type do not agree", StepCorrect}, "9": {"diagnosis and age do not agree", StepCorrect},
	"10": {"diagnosis and sex do not agree", StepCorrect}, "11": {"diagnosis and procedure do not agree", StepCorrect},
	"12": {"diagnosis and provider type do not agree", StepCorrect}, "13": {"the date of death precedes the service", StepWriteOff},
	"14": {"the date of birth follows the service", StepCorrect}, "15": {"the authorization number is missing or does not apply", StepCorrect},
	"16": {"the claim lacks information or has a billing error", StepCorrect}, "18": {"exact duplicate of a claim or service", StepDuplicate},
	"22": {"another payer may be responsible first", StepNewClaim}, "24": {"covered by a capitation agreement", StepWriteOff},
	"26": {"before coverage", StepNewClaim}, "27": {"after coverage ended", StepNewClaim}, "29": {"the time limit for filing has expired", StepAppeal},
	"31": {"the patient is not identified as insured", StepCorrect}, "45": {"above the fee schedule or contract", StepWriteOff},
	"50": {"not deemed medically necessary", StepAppeal}, "55": {"deemed experimental", StepAppeal}, "96": {"not covered", StepAppeal},
	"97": {"included in another service already decided", StepWriteOff}, "109": {"another payer or contractor is responsible", StepNewClaim},
	"119": {"the maximum of the period is reached", StepWriteOff}, "125": {"a submission or billing error", StepCorrect},
	"140": {"member id and name do not agree", StepCorrect}, "146": {"the diagnosis was not valid on the service date", StepCorrect},
	"147": {"the contracted rate expired or is not on file", StepAppeal}, "150": {"the information does not support the level of service", StepAppeal},
	"151": {"the information does not support this many services", StepAppeal}, "167": {"the diagnosis is not covered", StepAppeal},
	"170": {"not paid to this type of provider", StepAppeal}, "181": {"the procedure was not valid on the service date", StepCorrect},
	"182": {"the modifier was not valid on the service date", StepCorrect}, "183": {"the referring provider is not eligible", StepCorrect},
	"184": {"the ordering provider is not eligible", StepCorrect}, "185": {"the rendering provider is not eligible", StepCorrect},
	"197": {"authorization is absent", StepAppeal}, "198": {"authorization is exceeded", StepAppeal},
	"199": {"procedure and revenue code do not agree", StepCorrect}, "204": {"not covered by the patient's plan", StepAppeal},
	"206": {"the NPI is missing", StepCorrect}, "207": {"the NPI is not valid", StepCorrect}, "208": {"the NPI is not matched", StepCorrect},
	"226": {"requested information was not provided or was insufficient", StepCorrect}, "231": {"mutually exclusive procedures", StepAppeal},
	"234": {"not paid separately", StepWriteOff}, "236": {"the combination with another service of the day is not payable", StepAppeal},
	"242": {"not provided by a network provider", StepAppeal}, "243": {"not authorized by the primary care provider", StepAppeal},
	"251": {"the attached documents are incomplete", StepCorrect}, "252": {"an attachment is required", StepCorrect},
	"253": {"sequestration", StepWriteOff}, "272": {"coverage guidelines were not met", StepAppeal}, "A1": {"denied; see the remark codes", StepCorrect},
	"B7": {"the provider was not certified for the service on its date", StepAppeal}, "B9": {"the patient is in a hospice", StepCorrect},
	carcPreviouslyPaid: {"paid before", StepDuplicate}, "B15": {"a qualifying service is not on record", StepCorrect},
	"B16": {"the requirements of a new patient were not met", StepCorrect}, "B20": {"provided by another provider", StepAppeal},
}

// remarkSteps are remark codes that decide the next step for any reason. MA130 is "no appeal rights are afforded because the claim is unprocessable.
// Please submit a new claim with the complete/correct information", N211 "You may not appeal this decision". Source: X12 code source 411,
// remittance advice remark codes.
var remarkSteps = []struct{ remark, step string }{
	{unprocessable, StepNewClaim}, {"N522", StepDuplicate}, {"N211", StepWriteOff},
}

// NextStep returns what to do about the denial of an entry. For a reason that the table lacks, the claim is corrected.
func NextStep(entry *collections.BillingEntry) string {
	remarks := denialRemarks(entry)
	for _, r := range remarkSteps {
		if slices.Contains(remarks, r.remark) {
			return r.step
		}
	}
	if reason, known := denialReasons[carcOf(entry.DenialCode())]; known {
		return reason.step
	}
	return StepCorrect
}

// denialRemarks returns the remark codes of a denial, of the whole decision and of its adjustments.
func denialRemarks(entry *collections.BillingEntry) []string {
	remarks := slices.Clone(entry.DenialRemarks())
	if entry.Status() == Denied {
		for _, a := range entry.Adjustments() {
			remarks = append(remarks, a.RARC...)
		}
	}
	return remarks
}

// DenialText returns a denial code in words; "" for one that the table lacks.
func DenialText(code string) string { return denialReasons[carcOf(code)].words }

// carcPattern is a claim adjustment reason code. The list grows three times a year, so that higher numbers than those of today are accepted. Source: X12 code
// source 139 with its deactivated codes, which older decisions have.
var carcPattern = regexp.MustCompile(`^([1-9]|[1-9][0-9]|[12][0-9]{2}|3[0-4][0-9]|A[0-8]|B([1-9]|1[0-9]|2[0-3])|D([1-9]|1[0-9]|2[0-3])|P([1-9]|[12][0-9]|3[0-9])|W[1-9]|Y[1-3])$`)

// IsCARC reports whether a code is a claim adjustment reason code.
func IsCARC(code string) bool { return carcPattern.MatchString(code) }

// ReadDenialCode returns a denial code as it is stored, such as CO-16, of one with or without its group: CO-16, co16, 16. The group is CO by default, which
// leaves the patient nothing. It returns false for a code that is no CARC.
func ReadDenialCode(text string) (code string, ok bool) {
	group, upper := GroupContractual, strings.ToUpper(strings.TrimSpace(text))
	for _, named := range append(AdjustmentGroups, GroupCorrection) {
		if rest, found := strings.CutPrefix(upper, named); found {
			group, upper = named, strings.TrimLeft(rest, "- ")
			break
		}
	}
	upper = strings.TrimLeft(upper, "0")
	return group + "-" + upper, IsCARC(upper)
}

// carcOf returns the reason code of a denial code, which may have its group before it: CO-16, CO16 or 16.
func carcOf(code string) string {
	code = strings.ToUpper(strings.TrimSpace(code))
	for _, group := range []string{GroupContractual, GroupCorrection, GroupOther, GroupPayerInitiated, GroupPatient} {
		if rest, found := strings.CutPrefix(code, group); found {
			code = strings.TrimLeft(rest, "- ")
			break
		}
	}
	return strings.TrimLeft(code, "0")
}

// contractualReasons are reasons that leave nothing to claim: a capitation pays for the service, or the contract has no payment. Alone they are no
// denial. Source: CARC 24 and 45.
var contractualReasons = []string{"24", "45"}

// IsContractual reports whether all of a charge was adjusted by contract; with isSecondary, beside what the first payer paid and adjusted.
func IsContractual(list []collections.Adjustment, isSecondary bool) bool {
	found := false
	for _, a := range list {
		if a.AmountCents == 0 {
			continue
		}
		isPrior := isSecondary && a.CARC == carcPriorPayer
		if !isPrior && (a.Group != GroupContractual || !slices.Contains(contractualReasons, a.CARC)) {
			return false
		}
		found = true
	}
	return found
}
