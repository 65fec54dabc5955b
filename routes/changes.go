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

// changeRows are the endpoints of the change feed.
func changeRows() []route {
	return []route{{http.MethodGet, "/changes/", authz.ReadChanges.Or(authz.ScopeChangesRead), ratelimit.User, (*api).listChanges}}
}

// changeView is one change. It holds the id of the changed record, not its data.
type changeView struct {
	Type   string `json:"type"`
	ID     any    `json:"id"`
	Change string `json:"change"`
	At     string `json:"at"`
}

type changesView struct {
	Results    []changeView `json:"results"`
	NextCursor string       `json:"next_cursor"`
	HasMore    bool         `json:"has_more"`
}

func viewChange(c changefeed.Change) changeView {
	return changeView{Type: c.Type, ID: c.ID(), Change: c.Kind, At: validate.FormatInstant(c.At)}
}

// The page size of the change feed.
const defaultChanges, maxChanges = 100, 1000

// latestCursor requests the cursor after the last committed change.
const latestCursor = "latest"

// changePermissions is what a user must be allowed to read, for all patients, to see changes of a type. Source:
// docs/decisions/changes.md, "Visibility".
var changePermissions = map[string]authz.Action{
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

// changeScopes are the scopes of which a client needs one to see changes of a type; none opens time entries. The first is that of
// the REST API. Source: docs/decisions/changes.md, "Visibility".
var changeScopes = map[string]authz.ClientScopes{
	collections.ChangeAlert:        {authz.ScopeAlertsRead, authz.SystemScope("Flag")},
	collections.ChangeCareTeam:     {authz.ScopePatientsRead, authz.SystemScope(audit.ResourceCareTeam)},
	collections.ChangeClaim:        {authz.ScopeBillingRead},
	collections.ChangeConsent:      {authz.ScopePatientsRead},
	collections.ChangeDevice:       {authz.ScopeDevicesRead, authz.SystemScope(audit.ResourceDevice)},
	collections.ChangeEscalation:   {authz.ScopeAlertsRead},
	collections.ChangeObservation:  {authz.ScopeObservationsRead, authz.SystemScope(audit.ResourceObservation)},
	collections.ChangeOrder:        {authz.ScopePatientsRead},
	collections.ChangePatient:      {authz.ScopePatientsRead, authz.SystemScope(audit.ResourcePatient)},
	collections.ChangeSnooze:       {authz.ScopeAlertsRead},
	collections.ChangeTransmission: {authz.ScopeTransmissionsRead},
	collections.ChangeVitalConfig:  {authz.ScopeThresholdsRead},
}

// canReadChanges reports whether the caller may see changes of a type: a client needs a scope to read its records.
func canReadChanges(c *web.Call, noun string) bool {
	if client := c.Caller.Client; client != nil {
		return slices.ContainsFunc(changeScopes[noun], client.Scopes.Allow)
	}
	return authz.ReachOf(c.Caller.Role, changePermissions[noun]) == authz.All
}

// listChanges returns changes after a cursor, in commit order.
func (a *api) listChanges(c *web.Call) error {
	q := c.Query()
	reader := changefeed.Reader{Limit: q.Positive("limit", defaultChanges, maxChanges)}
	requested := readChangeTypes(q)
	if err := q.Err(); err != nil {
		return err
	}
	for _, noun := range requested {
		if !canReadChanges(c, noun) {
			return fault.Denied()
		}
	}
	if requested == nil {
		requested = slices.DeleteFunc(changefeed.Types(), func(noun string) bool { return !canReadChanges(c, noun) })
	}
	reader.Types = requested
	if a.confinedToTeams(c) {
		reader.Team = c.Caller.RecordID
	}
	page, err := readChanges(c, reader, q.Get("since"))
	if err != nil {
		return err
	}
	if err := recordChangesRead(c, page); err != nil {
		return err
	}
	return c.OK(changesView{Results: web.Map(page.Changes, viewChange), NextCursor: page.Next.String(), HasMore: page.More})
}

// readChangeTypes reads the comma-separated types; nil means all.
func readChangeTypes(q *web.Query) (requested []string) {
	if strings.TrimSpace(q.Get("types")) == "" {
		return nil
	}
	for noun := range strings.SplitSeq(q.Get("types"), ",") {
		noun = strings.TrimSpace(noun)
		if _, known := changePermissions[noun]; !known {
			q.Reject("types", "Must be of: "+strings.Join(slices.Sorted(maps.Keys(changePermissions)), ", ")+".")
			return nil
		}
		if !slices.Contains(requested, noun) {
			requested = append(requested, noun)
		}
	}
	return requested
}

func readChanges(c *web.Call, reader changefeed.Reader, since string) (changefeed.Page, error) {
	switch since {
	case "":
		return reader.Read(c.App, changefeed.Oldest())
	case latestCursor:
		next, err := changefeed.Latest(c.App)
		return changefeed.Page{Next: next}, err
	}
	from, err := changefeed.Parse(since)
	if err != nil {
		return changefeed.Page{}, err
	}
	return reader.Read(c.App, from)
}

// recordChangesRead records the patients of the changes shown; an empty page is not recorded.
func recordChangesRead(c *web.Call, page changefeed.Page) error {
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
