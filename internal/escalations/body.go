package escalations

import (
	"cmp"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

const (
	reasonLength = 2000
	notesLength  = 4000
	emailLength  = 254
	maxMinutes   = 240
)

// Priorities and Statuses list all values.
var (
	Priorities = []string{string(Routine), string(Urgent), string(Stat)}
	Statuses   = []string{string(StatusOpen), string(StatusInProgress), string(StatusResolved), string(StatusCancelled)}
)

// Body is the body of a request to open an escalation.
type Body struct {
	PatientID           validate.String  `json:"patient_id"`
	Priority            validate.String  `json:"priority"`
	Reason              validate.String  `json:"reason"`
	AssignedTo          validate.String  `json:"assigned_to"`
	RelatedEscalationID validate.Integer `json:"related_escalation_id"`
}

// Read checks the body of an escalation of a patient.
func (b Body) Read(c *validate.Checks) Draft {
	draft := b.read(c, validate.Required(0), validate.Required(reasonLength))
	draft.PatientID = c.UUID("patient_id", b.PatientID, true)
	return draft
}

// ReadForAlert checks the body of an escalation of an alert, which defines the patient; the reason is optional.
func (b Body) ReadForAlert(c *validate.Checks) Draft {
	draft := b.read(c, validate.Optional(0).Filled(), validate.Optional(reasonLength))
	draft.Priority = cmp.Or(draft.Priority, Urgent)
	return draft
}

func (b Body) read(c *validate.Checks, priority, reason validate.TextRule) Draft {
	draft := Draft{
		Priority:   Priority(c.Text("priority", b.Priority, priority.OneOf(Priorities...))),
		Reason:     phi.Text(c.Text("reason", b.Reason, reason.Multiline())),
		AssignedTo: c.Text("assigned_to", b.AssignedTo, validate.Optional(emailLength).Identifier()),
	}
	if related := c.Integer("related_escalation_id", b.RelatedEscalationID, false); related != nil {
		draft.RelatedID = collections.NumberID(max(*related, 0))
	}
	return draft
}

// ChangeBody is the body of a request to change an escalation.
type ChangeBody struct {
	Status             validate.String  `json:"status"`
	ResolutionNotes    validate.String  `json:"resolution_notes"`
	AssignedTo         validate.String  `json:"assigned_to"`
	Priority           validate.String  `json:"priority"`
	InteractionMinutes validate.Integer `json:"interaction_minutes"`
	Notes              validate.String  `json:"notes"`
}

// Change holds the changes of an escalation; nil keeps a value.
type Change struct {
	Status *Status
	// ResolutionNotes are the resolution notes.
	ResolutionNotes *phi.Text
	// AssignedTo is an e-mail address; "" unassigns.
	AssignedTo *string
	Priority   *Priority
	// InteractionMinutes of live contact replace the time from assignment to resolution.
	InteractionMinutes *int
	// Note is added to the history; "" for none.
	Note phi.Text
}

// Read checks the body. Source: docs/decisions/escalations.md, "Escalation state machine" and docs/decisions/billing.md, "Escalation time versus interactive time".
func (b ChangeBody) Read(c *validate.Checks) (change Change) {
	if b.Status.Sent() {
		status := Status(c.Text("status", b.Status, validate.Required(0).OneOf(Statuses[1:]...)))
		change.Status = &status
	}
	if b.ResolutionNotes.Sent() {
		change.ResolutionNotes = new(phi.Text(c.Text("resolution_notes", b.ResolutionNotes, validate.Optional(notesLength).Multiline())))
	}
	if b.AssignedTo.Sent() {
		change.AssignedTo = new(c.Text("assigned_to", b.AssignedTo, validate.Optional(emailLength).Identifier()))
	}
	if b.Priority.Sent() {
		change.Priority = new(Priority(c.Text("priority", b.Priority, validate.Required(0).OneOf(Priorities...))))
	}
	change.Note = phi.Text(c.Text("notes", b.Notes, validate.Optional(notesLength).Multiline()))
	if minutes := c.Integer("interaction_minutes", b.InteractionMinutes, false); minutes != nil {
		switch {
		case *minutes < 0 || *minutes > maxMinutes:
			c.Reject("interaction_minutes", "Must be between 0 and 240.")
		case change.Status == nil || *change.Status != StatusResolved:
			c.Reject("interaction_minutes", "Can only be given with the status resolved.")
		default:
			change.InteractionMinutes = new(int(*minutes))
		}
	}
	return change
}
