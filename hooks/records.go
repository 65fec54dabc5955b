package hooks

import (
	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/validate"
)

// giveUUID makes the id time-ordered; a well-formed one that the writer chose stays.
func (h *hooks) giveUUID(e *core.RecordEvent) error {
	if id, ok := validate.ParseUUID(e.Record.Id); ok {
		e.Record.Id = id
	} else {
		e.Record.Id = collections.NewUUID()
	}
	return e.Next()
}

// validateRow validates as PocketBase would, but does not look for a new record's id regardless of case, for which every row of these tables would be
// read: only one case is well-formed, and of that the primary key allows one.
func (h *hooks) validateRow(e *core.RecordEvent) error {
	if !e.Record.IsNew() {
		return e.Next()
	}
	refused := validation.Errors{}
	for _, field := range e.Record.Collection().Fields {
		id, isText := field.(*core.TextField)
		validate := func() error { return field.ValidateValue(e.Context, e.App, e.Record) }
		if isText && id.PrimaryKey {
			validate = func() error { return id.ValidatePlainValue(e.Record.Id) }
		}
		if err := validate(); err != nil {
			refused[field.GetName()] = err
		}
	}
	return refused.Filter()
}

// giveTime says when a record was made that the dashboard or a script creates without saying so.
func (h *hooks) giveTime(e *core.RecordEvent) error {
	collections.StampCreated(e.Record, h.Clock())
	return e.Next()
}

// giveNumber takes the next number of the collection; one that an engine took already stays. A number that the sequence
// has not come to does not: once it did, it would fall on this record and go no further.
func (h *hooks) giveNumber(e *core.RecordEvent) error {
	name := e.Record.Collection().Name
	taken, err := collections.Taken(e.App, name, e.Record.Id)
	if err == nil && !taken {
		e.Record.Id, err = collections.NextID(e.App, name)
	}
	return unless(err, e)
}

// derived are the collections that only the service writes: a change by hand would contradict what they are made from.
var derived = []string{
	collections.BillingEntries, collections.Passkeys, collections.TimeEntries, collections.Snoozes, collections.ThresholdChanges, collections.TriageScores,
	collections.EscalationEvents, collections.OnCallRota, collections.Payments,
	collections.ClaimBatches, collections.ClaimLines, collections.ClaimResponses, collections.Clients, collections.Webhooks, collections.WebhookDeliveries,
}

// refuse keeps records as they are. The dashboard shows the text of an answer only; of any other error it would blame relations.
func refuse(sentence string) func(*hooks, *core.RecordEvent) error {
	return func(*hooks, *core.RecordEvent) error { return router.NewBadRequestError(sentence, nil) }
}

// refuseByHand is refuse for the dashboard alone.
func refuseByHand(sentence string) func(*hooks, *core.RecordEvent) error {
	return func(_ *hooks, e *core.RecordEvent) error {
		if fromDashboard(e.Record) {
			return router.NewBadRequestError(sentence, nil)
		}
		return e.Next()
	}
}

// What runs after a commit only wakes somebody, and never fails: the row is stored, and the clock finds what a lost wake meant.

// wakeWorker tells the transmission worker that there is something to send.
func (h *hooks) wakeWorker(e *core.RecordEvent) error {
	h.Wake()
	return e.Next()
}

// wakeMailer tells the mailer that there is something to send.
func (h *hooks) wakeMailer(e *core.RecordEvent) error {
	h.WakeMailer()
	return e.Next()
}

// forgetUser lets the check of access tokens read the user anew, so that a changed role or a deactivation holds from the next request on.
func (h *hooks) forgetUser(e *core.RecordEvent) error {
	h.Forget(e.Record.Id)
	return e.Next()
}
