package clearinghouse

import (
	"strings"

	"github.com/vigilhealth/vigil/collections"
)

// Why a claim of an 835 is not posted.
const (
	unbalanced     = "unbalanced"
	wrongSign      = "wrong_sign"
	noServiceLines = "no_service_lines"
	unknownLine    = "unknown_line"
	totalDiffers   = "total_differs"
	debtNotCarried = "debt_not_carried"

	unreadable      = "unreadable"
	prenotification = "prenotification"
	noMoneyMoved    = "no_money_moved"

	supersededClaim = "superseded_claim"
)

// reasonWords are the reasons in words.
var reasonWords = map[string]string{
	unbalanced:     "The claim's charge less its adjustments is not its payment, or its lines do not add up.",
	wrongSign:      "An amount has the sign of a reversal, or a reversal that of a payment.",
	noServiceLines: "A payment for several lines without the amount of each.",
	unknownLine:    "A service line that is not on the claim.",
	totalDiffers:   "The payment differs from the sum of its claims and adjustments, of which one is not balanced or cannot be read.",
	debtNotCarried: "The provider adjustments exceed the payments, and the payer does not carry the rest forward.",

	unreadable:      "The claim cannot be read.",
	prenotification: "A test of the account number, no payment.",
	noMoneyMoved:    "The payer sent no money: a debit that the practice has to collect, or only a notification.",

	"unknown_claim":               "No claim has this number.",
	"other_payee":                 "The payment is to another payee.",
	"sent_on":                     "The payer forwarded the claim and decided nothing.",
	"forecast":                    "A forecast, without payment.",
	"test_usage":                  "The claim was sent as a test.",
	"already_decided":             "The payer decided the claim before and did not reverse that.",
	"reversal_not_posted":         "The reversal of the earlier decision could not be posted: post both by hand.",
	"already_posted":              "The decision was posted with another payment of the same number.",
	"already_recorded":            "The payment was recorded manually.",
	supersededClaim:               "The claim was replaced since.",
	collections.ImportInterrupted: "The import was interrupted: import the file again.",
	"reversal_without_original":   "The decision that it reverses is not posted, or the payer paid less.",
	"invalid_transition":          "The state of the entry does not allow it.",
	"invalid_state":               "The state of the entry does not allow it.",
}

// adjustmentWords are the reasons of provider adjustments. Source: ASC X12N 005010X221A1 (835), PLB03-1.
var adjustmentWords = map[string]string{
	"50": "late charge", "51": "interest penalty", "72": "authorized return", "90": "early payment allowance", "AH": "origination fee",
	"AM": "applied to the borrower's account", "AP": "acceleration of benefits", "B2": "rebate", "B3": "recovery allowance", "BD": "bad debt adjustment",
	"BN": "bonus", "C5": "temporary allowance", "CR": "capitation interest", "CS": "adjustment", "CT": "capitation payment", "CV": "capital passthrough",
	"CW": "anesthetist passthrough", "DM": "direct medical education passthrough", "E3": "withholding", "FB": "forwarded balance",
	"FC": "fund allocation", "GO": "graduate medical education passthrough", "HM": "hemophilia clotting factor supplement",
	"IP": "incentive premium payment", "IR": "tax withheld", "IS": "interim settlement", "J1": "nonreimbursable", "L3": "penalty",
	"L6": "interest owed", "LE": "levy", "LS": "lump sum", "OA": "organ acquisition passthrough", "OB": "offset for affiliated providers",
	"PI": "periodic interim payment", "PL": "final settlement", "RA": "retroactive adjustment", "RE": "return on equity",
	"SL": "student loan repayment", "TL": "third party liability", "WO": "overpayment recovery", "WU": "unspecified recovery",
}

// ItemText returns why an item waits for a person, with what exactly cannot be read.
func ItemText(item collections.RemittanceItem) string {
	if item.Detail == "" {
		return ReasonText(item.Reason)
	}
	return ReasonText(item.Reason) + " S" + strings.TrimPrefix(item.Detail, "s")
}

// ReasonText returns why an item of a remittance waits for a person, in words.
func ReasonText(reason string) string {
	if code, found := strings.CutPrefix(reason, "PLB "); found {
		if words := adjustmentWords[code]; words != "" {
			return "Provider adjustment: " + words + "."
		}
		return "Provider adjustment."
	}
	if words, known := reasonWords[reason]; known {
		return words
	}
	return "The entry could not take it."
}
