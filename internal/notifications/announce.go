// Package notifications knows how people hear of things: mails with their texts and their outbox, the entries of a person's list in the app, and
// pushes. What happened is stored as an announcement, a notice or a mail in the transaction that made it true. After the commit the dispatcher
// works out who is to hear of an announcement, puts it on their lists, plans a push for each of their devices, and sends those; the mailer
// sends the mails. Both try again when that fails, and both are swept by the clock, so that nothing depends on having been woken.
//
// Neither a mail nor a push holds health information: mailboxes and lock screens are not ours to guard. Nothing is ever sent inside a request or
// a transaction, and nothing is sent to an address that the practice has not allowed.
package notifications

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Kind says what happened; channel, texts, recipients and urgency follow from it.
type Kind string

// What people hear of. Source: docs/decisions/notifications.md, "Recipients".
const (
	AlertRaised         Kind = "alert_raised"         // a threshold alert; critical or warning by severity
	ReadingSuperseded   Kind = "reading_superseded"   // a reading out of range came long after it was measured, and a newer one is there: in the app only
	EscalationWithdrawn Kind = "escalation_withdrawn" // the readings it came of were entered in error: in the app only
	DeviceAlertRaised   Kind = "device_alert_raised"  // battery, hub, stale reading, no reading
	ReadingMissed       Kind = "reading_missed"       // of a day's schedule; the portal user is reminded too
	EscalationOpened    Kind = "escalation_opened"    // assigned or not
	EscalationAssigned  Kind = "escalation_assigned"  // to somebody else than before
	EscalationOverdue   Kind = "escalation_overdue"   // nobody answered in time
	EscalationOnCall    Kind = "escalation_on_call"   // to the one on call
	EscalationUntaken   Kind = "escalation_untaken"   // nobody took it though the clinical managers know
	EscalationIdle      Kind = "escalation_idle"      // work without a note
	EscalationUnnoted   Kind = "escalation_unnoted"   // the same, again or of a stat one
	EventQuarantined    Kind = "event_quarantined"    // a device event waits for a person to place it
	EMRCopyWrong        Kind = "emr_copy_wrong"       // the EMR holds a reading that was entered in error: urgent task for staff
	ClaimDenied         Kind = "claim_denied"         //
	RefundIsDue         Kind = "refund_due"           // what does not hold was paid
	EvidenceChanged     Kind = "evidence_changed"     // what was billed does not hold any more
	BillingRunSkipped   Kind = "billing_run_skipped"  // a run finished and left something out
	AttestationNeeded   Kind = "attestation_needed"   // escalation time waits for a person's word
	FollowUpDue         Kind = "follow_up_due"        // reminder to its owner
	ReviewsPending      Kind = "reviews_pending"      // reminder to a clinician
	BillingTasksPending Kind = "billing_tasks_pending"
	DigestReady         Kind = "digest_ready"
	ServiceTrouble      Kind = "service_trouble"   // system notice to administrators
	DeliveryGivenUp     Kind = "delivery_given_up" // to the EMR; administrators and data monitors
	EMROutage           Kind = "emr_outage"        // it lasts, or is over; administrators and data monitors
	WebhookTrouble      Kind = "webhook_trouble"   // a receiver does not take what it is told; administrators
	MeasureAgain        Kind = "measure_again"     // the patient, soon: an escalation waits for it
)

// Announcement is something that people are to hear of.
type Announcement struct {
	Kind     Kind
	Severity string // critical, warning, info, success
	// PatientID, AlertID, EscalationID, EntryID and UserID are record ids of what it is about; "" for none. UserID is the one person it is
	// for, where there is one.
	PatientID, AlertID, EscalationID, EntryID, UserID string
	// Body is what the list in the app says; it may name people and values, and is stored encrypted.
	Body string
	// Key makes the event one: a second announcement with the same key is left out.
	Key string
	// AtOnce: the push about another alert like it does not speak for this one.
	AtOnce bool
}

// Announce stores the intent to tell people, inside the caller's transaction. Who hears of it, and how, is worked out after the commit.
func Announce(tx core.App, a Announcement, now time.Time) error {
	return announce(tx, a, time.Time{}, now)
}

func announce(tx core.App, a Announcement, told, now time.Time) error {
	_, err := collections.InsertAnnouncement(tx, collections.Announcement{
		Kind: string(a.Kind), Severity: a.Severity, Patient: a.PatientID, Alert: a.AlertID, Escalation: a.EscalationID, Entry: a.EntryID,
		User: a.UserID, Key: a.Key, AtOnce: a.AtOnce,
	}, phi.Text(a.Body), told, now)
	if err == nil {
		wakeAfterCommit(tx)
	}
	return err
}

// wakeKey is where an app keeps the way to wake its dispatcher.
const wakeKey = "vigil.notifications.wake"

// wakeAfterCommit lets the dispatcher look once what was written can be seen.
func wakeAfterCommit(tx core.App) {
	wake, ok := tx.Store().Get(wakeKey).(func())
	if !ok {
		return
	}
	if transaction := tx.TxInfo(); transaction != nil {
		transaction.OnComplete(func(error) error {
			wake()
			return nil
		})
		return
	}
	wake()
}

// Notice is an entry for a person's list. Title and body are encrypted at rest and may name people.
type Notice struct {
	Channel  string // escalations, alerts, reminders, daily_digest
	Type     string
	Severity string // critical, warning, info, success
	Title    string // at most 200 characters
	Body     string
	// DedupeKey keeps one event from being told twice to one person; "" tells it each time.
	DedupeKey string
}

// SystemHealth is the type of notices about the service and its accounts.
const SystemHealth = "system_health"

// Notify puts a notice on a person's list. A notice that the person has already is left out.
func Notify(tx core.App, userRecordID string, n Notice, now time.Time) error {
	if n.DedupeKey != "" {
		if has, err := collections.HasNotification(tx, userRecordID, n.DedupeKey); err != nil || has {
			return err
		}
	}
	err := collections.StoreNotification(tx, collections.NotificationDraft{
		User: userRecordID, Channel: n.Channel, Type: n.Type, Severity: n.Severity, Title: n.Title, Body: phi.Text(n.Body), DedupeKey: n.DedupeKey,
	}, now)
	if err != nil {
		return err
	}
	wakeAfterCommit(tx)
	return nil
}
