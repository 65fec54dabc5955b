package templates

import (
	"fmt"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/validate"
)

// AnyContext is the context of a text for every kind of note.
const AnyContext = "any"

// NoteContexts are the kinds of notes.
var NoteContexts = []string{"alert", "escalation", "note"}

const (
	longestName = 100
	longestText = 2000
)

// NoteBody is the body of a request to create or replace a note template.
type NoteBody struct {
	Name    validate.String `json:"name"`
	Text    validate.String `json:"text"`
	Context validate.String `json:"context"`
}

// NoteDraft is a validated [NoteBody]: values by column.
type NoteDraft struct{ columns map[string]string }

// Read checks a body; without a context the text fits every note.
func (b NoteBody) Read(c *validate.Checks) NoteDraft {
	d := map[string]string{
		collections.NoteTemplateName:    c.Text("name", b.Name, validate.Required(longestName)),
		collections.NoteTemplateText:    c.Text("text", b.Text, validate.Required(longestText).Multiline()),
		collections.NoteTemplateContext: AnyContext,
	}
	if b.Context.Sent() {
		d[collections.NoteTemplateContext] = c.Text("context", b.Context, validate.Required(len("escalation")).OneOf(append([]string{AnyContext}, NoteContexts...)...))
	}
	return NoteDraft{d}
}

// NotesFor lists the note templates for a context, including those for every note; "" lists all.
func NotesFor(app core.App, context string) ([]*collections.NoteTemplate, error) {
	if context == "" {
		return collections.ListNoteTemplates(app)
	}
	return collections.ListNoteTemplates(app, context, AnyContext)
}

// CreateNote stores a new template, with its audit entry.
func CreateNote(app core.App, draft NoteDraft, by audit.Actor, now time.Time) (t *collections.NoteTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.NewNoteTemplate(tx); err != nil {
			return err
		}
		return storeNote(tx, t, draft, by, now)
	})
	return t, err
}

// ReplaceNote stores new values of a template. If nothing changes, nothing is written.
func ReplaceNote(app core.App, number int64, draft NoteDraft, by audit.Actor, now time.Time) (t *collections.NoteTemplate, err error) {
	err = app.RunInTransaction(func(tx core.App) error {
		if t, err = collections.FindNoteTemplate(tx, number); err != nil {
			return fault.OrMissing(err)
		}
		return storeNote(tx, t, draft, by, now)
	})
	return t, err
}

// DeleteNote removes a template. Notes that were started from it stay.
func DeleteNote(app core.App, number int64, by audit.Actor, now time.Time) error {
	return app.RunInTransaction(func(tx core.App) error {
		t, err := collections.FindNoteTemplate(tx, number)
		if err != nil {
			return fault.OrMissing(err)
		}
		changes := audit.Changes{}
		for _, column := range noteColumns {
			changes[column] = audit.Change{Old: t.GetString(column)}
		}
		if err := tx.Delete(t); err != nil {
			return fmt.Errorf("delete note template: %w", err)
		}
		return auditNoteTemplate(tx, t, changes, by, now)
	})
}

var noteColumns = []string{collections.NoteTemplateName, collections.NoteTemplateText, collections.NoteTemplateContext}

// storeNote writes a draft into a template, stores and audits it.
func storeNote(tx core.App, t *collections.NoteTemplate, draft NoteDraft, by audit.Actor, now time.Time) error {
	changes := audit.Changes{}
	for _, column := range noteColumns {
		if old, given := t.GetString(column), draft.columns[column]; old != given {
			changes[column] = audit.Change{Old: old, New: given}
			t.Set(column, given)
		}
	}
	if len(changes) == 0 {
		return nil
	}
	t.Set(collections.NoteTemplateUpdatedBy, by.Email)
	t.Set(collections.ColumnUpdatedAt, collections.FormatInstant(now))
	if t.IsNew() {
		t.Set(collections.ColumnCreatedAt, collections.FormatInstant(now))
	}
	if err := tx.Save(t); err != nil {
		return fmt.Errorf("store note template: %w", err)
	}
	return auditNoteTemplate(tx, t, changes, by, now)
}

func auditNoteTemplate(tx core.App, t *collections.NoteTemplate, changes audit.Changes, by audit.Actor, now time.Time) error {
	return audit.Append(tx, audit.Entry{
		Event: audit.SettingsUpdate, Actor: by, ResourceType: audit.ResourceNoteTemplate, ResourceID: fmt.Sprint(t.Number()), Changes: changes,
	}, now)
}
