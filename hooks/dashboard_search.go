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
	// maxParts bounds a filter: PocketBase accepts 3,500 characters, and a part with a UUID has fifty.
	maxParts        = 60
	maxSearchLength = 100 // characters, as in the API's searches
	maxSearchBody   = 4 << 10
)

// searchDashboard adds the dashboard's search. PocketBase's own search compares the text with every column, including ciphertext, and sends it
// in a URL. This one takes the text in a request body, finds people by name, and returns a filter with record ids only. Its path is below /_/,
// so a proxy that blocks the dashboard blocks it too. Source: docs/decisions/dashboard.md, "PocketBase's dashboard".
func searchDashboard(app core.App, h *hooks) {
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Router.POST("/_/search", h.search).Bind(apis.RequireSuperuserAuth(), apis.BodyLimit(maxSearchBody))
		return e.Next()
	})
}

// searchResult is the response: the filter for the list, and whether it omits matches.
type searchResult struct {
	Filter string `json:"filter"`
	More   bool   `json:"more"`
}

func (h *hooks) search(e *core.RequestEvent) error {
	var request struct {
		Collection string `json:"collection"`
		Words      string `json:"words"`
	}
	if err := e.BindBody(&request); err != nil {
		return e.BadRequestError("An error occurred while loading the submitted data.", nil)
	}
	words := strings.TrimSpace(request.Words)
	if words == "" || utf8.RuneCountInString(words) > maxSearchLength {
		return e.BadRequestError(fmt.Sprintf("Type 1 to %d characters.", maxSearchLength), nil)
	}
	collection, err := e.App.FindCachedCollectionByNameOrId(request.Collection)
	if err != nil {
		return e.NotFoundError("", nil)
	}
	s := dashboardSearch{h: h, app: e.App, collection: collection, words: words}
	if err := s.run(e.Request.Context()); err != nil {
		if unready, ok := errors.AsType[*fault.Error](err); ok {
			return router.NewApiError(http.StatusServiceUnavailable, unready.Detail, nil)
		}
		return e.InternalServerError("", err)
	}
	if s.searchedPatients {
		if err := audit.Append(e.App, s.entry(requester(e)), h.Clock()); err != nil {
			return e.InternalServerError("", err)
		}
	}
	return e.JSON(http.StatusOK, s.view())
}

// dashboardSearch searches one collection.
type dashboardSearch struct {
	h          *hooks
	app        core.App
	collection *core.Collection
	words      string

	parts            []string // of the filter, joined by OR
	more             bool
	searchedPatients bool
	patientIDs       []string // matches, for the audit entry
}

// run finds people by name first, then values of select fields, then other readable columns. In collections other than patients and users it
// skips the last step after a match, because a person's name was searched.
func (s *dashboardSearch) run(ctx context.Context) error {
	if err := s.findPatients(); err != nil {
		return err
	}
	if err := s.findUsers(); err != nil {
		return err
	}
	for _, choice := range collections.MatchingChoices(s.collection, s.words) {
		s.add(fmt.Sprintf("%s?=%q", choice.Column, choice.Value))
	}
	people := s.collection.Name == collections.Patients || s.collection.Name == collections.Users
	if len(s.parts) > 0 && !people {
		return nil
	}
	ids, err := collections.SearchRecords(ctx, s.app, s.collection, s.words, maxParts+1)
	if err != nil {
		return err
	}
	s.addAll([]string{core.FieldNameId}, ids)
	if s.collection.Name == collections.Patients {
		s.found(ids)
	}
	return nil
}

func (s *dashboardSearch) findPatients() error {
	columns, err := collections.ColumnsReferencing(s.app, s.collection, collections.Patients)
	if err != nil || len(columns) == 0 {
		return err
	}
	ids, total, err := patients.SearchAllStates(s.app, s.h.Directory, s.words, maxParts)
	if err != nil {
		return err
	}
	s.searchedPatients, s.more = true, total > len(ids)
	s.addAll(columns, ids)
	s.found(ids)
	return nil
}

func (s *dashboardSearch) findUsers() error {
	columns, err := collections.ColumnsReferencing(s.app, s.collection, collections.Users)
	if err != nil || len(columns) == 0 {
		return err
	}
	page, total, unreadable, err := auth.Users(s.app, auth.UserQuery{Search: s.words, Limit: maxParts})
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
	case len(s.parts) == maxParts:
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

// entry is the audit entry of the search, like that of the API's search.
func (s *dashboardSearch) entry(by audit.Actor) audit.Entry {
	entry := audit.Entry{Event: audit.PatientSearch, Actor: by, ResourceType: audit.ResourcePatient}
	if len(s.patientIDs) == 1 {
		entry.PatientID = s.patientIDs[0]
	} else {
		entry.Changes = audit.Changes{"patient_ids": {New: s.patientIDs}}
	}
	return entry
}

func (s *dashboardSearch) view() searchResult {
	if len(s.parts) == 0 {
		return searchResult{Filter: core.FieldNameId + `=""`}
	}
	return searchResult{Filter: strings.Join(s.parts, "||"), More: s.more}
}
