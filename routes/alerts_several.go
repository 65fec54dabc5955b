package routes

import (
	"errors"
	"net/http"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/alerts"
	"github.com/vigilhealth/vigil/internal/authz"
	"github.com/vigilhealth/vigil/internal/escalations"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/ratelimit"
	"github.com/vigilhealth/vigil/internal/triage"
	"github.com/vigilhealth/vigil/internal/validate"
	"github.com/vigilhealth/vigil/routes/web"
)

// Boards is what the boards of alerts and escalations are made of.
type Boards struct {
	// Ladder says when the next are told of an escalation that nobody takes.
	Ladder escalations.Ladder
}

// boardRows are what the boards of alerts, escalations and of who is on call ask for.
func boardRows() []route {
	return []route{
		{http.MethodGet, "/alerts/groups/", authz.ReadAlerts, ratelimit.User, (*api).listAlertGroups},
		{http.MethodPost, "/alerts/acknowledge/", authz.AcknowledgeAlerts, ratelimit.User, actOnAlerts(alerts.Acknowledge)},
		{http.MethodPost, "/alerts/resolve/", authz.ResolveAlerts, ratelimit.User, actOnAlerts(alerts.Resolve)},
		{http.MethodPost, "/alerts/undo/", authz.AcknowledgeAlerts, ratelimit.User, (*api).undoAlerts},
		{http.MethodGet, "/escalations/deadlines/", authz.ReadEscalations, ratelimit.User, (*api).readDeadlines},
		{http.MethodGet, "/on-call/", authz.ReadOnCall, ratelimit.User, (*api).readOnCall},
		{http.MethodPut, "/on-call/", authz.SetOnCall, ratelimit.User, (*api).setOnCall},
		{http.MethodGet, "/on-call/now/", authz.ReadOnCall, ratelimit.User, (*api).readOnCallNow},
		{http.MethodGet, "/on-call/turns/", authz.ReadOnCall, ratelimit.User, (*api).listTurns},
	}
}

// actedView is what became of one alert of several.
type actedView struct {
	ID             int64   `json:"id"`
	Done           bool    `json:"done"`
	Status         *string `json:"status"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	ResolvedAt     *string `json:"resolved_at"`
	Code           *string `json:"code"`
	Detail         *string `json:"detail"`
}

// severalView answers what was done with several alerts, in the order in which they were named.
type severalView struct {
	Done    int         `json:"done"`
	Refused int         `json:"refused"`
	Results []actedView `json:"results"`
}

// over reports whether nothing follows of an escalation.
func over(e *collections.Escalation) bool { return escalations.Status(e.Status()).Closed() }

// actOnAlerts serves a move of several alerts with one note. Source: docs/decisions/alerts.md, "Several at once".
func actOnAlerts(move alerts.Move) handler {
	return func(a *api, c *web.Call) error {
		if err := c.RefuseEmergency(); err != nil { // which is one patient's
			return err
		}
		chosen, err := web.Read(c, alerts.ChosenBody.Read)
		if err != nil {
			return err
		}
		may, refused, err := a.mayActOn(c, chosen.Numbers)
		if err != nil {
			return err
		}
		acted, err := triage.ActOnAlerts(c.App, may, alerts.Action{Move: move, Notes: chosen.Notes}, c.Actor(), c.Now)
		return answerSeveral(c, chosen.Numbers, acted, refused, err)
	}
}

// undoAlerts takes back what the caller has just done with alerts. Source: docs/decisions/alerts.md, "Undo".
func (a *api) undoAlerts(c *web.Call) error {
	if err := c.RefuseEmergency(); err != nil {
		return err
	}
	numbers, err := web.Read(c, func(body alerts.UndoBody, checks *validate.Checks) []int64 { return body.Read(checks) })
	if err != nil {
		return err
	}
	may, refused, err := a.mayActOn(c, numbers)
	if err != nil {
		return err
	}
	acted, err := triage.UndoAlerts(c.App, may, c.Actor(), c.Now)
	return answerSeveral(c, numbers, acted, refused, err)
}

// mayActOn are those of some alerts that the caller may act on, as one by one; of the others why not.
func (a *api) mayActOn(c *web.Call, numbers []int64) (may []int64, refused map[int64]*fault.Error, err error) {
	refused = map[int64]*fault.Error{}
	reached := map[string]error{}
	for _, number := range numbers {
		alert, err := alerts.Find(c.App, number)
		if err == nil {
			patient := alert.PatientID()
			if _, asked := reached[patient]; !asked {
				reached[patient] = a.reachPresent(c, patient)
			}
			err = reached[patient]
		}
		if err == nil && c.Scope == authz.NonCritical && alert.Level() == string(alerts.Critical) {
			err = fault.Denied()
		}
		switch refusal, ok := errors.AsType[*fault.Error](err); {
		case ok && !refusal.Unexpected():
			refused[number] = refusal
		case err != nil:
			return nil, nil, err
		default:
			may = append(may, number)
		}
	}
	return may, refused, nil
}

func answerSeveral(c *web.Call, numbers []int64, acted map[int64]triage.Acted, refused map[int64]*fault.Error, err error) error {
	if err != nil {
		return err
	}
	answer := severalView{Results: []actedView{}}
	for _, number := range numbers {
		one, why := acted[number], refused[number]
		if why == nil {
			why = one.Refused
		}
		view := actedView{ID: number, Done: why == nil}
		if why != nil {
			view.Code, view.Detail = &why.Code, &why.Detail
			answer.Refused++
		} else {
			view.Status = new(one.Alert.Status())
			view.AcknowledgedBy, view.AcknowledgedAt = orNull(one.Alert.AcknowledgedBy()), instantOrNull(one.Alert.AcknowledgedAt())
			view.ResolvedAt = instantOrNull(one.Alert.ResolvedAt())
			answer.Done++
		}
		answer.Results = append(answer.Results, view)
	}
	return c.OK(answer)
}
