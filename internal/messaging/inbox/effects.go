package inbox

import (
	"errors"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/messaging"
	"github.com/vigilhealth/vigil/internal/messaging/replies"
	"github.com/vigilhealth/vigil/internal/notifications"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/internal/vitals"
)

// escalate answers words of an emergency and opens an urgent escalation for each monitored patient with the number. A dangerous value that is no
// certain reading is escalated, but not answered, because it may be another person's or of another day; one beyond what a device shows is
// requested again.
func (c *incomingText) escalate() error {
	why := "The patient wrote words of an emergency: "
	switch c.reply.Emergency {
	case replies.Danger, replies.SelfHarm:
		answer := messaging.AnswerEmergency
		if c.reply.Emergency == replies.SelfHarm {
			answer = messaging.AnswerSelfHarm
		}
		if err := c.answer(answer); err != nil {
			return err
		}
	default:
		if !c.reply.IsDangerous {
			return nil
		}
		why = "The patient wrote a value that may be critical, and that could not be filed: "
		if c.reply.IsImplausible && c.text.Channel != collections.ChannelPortal {
			if err := c.answer(messaging.AnswerCheckValue); err != nil {
				return err
			}
		}
	}
	if len(c.monitored) > 1 {
		why = "Several patients have this phone number. " + why
	}
	for _, p := range c.monitored {
		draft := escalations.Draft{PatientID: p.Id, Priority: escalations.Urgent, Reason: phi.Text(why + excerpt(c.text.Text))}
		if _, err := escalations.JoinOrOpenForMessage(c.tx, draft, c.received); err != nil {
			return err
		}
		if _, err := triage.Rescore(c.tx, p.Id, c.received); err != nil {
			return err
		}
	}
	return nil
}

// storeReading stores a requested reading. A value that the patient probably mistyped is requested again,
// without notifying anyone.
// Source: docs/decisions/observations.md, "Values that a patient types".
func (c *incomingText) storeReading() error {
	if c.reply.Values == nil {
		return nil
	}
	kind, checks := c.reply.Values.Kind.Definition(), validate.NewChecks()
	reading := kind.Read(checks, c.reply.Values.Body)
	reading.MeasuredAt = c.received.UTC()
	refusal := checks.Err()
	if refusal == nil {
		outcome, err := c.pipeline.Readings.Ingest(c.tx, ingest.Submission{
			PatientID: c.sender().Id, Reading: reading, Source: vitals.SourcePortal, By: c.by, ReceivedAt: c.received,
		}, c.received)
		c.result.StoredReading = err == nil && !outcome.Duplicate
		return err
	}
	if err := c.quarantineImplausible(kind, refusal); err != nil {
		return err
	}
	return c.answer(messaging.AnswerCheckValue)
}

// quarantineImplausible stores out-of-range values until the patient corrects them. Values that
// contradict each other are discarded.
func (c *incomingText) quarantineImplausible(kind *vitals.Definition, refusal error) error {
	reading, outside, ok := kind.ReadOutOfRange(c.reply.Values.Body)
	refused, isFault := errors.AsType[*fault.Error](refusal)
	if !ok || !isFault {
		return nil
	}
	reading.MeasuredAt = c.received.UTC()
	return c.pipeline.ReportImplausible(c.tx, ingest.ImplausibleReport{
		PatientID: c.sender().Id, Source: string(vitals.SourcePortal), Reading: reading, OutOfRange: outside, FieldErrors: refused.Fields,
	}, c.by, c.received)
}

// notifyStaff notifies staff of a text that a person must read: anything but a command or a
// reading. A text from an unknown number, from several patients or from one who is not monitored is
// in the list of unmatched texts.
func (c *incomingText) notifyStaff() error {
	isUrgent := c.reply.Emergency != replies.NoEmergency || c.reply.IsDangerous
	if !isUrgent && (c.reply.Command != replies.None && !c.reply.HasMore || c.reply.Values != nil) {
		return collections.MarkHandled(c.tx, c.message.Id, c.received)
	}
	hour := c.received.UTC().Truncate(time.Hour).Format("20060102T15")
	if p := c.sender(); p != nil && p.Active() {
		if isUrgent { // its escalation notifies
			return nil
		}
		label, err := collections.PatientLabel(c.tx, p.Id)
		if err != nil {
			return err
		}
		return notifications.Announce(c.tx, notifications.Announcement{
			Kind: notifications.TextReceived, Severity: "info", PatientID: p.Id, Body: label + " wrote: " + excerpt(c.text.Text),
			Key: "text " + p.Id + " " + hour,
		}, c.received)
	}
	a := notifications.Announcement{
		Kind: notifications.TextUnmatched, Severity: "info", Key: "text without a patient " + hour,
		Body: "A text from a number of no patient, or of several, waits in the list of unmatched texts: " + excerpt(c.text.Text),
	}
	if isUrgent && len(c.monitored) == 0 {
		a.Severity, a.Key = "critical", "urgent text "+c.message.Id
	}
	return notifications.Announce(c.tx, a, c.received)
}

// lastWeight returns the last weight, if a weight was requested; 0 if there is none.
func lastWeight(app core.App, patientID string, kinds []vitals.Kind, now time.Time) (float64, error) {
	if len(kinds) == 0 {
		return 0, nil
	}
	snapshot, err := triage.ReadSnapshot(app, patientID, nil, now)
	if err != nil {
		return 0, err
	}
	if value, _ := snapshot.Latest.Value(vitals.WeightKg); value != nil {
		return *value, nil
	}
	return 0, nil
}
