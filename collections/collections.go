// Package collections stores and finds every record: collection names, typed records, queries, and the two field types that Vigil adds to
// PocketBase (encrypted text and optional numbers). There is one file per collection, and raw SQL is only here; a few measured hot paths stay
// with their engine (internal/vigiltest/columns_test.go). The package applies no clinical or billing rule and imports nothing of Vigil but
// internal/phi.
package collections

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Collection names.
const (
	Alerts                  = "alerts"
	Announcements           = "announcements"
	AuditLog                = "audit_log"
	BackupCodes             = "backup_codes"
	Backups                 = "backups"
	BillingEntries          = "billing_entries"
	CareTeamMembers         = "care_team_members"
	Caregivers              = "caregivers"
	ClaimBatches            = "claim_batches"
	ClaimLines              = "claim_lines"
	ClaimResponses          = "claim_responses"
	Remittances             = "remittances"
	Clients                 = "clients"
	Consents                = "consents"
	DeviceAssignments       = "device_assignments"
	DeviceOrders            = "device_orders"
	Devices                 = "devices"
	EMRAuthStates           = "emr_auth_states"
	EMRCapabilities         = "emr_capabilities"
	EMRContexts             = "emr_contexts"
	EMRProposals            = "emr_proposals"
	EMRTokens               = "emr_tokens"
	Epochs                  = "epochs"
	EventPositions          = "event_positions"
	EscalationEvents        = "escalation_events"
	Escalations             = "escalations"
	Exports                 = "exports"
	FeeSchedule             = "fee_schedule"
	GatewayEvents           = "gateway_events"
	HealthSamples           = "health_samples"
	Hubs                    = "hubs"
	ICD10Codes              = "icd10_codes"
	IdempotencyKeys         = "idempotency_keys"
	Identities              = "identities"
	JobRuns                 = "job_runs"
	LoginFailures           = "login_failures"
	Mails                   = "mails"
	Messages                = "messages"
	NoteTemplates           = "note_templates"
	NotificationPreferences = "notification_preferences"
	Notifications           = "notifications"
	Observations            = "observations"
	OnCallRota              = "on_call_rota"
	Passkeys                = "passkeys"
	Patients                = "patients"
	Orders                  = "orders"
	PayerRates              = "payer_rates"
	Payers                  = "payers"
	Payments                = "payments"
	PushDeliveries          = "push_deliveries"
	PushTokens              = "push_tokens"
	RefreshTokens           = "refresh_tokens"
	ResetTokens             = "reset_tokens"
	SignInSteps             = "sign_in_steps"
	Snoozes                 = "snoozes"
	ThresholdChanges        = "threshold_changes"
	ThresholdTemplates      = "threshold_templates"
	Thresholds              = "thresholds"
	TimeEntries             = "time_entries"
	TransmissionAttempts    = "transmission_attempts"
	Transmissions           = "transmissions"
	TriageScores            = "triage_scores"
	UsedChallenges          = "used_challenges"
	Users                   = "users"
	WebhookDeliveries       = "webhook_deliveries"
	Webhooks                = "webhooks"

	QuestionnaireAssignments = "questionnaire_assignments"
	QuestionnaireResponses   = "questionnaire_responses"
)

// UUIDs lists the collections with UUIDs as record ids. New ids are version 7, so id order is time order.
var UUIDs = []string{Patients, Observations, BillingEntries, GatewayEvents, Payments, ClaimBatches, ClaimLines, ClaimResponses, Remittances, Clients, Webhooks, WebhookDeliveries, Exports, Messages, QuestionnaireResponses}

// Numbered lists the collections with integer ids in the API. The record id is the number, zero-padded to 15 digits.
var Numbered = []string{
	Users, Alerts, Escalations, ThresholdChanges, Consents, Payers, TimeEntries, PushTokens, Notifications, PushDeliveries, AuditLog, Snoozes, Passkeys,
	EscalationEvents, ThresholdTemplates, Orders, NoteTemplates, EMRProposals, Caregivers, QuestionnaireAssignments,
}

// Columns that most collections have.
const (
	ColumnPatient   = "patient"
	ColumnCreatedAt = "created_at"
	ColumnUpdatedAt = "updated_at"
)

// PatientOf returns the id of the patient that a record is about, or "".
func PatientOf(record *core.Record) string { return record.GetString(ColumnPatient) }

// StampCreated sets the creation time of a record that has none.
func StampCreated(record *core.Record, now time.Time) {
	fields := record.Collection().Fields
	if fields.GetByName(ColumnCreatedAt) == nil || record.GetString(ColumnCreatedAt) != "" {
		return
	}
	record.Set(ColumnCreatedAt, FormatInstant(now))
	if fields.GetByName(ColumnUpdatedAt) != nil {
		record.Set(ColumnUpdatedAt, FormatInstant(now))
	}
}

// NumberID formats an integer id as a record id that sorts in numeric order.
func NumberID(n int64) string { return fmt.Sprintf("%015d", n) }

// Number parses a numbered record id. It returns 0 for any other id.
func Number(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || len(id) != 15 {
		return 0
	}
	return n
}

// NewUUID returns a version 7 UUID, which sorts by creation time.
func NewUUID() string { return uuid.Must(uuid.NewV7()).String() }

// NextValue increments a sequence in the transaction of app and returns the new value. The first value is 1.
func NextValue(app core.App, sequence string) (int64, error) {
	value, err := WriteReturning(app, `INSERT INTO sequences (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value`, sequence)
	return value, wrap(err, "next number of %s", sequence)
}

// LastValue returns the last value taken from a sequence, or 0. A caller that counts on in memory must store the result with SetLastValue in
// the same transaction.
func LastValue(tx core.App, sequence string) (last int64, err error) {
	err = tx.NonconcurrentDB().NewQuery(`SELECT value FROM sequences WHERE name = {:name}`).Bind(dbx.Params{"name": sequence}).Row(&last)
	return last, wrap(IgnoreNotFound(err), "last number of %s", sequence)
}

// SetLastValue stores the last value taken from a sequence.
func SetLastValue(tx core.App, sequence string, last int64) error {
	return exec(tx, "note the last number of "+sequence, `INSERT INTO sequences (name, value) VALUES ({:name}, {:value})
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, dbx.Params{"name": sequence, "value": last})
}

// NextID takes the next record id of a numbered collection.
func NextID(app core.App, collection string) (string, error) {
	n, err := NextValue(app, collection)
	if err != nil {
		return "", err
	}
	return NumberID(n), nil
}

// IsIssued reports whether NextID has returned an id for a numbered collection.
func IsIssued(app core.App, collection, id string) (bool, error) {
	var last int64
	err := app.DB().NewQuery(`SELECT value FROM sequences WHERE name = {:name}`).Bind(dbx.Params{"name": collection}).Row(&last)
	if err != nil && !IsNotFound(err) {
		return false, fmt.Errorf("last number of %s: %w", collection, err)
	}
	n := Number(id)
	return 0 < n && n <= last, nil
}

// instantLayout always has six digits, so text order is time order.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// digitPairOffsets are the offsets of the two-digit groups in instantLayout.
var digitPairOffsets = [...]int{0, 2, 5, 8, 11, 14, 17, 20, 22, 24}

// FormatInstant formats a time as stored, or "" for the zero time. It does not use time.Format: each reading stores a dozen times, and Format parses
// its layout on every call.
func FormatInstant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	at = at.UTC()
	year, month, day := at.Date()
	if year < 0 || year > 9999 {
		return at.Format(instantLayout)
	}
	hour, minute, second := at.Clock()
	micros := at.Nanosecond() / 1000
	text := []byte(instantLayout)
	for i, two := range [...]int{year / 100, year % 100, int(month), day, hour, minute, second, micros / 10_000, micros / 100 % 100, micros % 100} {
		const digits = "0123456789"
		place := digitPairOffsets[i]
		text[place], text[place+1] = digits[two/10], digits[two%10]
	}
	return string(text)
}

// ParseInstant parses a stored time. It returns the zero time for empty or damaged text.
func ParseInstant(text string) time.Time {
	at, err := time.Parse(instantLayout, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// IsNotFound reports whether err means that no row was found.
func IsNotFound(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// NewRecord returns an unsaved record of a collection.
func NewRecord(app core.App, collection string) (*core.Record, error) {
	c, err := app.FindCachedCollectionByNameOrId(collection)
	if err != nil {
		return nil, wrap(err, "collection %s", collection)
	}
	return core.NewRecord(c), nil
}
