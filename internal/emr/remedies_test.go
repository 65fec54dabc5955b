package emr_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/notifications"
)

// Each failure has a remedy that states what happens to the delivery.
func TestRemedies(t *testing.T) {
	for _, test := range []struct{ code, message, want string }{
		{"patient_not_found", "Patient has no EMR id", "link_patient"},
		{"patient_not_found", "Patient not found in EMR", "correct_link"},
		{"patient_not_found", "Patient deleted in EMR", "restore_patient"},
		{"patient_merged", "Patient merged or inactive in EMR", "follow_merge"},
		{"auth_error", "EMR authorization failed (403: insufficient scope)", "grant_scope"},
		{"auth_error", "EMR authorization failed (401)", "renew_credentials"},
		{"auth_error", "EMR authorization failed (unusable token answer)", "renew_credentials"},
		{"auth_error", "EMR authorization failed (not connected)", "connect"},
		{"update_refused", "Update refused by EMR (405)", "correct_by_hand"},
		{"update_refused", "Update refused by EMR: not-supported", "correct_by_hand"},
		{"update_refused", "Update refused by EMR (403: insufficient scope)", "grant_scope"},
		{"search_outdated", "EMR search may be out of date", "look_again"},
		{"outcome_unknown", "EMR took the observation and does not show it (202)", "settle_outcome"},
		{"invalid_resource", "Invalid FHIR resource: required", "agree_on_profile"},
		{"invalid_resource", "Invalid FHIR resource (400)", "agree_on_profile"},
		{"invalid_resource", "Invalid FHIR resource: multiple-matches", "remove_copies"},
		{"invalid_resource", "Observation not found in EMR", "look_for_copy"},
		{"invalid_resource", "The observation could not be read", "check_reading"},
		{"invalid_resource", "The observation has no FHIR form", "check_reading"},
		{"rate_limited", "EMR rate limit exceeded", "lower_rate"},
		{"emr_unavailable", "EMR unavailable (503)", "wait_for_emr"},
		{"emr_unavailable", "EMR unavailable (no connection)", "wait_for_emr"},
		{"emr_unavailable", "EMR unavailable (certificate not trusted)", "trust_certificate"},
		{"emr_unavailable", "EMR unavailable (interrupted)", "send_again"},
		{"timeout", "Connection timeout after 30s", "wait_for_emr"},
		{"timeout", "Delivery was interrupted", "send_again"},
		{"not_configured", "EMR is not configured", "configure_emr"},
		{"entered_in_error", "Not sent: the reading was entered in error", ""},
		{"", "", ""},
	} {
		final, ok := emr.RemedyFor(test.code, test.message, true)
		waits, _ := emr.RemedyFor(test.code, test.message, false)
		if final.Code != test.want || ok != (test.want != "") || waits.Code != test.want {
			t.Errorf("%s, %q: %q", test.code, test.message, final.Code)
		}
		if ok && test.code != "outcome_unknown" && (!strings.Contains(final.Text, "queue the delivery again") || !strings.Contains(waits.Text, "retried automatically")) {
			t.Errorf("%s, %q does not state what happens to the delivery: %q, %q", test.code, test.message, final.Text, waits.Text)
		}
		if test.code != "" && !slices.Contains(emr.ErrorCodes(), test.code) {
			t.Errorf("%s is not among the codes", test.code)
		}
	}
}

// The notice of a dead letter includes its remedy.
func TestDeadLetterNoticeHasRemedy(t *testing.T) {
	app, f, clock := newApp(t), newEMR(), &manualClock{at: now}
	f.refuse = func(string, int) *emr.Error { return invalid() }
	makeDeadLetter(t, app, newWorker(f, clock, nil), clock)
	notice, err := app.FindFirstRecordByData(collections.Announcements, "kind", string(notifications.DeliveryDeadLettered))
	if err != nil {
		t.Fatal(err)
	}
	remedy, _ := emr.RemedyFor(emr.CodeInvalidResource, invalid().Message, true)
	if body := notice.GetString("body"); !strings.HasSuffix(body, invalid().Message+". "+remedy.Text) || strings.Contains(body, "Ada") {
		t.Errorf("notice: %q", body)
	}
}

// Every error code of the EMR client has a remedy, and every remedy is documented in the decisions.
func TestEveryErrorHasARemedy(t *testing.T) {
	for _, code := range []string{
		emr.CodeTimeout, emr.CodeUnavailable, emr.CodePatientNotFound, emr.CodeInvalidResource, emr.CodeAuth, emr.CodeRateLimited, emr.CodeNotConfigured,
		emr.CodePatientMerged, emr.CodeUpdateRefused, emr.CodeSearchOutdated,
	} {
		if _, ok := emr.RemedyFor(code, "", true); !ok {
			t.Errorf("%s has no remedy", code)
		}
	}
	source, err := os.ReadFile("remedies.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/decisions/transmissions.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`(?m)^\t\t"([a-z_]+)",$`).FindAllSubmatch(source, -1)
	if len(codes) < 14 {
		t.Fatalf("%d remedies found", len(codes))
	}
	for _, code := range codes {
		if !strings.Contains(string(page), "| `"+string(code[1])+"` |") {
			t.Errorf("%s is not in the decisions", code[1])
		}
	}
}
