package alerts

import (
	"regexp"
	"slices"
	"time"

	validation "github.com/pocketbase/ozzo-validation/v4"
	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/internal/validate"
)

// Move is a clinician's action on an alert.
type Move string

// The moves. Only the system auto-resolves, see [AutoResolve].
const (
	Acknowledge Move = "acknowledge"
	Resolve     Move = "resolve"
	Annotate    Move = "note"
	Escalate    Move = "escalate"
)

// NextStatus returns the status after a move; a closed alert is an invalid_state fault.
// Source: docs/decisions/alerts.md, "Alert status" and "Acknowledge variants".
func NextStatus(from Status, move Move) (Status, error) {
	if from != StatusActive && from != StatusAcknowledged {
		return from, fault.State("invalid_state", "The alert is closed and can no longer be changed.")
	}
	switch move {
	case Acknowledge:
		return StatusAcknowledged, nil
	case Resolve:
		return StatusResolved, nil
	}
	return from, nil
}

// Action is a move with its details.
type Action struct {
	Move Move
	// Notes and ClinicalNote are appended to the stored ones; "" adds nothing.
	Notes, ClinicalNote phi.Text
	Outcome             string // "" keeps the stored one
	// FollowUpAt is when the user wants a reminder; zero for never.
	FollowUpAt time.Time
	// Reviewed is the patient's previous review in the form of [ChangedReview]; "" for none.
	Reviewed string
	// Detailed: the caller used the variant with an outcome and gets the matching response.
	Detailed bool
}

// AcknowledgeBody is the body of an acknowledgment, in either variant.
type AcknowledgeBody struct {
	Notes            validate.String  `json:"notes"`
	Outcome          validate.String  `json:"outcome"`
	ClinicalNote     validate.String  `json:"clinical_note"`
	FollowUpRequired validate.Boolean `json:"follow_up_required"`
	FollowUpAt       validate.String  `json:"follow_up_at"`
}

const (
	noteLength     = 4000
	outcomeDone    = "resolved"
	outcomeDefault = "acknowledged"
	followUpAfter  = 24 * time.Hour
)

var outcomeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,50}$`)

// Read checks the body. Source: docs/decisions/alerts.md, "Acknowledge variants".
func (b AcknowledgeBody) Read(c *validate.Checks, now time.Time) Action {
	action := Action{Move: Acknowledge, Notes: readNote(c, "notes", b.Notes)}
	action.Detailed = isPresent(b.Outcome) || isPresent(b.ClinicalNote) || isPresent(b.FollowUpRequired)
	if !action.Detailed {
		return action
	}
	action.ClinicalNote = appendNote(readNote(c, "clinical_note", b.ClinicalNote), action.Notes)
	action.Notes = ""
	action.Outcome = c.Text("outcome", b.Outcome, validate.Optional(50).Filled())
	switch {
	case action.Outcome == outcomeDone:
		action.Move = Resolve
	case action.Outcome == "":
		action.Outcome = outcomeDefault
	case !outcomeForm.MatchString(action.Outcome):
		c.Reject("outcome", "Only letters, digits, underscores and hyphens are allowed.")
	}
	at := c.Instant("follow_up_at", b.FollowUpAt, false)
	if required := c.Boolean("follow_up_required", b.FollowUpRequired, false); required != nil && *required {
		if action.FollowUpAt = at; at.IsZero() {
			action.FollowUpAt = now.Add(followUpAfter)
		}
	}
	return action
}

func isPresent[T any](f validate.Field[T]) bool { return f.Sent() && !f.Null() }

// NoteBody is the body of a note, or of a resolution, where notes are optional.
type NoteBody struct {
	Notes validate.String `json:"notes"`
}

// Read checks the body for a move; only an annotation requires notes.
func (b NoteBody) Read(c *validate.Checks, move Move) Action {
	rule := validate.Optional(noteLength)
	if move == Annotate {
		rule = validate.Required(noteLength)
	}
	return Action{Move: move, Notes: phi.Text(c.Text("notes", b.Notes, rule.Multiline()))}
}

func readNote(c *validate.Checks, name string, field validate.String) phi.Text {
	return phi.Text(c.Text(name, field, validate.Optional(noteLength).Multiline()))
}

// appendNote appends a note on a new line.
func appendNote(notes, more phi.Text) phi.Text {
	if notes == "" || more == "" {
		return notes + more
	}
	return notes + "\n" + more
}

// editableColumns are the columns of an alert that a user may change in the dashboard; all others record what happened.
var editableColumns = []string{
	collections.AlertStatus, collections.AlertNotes, collections.AlertClinicalNote, collections.AlertOutcome, collections.AlertFollowUpRequired,
	collections.AlertFollowUpAt,
}

// Guard checks an alert record that a user changes, and audits the move that the change amounts to, in the caller's transaction; "" if
// nothing changed. A change that is not a move is returned as [validation.Errors] by column.
func Guard(tx core.App, alert *collections.Alert, by audit.Actor, now time.Time, save func() error) (Move, error) {
	before := collections.AsAlert(alert.Original())
	var changed []string
	for _, name := range alert.Collection().Fields.FieldNames() {
		if before.GetString(name) == alert.GetString(name) {
			continue
		}
		if !slices.Contains(editableColumns, name) {
			return "", columnError(name, "The cause of an alert cannot be changed.")
		}
		changed = append(changed, name)
	}
	if len(changed) == 0 {
		return "", save()
	}
	action := Action{Move: Annotate}
	if before.Status() != alert.Status() {
		switch Status(alert.Status()) {
		case StatusAcknowledged:
			action.Move = Acknowledge
		case StatusResolved:
			action.Move = Resolve
		default:
			return "", columnError(collections.AlertStatus, "An alert can be acknowledged or resolved.")
		}
	}
	if alert.FollowUpRequired() && (!before.FollowUpRequired() || slices.Contains(changed, collections.AlertFollowUpAt)) {
		if action.FollowUpAt = alert.FollowUpAt(); action.FollowUpAt.IsZero() {
			action.FollowUpAt = now.Add(followUpAfter)
		}
	}
	if err := applyMove(alert, Status(before.Status()), action, by, now); err != nil {
		return "", columnError(collections.AlertStatus, "The alert is closed and can no longer be changed.")
	}
	if err := save(); err != nil {
		return "", err
	}
	changes := audit.Changes{}
	for _, column := range changed {
		changes[column] = audit.Change{Old: phi.Text(before.GetString(column)), New: phi.Text(alert.GetString(column))}
	}
	return action.Move, auditAlert(tx, moveEvents[action.Move], alert.Id, alert.PatientID(), changes, by, now)
}

func columnError(column, message string) error {
	return validation.Errors{column: validation.NewError("fixed", message)}
}

// MaxBulk limits the alerts of one request. Source: docs/decisions/alerts.md, "Several at once".
const MaxBulk = 200

// BulkSelection holds the public numbers of the alerts of a bulk request, without duplicates, and an optional note.
type BulkSelection struct {
	Numbers []int64
	Notes   phi.Text
}

// BulkBody is the body of a request about several alerts.
type BulkBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
	Notes    validate.String                    `json:"notes"`
}

// Read checks the body.
func (b BulkBody) Read(c *validate.Checks) BulkSelection {
	chosen := BulkSelection{Notes: readNote(c, "notes", b.Notes)}
	chosen.Numbers = readAlertIDs(c, b.AlertIDs)
	return chosen
}

// UndoBody is the body of a request to undo actions on alerts.
type UndoBody struct {
	AlertIDs validate.Field[[]validate.Integer] `json:"alert_ids"`
}

// Read checks the body.
func (b UndoBody) Read(c *validate.Checks) []int64 { return readAlertIDs(c, b.AlertIDs) }

func readAlertIDs(c *validate.Checks, list validate.Field[[]validate.Integer]) (numbers []int64) {
	if len(list.Value) == 0 && !list.Wrong() {
		c.Reject("alert_ids", "Choose at least one alert.")
	}
	seen := map[int64]bool{}
	for name, sent := range validate.Items(c, "alert_ids", list, MaxBulk, "Must be a list of the ids of alerts.") {
		if number := c.Integer(name, sent, true); number != nil && !seen[*number] {
			seen[*number] = true
			numbers = append(numbers, *number)
		}
	}
	return numbers
}
