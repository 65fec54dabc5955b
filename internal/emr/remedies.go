package emr

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
)

// Remedy is what the practice's administrator should do about a failed delivery. The text holds no health information.
type Remedy struct{ Code, Text string }

// remedies by error code; the first with its words in the error's message applies, and empty words match any message.
// Source: docs/decisions/transmissions.md, "Remedies".
var remedies = []struct {
	errorCode, words string
	Remedy
}{
	{CodePatientNotFound, "no EMR id", Remedy{
		"link_patient",
		"The patient is not linked to the EMR. Look the patient up in the EMR, and enter the EMR's id in the patient's record.",
	}},
	{CodePatientNotFound, "deleted", Remedy{
		"restore_patient",
		"The EMR has deleted the patient. Have the patient restored there, or enter the id of the right one in the patient's record.",
	}},
	{CodePatientNotFound, "", Remedy{
		"correct_link",
		"The EMR has no patient with the id in the patient's record. Look the patient up in the EMR, and correct the id.",
	}},
	{CodePatientMerged, "", Remedy{
		"follow_merge",
		"The EMR has merged or deactivated the patient's record. Find the right record and enter its id in the patient's record, or have the linked one made active again.",
	}},
	{CodeAuth, "403", grantScope},
	{CodeAuth, "not connected", Remedy{
		"connect",
		"The practice is not connected with the EMR. Connect under EMR, Connection.",
	}},
	{CodeAuth, "", Remedy{
		"renew_credentials",
		"The EMR rejects the sign-in. Test it under EMR, Connection, and compare client id, key and addresses with those that the EMR's administrator has registered.",
	}},
	{CodeUpdateRefused, "403", grantScope},
	{CodeUpdateRefused, "", Remedy{
		"correct_by_hand",
		"The EMR refuses changes to its copy. Correct that copy in the EMR by hand, or have the EMR's administrator allow updates.",
	}},
	{CodeInvalidResource, "multiple-matches", Remedy{
		"remove_copies",
		"The EMR has several observations with the identifier of this one. Have all but one removed there.",
	}},
	{CodeInvalidResource, "Observation not found", Remedy{
		"look_for_copy",
		"The EMR no longer has the copy that was to be changed. Check the patient's chart in the EMR, and correct the old value by hand if it is there.",
	}},
	{CodeInvalidResource, "could not be read", checkReading},
	{CodeInvalidResource, "no FHIR form", checkReading},
	{CodeInvalidResource, "", Remedy{
		"agree_on_profile",
		"The EMR rejected the reading. Show its diagnostics to its administrator: the EMR is changed to accept the reading, or a setting VIGIL_FHIR_SEND_… leaves out the part that it rejects.",
	}},
	{CodeTooLarge, "", Remedy{
		"allow_size",
		"The EMR, or a proxy before it, does not take requests of this size. Have its administrator raise the limit for DocumentReference, to 20 MB or more.",
	}},
	{CodeRateLimited, "", Remedy{
		"lower_rate",
		"The EMR limits the request rate. If this lasts, lower VIGIL_EMR_RATE_LIMIT_PER_SECOND, or request a higher limit from the EMR's administrator.",
	}},
	{CodeSearchOutdated, "", Remedy{
		"look_again",
		"Nothing is wrong with the reading: the EMR may have it, but its search may be out of date. The EMR is searched again before anything is sent.",
	}},
	{CodeOutcomeUnknown, "cannot be searched", Remedy{
		"settle_outcome",
		"The EMR may have the reading and cannot be searched for it. Look in the patient's chart at the EMR, and state under the delivery whether the reading is there. To prevent such cases have the EMR's administrator permit a search of Observations, or conditional create.",
	}},
	{CodeOutcomeUnknown, "", Remedy{
		"settle_outcome",
		"The EMR took the reading and does not show it. Look in the patient's chart at the EMR, and state under the delivery whether the reading is there.",
	}},
	{CodeUnavailable, "certificate not trusted", Remedy{
		"trust_certificate",
		"The EMR's certificate is not trusted. Check its address in the settings and its certificate with its administrator; a private certificate authority must be installed on the system that runs this service.",
	}},
	{CodeUnavailable, "interrupted", sendAgain},
	{CodeUnavailable, "", waitForEMR},
	{CodeTimeout, "interrupted", sendAgain},
	{CodeTimeout, "", waitForEMR},
	{CodeNotConfigured, "", Remedy{
		"configure_emr",
		"No EMR is configured. The operator sets the settings that docs/operations.md lists under EMR.",
	}},
}

var (
	grantScope = Remedy{
		"grant_scope",
		"The EMR accepts the sign-in but does not permit this operation. Have its administrator grant the client the scopes that docs/fhir.md lists, above all for Observations, and for DocumentReferences where reports are sent; EMR, Connection, Test connection names the missing ones.",
	}
	waitForEMR = Remedy{
		"wait_for_emr",
		"The EMR was unavailable or returned an error; nothing is wrong with the reading. If this lasts, contact its administrator.",
	}
	sendAgain = Remedy{
		"send_again",
		"The service was stopped while it was sending; nothing is wrong with the reading. Before it is sent again, the EMR is searched for it.",
	}
	checkReading = Remedy{
		"check_reading",
		"The reading has no form that the EMR can receive. If it is wrong, mark it as entered in error and enter it again; otherwise give the delivery's number to the operator.",
	}
)

// RemedyFor returns the remedy for an error, and what happens to the delivery then; ok is false where there is nothing to do.
func RemedyFor(errorCode, message string, isDeadLetter bool) (r Remedy, ok bool) {
	for _, remedy := range remedies {
		if remedy.errorCode != errorCode || !strings.Contains(message, remedy.words) {
			continue
		}
		r = remedy.Remedy
		if errorCode == CodeOutcomeUnknown {
			if !isDeadLetter {
				r.Text += " The EMR is searched again until then."
			}
			return r, true
		}
		if isDeadLetter {
			r.Text += " Once that is done, queue the delivery again."
		} else {
			r.Text += " It is retried automatically."
		}
		return r, true
	}
	return Remedy{}, false
}

// ErrorCodes returns all error codes of deliveries.
func ErrorCodes() (codes []string) {
	for _, remedy := range remedies {
		if !slices.Contains(codes, remedy.errorCode) {
			codes = append(codes, remedy.errorCode)
		}
	}
	return append(codes, collections.NeverSent)
}

// withRemedy appends the remedy to a notice of a failure.
func withRemedy(notice string, f Failure) string {
	if remedy, ok := RemedyFor(f.Code, f.Message, true); ok {
		return notice + " " + remedy.Text
	}
	return notice
}
