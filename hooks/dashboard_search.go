package hooks

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	"github.com/pocketbase/pocketbase/tools/router"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/auth"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/patients"
)

const (
	// mostParts bounds a filter: PocketBase takes 3,500 characters of one, and a part with a UUID has fifty.
	mostParts     = 60
	mostWords     = 100 // characters, as in the contract's searches
	maxSearchBody = 4 << 10
)

// searchDashboard opens the dashboard's search. PocketBase's own compares what was typed with every column, ciphertext too, and says it in an
// address; this one is asked in a body, knows names, and answers with a filter that names records and nobody. It stands below /_/, so that
// whoever closes the dashboard at a proxy closes it too.
// Source: docs/decisions/dashboard.md, "PocketBase's dashboard".
func searchDashboard(app core.App, h *hooks) {
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Router.POST("/_/search", h.search).Bind(apis.RequireSuperuserAuth(), apis.BodyLimit(maxSearchBody))
		return e.Next()
	})
}

// foundView is the answer: the filter to list by, and whether it leaves some out.
type foundView struct {
	Filter string `json:"filter"`
	More   bool   `json:"more"`
}

func (h *hooks) search(e *core.RequestEvent) error {
	var asked struct {
		Collection string `json:"collection"`
		Words      string `json:"words"`
	}
	if err := e.BindBody(&asked); err != nil {
		return e.BadRequestError("An error occurred while loading the submitted data.", nil)
	}
	words := strings.TrimSpace(asked.Words)
	if words == "" || utf8.RuneCountInString(words) > mostWords {
		return e.BadRequestError(fmt.Sprintf("Type 1 to %d characters.", mostWords), nil)
	}
	collection, err := e.App.FindCachedCollectionByNameOrId(asked.Collection)
	if err != nil {
		return e.NotFoundError("", nil)
	}
	s := dashboardSearch{h: h, app: e.App, collection: collection, words: words}
	if err := s.look(e.Request.Context()); err != nil {
		if unready, ok := errors.AsType[*fault.Error](err); ok {
			return router.NewApiError(http.StatusServiceUnavailable, unready.Detail, nil)
		}
		return e.InternalServerError("", err)
	}
	if s.amongPatients {
		if err := audit.Append(e.App, s.entry(requester(e)), h.Clock()); err != nil {
			return e.InternalServerError("", err)
		}
	}
	return e.JSON(http.StatusOK, s.view())
}

// dashboardSearch looks for words in one collection.
type dashboardSearch struct {
	h          *hooks
	app        core.App
	collection *core.Collection
	words      string

	parts         []string // of the filter, any of which has to hold
	more          bool
	amongPatients bool
	patientIDs    []string // who was found
}

// look finds people by name first, then values of lists, then whatever else is open. Where people were found among the records of others, the
// latter is left: whoever types a name wants the person's.
func (s *dashboardSearch) look(ctx context.Context) error {
	if err := s.lookForPatients(); err != nil {
		return err
	}
	if err := s.lookForUsers(); err != nil {
		return err
	}
	for _, choice := range collections.ChoicesHolding(s.collection, s.words) {
		s.add(fmt.Sprintf("%s?=%q", choice.Column, choice.Value))
	}
	people := s.collection.Name == collections.Patients || s.collection.Name == collections.Users
	if len(s.parts) > 0 && !people {
		return nil
	}
	ids, err := collections.RecordsHolding(ctx, s.app, s.collection, s.words, mostParts+1)
	if err != nil {
		return err
	}
	s.addAll([]string{core.FieldNameId}, ids)
	if s.collection.Name == collections.Patients {
		s.found(ids)
	}
	return nil
}

func (s *dashboardSearch) lookForPatients() error {
	columns, err := collections.ColumnsNaming(s.app, s.collection, collections.Patients)
	if err != nil || len(columns) == 0 {
		return err
	}
	ids, total, err := patients.Everyone(s.app, s.h.Directory, s.words, mostParts)
	if err != nil {
		return err
	}
	s.amongPatients, s.more = true, total > len(ids)
	s.addAll(columns, ids)
	s.found(ids)
	return nil
}

func (s *dashboardSearch) lookForUsers() error {
	columns, err := collections.ColumnsNaming(s.app, s.collection, collections.Users)
	if err != nil || len(columns) == 0 {
		return err
	}
	page, total, unreadable, err := auth.Users(s.app, auth.UserQuery{Search: s.words, Limit: mostParts})
	if err != nil {
		return err
	}
	s.more = s.more || total-unreadable > len(page)
	ids := make([]string, len(page))
	for i, user := range page {
		ids[i] = user.Id
	}
	s.addAll(columns, ids)
	return nil
}

func (s *dashboardSearch) addAll(columns, ids []string) {
	for _, id := range ids {
		for _, column := range columns {
			s.add(fmt.Sprintf("%s=%q", column, id))
		}
	}
}

func (s *dashboardSearch) add(part string) {
	switch {
	case slices.Contains(s.parts, part):
	case len(s.parts) == mostParts:
		s.more = true
	default:
		s.parts = append(s.parts, part)
	}
}

func (s *dashboardSearch) found(patientIDs []string) {
	for _, id := range patientIDs {
		if !slices.Contains(s.patientIDs, id) {
			s.patientIDs = append(s.patientIDs, id)
		}
	}
}

// entry says who was found, as that of the contract's search does.
func (s *dashboardSearch) entry(by audit.Actor) audit.Entry {
	entry := audit.Entry{Event: audit.PatientSearch, Actor: by, ResourceType: audit.ResourcePatient}
	if len(s.patientIDs) == 1 {
		entry.PatientID = s.patientIDs[0]
	} else {
		entry.Changes = audit.Changes{"patient_ids": {New: s.patientIDs}}
	}
	return entry
}

func (s *dashboardSearch) view() foundView {
	if len(s.parts) == 0 {
		return foundView{Filter: core.FieldNameId + `=""`}
	}
	return foundView{Filter: strings.Join(s.parts, "||"), More: s.more}
}
