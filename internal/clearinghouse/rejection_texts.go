package clearinghouse

import (
	"cmp"
	"fmt"

	"github.com/vigilhealth/vigil/collections"
)

// DescribeRejection returns a detail of a rejection in words; a code that is not in the tables is named as it is. Source: 005010X231A1, IK304 and
// IK403 (code sources X12 620 and 621); X12 code sources 507 (category), 508 (status) and 98 (entity).
func DescribeRejection(d collections.RejectionDetail) string {
	switch {
	case d.Category != "":
		text := cmp.Or(categoryTexts[d.Category], "Category "+d.Category) + ": " + cmp.Or(statusTexts[d.Code], "status code "+d.Code)
		if d.Entity != "" {
			text += ", " + cmp.Or(entityTexts[d.Entity], "entity "+d.Entity)
		}
		return text + "."
	case d.Segment == "TA1":
		return "The envelope of the file was not accepted, code " + d.Code + "."
	case d.Element > 0:
		element := fmt.Sprintf("%s%02d", d.Segment, d.Element)
		if d.Component > 0 {
			element += fmt.Sprintf("-%d", d.Component)
		}
		return element + ": " + cmp.Or(elementTexts[d.Code], "error "+d.Code) + "."
	}
	return d.Segment + ": " + cmp.Or(segmentTexts[d.Code], "error "+d.Code) + "."
}

var segmentTexts = map[string]string{
	"1": "the segment is not known", "2": "the segment is not expected here", "3": "the segment is required and missing",
	"4": "the loop occurs too often", "5": "the segment occurs too often", "6": "the segment is not part of this kind of file",
	"7": "the segment is out of order", "8": "an element is wrong", "I4": "the guide does not use the segment",
	"I6": "the segment is required with what else was sent, and missing", "I7": "the loop occurs too seldom", "I8": "the segment occurs too seldom",
	"I9": "the segment may not stand beside what else was sent",
}

var elementTexts = map[string]string{
	"1": "required and missing", "2": "required with another element, and missing", "3": "too many elements", "4": "too short", "5": "too long",
	"6": "a character is not allowed", "7": "the value is not in the code list", "8": "not a date", "9": "not a time",
	"10": "may not stand beside another element", "12": "repeated too often", "13": "too many components", "I10": "the guide does not use the element",
	"I11": "repeated too seldom", "I12": "not of the required form", "I13": "may not stand beside what else was sent",
	"I6": "the guide does not use the value", "I9": "required with what else was sent, and missing",
}

var categoryTexts = map[string]string{
	"A0": "Forwarded", "A1": "Received", "A2": "Accepted", "A3": "Returned as unprocessable", "A4": "Not found", "A5": "Split",
	"A6": "Rejected for missing information", "A7": "Rejected for invalid information", "A8": "Rejected for a relational field in error",
}

var statusTexts = map[string]string{
	"21": "missing or invalid information", "24": "not approved as an electronic submitter", "26": "not found",
	"33": "subscriber and subscriber id not found", "54": "duplicate of a processed claim or line", "78": "duplicate of a claim or line in process",
	"88": "not eligible on the dates of service", "97": "patient's eligibility not found", "116": "submitted to the wrong payer", "125": "name",
	"128": "tax id", "145": "specialty or taxonomy code", "153": "id number", "158": "date of birth", "164": "contract or member number",
	"178": "submitted charges", "187": "dates of service", "247": "line information", "249": "place of service", "254": "principal diagnosis code",
	"255": "diagnosis code", "400": "the claim is out of balance", "448": "invalid combination of billing codes", "453": "procedure code modifier",
	"454": "procedure code", "464": "payer's claim control number", "476": "units of service", "500": "ZIP code", "501": "state", "503": "street address",
	"504": "last name", "505": "first name", "535": "claim frequency code", "562": "National Provider Identifier (NPI)",
}

var entityTexts = map[string]string{
	"1P": "the provider", "36": "the employer", "40": "the receiver", "41": "the submitter", "71": "the attending physician", "77": "the service location",
	"82": "the rendering provider", "85": "the billing provider", "87": "the pay-to provider", "DK": "the ordering physician",
	"DN": "the referring provider", "DQ": "the supervising physician", "IL": "the insured", "PR": "the payer", "QC": "the patient", "AY": "the clearinghouse",
}
