package routes

import (
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/templates"
	"github.com/vigilhealth/vigil/routes/web"
)

func noteTemplateRows() []route {
	return []route{
		{http.MethodGet, "/note-templates/", authz.ReadNoteTemplates, ratelimit.User, (*api).listNoteTemplates},
		{http.MethodPost, "/note-templates/", authz.ManageNoteTemplates, ratelimit.User, (*api).createNoteTemplate},
		{http.MethodGet, "/note-templates/{id}/", authz.ReadNoteTemplates, ratelimit.User, withRecord((*api).number, (*api).readNoteTemplate)},
		{http.MethodPut, "/note-templates/{id}/", authz.ManageNoteTemplates, ratelimit.User, withRecord((*api).number, (*api).replaceNoteTemplate)},
		{http.MethodDelete, "/note-templates/{id}/", authz.ManageNoteTemplates, ratelimit.User, withRecord((*api).number, (*api).deleteNoteTemplate)},
	}
}

type noteTemplateView struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Text    string `json:"text"`
	Context string `json:"context"`
}

func viewNoteTemplate(t *collections.NoteTemplate) noteTemplateView {
	return noteTemplateView{t.Number(), t.Name(), t.Text(), t.Context()}
}

func (a *api) listNoteTemplates(c *web.Call) error {
	q := c.Query()
	context := q.OneOf("context", templates.NoteContexts...)
	if err := q.Err(); err != nil {
		return err
	}
	return web.RespondSliceOf(c, viewNoteTemplate)(templates.NotesFor(c.App, context))
}

func (a *api) readNoteTemplate(c *web.Call, number int64) error {
	t, err := collections.FindNoteTemplate(c.App, number)
	return web.RespondWith(c.OK, viewNoteTemplate)(t, fault.OrMissing(err))
}

func (a *api) createNoteTemplate(c *web.Call) error {
	return create(c, fromBody(templates.NoteBody.Read), templates.CreateNote, web.RespondWith(c.Created, viewNoteTemplate))
}

func (a *api) replaceNoteTemplate(c *web.Call, number int64) error {
	return change(c, number, fromBody(templates.NoteBody.Read), templates.ReplaceNote, web.RespondWith(c.OK, viewNoteTemplate))
}

func (a *api) deleteNoteTemplate(c *web.Call, number int64) error {
	return c.NoContent(templates.DeleteNote(c.App, number, c.Actor(), c.Now))
}
