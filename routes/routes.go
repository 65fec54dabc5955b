// Package routes is the HTTP API: each handler decodes, authorizes, calls one function and encodes. The tables in this
// file list every endpoint, and openapi.yaml describes the same endpoints to callers. Shared HTTP code is in web,
// permissions are in internal/authz, and the rules are in the package that a handler calls; routes has no storage code.
package routes

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/config"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/webhooks"
	"github.com/vigilhealth/vigil/routes/web"
)

// handler serves one endpoint.
type handler func(a *api, c *web.Call) error

// withBody serves a row and decodes the body first.
func withBody[B any](handle func(*api, *web.Call, B) error) handler {
	return func(a *api, c *web.Call) error {
		var body B
		if err := c.Decode(&body); err != nil {
			return err
		}
		return handle(a, c, body)
	}
}

// route is one endpoint. Path is relative to web.BasePath and ends with a slash, as in the contract.
type route struct {
	method     string
	path       string
	permission authz.Permission // of users and of clients, or one of the two actions that require no access token
	limit      ratelimit.Class
	handle     handler
}

// table lists the endpoints under web.BasePath.
var table = slices.Concat([]route{
	// auth.go
	{http.MethodPost, "/auth/login/", authz.Anyone, ratelimit.SignIn, countFailedSignIns(withBody((*api).login))},
	{http.MethodPost, "/auth/token/refresh/", authz.Anyone, ratelimit.Refresh, withBody((*api).refresh)},
	{http.MethodPost, "/auth/password-reset/", authz.Anyone, ratelimit.Auth, withBody((*api).requestPasswordReset)},
	{http.MethodPost, "/auth/password-reset/confirm/", authz.Anyone, ratelimit.Auth, withBody((*api).confirmPasswordReset)},
	{http.MethodPost, "/auth/password/change/", authz.UseOwnAccount, ratelimit.Auth, withBody((*api).changePassword)},
	{http.MethodPost, "/auth/logout/", authz.SignOut, ratelimit.User, withBody((*api).logout)},
	{http.MethodPost, "/auth/logout-all/", authz.UseOwnAccount, ratelimit.User, (*api).logoutAll},
	{http.MethodGet, "/auth/sessions/", authz.UseOwnAccount, ratelimit.User, (*api).listSessions},
	{http.MethodDelete, "/auth/sessions/{id}/", authz.UseOwnAccount, ratelimit.Auth, (*api).endSession},
	{http.MethodGet, "/auth/profile/", authz.UseOwnAccount, ratelimit.User, (*api).profile},
	{http.MethodGet, "/auth/roles/", authz.ReadRoles, ratelimit.User, (*api).roles},

	// auth.go: the second factor
	{http.MethodPost, "/auth/2fa/setup/", authz.UseOwnAccount, ratelimit.Auth, (*api).setUpTwoFactor},
	{http.MethodPost, "/auth/2fa/verify/", authz.UseOwnAccount, ratelimit.Auth, withBody((*api).verifyTwoFactor)},
	{http.MethodGet, "/auth/2fa/qr-code/", authz.UseOwnAccount, ratelimit.Auth, (*api).drawQRCode},
	{http.MethodPost, "/auth/2fa/disable/", authz.UseOwnAccount, ratelimit.Auth, withBody((*api).disableTwoFactor)},
	{http.MethodPost, "/auth/2fa/backup-codes/", authz.UseOwnAccount, ratelimit.Auth, withBody((*api).replaceBackupCodes)},

	// auth.go: passkeys
	{http.MethodGet, "/auth/passkeys/", authz.UsePasskeys, ratelimit.User, (*api).listPasskeys},
	{http.MethodPost, "/auth/passkeys/", authz.UsePasskeys, ratelimit.Auth, withBody((*api).registerPasskey)},
	{http.MethodPost, "/auth/passkeys/registration-options/", authz.UsePasskeys, ratelimit.Auth, (*api).offerPasskeyRegistration},
	{http.MethodPatch, "/auth/passkeys/{id}/", authz.UsePasskeys, ratelimit.User, withUserID((*api).renamePasskey)},
	{http.MethodDelete, "/auth/passkeys/{id}/", authz.UsePasskeys, ratelimit.Auth, withUserID((*api).removePasskey)},
	{http.MethodPost, "/auth/passkeys/authentication-options/", authz.Anyone, ratelimit.SignIn, (*api).offerPasskeySignIn},
	{http.MethodPost, "/auth/passkeys/authenticate/", authz.Anyone, ratelimit.SignIn, countFailedSignIns(withBody((*api).signInWithPasskey))},

	// users.go
	{http.MethodPost, "/auth/register/", authz.RegisterUsers, ratelimit.Auth, withBody((*api).register)},
	{http.MethodGet, "/users/", authz.ReadUsers, ratelimit.User, (*api).listUsers},
	{http.MethodGet, "/users/me/", authz.UseOwnAccount, ratelimit.User, (*api).profile},
	{http.MethodPatch, "/users/me/", authz.UseOwnAccount, ratelimit.User, withBody((*api).updateOwnUser)},
	{http.MethodGet, "/users/{id}/", authz.ReadUsers, ratelimit.User, withUserID((*api).readUser)},
	{http.MethodPatch, "/users/{id}/", authz.ManageUsers, ratelimit.User, withUserID((*api).updateUser)},
	{http.MethodPost, "/users/{id}/activate/", authz.ManageUsers, ratelimit.User, withUserID((*api).activateUser)},
	{http.MethodPost, "/users/{id}/deactivate/", authz.ManageUsers, ratelimit.User, withUserID((*api).deactivateUser)},
	{http.MethodPost, "/users/{id}/unlock/", authz.ManageUsers, ratelimit.User, withUserID((*api).unlockUser)},
	{http.MethodPost, "/users/{id}/2fa/reset/", authz.ManageUsers, ratelimit.User, withUserID((*api).resetUserTwoFactor)},
	{http.MethodPost, "/users/{id}/password-reset/", authz.ManageUsers, ratelimit.User, withUserID((*api).sendUserReset)},
	{http.MethodPost, "/users/{id}/logout/", authz.ManageUsers, ratelimit.User, withUserID((*api).signOutUser)},

	// patients.go
	{http.MethodGet, "/patients/", authz.ReadPatients.Or(authz.ScopePatientsRead), ratelimit.User, (*api).listPatients},
	{http.MethodPost, "/patients/", authz.CreatePatients.Or(authz.ScopePatientsWrite), ratelimit.User, (*api).createPatient},
	{http.MethodGet, "/patients/{id}/", authz.ReadPatients.Or(authz.ScopePatientsRead), ratelimit.User, (*api).readPatient},
	{http.MethodPut, "/patients/{id}/", authz.UpdatePatients.Or(authz.ScopePatientsWrite), ratelimit.User, withPatient((*api).replacePatient)},
	{http.MethodPatch, "/patients/{id}/", authz.UpdatePatients.Or(authz.ScopePatientsWrite), ratelimit.User, withPatient((*api).changePatient)},
	{http.MethodDelete, "/patients/{id}/", authz.DeletePatients, ratelimit.User, withPatient((*api).deletePatient)},
	{http.MethodGet, "/patients/archived/", authz.ReadArchivedPatients.Or(authz.ScopePatientsRead), ratelimit.User, (*api).listArchivedPatients},
	{http.MethodPost, "/patients/{id}/archive/", authz.ArchivePatients, ratelimit.User, withPatient((*api).archivePatient)},
	{http.MethodPost, "/patients/{id}/unarchive/", authz.ArchivePatients, ratelimit.User, withPatient((*api).unarchivePatient)},
	{http.MethodPost, "/patients/{id}/restore/", authz.RestorePatients, ratelimit.User, withAnyPatient((*api).restorePatient)},

	// emr_import.go, emr.go
	{http.MethodPost, "/patients/import_selected_from_emr/", authz.ImportPatients, ratelimit.User, withBody((*api).importFromEMR)},
	{http.MethodPost, "/emr/auth/start/", authz.ConnectEMR, ratelimit.User, (*api).startEMRSignIn},
	{http.MethodGet, "/emr/auth/callback/", authz.Anyone, ratelimit.Auth, (*api).finishEMRSignIn},
	{http.MethodGet, "/emr/auth/status/", authz.ReadEMRConnection, ratelimit.User, (*api).readEMRStatus},
	{http.MethodPost, "/emr/test/jwt/", authz.TestEMR, ratelimit.User, (*api).testEMRSignIn},
	{http.MethodPost, "/emr/test/connection/", authz.TestEMR, ratelimit.User, (*api).testEMRConnection},
	{http.MethodGet, "/emr/patients/", authz.SearchEMRPatients, ratelimit.User, (*api).searchEMRPatients},

	// unlinked_patients.go
	{http.MethodGet, "/emr/unlinked-patients/", authz.SearchEMRPatients, ratelimit.User, (*api).listUnlinkedPatients},
	{http.MethodPost, "/emr/unlinked-patients/{id}/link/", authz.ImportPatients, ratelimit.User, withPatient((*api).linkPatient)},

	// vital_config.go
	{http.MethodGet, "/patients/{id}/vital-config/", authz.ReadThresholds.Or(authz.ScopeThresholdsRead), ratelimit.User, withPatient((*api).readThresholds)},
	{http.MethodPut, "/patients/{id}/vital-config/", authz.UpdateThresholds, ratelimit.User, withPatient((*api).updateThresholds)},
	{http.MethodGet, "/settings/default-thresholds/", authz.ReadDefaultThresholds.Or(authz.ScopeThresholdsRead), ratelimit.User, (*api).readDefaultThresholds},
	{http.MethodPut, "/settings/default-thresholds/", authz.UpdateDefaultThresholds, ratelimit.User, (*api).updateDefaultThresholds},
	{http.MethodPost, "/patients/{id}/vital-config/apply-template/", authz.UpdateThresholds, ratelimit.User, withPatient((*api).applyTemplate)},
	{http.MethodPost, "/patients/{id}/vital-config/decline-template/", authz.UpdateThresholds, ratelimit.User, withPatient((*api).declineTemplate)},

	// threshold_templates.go
	{http.MethodGet, "/threshold-templates/", authz.ReadTemplates, ratelimit.User, (*api).listTemplates},
	{http.MethodPost, "/threshold-templates/", authz.ManageTemplates, ratelimit.User, (*api).createTemplate},
	{http.MethodGet, "/threshold-templates/{id}/", authz.ReadTemplates, ratelimit.User, withRecord((*api).number, (*api).readTemplate)},
	{http.MethodPut, "/threshold-templates/{id}/", authz.ManageTemplates, ratelimit.User, withRecord((*api).number, (*api).replaceTemplate)},
	{http.MethodDelete, "/threshold-templates/{id}/", authz.ManageTemplates, ratelimit.User, withRecord((*api).number, (*api).deleteTemplate)},
	{http.MethodGet, "/threshold-changes/", authz.ReadThresholdChanges, ratelimit.User, (*api).listThresholdChanges},

	// vital_summary.go
	{http.MethodGet, "/patients/{id}/vitals/summary/", authz.ReadObservations.Or(authz.ScopeObservationsRead), ratelimit.User, withPatient((*api).readVitalSummary)},

	// patients.go: care team and consents
	{http.MethodGet, "/patients/{id}/care-team/", authz.ReadCareTeam.Or(authz.ScopePatientsRead), ratelimit.User, withPatient((*api).readCareTeam)},
	{http.MethodPut, "/patients/{id}/care-team/", authz.UpdateCareTeam, ratelimit.User, withPatient((*api).updateCareTeam)},
	{http.MethodGet, "/patients/{id}/consents/", authz.ReadConsents.Or(authz.ScopePatientsRead), ratelimit.User, withPatient((*api).listConsents)},
	{http.MethodPost, "/patients/{id}/consents/", authz.ManageConsents, ratelimit.User, withPatient((*api).grantConsent)},
	{http.MethodPost, "/patients/{id}/consents/{consent_id}/revoke/", authz.ManageConsents, ratelimit.User, withPatient((*api).revokeConsent)},

	// orders.go
	{http.MethodGet, "/patients/{id}/orders/", authz.ReadOrders.Or(authz.ScopePatientsRead), ratelimit.User, withPatient((*api).listOrders)},
	{http.MethodPost, "/patients/{id}/orders/", authz.RecordOrders, ratelimit.User, withPatient((*api).recordOrder)},

	// ingestion.go; a row for each kind of reading is at the end
	{http.MethodGet, "/ingestion/observations/", authz.ReadObservations.Or(authz.ScopeObservationsRead), ratelimit.User, (*api).listObservations},
	{http.MethodGet, "/ingestion/observations/{id}/", authz.ReadObservations.Or(authz.ScopeObservationsRead), ratelimit.User, withRecord((*api).observation, (*api).readObservation)},

	// ingestion.go, gateway.go
	{http.MethodPost, "/ingestion/observations/{id}/entered-in-error/", authz.CorrectObservations, ratelimit.User, withRecord((*api).observation, (*api).retractObservation)},
	{http.MethodPost, "/ingestion/observations/{id}/confirm/", authz.CorrectObservations, ratelimit.User, withRecord((*api).observation, (*api).confirmObservation)},
	{http.MethodGet, "/ingestion/status/", authz.ReadIngestionStatus, ratelimit.User, (*api).ingestionStatus},
	{http.MethodGet, "/ingestion/quarantine/", authz.ReadQuarantine, ratelimit.User, (*api).listQuarantine},
	{http.MethodPost, "/ingestion/quarantine/{id}/release/", authz.ManageQuarantine, ratelimit.User, withRecord(byUUID(ingest.FindQuarantined), (*api).releaseEvent)},
	{http.MethodPost, "/ingestion/quarantine/{id}/confirm/", authz.ConfirmImplausible, ratelimit.User, withRecord(byUUID(ingest.FindQuarantined), (*api).confirmEvent)},
	{http.MethodPost, "/ingestion/quarantine/{id}/discard/", authz.DiscardEvents, ratelimit.User, withRecord(byUUID(ingest.FindQuarantined), (*api).discardEvent)},

	// gateway.go; a row for each vendor is at the end
	{http.MethodPost, "/gateway/webhook/", authz.SignedByGateway, ratelimit.Webhook, (*api).receiveEvent},

	// devices.go
	{http.MethodPost, "/devices/assign/", authz.AssignDevices.Or(authz.ScopeDevicesWrite), ratelimit.User, (*api).assignDevice},
	{http.MethodGet, "/devices/", authz.ReadDevices.Or(authz.ScopeDevicesRead), ratelimit.User, (*api).listDevices},
	{http.MethodPost, "/devices/", authz.AssignDevices.Or(authz.ScopeDevicesWrite), ratelimit.User, (*api).registerDevice},
	{http.MethodGet, "/devices/{device_id}/", authz.ReadDevices.Or(authz.ScopeDevicesRead), ratelimit.User, withRecord((*api).device, (*api).readDevice)},
	{http.MethodPost, "/devices/{device_id}/unassign/", authz.AssignDevices.Or(authz.ScopeDevicesWrite), ratelimit.User, withRecord((*api).device, (*api).unassignDevice)},
	{http.MethodPost, "/devices/{device_id}/replace/", authz.AssignDevices.Or(authz.ScopeDevicesWrite), ratelimit.User, withRecord((*api).device, (*api).replaceDevice)},
	{http.MethodPost, "/devices/{device_id}/setup-complete/", authz.AssignDevices, ratelimit.User, withRecord((*api).device, (*api).completeDeviceSetUp)},
	{http.MethodGet, "/devices/alerts/", authz.ReadHubs, ratelimit.User, (*api).listDeviceAlerts},
	{http.MethodGet, "/hubs/", authz.ReadHubs.Or(authz.ScopeDevicesRead), ratelimit.User, (*api).listHubs},

	// triage.go, alerts.go
	{http.MethodGet, "/triage/patients/", authz.ReadTriage, ratelimit.User, (*api).listTriage},
	{http.MethodGet, "/triage/patients/stats/", authz.ReadTriage, ratelimit.User, (*api).readTriageStats},
	{http.MethodPost, "/triage/patients/{id}/review/", authz.ReviewTriage, ratelimit.User, withPatient((*api).reviewPatient)},
	{http.MethodPost, "/triage/patients/{id}/review/undo/", authz.ReviewTriage, ratelimit.User, withPatient((*api).undoReview)},
	{http.MethodGet, "/alerts/", authz.ReadAlerts.Or(authz.ScopeAlertsRead), ratelimit.User, (*api).listAlerts},
	{http.MethodGet, "/alerts/{id}/", authz.ReadAlerts.Or(authz.ScopeAlertsRead), ratelimit.User, withRecord((*api).alert, (*api).readAlert)},
	{http.MethodPost, "/alerts/{id}/acknowledge/", authz.AcknowledgeAlerts.Or(authz.ScopeAlertsAcknowledge), ratelimit.User, withRecord((*api).alert, (*api).acknowledgeAlert)},
	{http.MethodPost, "/alerts/{id}/resolve/", authz.ResolveAlerts, ratelimit.User, actOnAlert(alerts.Resolve)},
	{http.MethodPost, "/alerts/{id}/notes/", authz.AnnotateAlerts, ratelimit.User, actOnAlert(alerts.Annotate)},
	{http.MethodPost, "/alerts/{id}/escalate/", authz.AnnotateAlerts, ratelimit.User, withRecord((*api).alert, (*api).escalateAlert)},

	// escalations.go
	{http.MethodGet, "/escalations/", authz.ReadEscalations.Or(authz.ScopeAlertsRead), ratelimit.User, (*api).listEscalations},
	{http.MethodPost, "/escalations/", authz.CreateEscalations, ratelimit.User, (*api).createEscalation},
	{http.MethodGet, "/escalations/{id}/", authz.ReadEscalations.Or(authz.ScopeAlertsRead), ratelimit.User, withRecord((*api).escalation, (*api).readEscalation)},
	{http.MethodPatch, "/escalations/{id}/", authz.UpdateEscalations, ratelimit.User, withRecord((*api).escalation, (*api).updateEscalation)},

	// alerts.go, vital_config.go
	{http.MethodGet, "/patients/{id}/snoozes/", authz.ReadAlerts.Or(authz.ScopeAlertsRead), ratelimit.User, withPatient((*api).listSnoozes)},
	{http.MethodPost, "/patients/{id}/snoozes/", authz.SnoozeAlerts, ratelimit.User, withPatient((*api).startSnooze)},
	{http.MethodPost, "/patients/{id}/snoozes/{snooze_id}/end/", authz.SnoozeAlerts, ratelimit.User, withPatient((*api).endSnooze)},
	{http.MethodPost, "/triage/simulate-thresholds/", authz.SimulateThresholds, ratelimit.User, (*api).simulateThresholds},

	// fhir.go, transmissions.go
	{http.MethodGet, "/fhir/patients/{id}/", authz.ReadFHIRPatients.Or(authz.ScopePatientsRead), ratelimit.User, withPatient((*api).readFHIRPatient)},
	{http.MethodGet, "/fhir/observations/{id}/", authz.ReadObservations.Or(authz.ScopeObservationsRead), ratelimit.User, withRecord((*api).observation, (*api).readFHIRObservation)},
	{http.MethodPost, "/fhir/observations/{id}/transform/", authz.TransmitObservations, ratelimit.User, withRecord((*api).observation, (*api).transformObservation)},
	{http.MethodPost, "/fhir/observations/{id}/transmit/", authz.TransmitObservations, ratelimit.User, withRecord((*api).observation, (*api).transmitObservation)},
	{http.MethodGet, "/fhir/status/", authz.ReadTransmissions.Or(authz.ScopeTransmissionsRead), ratelimit.User, (*api).fhirStatus},
	{http.MethodGet, "/fhir/transmissions/{id}/", authz.ReadTransmissions.Or(authz.ScopeTransmissionsRead), ratelimit.User, (*api).readTransmission},
	{http.MethodPost, "/fhir/transmissions/{id}/acknowledge/", authz.TransmitObservations, ratelimit.User, (*api).acknowledgeCorrection},
	{http.MethodPost, "/fhir/transmissions/{id}/resolve/", authz.TransmitObservations, ratelimit.User, (*api).resolveTransmission},
	{http.MethodPost, "/fhir/transmissions/{id}/retry/", authz.TransmitObservations, ratelimit.User, (*api).retryTransmission},
	{http.MethodGet, "/fhir/transmissions/", authz.ReadTransmissions.Or(authz.ScopeTransmissionsRead), ratelimit.User, (*api).listTransmissions},
	{http.MethodPost, "/fhir/transmissions/retry/", authz.RequeueTransmissions, ratelimit.User, withBody((*api).requeueTransmissions)},
	{http.MethodPost, "/fhir/process-pending/", authz.ProcessPending, ratelimit.User, (*api).processPending},

	// time_entries.go
	{http.MethodGet, "/time-entries/", authz.ReadTimeEntries, ratelimit.User, (*api).listTime},
	{http.MethodGet, "/time-entries/summary/", authz.ReadTimeEntries, ratelimit.User, (*api).summarizeTime},
	{http.MethodPost, "/time-entries/", authz.CreateTimeEntries, ratelimit.User, (*api).logTime},
	{http.MethodPost, "/time-entries/start/", authz.CreateTimeEntries, ratelimit.User, (*api).startTimer},
	{http.MethodPost, "/time-entries/{id}/stop/", authz.CreateTimeEntries, ratelimit.User, withRecord((*api).number, (*api).stopTimer)},
	{http.MethodPost, "/time-entries/{id}/attest/", authz.AttestTimeEntries, ratelimit.User, withRecord((*api).number, (*api).attestTime)},
	{http.MethodPatch, "/time-entries/{id}/", authz.ChangeTimeEntries, ratelimit.User, withRecord((*api).number, (*api).changeTime)},
	{http.MethodDelete, "/time-entries/{id}/", authz.ChangeTimeEntries, ratelimit.User, withRecord((*api).number, (*api).deleteTime)},

	// billing.go, billing_evidence.go
	{http.MethodGet, "/billing/entries/", authz.ReadBilling.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listEntries},
	{http.MethodGet, "/billing/entries/{id}/", authz.ReadBilling.Or(authz.ScopeBillingRead), ratelimit.User, withRecord((*api).entry, (*api).readEntry)},
	{http.MethodGet, "/billing/entries/{id}/evidence/", authz.ReadBilling.Or(authz.ScopeBillingRead), ratelimit.User, withRecord((*api).entry, (*api).readEvidence)},
	{http.MethodGet, "/billing/entries/{id}/preflight/", authz.ReadBilling.Or(authz.ScopeBillingRead), ratelimit.User, withRecord((*api).entry, (*api).preflightEntry)},
	{http.MethodGet, "/billing/preflight/", authz.ReadBillingReports.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listPreflight},
	{http.MethodGet, "/billing/self-audit/", authz.ReadBillingReports, ratelimit.User, (*api).readSelfAudit},
	{http.MethodPost, "/billing/entries/manual-create/", authz.CreateBilling, ratelimit.User, (*api).createEntry},
	{http.MethodPost, "/billing/run/", authz.ManageBilling, ratelimit.User, (*api).runBilling},
	{http.MethodGet, "/billing/eligibility/{id}/", authz.ReadEligibility.Or(authz.ScopeBillingRead), ratelimit.User, withPatient((*api).readEligibility)},
	{http.MethodGet, "/billing/explain/{id}/", authz.ReadEligibility.Or(authz.ScopeBillingRead), ratelimit.User, withPatient((*api).explainBilling)},
	{http.MethodGet, "/billing/near-billable/", authz.ReadEligibility.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listNearBillable},

	// claims.go
	{http.MethodPost, "/billing/entries/{id}/review/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readReview)},
	{http.MethodPost, "/billing/entries/{id}/return/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readReturn)},
	{http.MethodPost, "/billing/entries/{id}/submit/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readSubmit)},
	{http.MethodPost, "/billing/entries/{id}/pay/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readPay)},
	{http.MethodPost, "/billing/entries/{id}/deny/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readDeny)},
	{http.MethodPost, "/billing/entries/{id}/resubmit/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readResubmit)},
	{http.MethodPost, "/billing/entries/{id}/appeal/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readAppeal)},
	{http.MethodPost, "/billing/entries/{id}/void/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readVoid)},
	{http.MethodPost, "/billing/entries/{id}/request-void/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readRequestVoid)},
	{http.MethodPost, "/billing/entries/{id}/refund/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readRefund)},
	{http.MethodPost, "/billing/entries/{id}/adjust/", authz.ManageBilling, ratelimit.User, serveTransition((*api).readAdjust)},
	{http.MethodPost, "/billing/entries/{id}/bill-secondary/", authz.ManageBilling, ratelimit.User, withRecord((*api).entry, (*api).billSecondary)},
	{http.MethodPost, "/billing/claims/submit/", authz.ManageBilling, ratelimit.User, (*api).submitClaims},
	{http.MethodGet, "/billing/claims-exports/", authz.ReadBillingReports, ratelimit.User, (*api).exportClaims},

	// fee_schedule.go, payers.go
	{http.MethodGet, "/billing/fee-schedule/", authz.ReadPayerRates.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listFees},
	{http.MethodPost, "/billing/fee-schedule/import/", authz.ManagePayers, ratelimit.User, (*api).importFees},
	{http.MethodGet, "/billing/payers/", authz.ReadPayers.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listPayers},
	{http.MethodPost, "/billing/payers/", authz.ManagePayers, ratelimit.User, (*api).createPayer},
	{http.MethodPatch, "/billing/payers/{id}/", authz.ManagePayers, ratelimit.User, (*api).changePayer},
	{http.MethodGet, "/billing/payer-rates/", authz.ReadPayerRates.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listPayerRates},
	{http.MethodPost, "/billing/payer-rates/", authz.ManagePayers, ratelimit.User, (*api).createPayerRate},
	{http.MethodGet, "/billing/icd10-codes/", authz.ReadCodes.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listICD10},
	{http.MethodGet, "/billing/rules/", authz.ReadPayerRates.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listBillingRules},
	{http.MethodGet, "/billing/cpt-codes/", authz.ReadCodes.Or(authz.ScopeBillingRead), ratelimit.User, (*api).listCPT},

	// billing_reports.go
	{http.MethodGet, "/reports/billing/stats/", authz.ReadBillingReports, ratelimit.User, (*api).readBillingStats},
	{http.MethodGet, "/reports/billing/", authz.ReadBillingReports, ratelimit.User, (*api).readBillingBreakdown},
	{http.MethodGet, "/billing/reports/executive-dashboard/", authz.ReadBillingReports, ratelimit.User, report(reports.ExecutiveDashboard)},
	{http.MethodGet, "/billing/reports/revenue/", authz.ReadBillingReports, ratelimit.User, report(reports.Revenue)},
	{http.MethodGet, "/billing/reports/claims-status/", authz.ReadBillingReports, ratelimit.User, report(reports.ClaimsStatus)},
	{http.MethodGet, "/billing/reports/unbilled/", authz.ReadBillingReports, ratelimit.User, report(reports.Unbilled)},
	{http.MethodGet, "/billing/reports/aging/", authz.ReadBillingReports, ratelimit.User, report(reports.Aging)},
	{http.MethodGet, "/billing/reports/payer-performance/", authz.ReadBillingReports, ratelimit.User, report(reports.PayerPerformance)},
	{http.MethodGet, "/billing/reports/patient-summary/", authz.ReadBillingReports, ratelimit.User, report(reports.PatientSummary)},
	{http.MethodGet, "/billing/reports/cpt-utilization/", authz.ReadBillingReports, ratelimit.User, report(reports.CPTUtilization)},
	{http.MethodGet, "/billing/reports/monthly-trend/", authz.ReadBillingReports, ratelimit.User, report(reports.MonthlyTrend)},
	{http.MethodGet, "/billing/reports/provider-productivity/", authz.ReadBillingReports, ratelimit.User, report(reports.ProviderProductivity)},
	{http.MethodGet, "/billing/reports/tasks-summary/", authz.ReadBillingReports, ratelimit.User, report(reports.TasksSummary)},
	{http.MethodGet, "/billing/reports/quick-stats/", authz.ReadBillingReports, ratelimit.User, report(reports.QuickStats)},
	{http.MethodGet, "/billing/reports/export/", authz.ReadBillingReports, ratelimit.User, (*api).exportReport},

	// audit.go
	{http.MethodGet, "/audit/events/", authz.ReadAudit, ratelimit.User, (*api).listAudit},
	{http.MethodGet, "/audit/events/{id}/", authz.ReadAudit, ratelimit.User, (*api).readAudit},
	{http.MethodGet, "/audit/verify/", authz.ReadAudit, ratelimit.User, (*api).verifyAudit},
	{http.MethodGet, "/patients/{id}/access-log/", authz.ReadAccessLog, ratelimit.User, withAnyPatient((*api).readAccessLog)},

	// dashboard.go
	{http.MethodGet, "/dashboard/stats/", authz.ReadDashboard, ratelimit.User, (*api).readDashboard},
	{http.MethodGet, "/dashboard/activity/", authz.ReadDashboard, ratelimit.User, (*api).readActivity},
	{http.MethodGet, "/dashboard/stats/transmissions/", authz.ReadDashboard, ratelimit.User, (*api).readTransmissionSeries},
	{http.MethodGet, "/dashboard/stats/processing/", authz.ReadDashboard, ratelimit.User, (*api).readProcessingSeries},
	{http.MethodGet, "/dashboard/stats/volume/", authz.ReadDashboard, ratelimit.User, (*api).readVolumeSeries},

	{http.MethodGet, "/schema/", authz.Anyone, ratelimit.User, (*api).schema}, // schema.go
},
	monthEndRows(), batchRows(), remittanceRows(),
	ingestionRows(), vendorRows(), clientRows(),
	webhookRows(), changeRows(), meRows(),
	jobRows(), signOnRows(), boardRows(), visitRows(), enrollmentRows(), noteTemplateRows(),
	holdRows(), emrContextRows(), messageRows(), inboxRows(), caregiverRows(), questionnaireRows(), launchRows(), notificationRows(), settingRows(), chartLinkRows(),
)

// rootTable lists the endpoints outside web.BasePath, with whole paths.
var rootTable = slices.Concat([]route{
	// dashboard.go
	{http.MethodGet, "/health/", authz.Anyone, ratelimit.None, (*api).health},
	{http.MethodGet, "/health/live", authz.Anyone, ratelimit.None, (*api).live},

	// emr.go
	{http.MethodGet, "/.well-known/jwks.json", authz.Anyone, ratelimit.None, (*api).jwks},
}, launchPages(), r4Rows(), exportRows())

// Engines holds the packages and settings that handlers use. Package cmd builds it once.
type Engines struct {
	web.Options
	DefaultsChanged     func() // called after the default thresholds change; it may be nil
	Settings            []config.Setting
	Auth                *auth.Engine
	Clients             *auth.MachineClients
	Push                *notifications.Push
	Webhooks            *webhooks.Engine
	Exports             *fhirserver.BulkExporter
	Directory           *patients.Directory
	ReadingStore        *ingest.ReadingStore
	Writer              *ingest.Writer
	DeliveryWorker      *emr.Worker
	Monitor             *dashboard.Monitor
	Jobs                Jobs
	Dashboard           *dashboard.Board
	IngestPipeline      *ingest.Pipeline
	Billing             *billing.Engine
	Reports             *reports.Engine
	Devices             *devices.Engine
	EMR                 EMR
	GatewaySources      []netip.Prefix     // addresses that may send webhooks; empty allows all
	MaxFuture           time.Duration      // largest clock lead of a measurement time
	ProcessPendingLimit int                // deliveries per call
	FHIRSystems         fhir.Systems       // identifier namespaces of a FHIR Patient
	PortalAdvice        map[string]string  // by language
	PracticeName        string             // the organization that users and devices belong to, in FHIR
	Ladder              escalations.Ladder // defines when the next tier is notified of an escalation that no one takes
	Messages            *messaging.Worker  // nil where no messages are sent
	Letterhead          string             // address and phone of the practice on PDFs
	RestrictToCareTeam  bool               // limits clinicians to the patients of their care teams
	FrameAncestors      []string           // the sites that may show the console in a frame
	DisplayUnits        DisplayUnits       // used where a user has chosen none
	JWKS                []byte             // public keys of the service's client assertions
	Version             string
}

// api is the receiver of the handlers.
type api struct {
	Engines
	contract     contractIndex
	rejectionLog gateway.RejectionLog
	codes        *icd10.Lookup
	enrolled     *patients.Enrollments
	pages        triagePages
}

// Register serves the tables on the app's router. It ends the chain of OnServe handlers that calls it.
func Register(e *core.ServeEvent, engines Engines) error {
	described, err := documentOf(engines.Version)
	if err != nil {
		return err
	}
	engines.PublicURL = strings.TrimSuffix(engines.PublicURL, "/")
	a := &api{
		Engines: engines, contract: described, codes: &icd10.Lookup{}, pages: newTriagePages(),
		enrolled: &patients.Enrollments{Billing: engines.Billing, Delivers: engines.EMR.delivers},
	}
	server := &web.Server{Options: engines.Options, Produces: a.produces, Parameters: a.contract.parameters, OnError: a.countRejectedRequest, RenderFault: a.fhirFault, AuthorizePatient: a.authorizePatient}
	return server.Mount(e, append(a.bind(web.BasePath, table), a.bind("", rootTable)...), mountDocs)
}

// bind converts the rows of a table to routes.
func (a *api) bind(prefix string, table []route) []web.Route {
	bound := make([]web.Route, len(table))
	for i, row := range table {
		action, scope := row.permission.Requires()
		bound[i] = web.Route{
			Method: row.method, Path: prefix + row.path, Permission: action, Scope: scope, Limit: row.limit, MaxBody: largeBodies[row.path], Repeatable: isRepeatable(row.path),
			ReadOnly: strings.HasSuffix(row.path, "/_search"), Handle: func(c *web.Call) error { return row.handle(a, c) },
		}
	}
	return bound
}
