// Package notifications informs users by mail, by entries in their in-app list, and by push. An event is stored as an announcement, a notice or a
// mail in the transaction that causes it. After the commit the dispatcher selects the recipients of an announcement, stores their list entries,
// plans a push for each of their devices, and sends it; the mailer sends mails. Both retry, and both sweep periodically in case a wake-up was lost.
//
// Neither a mail nor a push holds PHI, because mailboxes and lock screens are outside the practice's control. Nothing is sent inside a request or a
// transaction, and nothing is sent to an address that the practice has not allowed.
package notifications

import (
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
)

// Kind identifies what happened; it determines channel, texts, recipients and urgency.
type Kind string

// The kinds of announcements. Source: docs/decisions/notifications.md, "Recipients".
const (
	AlertRaised          Kind = "alert_raised"         // threshold alert; critical or warning by severity
	ReadingSuperseded    Kind = "reading_superseded"   // a late reading was out of range, but a newer one exists; in-app only
	EscalationWithdrawn  Kind = "escalation_withdrawn" // its readings were entered in error; in-app only
	DeviceAlertRaised    Kind = "device_alert_raised"  // battery, hub, stale reading or no reading
	ReadingMissed        Kind = "reading_missed"       // a scheduled reading; the portal user is reminded too
	EscalationOpened     Kind = "escalation_opened"    // assigned or unassigned
	EscalationAssigned   Kind = "escalation_assigned"  // assigned to another user
	EscalationOverdue    Kind = "escalation_overdue"   // not answered by its deadline
	EscalationOnCall     Kind = "escalation_on_call"   // for the clinician on call
	EscalationUnanswered Kind = "escalation_untaken"   // not answered although the clinical managers were notified
	EscalationIdle       Kind = "escalation_idle"      // in progress without a note
	EscalationUnnoted    Kind = "escalation_unnoted"   // still without a note, or a stat escalation without one
	EventQuarantined     Kind = "event_quarantined"    // a device event needs a person to match it
	EMRCopyWrong         Kind = "emr_copy_wrong"       // the EMR holds a reading entered in error: urgent task for staff
	ClaimDenied          Kind = "claim_denied"
	RefundDue            Kind = "refund_due"          // a payer paid for an entry that no longer holds
	EvidenceChanged      Kind = "evidence_changed"    // the evidence of a billed entry changed
	BillingRunSkipped    Kind = "billing_run_skipped" // a billing run skipped entries
	AttestationNeeded    Kind = "attestation_needed"  // time of an escalation needs attestation
	FollowUpDue          Kind = "follow_up_due"       // reminder for its owner
	ReviewsPending       Kind = "reviews_pending"     // reminder for a clinician
	BillingTasksPending  Kind = "billing_tasks_pending"
	DigestReady          Kind = "digest_ready"
	ServiceTrouble       Kind = "service_trouble"     // system notice for administrators
	DeliveryDeadLettered Kind = "delivery_given_up"   // a delivery to the EMR is a dead letter; for administrators and data monitors
	EMROutage            Kind = "emr_outage"          // an outage continues or has ended; for administrators and data monitors
	WebhookTrouble       Kind = "webhook_trouble"     // a receiver does not accept events; for administrators
	TextReceived         Kind = "text_received"       // from a patient's phone; a person reads it
	MessageForPatient    Kind = "message_for_patient" // in the portal, from the care team
	TextUnmatched        Kind = "text_unmatched"      // from a number of no patient or of several; a person reads it
	MeasureAgain         Kind = "measure_again"       // prompts the patient, urgently: an escalation is held for the reading

	QuestionnaireFinding Kind = "questionnaire_finding" // answers that the care team must see
)

// Announcement is an event to notify users of.
type Announcement struct {
	Kind     Kind
	Severity string // critical, warning, info, success
	// PatientID, AlertID, EscalationID, EntryID and UserID are record ids of the subjects; "" for none. UserID is the named recipient, if there is
	// one.
	PatientID, AlertID, EscalationID, EntryID, UserID string
	// Body is the text of the in-app entry. It may contain names and values, and is stored encrypted.
	Body string
	// Key identifies the event: a second announcement with the same key is ignored.
	Key string
	// AtOnce sends a push even if one about a similar alert was sent recently.
	AtOnce bool
}

// Announce stores an announcement in the caller's transaction. The dispatcher determines recipients and channels after the commit.
func Announce(tx core.App, a Announcement, now time.Time) error {
	return announce(tx, a, time.Time{}, now)
}

func announce(tx core.App, a Announcement, closedAt, now time.Time) error {
	_, err := collections.InsertAnnouncement(tx, collections.Announcement{
		Kind: string(a.Kind), Severity: a.Severity, Patient: a.PatientID, Alert: a.AlertID, Escalation: a.EscalationID, Entry: a.EntryID,
		User: a.UserID, Key: a.Key, AtOnce: a.AtOnce,
	}, phi.Text(a.Body), closedAt, now)
	if err == nil {
		wakeAfterCommit(tx)
	}
	return err
}

// wakeKey is the key of the dispatcher's wake function in an app's store.
const wakeKey = "vigil.notifications.wake"

// wakeAfterCommit wakes the dispatcher once the transaction is visible.
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

// Notice is an entry for one user's in-app list. Title and body are encrypted at rest and may contain names.
type Notice struct {
	Channel  string // escalations, alerts, reminders, daily_digest
	Type     string
	Severity string // critical, warning, info, success
	Title    string // at most 200 characters
	Body     string
	// DedupeKey prevents a second notice of the same event for one user; "" allows it.
	DedupeKey string
}

// SystemHealth is the type of notices about the service and its accounts.
const SystemHealth = "system_health"

// Notify adds a notice to a user's list, unless the user already has one with its DedupeKey.
func Notify(tx core.App, userRecordID string, n Notice, now time.Time) error {
	err := collections.InsertNotification(tx, collections.NotificationDraft{
		User: userRecordID, Channel: n.Channel, Type: n.Type, Severity: n.Severity, Title: n.Title, Body: phi.Text(n.Body), DedupeKey: n.DedupeKey, InApp: true,
	}, now)
	if err != nil {
		return err
	}
	wakeAfterCommit(tx)
	return nil
}
