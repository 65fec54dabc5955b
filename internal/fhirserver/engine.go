// Package fhirapi knows what can be read of the service as FHIR R4: which types of resources there are, by what each is searched, in which orders it is
// walked, and how a stored row becomes a resource. Each type is declared once, in a file of its own; routes, the capability statement and
// whoever exports walk the declarations. It refuses to know HTTP, and who is asking: it is told what the reader may see.
//
// Nothing is kept in FHIR form. A page is read by the place of its last row, never by counting rows, so that what is stored meanwhile
// neither hides a row nor shows one twice.
package fhirserver

import (
	"fmt"
	"slices"
	"time"

	"github.com/pocketbase/pocketbase/core"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/patients"
)

// Kind is one type of resource.
type Kind struct {
	Type     string
	Profiles []string // of US Core, by name
	// May is who reads and searches.
	May authz.Action
	// Event is what the audit trail calls a look at it, and Audited what it was about; no event for what is nobody's health.
	Event   audit.Event
	Audited string
	Params  []Param // beside those of all types
	// Orders are those in which it is walked; the first is that of a search that asks for none.
	Orders []Order
	// Includes and Joins are what a search may bring along besides: what its resources name, and what names them.
	Includes, Joins []string
	// Vast: there are so many that they are counted only when somebody asks for it.
	Vast bool

	table  *collections.SearchTable
	number bool // the id is the number of a numbered record
	// numbered: ids are in the order of time, and stand for it where no time is asked for.
	numbered bool
	// patientRecord: each is a patient's, or, where they are shared, nobody's.
	ofPatients, shared bool
	// render makes resources of rows, in their order.
	render func(e *Engine, app core.App, rows []*core.Record, r Reader) ([]Row, error)
}

// Order is an order by a search parameter.
type Order struct {
	Param      string
	Descending bool
	by         string
}

// Kinds are all types, by name.
var Kinds = []*Kind{auditEvents, careTeams, devices, flags, observed, people, practitioners, provenances}

// KindOf is the type with a name; nil for none.
func KindOf(name string) *Kind {
	for _, k := range Kinds {
		if k.Type == name {
			return k
		}
	}
	return nil
}

// Scope is what opens the type to clients.
func (k *Kind) Scope() authz.ClientScope { return authz.SystemScope(k.Type) }

// Row is one resource on a page.
type Row struct {
	ID        string
	PatientID string // whose it is; "" for nobody's
	DeviceID  string // the id of the Device that it names; "" for none
	Resource  fhir.Resource
	// Unreadable: a stored value cannot be opened, so there is no resource.
	Unreadable bool
}

// Reader is what the caller may see.
type Reader struct {
	Role authz.Role
	// Own keeps what is this patient's; nil does not.
	Own *string
	// CareTeamOf keeps patients on whose care team this user (record id) is, and what is nobody's; "" does not.
	CareTeamOf string
}

// Engine reads and renders.
type Engine struct {
	Systems   fhir.Systems
	Zone      *time.Location // the practice's
	Directory *patients.Directory
	Practice  string // on whose behalf people and devices act
	PublicURL string
}

// Base is where the interface answers.
const Base = "/fhir/R4"

// Page reads the next rows of a search and tells where the last of them stands; done when nothing comes after.
func (e *Engine) Page(app core.App, s *Search) (rows []Row, last Position, done bool, err error) {
	where, err := s.conditions(e, app)
	if err != nil {
		return nil, last, false, err
	}
	order := s.order()
	page := collections.SearchPage{By: order.by, Descending: order.Descending, After: s.After.Value, AfterID: s.After.ID, Limit: s.Limit + 1}
	if order.by == collections.ByMeasured && s.ofOne() {
		page.Kinds = s.kindsLeft()
	}
	records, err := s.Kind.table.Page(s.context(), app, where, page)
	if err != nil {
		return nil, last, false, err
	}
	if done = len(records) <= s.Limit; !done {
		records = records[:s.Limit]
	}
	if len(records) > 0 {
		end := records[len(records)-1]
		last = Position{Value: s.Kind.table.SortKey(end, order.by), ID: end.Id}
	}
	rows, err = s.Kind.render(e, app, records, s.Reader)
	return rows, last, done, err
}

// Count is how many match.
func (e *Engine) Count(app core.App, s *Search) (int, error) {
	where, err := s.conditions(e, app)
	if err != nil {
		return 0, err
	}
	return s.Kind.table.Count(s.context(), app, where)
}

// Find reads one resource; ok is false when there is none that the reader may see.
func (e *Engine) Find(app core.App, k *Kind, id string, r Reader) (row Row, ok bool, err error) {
	s := NewSearch(k, r)
	s.IDs(id)
	s.Limit = 1
	rows, _, _, err := e.Page(app, s)
	if err != nil || len(rows) == 0 {
		return Row{}, false, err
	}
	return rows[0], true, nil
}

// recordIDs are the record ids of resources; what names none is left out.
func (k *Kind) recordIDs(ids []string) []string {
	found := []string{}
	for _, id := range ids {
		if k.number {
			id = numberedID(id)
		}
		if id != "" && !slices.Contains(found, id) {
			found = append(found, id)
		}
	}
	return found
}

func numberedID(id string) string {
	var n int64
	if _, err := fmt.Sscanf(id, "%d", &n); err != nil || fmt.Sprint(n) != id || n <= 0 || n > 999_999_999_999_999 {
		return ""
	}
	return collections.NumberID(n)
}
