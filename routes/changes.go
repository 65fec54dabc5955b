package routes

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/changefeed"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// changeRows are the endpoints of those who follow what happens.
func changeRows() []route {
	return []route{{http.MethodGet, "/changes/", authz.ReadChanges.Or(authz.ScopeChangesRead), ratelimit.User, (*api).listChanges}}
}

// changeView is one change: what it names is read where it is.
type changeView struct {
	Type   string `json:"type"`
	ID     any    `json:"id"`
	Change string `json:"change"`
	At     string `json:"at"`
}

// changesView is one page of the feed.
type changesView struct {
	Results    []changeView `json:"results"`
	NextCursor string       `json:"next_cursor"`
	HasMore    bool         `json:"has_more"`
}

func viewChange(c changefeed.Change) changeView {
	return changeView{Type: c.Type, ID: c.ID(), Change: c.Kind, At: validate.FormatInstant(c.At)}
}

// changesShown are how many changes a page has, unless said otherwise, and at most.
const changesShown, mostChanges = 100, 1000

// latest asks for the place behind all that is committed.
const latest = "latest"

// readsChanges is what somebody must be allowed to read, of everybody, to be told of a type. Source: docs/decisions/changes.md, "Visibility".
var readsChanges = map[string]authz.Action{
	collections.ChangeAlert:        authz.ReadAlerts,
	collections.ChangeCareTeam:     authz.ReadCareTeam,
	collections.ChangeClaim:        authz.ReadBilling,
	collections.ChangeConsent:      authz.ReadConsents,
	collections.ChangeDevice:       authz.ReadDevices,
	collections.ChangeEscalation:   authz.ReadEscalations,
	collections.ChangeObservation:  authz.ReadObservations,
	collections.ChangeOrder:        authz.ReadOrders,
	collections.ChangePatient:      authz.ReadPatients,
	collections.ChangeSnooze:       authz.ReadAlerts,
	collections.ChangeTimeEntry:    authz.ReadTimeEntries,
	collections.ChangeTransmission: authz.ReadTransmissions,
	collections.ChangeVitalConfig:  authz.ReadThresholds,
}

// mayFollow reports whether the caller is told of a type; a client of all, since it is told ids and reads nothing by them without a scope.
func mayFollow(c *web.Call, noun string) bool {
	return c.Caller.Role == authz.Client || authz.Reach(c.Caller.Role, readsChanges[noun]) == authz.All
}

// listChanges serves what was committed after a place, in the order of the commits.
func (a *api) listChanges(c *web.Call) error {
	q := c.Query()
	reader := changefeed.Reader{Limit: q.Positive("limit", changesShown, mostChanges)}
	asked := typesAsked(q)
	if err := q.Err(); err != nil {
		return err
	}
	for _, noun := range asked {
		if !mayFollow(c, noun) {
			return fault.Denied()
		}
	}
	if asked == nil {
		asked = slices.DeleteFunc(changefeed.Types(), func(noun string) bool { return !mayFollow(c, noun) })
	}
	reader.Types = asked
	if a.confinedToTeams(c) {
		reader.Team = c.Caller.RecordID
	}
	page, err := readChanges(c, reader, q.Get("since"))
	if err != nil {
		return err
	}
	if err := recordFollowed(c, page); err != nil {
		return err
	}
	return c.OK(changesView{Results: web.Views(page.Changes, viewChange), NextCursor: page.Next.String(), HasMore: page.More})
}

// typesAsked are the types that are named, separated by commas; nil for none.
func typesAsked(q *web.Query) (asked []string) {
	if strings.TrimSpace(q.Get("types")) == "" {
		return nil
	}
	for noun := range strings.SplitSeq(q.Get("types"), ",") {
		noun = strings.TrimSpace(noun)
		if _, known := readsChanges[noun]; !known {
			q.Reject("types", "Must be of: "+strings.Join(slices.Sorted(maps.Keys(readsChanges)), ", ")+".")
			return nil
		}
		if !slices.Contains(asked, noun) {
			asked = append(asked, noun)
		}
	}
	return asked
}

func readChanges(c *web.Call, reader changefeed.Reader, since string) (changefeed.Page, error) {
	switch since {
	case "":
		return reader.Read(c.App, changefeed.Oldest())
	case latest:
		next, err := changefeed.Latest(c.App)
		return changefeed.Page{Next: next}, err
	}
	from, err := changefeed.Parse(since)
	if err != nil {
		return changefeed.Page{}, err
	}
	return reader.Read(c.App, from)
}

// recordFollowed notes whose changes were shown. Whoever asks and learns nothing has read of nobody.
func recordFollowed(c *web.Call, page changefeed.Page) error {
	if len(page.Changes) == 0 {
		return nil
	}
	var about []string
	for _, change := range page.Changes {
		if change.Patient != "" {
			about = append(about, change.Patient)
		}
	}
	slices.Sort(about)
	return c.RecordRead(audit.PatientRead, audit.ResourceChange, "", slices.Compact(about)...)
}
