package emr

import (
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
)

// Remedy is what the practice's administrator does next about a delivery that failed. The text is for people, and holds nothing of a patient's.
type Remedy struct{ Code, Text string }

// remedies by error code; of several the first whose words are in the error's message. Without words it is for all others.
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
		"The EMR does not know the patient by the id in our record. Look the patient up in the EMR, and correct the id in the patient's record.",
	}},
	{CodePatientMerged, "", Remedy{
		"follow_merge",
		"The EMR uses another record for the patient, or none any more. Make sure which is the right one, and enter its id in the patient's record; or have the one that we know made active again.",
	}},
	{CodeAuth, "403", scope},
	{CodeAuth, "not connected", Remedy{
		"connect",
		"Nobody is signed in at the EMR. Connect under EMR, Connection.",
	}},
	{CodeAuth, "", Remedy{
		"renew_credentials",
		"The EMR does not accept how we sign in. Test that under EMR, Connection, and compare client id, key and addresses with what the EMR's administrator has registered.",
	}},
	{CodeUpdateRefused, "403", scope},
	{CodeUpdateRefused, "", Remedy{
		"correct_by_hand",
		"The EMR does not let us change the copy that it has. Correct that copy in the EMR by hand, or have the EMR's administrator allow updates.",
	}},
	{CodeInvalidResource, "multiple-matches", Remedy{
		"remove_copies",
		"The EMR has several observations under the identifier of this one. Have all but one removed there.",
	}},
	{CodeInvalidResource, "Observation not found", Remedy{
		"look_for_copy",
		"The EMR's copy, which was to be changed, is not where it was. Look at the patient's chart in the EMR: where the old value stands, correct it by hand.",
	}},
	{CodeInvalidResource, "could not be read", unreadable},
	{CodeInvalidResource, "no FHIR form", unreadable},
	{CodeInvalidResource, "", Remedy{
		"agree_on_profile",
		"The EMR did not accept the reading as it was sent. Show what it said to its administrator: either the EMR learns to accept it, or a setting VIGIL_FHIR_SEND_… leaves out what it does not want.",
	}},
	{CodeRateLimited, "", Remedy{
		"lower_rate",
		"The EMR wants fewer requests. If this lasts, lower VIGIL_EMR_RATE_LIMIT_PER_SECOND, or ask the EMR's administrator for more.",
	}},
	{CodeSearchOutdated, "", Remedy{
		"look_again",
		"Nothing is wrong with the reading: the EMR may have it, and could not say so for certain yet. It is asked again before anything is sent.",
	}},
	{CodeUnavailable, "certificate not trusted", Remedy{
		"trust_certificate",
		"The EMR could not prove who it is. Compare its address in the settings and its certificate with its administrator; a private authority has to be made known to the system that runs this service.",
	}},
	{CodeUnavailable, "interrupted", interrupted},
	{CodeUnavailable, "", away},
	{CodeTimeout, "interrupted", interrupted},
	{CodeTimeout, "", away},
	{CodeNotConfigured, "", Remedy{
		"configure_emr",
		"No EMR is configured. Whoever runs the service sets what docs/operations.md lists under EMR.",
	}},
}

var (
	scope = Remedy{
		"grant_scope",
		"The EMR knows us, and does not let us do this. Ask its administrator to grant our client the scopes that docs/fhir.md lists, for Observations above all.",
	}
	away = Remedy{
		"wait_for_emr",
		"The EMR was away, or did not answer as it should; nothing is wrong with the reading. If it stays away, tell its administrator.",
	}
	interrupted = Remedy{
		"send_again",
		"The service was stopped while it was sending; nothing is wrong with the reading. Before it is sent again, the EMR is asked whether it has it.",
	}
	unreadable = Remedy{
		"check_reading",
		"The reading cannot be put into words for the EMR. Where it is wrong, mark it as entered in error and enter it anew; otherwise give the delivery's number to whoever runs the service.",
	}
)

// RemedyFor is the remedy for an error, and what becomes of the delivery then; ok is false where there is nothing to do.
func RemedyFor(errorCode, message string, givenUp bool) (r Remedy, ok bool) {
	for _, known := range remedies {
		if known.errorCode != errorCode || !strings.Contains(message, known.words) {
			continue
		}
		r = known.Remedy
		if givenUp {
			r.Text += " Once that is done, queue the delivery again."
		} else {
			r.Text += " It is tried again by itself."
		}
		return r, true
	}
	return Remedy{}, false
}

// ErrorCodes are all that a delivery may have failed of.
func ErrorCodes() (codes []string) {
	for _, known := range remedies {
		if !slices.Contains(codes, known.errorCode) {
			codes = append(codes, known.errorCode)
		}
	}
	return append(codes, collections.NeverSent)
}

// whatToDo ends a notice of a failure with its remedy.
func whatToDo(notice string, f Failure) string {
	if remedy, ok := RemedyFor(f.Code, f.Message, true); ok {
		return notice + " " + remedy.Text
	}
	return notice
}
