package collections

import (
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/core"
)

// Columns of a note template.
const (
	NoteTemplateName      = "name"
	NoteTemplateText      = "text"
	NoteTemplateContext   = "context"
	NoteTemplateUpdatedBy = "updated_by"
)

// NoteTemplate is a reusable text for notes. It contains no patient data.
type NoteTemplate struct{ core.BaseRecordProxy }

// NewNoteTemplate returns an unsaved template with the next number.
func NewNoteTemplate(app core.App) (*NoteTemplate, error) {
	return newRecord[NoteTemplate](app, NoteTemplates, nil)
}

// ListNoteTemplates lists the templates of the contexts, or all, by name.
func ListNoteTemplates(app core.App, contexts ...string) ([]*NoteTemplate, error) {
	where := Conditions{}
	if len(contexts) > 0 {
		where = append(where, AnyOf(NoteTemplateContext, contexts))
	}
	return listOf[NoteTemplate](app, NoteTemplates, AllOf(where), "name", "id")
}

// FindNoteTemplate finds a template by number.
func FindNoteTemplate(app core.App, number int64) (*NoteTemplate, error) {
	return find[NoteTemplate](app, NoteTemplates, dbx.HashExp{"id": NumberID(number)})
}

func (t *NoteTemplate) Number() int64   { return Number(t.Id) }
func (t *NoteTemplate) Name() string    { return t.GetString(NoteTemplateName) }
func (t *NoteTemplate) Text() string    { return t.GetString(NoteTemplateText) }
func (t *NoteTemplate) Context() string { return t.GetString(NoteTemplateContext) }
