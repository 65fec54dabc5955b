// Package routes is the door for requests: it decodes, authorises, calls one function and encodes. Every endpoint
// is one row of the table in this file, and openapi.yaml describes the same rows to callers; the other files are its
// nouns. What all endpoints share is in web, what a role may do in internal/access, and what an endpoint means in the
// engine it calls. The package refuses to know storage.
package routes

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/internal/access"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/billing"
	"github.com/vigilhealth/vigil/internal/billing/reports"
	"github.com/vigilhealth/vigil/internal/clients"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/devices"
	"github.com/vigilhealth/vigil/internal/enrolment"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/gateway"
	"github.com/vigilhealth/vigil/internal/icd10"
	"github.com/vigilhealth/vigil/internal/intake"
	"github.com/vigilhealth/vigil/internal/limits"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/observations"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/transmissions"
	"github.com/vigilhealth/vigil/routes/web"
)

// handler serves one endpoint.
type handler func(a *api, c *web.Call) error

// withBody serves a row whose body is read before anything else.
func withBody[B any](handle func(*api, *web.Call, B) error) handler {
	return func(a *api, c *web.Call) error {
		var body B
		if err := c.Decode(&body); err != nil {
			return err
		}
		return handle(a, c, body)
	}
}

// route is one endpoint. The path is the contract's: below web.BasePath, with its trailing slash.
type route struct {
	method string
	path   string
	who    access.Permission // what is asked of people, and of clients; or one of the two actions that ask for no access token
	limit  limits.Class
	handle handler
}

// table is the contract under basePath.
var table = slices.Concat([]route{
	// auth.go
	{http.MethodPost, "/auth/login/", access.Anyone, limits.SignIn, signIn(withBody((*api).login))},
	{http.MethodPost, "/auth/token/refresh/", access.Anyone, limits.Refresh, withBody((*api).refresh)},
	{http.MethodPost, "/auth/password-reset/", access.Anyone, limits.Auth, withBody((*api).requestPasswordReset)},
	{http.MethodPost, "/auth/password-reset/confirm/", access.Anyone, limits.Auth, withBody((*api).confirmPasswordReset)},
	{http.MethodPost, "/auth/password/change/", access.UseOwnAccount, limits.Auth, withBody((*api).changePassword)},
	{http.MethodPost, "/auth/logout/", access.SignOut, limits.User, withBody((*api).logout)},
	{http.MethodPost, "/auth/logout-all/", access.UseOwnAccount, limits.User, (*api).logoutAll},
	{http.MethodGet, "/auth/profile/", access.UseOwnAccount, limits.User, (*api).profile},
	{http.MethodGet, "/auth/roles/", access.ReadRoles, limits.User, (*api).roles},

	// auth.go: the second factor
	{http.MethodPost, "/auth/2fa/setup/", access.UseOwnAccount, limits.Auth, (*api).setUpTwoFactor},
	{http.MethodPost, "/auth/2fa/verify/", access.UseOwnAccount, limits.Auth, withBody((*api).verifyTwoFactor)},
	{http.MethodGet, "/auth/2fa/qr-code/", access.UseOwnAccount, limits.Auth, (*api).drawQRCode},
	{http.MethodPost, "/auth/2fa/disable/", access.UseOwnAccount, limits.Auth, withBody((*api).disableTwoFactor)},
	{http.MethodPost, "/auth/2fa/backup-codes/", access.UseOwnAccount, limits.Auth, withBody((*api).replaceBackupCodes)},

	// auth.go: passkeys
	{http.MethodGet, "/auth/passkeys/", access.UsePasskeys, limits.User, (*api).listPasskeys},
	{http.MethodPost, "/auth/passkeys/", access.UsePasskeys, limits.Auth, withBody((*api).registerPasskey)},
	{http.MethodPost, "/auth/passkeys/registration-options/", access.UsePasskeys, limits.Auth, (*api).offerPasskeyRegistration},
	{http.MethodPatch, "/auth/passkeys/{id}/", access.UsePasskeys, limits.User, numbered((*api).renamePasskey)},
	{http.MethodDelete, "/auth/passkeys/{id}/", access.UsePasskeys, limits.Auth, numbered((*api).removePasskey)},
	{http.MethodPost, "/auth/passkeys/authentication-options/", access.Anyone, limits.SignIn, (*api).offerPasskeySignIn},
	{http.MethodPost, "/auth/passkeys/authenticate/", access.Anyone, limits.SignIn, signIn(withBody((*api).signInWithPasskey))},

	// users.go
	{http.MethodPost, "/auth/register/", access.RegisterUsers, limits.Auth, withBody((*api).register)},
	{http.MethodGet, "/users/", access.ReadUsers, limits.User, (*api).listUsers},
	{http.MethodGet, "/users/me/", access.UseOwnAccount, limits.User, (*api).profile},
	{http.MethodPatch, "/users/me/", access.UseOwnAccount, limits.User, withBody((*api).updateOwnUser)},
	{http.MethodGet, "/users/{id}/", access.ReadUsers, limits.User, numbered((*api).readUser)},
	{http.MethodPatch, "/users/{id}/", access.ManageUsers, limits.User, numbered((*api).updateUser)},
	{http.MethodPost, "/users/{id}/activate/", access.ManageUsers, limits.User, numbered((*api).activateUser)},
	{http.MethodPost, "/users/{id}/deactivate/", access.ManageUsers, limits.User, numbered((*api).deactivateUser)},
	{http.MethodPost, "/users/{id}/unlock/", access.ManageUsers, limits.User, numbered((*api).unlockUser)},
	{http.MethodPost, "/users/{id}/2fa/reset/", access.ManageUsers, limits.User, numbered((*api).resetUserTwoFactor)},
	{http.MethodPost, "/users/{id}/password-reset/", access.ManageUsers, limits.User, numbered((*api).sendUserReset)},
	{http.MethodPost, "/users/{id}/logout/", access.ManageUsers, limits.User, numbered((*api).signOutUser)},

	// patients.go
	{http.MethodGet, "/patients/", access.ReadPatients.Or(access.ScopePatientsRead), limits.User, (*api).listPatients},
	{http.MethodPost, "/patients/", access.CreatePatients.Or(access.ScopePatientsWrite), limits.User, (*api).createPatient},
	{http.MethodGet, "/patients/{id}/", access.ReadPatients.Or(access.ScopePatientsRead), limits.User, (*api).readPatient},
	{http.MethodPut, "/patients/{id}/", access.UpdatePatients.Or(access.ScopePatientsWrite), limits.User, ofPatient((*api).replacePatient)},
	{http.MethodPatch, "/patients/{id}/", access.UpdatePatients.Or(access.ScopePatientsWrite), limits.User, ofPatient((*api).changePatient)},
	{http.MethodDelete, "/patients/{id}/", access.DeletePatients, limits.User, ofPatient((*api).deletePatient)},
	{http.MethodGet, "/patients/archived/", access.ReadArchivedPatients.Or(access.ScopePatientsRead), limits.User, (*api).listArchivedPatients},
	{http.MethodPost, "/patients/{id}/archive/", access.ArchivePatients, limits.User, ofPatient((*api).archivePatient)},
	{http.MethodPost, "/patients/{id}/unarchive/", access.ArchivePatients, limits.User, ofPatient((*api).unarchivePatient)},
	{http.MethodPost, "/patients/{id}/restore/", access.RestorePatients, limits.User, ofAnyPatient((*api).restorePatient)},

	// emr_import.go, emr.go
	{http.MethodPost, "/patients/import_selected_from_emr/", access.ImportPatients, limits.User, withBody((*api).importFromEMR)},
	{http.MethodPost, "/emr/auth/start/", access.ConnectEMR, limits.User, (*api).startEMRSignIn},
	{http.MethodGet, "/emr/auth/callback/", access.Anyone, limits.Auth, (*api).finishEMRSignIn},
	{http.MethodGet, "/emr/auth/status/", access.ReadEMRConnection, limits.User, (*api).readEMRStatus},
	{http.MethodPost, "/emr/test/jwt/", access.TestEMR, limits.User, (*api).testEMRSignIn},
	{http.MethodPost, "/emr/test/connection/", access.TestEMR, limits.User, (*api).testEMRConnection},
	{http.MethodGet, "/emr/patients/", access.SearchEMRPatients, limits.User, (*api).searchEMRPatients},

	// unlinked.go
	{http.MethodGet, "/emr/unlinked-patients/", access.SearchEMRPatients, limits.User, (*api).listUnlinkedPatients},
	{http.MethodPost, "/emr/unlinked-patients/{id}/link/", access.ImportPatients, limits.User, ofPatient((*api).linkPatient)},

	// vital_config.go
	{http.MethodGet, "/patients/{id}/vital-config/", access.ReadThresholds, limits.User, ofPatient((*api).readThresholds)},
	{http.MethodPut, "/patients/{id}/vital-config/", access.UpdateThresholds, limits.User, ofPatient((*api).updateThresholds)},
	{http.MethodGet, "/settings/default-thresholds/", access.ReadDefaultThresholds, limits.User, (*api).readDefaultThresholds},
	{http.MethodPut, "/settings/default-thresholds/", access.UpdateDefaultThresholds, limits.User, (*api).updateDefaultThresholds},
	{http.MethodPost, "/patients/{id}/vital-config/apply-template/", access.UpdateThresholds, limits.User, ofPatient((*api).applyTemplate)},

	// threshold_templates.go
	{http.MethodGet, "/threshold-templates/", access.ReadTemplates, limits.User, (*api).listTemplates},
	{http.MethodPost, "/threshold-templates/", access.ManageTemplates, limits.User, (*api).createTemplate},
	{http.MethodGet, "/threshold-templates/{id}/", access.ReadTemplates, limits.User, of((*api).number, (*api).readTemplate)},
	{http.MethodPut, "/threshold-templates/{id}/", access.ManageTemplates, limits.User, of((*api).number, (*api).replaceTemplate)},
	{http.MethodDelete, "/threshold-templates/{id}/", access.ManageTemplates, limits.User, of((*api).number, (*api).deleteTemplate)},
	{http.MethodGet, "/threshold-changes/", access.ReadThresholdChanges, limits.User, (*api).listThresholdChanges},

	// vital_summary.go
	{http.MethodGet, "/patients/{id}/vitals/summary/", access.ReadObservations.Or(access.ScopeObservationsRead), limits.User, ofPatient((*api).readVitalSummary)},

	// patients.go: care team and consents
	{http.MethodGet, "/patients/{id}/care-team/", access.ReadCareTeam.Or(access.ScopePatientsRead), limits.User, ofPatient((*api).readCareTeam)},
	{http.MethodPut, "/patients/{id}/care-team/", access.UpdateCareTeam, limits.User, ofPatient((*api).updateCareTeam)},
	{http.MethodGet, "/patients/{id}/consents/", access.ReadConsents.Or(access.ScopePatientsRead), limits.User, ofPatient((*api).listConsents)},
	{http.MethodPost, "/patients/{id}/consents/", access.ManageConsents, limits.User, ofPatient((*api).grantConsent)},
	{http.MethodPost, "/patients/{id}/consents/{consent_id}/revoke/", access.ManageConsents, limits.User, ofPatient((*api).revokeConsent)},

	// orders.go
	{http.MethodGet, "/patients/{id}/orders/", access.ReadOrders.Or(access.ScopePatientsRead), limits.User, ofPatient((*api).listOrders)},
	{http.MethodPost, "/patients/{id}/orders/", access.RecordOrders, limits.User, ofPatient((*api).recordOrder)},

	// ingestion.go; a row for each kind of reading is at the end
	{http.MethodGet, "/ingestion/observations/", access.ReadObservations.Or(access.ScopeObservationsRead), limits.User, (*api).listObservations},
	{http.MethodGet, "/ingestion/observations/{id}/", access.ReadObservations.Or(access.ScopeObservationsRead), limits.User, of((*api).observation, (*api).readObservation)},

	// ingestion.go, gateway.go
	{http.MethodPost, "/ingestion/observations/{id}/entered-in-error/", access.CorrectObservations, limits.User, of((*api).observation, (*api).withdraw)},
	{http.MethodPost, "/ingestion/observations/{id}/confirm/", access.CorrectObservations, limits.User, of((*api).observation, (*api).confirm)},
	{http.MethodGet, "/ingestion/status/", access.ReadIngestionStatus, limits.User, (*api).ingestionStatus},
	{http.MethodGet, "/ingestion/quarantine/", access.ReadQuarantine, limits.User, (*api).listQuarantine},
	{http.MethodPost, "/ingestion/quarantine/{id}/release/", access.ManageQuarantine, limits.User, of(byUUID(intake.Find), (*api).releaseEvent)},
	{http.MethodPost, "/ingestion/quarantine/{id}/confirm/", access.ConfirmImplausible, limits.User, of(byUUID(intake.Find), (*api).confirmEvent)},
	{http.MethodPost, "/ingestion/quarantine/{id}/discard/", access.DiscardEvents, limits.User, of(byUUID(intake.Find), (*api).discardEvent)},

	// gateway.go; a row for each vendor is at the end
	{http.MethodPost, "/gateway/webhook/", access.SignedByGateway, limits.Webhook, (*api).receiveEvent},

	// devices.go
	{http.MethodPost, "/devices/assign/", access.AssignDevices, limits.User, (*api).assignDevice},
	{http.MethodGet, "/devices/", access.ReadDevices, limits.User, (*api).listDevices},
	{http.MethodPost, "/devices/", access.AssignDevices, limits.User, (*api).registerDevice},
	{http.MethodGet, "/devices/{device_id}/", access.ReadDevices, limits.User, of((*api).device, (*api).readDevice)},
	{http.MethodPost, "/devices/{device_id}/unassign/", access.AssignDevices, limits.User, of((*api).device, (*api).unassignDevice)},
	{http.MethodPost, "/devices/{device_id}/replace/", access.AssignDevices, limits.User, of((*api).device, (*api).replaceDevice)},
	{http.MethodPost, "/devices/{device_id}/setup-complete/", access.AssignDevices, limits.User, of((*api).device, (*api).completeDeviceSetUp)},
	{http.MethodGet, "/devices/alerts/", access.ReadHubs, limits.User, (*api).listDeviceAlerts},
	{http.MethodGet, "/hubs/", access.ReadHubs, limits.User, (*api).listHubs},

	// triage.go, alerts.go
	{http.MethodGet, "/triage/patients/", access.ReadTriage, limits.User, (*api).listTriage},
	{http.MethodGet, "/triage/patients/stats/", access.ReadTriage, limits.User, (*api).readTriageStats},
	{http.MethodPost, "/triage/patients/{id}/review/", access.ReviewTriage, limits.User, ofPatient((*api).reviewPatient)},
	{http.MethodGet, "/alerts/", access.ReadAlerts.Or(access.ScopeAlertsRead), limits.User, (*api).listAlerts},
	{http.MethodGet, "/alerts/{id}/", access.ReadAlerts.Or(access.ScopeAlertsRead), limits.User, of((*api).alert, (*api).readAlert)},
	{http.MethodPost, "/alerts/{id}/acknowledge/", access.AcknowledgeAlerts, limits.User, of((*api).alert, (*api).acknowledgeAlert)},
	{http.MethodPost, "/alerts/{id}/resolve/", access.ResolveAlerts, limits.User, actOnAlert(alerts.Resolve)},
	{http.MethodPost, "/alerts/{id}/notes/", access.AnnotateAlerts, limits.User, actOnAlert(alerts.Annotate)},
	{http.MethodPost, "/alerts/{id}/escalate/", access.AnnotateAlerts, limits.User, of((*api).alert, (*api).escalateAlert)},

	// escalations.go
	{http.MethodGet, "/escalations/", access.ReadEscalations.Or(access.ScopeAlertsRead), limits.User, (*api).listEscalations},
	{http.MethodPost, "/escalations/", access.CreateEscalations, limits.User, (*api).createEscalation},
	{http.MethodGet, "/escalations/{id}/", access.ReadEscalations.Or(access.ScopeAlertsRead), limits.User, of((*api).escalation, (*api).readEscalation)},
	{http.MethodPatch, "/escalations/{id}/", access.UpdateEscalations, limits.User, of((*api).escalation, (*api).updateEscalation)},

	// alerts.go, vital_config.go
	{http.MethodGet, "/patients/{id}/snoozes/", access.ReadAlerts.Or(access.ScopeAlertsRead), limits.User, ofPatient((*api).listSnoozes)},
	{http.MethodPost, "/patients/{id}/snoozes/", access.SnoozeAlerts, limits.User, ofPatient((*api).startSnooze)},
	{http.MethodPost, "/patients/{id}/snoozes/{snooze_id}/end/", access.SnoozeAlerts, limits.User, ofPatient((*api).endSnooze)},
	{http.MethodPost, "/triage/simulate-thresholds/", access.SimulateThresholds, limits.User, (*api).simulateThresholds},

	// fhir.go, transmissions.go
	{http.MethodGet, "/fhir/patients/{id}/", access.ReadFHIRPatients.Or(access.ScopePatientsRead), limits.User, ofPatient((*api).readFHIRPatient)},
	{http.MethodGet, "/fhir/observations/{id}/", access.ReadObservations.Or(access.ScopeObservationsRead), limits.User, of((*api).observation, (*api).readFHIRObservation)},
	{http.MethodPost, "/fhir/observations/{id}/transform/", access.TransmitObservations, limits.User, of((*api).observation, (*api).transformObservation)},
	{http.MethodPost, "/fhir/observations/{id}/transmit/", access.TransmitObservations, limits.User, of((*api).observation, (*api).transmitObservation)},
	{http.MethodGet, "/fhir/status/", access.ReadTransmissions, limits.User, (*api).fhirStatus},
	{http.MethodGet, "/fhir/transmissions/{id}/", access.ReadTransmissions, limits.User, (*api).readTransmission},
	{http.MethodPost, "/fhir/transmissions/{id}/acknowledge/", access.TransmitObservations, limits.User, (*api).acknowledgeCorrection},
	{http.MethodGet, "/fhir/transmissions/", access.ReadTransmissions, limits.User, (*api).listTransmissions},
	{http.MethodPost, "/fhir/transmissions/retry/", access.RequeueTransmissions, limits.User, withBody((*api).requeueTransmissions)},
	{http.MethodPost, "/fhir/process-pending/", access.ProcessPending, limits.User, (*api).processPending},

	// notifications.go
	{http.MethodGet, "/notifications/", access.UseOwnAccount, limits.User, (*api).listNotifications},
	{http.MethodGet, "/notifications/{id}/", access.UseOwnAccount, limits.User, of((*api).notification, (*api).readNotification)},
	{http.MethodPost, "/notifications/{id}/read/", access.UseOwnAccount, limits.User, of((*api).notification, (*api).markRead)},
	{http.MethodPost, "/notifications/read-all/", access.UseOwnAccount, limits.User, (*api).markAllRead},
	{http.MethodGet, "/notifications/deliveries/", access.ReadDeliveries, limits.User, (*api).listDeliveries},
	{http.MethodGet, "/users/me/notification-preferences/", access.UseOwnAccount, limits.User, (*api).readPreferences},
	{http.MethodPatch, "/users/me/notification-preferences/", access.UseOwnAccount, limits.User, withBody((*api).updatePreferences)},
	{http.MethodPost, "/notifications/tokens/register/", access.UseOwnAccount, limits.User, withBody((*api).registerToken)},
	{http.MethodGet, "/notifications/tokens/", access.UseOwnAccount, limits.User, (*api).listTokens},
	{http.MethodDelete, "/notifications/tokens/{id}/", access.UseOwnAccount, limits.User, of((*api).number, (*api).deleteToken)},
	{http.MethodGet, "/notifications/vapid-public-key/", access.Anyone, limits.User, (*api).readPublicKey},

	// time_entries.go
	{http.MethodGet, "/time-entries/", access.ReadTimeEntries, limits.User, (*api).listTime},
	{http.MethodGet, "/time-entries/summary/", access.ReadTimeEntries, limits.User, (*api).summariseTime},
	{http.MethodPost, "/time-entries/", access.CreateTimeEntries, limits.User, (*api).logTime},
	{http.MethodPost, "/time-entries/start/", access.CreateTimeEntries, limits.User, (*api).startTimer},
	{http.MethodPost, "/time-entries/{id}/stop/", access.CreateTimeEntries, limits.User, of((*api).number, (*api).stopTimer)},
	{http.MethodPost, "/time-entries/{id}/attest/", access.AttestTimeEntries, limits.User, of((*api).number, (*api).attestTime)},
	{http.MethodPatch, "/time-entries/{id}/", access.ChangeTimeEntries, limits.User, of((*api).number, (*api).changeTime)},
	{http.MethodDelete, "/time-entries/{id}/", access.ChangeTimeEntries, limits.User, of((*api).number, (*api).deleteTime)},

	// billing.go, billing_evidence.go
	{http.MethodGet, "/billing/entries/", access.ReadBilling.Or(access.ScopeBillingRead), limits.User, (*api).listEntries},
	{http.MethodGet, "/billing/entries/{id}/", access.ReadBilling.Or(access.ScopeBillingRead), limits.User, of((*api).entry, (*api).readEntry)},
	{http.MethodGet, "/billing/entries/{id}/evidence/", access.ReadBilling.Or(access.ScopeBillingRead), limits.User, of((*api).entry, (*api).readEvidence)},
	{http.MethodGet, "/billing/entries/{id}/preflight/", access.ReadBilling.Or(access.ScopeBillingRead), limits.User, of((*api).entry, (*api).preflightEntry)},
	{http.MethodGet, "/billing/preflight/", access.ReadBillingReports.Or(access.ScopeBillingRead), limits.User, (*api).listPreflight},
	{http.MethodGet, "/billing/self-audit/", access.ReadBillingReports, limits.User, (*api).auditSelf},
	{http.MethodPost, "/billing/entries/manual-create/", access.CreateBilling, limits.User, (*api).createEntry},
	{http.MethodPost, "/billing/run/", access.ManageBilling, limits.User, (*api).runBilling},
	{http.MethodGet, "/billing/eligibility/{id}/", access.ReadEligibility.Or(access.ScopeBillingRead), limits.User, ofPatient((*api).readEligibility)},
	{http.MethodGet, "/billing/explain/{id}/", access.ReadEligibility.Or(access.ScopeBillingRead), limits.User, ofPatient((*api).explainBilling)},
	{http.MethodGet, "/billing/near-billable/", access.ReadEligibility.Or(access.ScopeBillingRead), limits.User, (*api).listNearBillable},

	// month_end.go
	{http.MethodGet, "/billing/month-end/", access.ReadBillingReports, limits.User, (*api).readMonthEnd},
	{http.MethodGet, "/billing/funnel/", access.ReadBillingReports, limits.User, (*api).readFunnel},
	{http.MethodPost, "/billing/entries/review/", access.ManageBilling, limits.User, (*api).reviewMany},
	{http.MethodGet, "/billing/calendar/{id}/", access.ReadEligibility.Or(access.ScopeBillingRead), limits.User, ofPatient((*api).readCalendar)},

	// claims.go
	{http.MethodPost, "/billing/entries/{id}/review/", access.ManageBilling, limits.User, move((*api).readReview)},
	{http.MethodPost, "/billing/entries/{id}/return/", access.ManageBilling, limits.User, move((*api).readReturn)},
	{http.MethodPost, "/billing/entries/{id}/submit/", access.ManageBilling, limits.User, move((*api).readSubmit)},
	{http.MethodPost, "/billing/entries/{id}/pay/", access.ManageBilling, limits.User, move((*api).readPay)},
	{http.MethodPost, "/billing/entries/{id}/deny/", access.ManageBilling, limits.User, move((*api).readDeny)},
	{http.MethodPost, "/billing/entries/{id}/resubmit/", access.ManageBilling, limits.User, move((*api).readResubmit)},
	{http.MethodPost, "/billing/entries/{id}/appeal/", access.ManageBilling, limits.User, move((*api).readAppeal)},
	{http.MethodPost, "/billing/entries/{id}/void/", access.ManageBilling, limits.User, move((*api).readVoid)},
	{http.MethodPost, "/billing/entries/{id}/request-void/", access.ManageBilling, limits.User, move((*api).readRequestVoid)},
	{http.MethodPost, "/billing/entries/{id}/refund/", access.ManageBilling, limits.User, move((*api).readRefund)},
	{http.MethodPost, "/billing/entries/{id}/adjust/", access.ManageBilling, limits.User, move((*api).readAdjust)},
	{http.MethodPost, "/billing/claims/submit/", access.ManageBilling, limits.User, (*api).submitClaims},
	{http.MethodGet, "/billing/claims-exports/", access.ReadBillingReports, limits.User, (*api).exportClaims},

	// fee_schedule.go, payers.go
	{http.MethodGet, "/billing/fee-schedule/", access.ReadPayerRates.Or(access.ScopeBillingRead), limits.User, (*api).listFees},
	{http.MethodPost, "/billing/fee-schedule/import/", access.ManagePayers, limits.User, (*api).importFees},
	{http.MethodGet, "/billing/payers/", access.ReadPayers.Or(access.ScopeBillingRead), limits.User, (*api).listPayers},
	{http.MethodPost, "/billing/payers/", access.ManagePayers, limits.User, (*api).createPayer},
	{http.MethodPatch, "/billing/payers/{id}/", access.ManagePayers, limits.User, (*api).changePayer},
	{http.MethodGet, "/billing/payer-rates/", access.ReadPayerRates.Or(access.ScopeBillingRead), limits.User, (*api).listPayerRates},
	{http.MethodPost, "/billing/payer-rates/", access.ManagePayers, limits.User, (*api).createPayerRate},
	{http.MethodGet, "/billing/icd10-codes/", access.ReadCodes.Or(access.ScopeBillingRead), limits.User, (*api).listICD10},
	{http.MethodGet, "/billing/cpt-codes/", access.ReadCodes.Or(access.ScopeBillingRead), limits.User, (*api).listCPT},

	// billing_reports.go
	{http.MethodGet, "/reports/billing/stats/", access.ReadBillingReports, limits.User, (*api).readBillingStats},
	{http.MethodGet, "/reports/billing/", access.ReadBillingReports, limits.User, (*api).readBillingBreakdown},
	{http.MethodGet, "/billing/reports/executive-dashboard/", access.ReadBillingReports, limits.User, report(reports.ExecutiveDashboard)},
	{http.MethodGet, "/billing/reports/revenue/", access.ReadBillingReports, limits.User, report(reports.Revenue)},
	{http.MethodGet, "/billing/reports/claims-status/", access.ReadBillingReports, limits.User, report(reports.ClaimsStatus)},
	{http.MethodGet, "/billing/reports/unbilled/", access.ReadBillingReports, limits.User, report(reports.Unbilled)},
	{http.MethodGet, "/billing/reports/aging/", access.ReadBillingReports, limits.User, report(reports.Aging)},
	{http.MethodGet, "/billing/reports/payer-performance/", access.ReadBillingReports, limits.User, report(reports.PayerPerformance)},
	{http.MethodGet, "/billing/reports/patient-summary/", access.ReadBillingReports, limits.User, report(reports.PatientSummary)},
	{http.MethodGet, "/billing/reports/cpt-utilization/", access.ReadBillingReports, limits.User, report(reports.CPTUtilization)},
	{http.MethodGet, "/billing/reports/monthly-trend/", access.ReadBillingReports, limits.User, report(reports.MonthlyTrend)},
	{http.MethodGet, "/billing/reports/provider-productivity/", access.ReadBillingReports, limits.User, report(reports.ProviderProductivity)},
	{http.MethodGet, "/billing/reports/tasks-summary/", access.ReadBillingReports, limits.User, report(reports.TasksSummary)},
	{http.MethodGet, "/billing/reports/quick-stats/", access.ReadBillingReports, limits.User, report(reports.QuickStats)},
	{http.MethodGet, "/billing/reports/export/", access.ReadBillingReports, limits.User, (*api).exportReport},

	// audit.go
	{http.MethodGet, "/audit/events/", access.ReadAudit, limits.User, (*api).listAudit},
	{http.MethodGet, "/audit/events/{id}/", access.ReadAudit, limits.User, (*api).readAudit},
	{http.MethodGet, "/audit/verify/", access.ReadAudit, limits.User, (*api).verifyAudit},
	{http.MethodGet, "/patients/{id}/access-log/", access.ReadAccessLog, limits.User, ofAnyPatient((*api).readAccessLog)},

	// dashboard.go
	{http.MethodGet, "/dashboard/stats/", access.ReadDashboard, limits.User, (*api).readDashboard},
	{http.MethodGet, "/dashboard/activity/", access.ReadDashboard, limits.User, (*api).readActivity},
	{http.MethodGet, "/dashboard/stats/transmissions/", access.ReadDashboard, limits.User, (*api).readTransmissionSeries},
	{http.MethodGet, "/dashboard/stats/processing/", access.ReadDashboard, limits.User, (*api).readProcessingSeries},
	{http.MethodGet, "/dashboard/stats/volume/", access.ReadDashboard, limits.User, (*api).readVolumeSeries},

	// schema.go
	{http.MethodGet, "/schema/", access.Anyone, limits.User, (*api).schema},
}, batchRows(), ingestionRows(), vendorRows(), clientRows(), webhookRows(), changeRows(), meRows(), jobRows(), signOnRows(), boardRows(), visitRows(), enrolmentRows(), noteTemplateRows())

// rootTable holds what answers outside web.BasePath; its paths are whole.
var rootTable = slices.Concat([]route{
	// dashboard.go
	{http.MethodGet, "/health/", access.Anyone, limits.None, (*api).health},
	{http.MethodGet, "/health/live", access.Anyone, limits.None, (*api).live},

	// emr.go
	{http.MethodGet, "/.well-known/jwks.json", access.Anyone, limits.None, (*api).jwks},
}, r4Rows(), exportRows())

// Engines is everything the handlers call, built once in cmd, and the settings they answer by.
type Engines struct {
	web.Options
	Outgoing
	// DefaultsChanged is told that other default thresholds hold from now on; it may be nil.
	DefaultsChanged     func()
	Auth                *auth.Engine
	Clients             *clients.Engine
	Push                *notifications.Push
	Directory           *patients.Directory
	Readings            *observations.Engine
	Writer              *observations.Writer
	Transmissions       *transmissions.Worker
	Monitor             *dashboard.Monitor
	Jobs                Jobs
	Dashboard           *dashboard.Board
	Intake              *intake.Engine
	Billing             *billing.Engine
	Reports             *reports.Engine
	Devices             *devices.Engine
	EMR                 EMR
	GatewaySources      []netip.Prefix // where webhooks may come from; empty is anywhere
	MaxFuture           time.Duration  // how far ahead a measurement time may be
	ProcessPendingLimit int            // deliveries of one call
	FHIRSystems         fhir.Systems   // namespaces of a FHIR Patient's identifiers
	PracticeName        string         // on whose behalf people and devices act, as FHIR says it
	Boards
	Letterhead         string // where the practice is and how to call it, for papers
	RestrictToCareTeam bool   // clinicians reach the patients of their care teams only
	JWKS               []byte // public keys of our client assertions
	Version            string
}

// api is what handlers are methods of.
type api struct {
	Engines
	contract document
	refusals gateway.Refusals
	codes    *icd10.Desk
	enrolled *enrolment.Engine
	pages    triagePages
}

// Register serves the tables on the app's router, and ends the chain of OnServe handlers it is called in.
func Register(e *core.ServeEvent, engines Engines) error {
	described, err := documentOf(engines.Version)
	if err != nil {
		return err
	}
	engines.PublicURL = strings.TrimSuffix(engines.PublicURL, "/")
	a := &api{
		Engines: engines, contract: described, codes: &icd10.Desk{}, pages: newTriagePages(),
		enrolled: &enrolment.Engine{Billing: engines.Billing, Delivers: engines.EMR.delivers},
	}
	door := &web.Door{Options: engines.Options, Produces: a.produces, Refused: a.noteRejected, OtherForm: a.fhirFault, Reach: a.reach}
	return door.Open(e, append(a.bind(web.BasePath, table), a.bind("", rootTable)...), mountDocs)
}

// bind makes the rows of a table routes of the door.
func (a *api) bind(prefix string, table []route) []web.Route {
	bound := make([]web.Route, len(table))
	for i, row := range table {
		action, scope := row.who.Asked()
		bound[i] = web.Route{
			Method: row.method, Path: prefix + row.path, Who: action, Scope: scope, Limit: row.limit, MaxBody: largeBodies[row.path], Repeatable: repeatable(row.path),
			Asks: strings.HasSuffix(row.path, "/_search"), Handle: func(c *web.Call) error { return row.handle(a, c) },
		}
	}
	return bound
}
