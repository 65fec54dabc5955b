package claims

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/internal/x12"
)

// NotRepresentable is the code of data that an 837P cannot carry, such as a name in letters without a Latin form.
const NotRepresentable = "not_representable"

// checkRepresentable writes the claim as a file if there are no other errors: violations of the guide are found before submission, so that a
// claim that passes preflight can be written. If no claims are sent from here, only the claim itself is checked.
func (pc *preflightCheck) checkRepresentable(today string) {
	if len(pc.Errors) > 0 {
		return // missing data would be reported twice
	}
	c := pc.claim
	at, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return
	}
	loader := Loader{Practice: c.Practice, Submitter: c.Submitter}
	if c.Submitter.ID == "" {
		loader.Submitter = Submitter{ID: "NONE", Name: "NONE", Contact: "NONE", Phone: "0000000000", ReceiverID: "NONE", ReceiverName: "NONE", Usage: "T"}
	}
	file := loader.Envelope(1, "", at)
	file.Claims = []x12.Claim{Build837P("V1", c.Frequency, c.PayerControl, []FormLine{{c, "V1L1"}})}
	if _, err := file.Bytes(); err != nil {
		var wrong x12.FieldErrors
		if !errors.As(err, &wrong) {
			pc.addError(true, NotRepresentable, "claim", "An 837P cannot carry the claim.")
			return
		}
		pc.Errors = append(pc.Errors, UnrepresentableFields(wrong, c)...)
	}
}

// UnrepresentableFields returns the values of a claim that a file cannot carry, each once, under the field that corrects it.
func UnrepresentableFields(wrong x12.FieldErrors, c Claim) (found []Issue) {
	for _, w := range wrong {
		if c.PrimaryDecision != nil {
			w.Field = swapPayers(w.Field)
		}
		f := Issue{NotRepresentable, fieldLocation(w.Field, c.HasOtherSubscriber()), "An 837P cannot carry it: it " + w.Reason + "."}
		if !slices.ContainsFunc(found, func(g Issue) bool { return g.Field == f.Field }) {
			found = append(found, f)
		}
	}
	return found
}

// fieldLocations map fields of the 837P to where they are corrected. The first matching prefix applies; if the location ends in a dot, the
// remainder of the field is kept.
var fieldLocations = []struct{ field, place string }{
	{"submitter.id", "VIGIL_CLAIMS_SUBMITTER_ID"},
	{"submitter.name", "VIGIL_CLAIMS_SUBMITTER_NAME"},
	{"submitter.contact", "VIGIL_CLAIMS_SUBMITTER_CONTACT"},
	{"submitter.phone", "VIGIL_CLAIMS_SUBMITTER_PHONE"},
	{"receiver.id", "VIGIL_CLAIMS_RECEIVER_ID"},
	{"receiver.name", "VIGIL_CLAIMS_RECEIVER_NAME"},
	{"usage", "VIGIL_CLAIMS_USAGE"},
	{"place_of_service", "VIGIL_CLAIMS_PLACE_OF_SERVICE"},
	{"billing.address.line", "VIGIL_PRACTICE_ADDRESS"},
	{"billing.address.city", "VIGIL_PRACTICE_CITY"},
	{"billing.address.state", "VIGIL_PRACTICE_STATE"},
	{"billing.address.zip", "VIGIL_PRACTICE_ZIP"},
	{"billing.npi", "VIGIL_PRACTICE_NPI"},
	{"billing.taxonomy", "VIGIL_PRACTICE_TAXONOMY"},
	{"billing.tax_id", "VIGIL_PRACTICE_TAX_ID"},
	{"billing.phone", "VIGIL_PRACTICE_PHONE"},
	{"billing.", "VIGIL_PRACTICE_NAME"},
	{"rendering.npi", "users.npi"},
	{"rendering.taxonomy", "users.taxonomy_code"},
	{"rendering.", "rendering_provider_id"},
	{"referring.", "referring_provider."},
	{"payer.id", "payer.edi_payer_id"},
	{"payer.address.zip", "payer.address.postal_code"},
	{"coverage.payer.filing_code", "payer.claim_filing_code"},
	{"coverage.member_id", "insurance.member_id"},
	{"coverage.group", "insurance.group_number"},
	{"others[0].member_id", "insurance.secondary.member_id"},
	{"others[0].group", "insurance.secondary.group_number"},
	{"others[0].payer.", "insurance.secondary.payer_id"},
	{"others[0].subscriber.address.", "address."},
	{"others[0].subscriber.", "insurance.secondary.subscriber."},
	{"others[0].", "insurance.secondary.payer_id"},
	{"patient.address.", "address."},
	{"patient.birth_date", "date_of_birth"},
	{"patient.first", "first_name"},
	{"patient.last", "last_name"},
	{"diagnoses", "icd10_codes"},
	{"payer_control_number", "payer_control_number"},
}

// swapPayers returns the field of a claim to the second payer under the name that it has on a claim to the first: the other payer is then the first.
func swapPayers(field string) string {
	const other = "others[0]."
	if rest, isOther := strings.CutPrefix(field, other); isOther {
		if strings.HasPrefix(rest, "payer.") || strings.HasPrefix(rest, "subscriber.") {
			return rest
		}
		return "coverage." + rest
	}
	if strings.HasPrefix(field, "payer.") || strings.HasPrefix(field, "subscriber.") {
		return other + field
	}
	if rest, isCoverage := strings.CutPrefix(field, "coverage."); isCoverage {
		return other + rest
	}
	return field
}

// fieldLocation returns where a field of the 837P is corrected.
func fieldLocation(field string, hasOtherSubscriber bool) string {
	if rest, ok := strings.CutPrefix(field, "subscriber."); ok && !hasOtherSubscriber {
		field = "patient." + rest
	} else if ok {
		field = "insurance." + field
	}
	if _, rest, ok := strings.Cut(field, "]."); ok && strings.HasPrefix(field, "lines[") {
		return cmp.Or(map[string]string{"from": "service_date", "through": "service_date", "pointers": "icd10_codes", "ordering.first": "orders", "ordering.name": "orders", "ordering.npi": "orders"}[rest], rest)
	}
	for _, p := range fieldLocations {
		if rest, ok := strings.CutPrefix(field, p.field); ok {
			if strings.HasSuffix(p.place, ".") {
				field = p.place + rest
			} else {
				field = p.place
			}
			break
		}
	}
	field = strings.TrimSuffix(strings.Replace(field, "subscriber.birth_date", "subscriber.date_of_birth", 1), ".")
	if strings.HasSuffix(field, "subscriber.last") || strings.HasSuffix(field, "subscriber.first") {
		field += "_name"
	}
	return field
}
