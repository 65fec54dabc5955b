// Package collections is the floor: the name of every collection, typed records and finders over PocketBase, and
// the two field types of our own (encrypted text and numbers that may be absent). It knows columns and queries;
// it knows no rule. It imports nothing of ours but the sealing.
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

// Every collection, once.
const (
	Alerts                  = "alerts"
	Announcements           = "announcements"
	AuditLog                = "audit_log"
	BackupCodes             = "backup_codes"
	Backups                 = "backups"
	BillingEntries          = "billing_entries"
	CareTeamMembers         = "care_team_members"
	ClaimBatches            = "claim_batches"
	ClaimLines              = "claim_lines"
	ClaimResponses          = "claim_responses"
	Clients                 = "clients"
	Consents                = "consents"
	DeviceAssignments       = "device_assignments"
	DeviceOrders            = "device_orders"
	Devices                 = "devices"
	EMRAuthStates           = "emr_auth_states"
	EMRTokens               = "emr_tokens"
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
)

// UUIDs are the collections whose record ids are UUIDs; new ones are made as version 7, so that id order is time order.
var UUIDs = []string{Patients, Observations, BillingEntries, GatewayEvents, Payments, ClaimBatches, ClaimLines, ClaimResponses, Clients, Webhooks, WebhookDeliveries, Exports}

// Numbered are the collections whose contract ids are integers. The record id is the number, zero-padded.
var Numbered = []string{
	Users, Alerts, Escalations, ThresholdChanges, Consents, Payers, TimeEntries, PushTokens, Notifications, PushDeliveries, AuditLog, Snoozes, Passkeys,
	EscalationEvents, ThresholdTemplates, Orders, NoteTemplates,
}

// The columns that most collections have.
const (
	ColumnPatient   = "patient"
	ColumnCreatedAt = "created_at"
	ColumnUpdatedAt = "updated_at"
)

// PatientOf is the patient whom a record is about; "" for none.
func PatientOf(record *core.Record) string { return record.GetString(ColumnPatient) }

// StampCreated says when a record was made of which nobody has said it.
func StampCreated(record *core.Record, now time.Time) {
	fields := record.Collection().Fields
	if fields.GetByName(ColumnCreatedAt) == nil || record.GetString(ColumnCreatedAt) != "" {
		return
	}
	record.Set(ColumnCreatedAt, Instant(now))
	if fields.GetByName(ColumnUpdatedAt) != nil {
		record.Set(ColumnUpdatedAt, Instant(now))
	}
}

// NumberID writes an integer id as the record id that sorts like it.
func NumberID(n int64) string { return fmt.Sprintf("%015d", n) }

// Number reads the integer of a numbered record id; 0 when the id is not one.
func Number(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || len(id) != 15 {
		return 0
	}
	return n
}

// NewUUID returns a version 7 UUID, whose order is the order of creation.
func NewUUID() string { return uuid.Must(uuid.NewV7()).String() }

// Next takes the next value of a sequence, starting at 1, inside the transaction of app.
func Next(app core.App, sequence string) (int64, error) {
	value, err := WriteReturning(app, `INSERT INTO sequences (name, value) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value`, sequence)
	return value, wrap(err, "next number of %s", sequence)
}

// LastNumber is the last number given out in a sequence, 0 for none. Whoever counts on from it in memory writes the result with
// SetLastNumber before the transaction ends.
func LastNumber(tx core.App, sequence string) (last int64, err error) {
	err = tx.NonconcurrentDB().NewQuery(`SELECT value FROM sequences WHERE name = {:name}`).Bind(dbx.Params{"name": sequence}).Row(&last)
	return last, wrap(unlessMissing(err), "last number of %s", sequence)
}

// SetLastNumber notes up to which number a sequence was given out.
func SetLastNumber(tx core.App, sequence string, last int64) error {
	return exec(tx, "note the last number of "+sequence, `INSERT INTO sequences (name, value) VALUES ({:name}, {:value})
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`, dbx.Params{"name": sequence, "value": last})
}

// NextID takes the next record id of a numbered collection.
func NextID(app core.App, collection string) (string, error) {
	n, err := Next(app, collection)
	if err != nil {
		return "", err
	}
	return NumberID(n), nil
}

// Taken reports whether an id is one that NextID has given out for a numbered collection.
func Taken(app core.App, collection, id string) (bool, error) {
	var last int64
	err := app.DB().NewQuery(`SELECT value FROM sequences WHERE name = {:name}`).Bind(dbx.Params{"name": collection}).Row(&last)
	if err != nil && !Missing(err) {
		return false, fmt.Errorf("last number of %s: %w", collection, err)
	}
	n := Number(id)
	return 0 < n && n <= last, nil
}

// instantLayout has six digits always, so that text order is time order.
const instantLayout = "2006-01-02T15:04:05.000000Z"

// pairsOfInstant are where two digits begin in it.
var pairsOfInstant = [...]int{0, 2, 5, 8, 11, 14, 17, 20, 22, 24}

// Instant writes a time as it is stored; "" for the zero time. A reading has a dozen written, for which a layout is read each time elsewhere.
func Instant(at time.Time) string {
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
		place := pairsOfInstant[i]
		text[place], text[place+1] = digits[two/10], digits[two%10]
	}
	return string(text)
}

// ParseInstant reads a stored time; the zero time when empty or damaged.
func ParseInstant(text string) time.Time {
	at, err := time.Parse(instantLayout, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Missing reports whether err says that no row was found.
func Missing(err error) bool { return errors.Is(err, sql.ErrNoRows) }

// New returns an unsaved record of the named collection.
func New(app core.App, collection string) (*core.Record, error) {
	c, err := app.FindCachedCollectionByNameOrId(collection)
	if err != nil {
		return nil, wrap(err, "collection %s", collection)
	}
	return core.NewRecord(c), nil
}
