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
	"github.com/vigilhealth/vigil/routes/web"
)

// boardRows are the endpoints of the alert, escalation and on-call boards.
func boardRows() []route {
	return []route{
		{http.MethodGet, "/alerts/groups/", authz.ReadAlerts, ratelimit.User, (*api).listAlertGroups},
		{http.MethodPost, "/alerts/acknowledge/", authz.AcknowledgeAlerts, ratelimit.User, actOnAlertsInBulk(alerts.Acknowledge)},
		{http.MethodPost, "/alerts/resolve/", authz.ResolveAlerts, ratelimit.User, actOnAlertsInBulk(alerts.Resolve)},
		{http.MethodPost, "/alerts/undo/", authz.AcknowledgeAlerts, ratelimit.User, (*api).undoAlerts},
		{http.MethodGet, "/escalations/deadlines/", authz.ReadEscalations, ratelimit.User, (*api).readDeadlines},
		{http.MethodGet, "/on-call/", authz.ReadOnCall, ratelimit.User, (*api).readOnCall},
		{http.MethodPut, "/on-call/", authz.SetOnCall, ratelimit.User, (*api).setOnCall},
		{http.MethodGet, "/on-call/now/", authz.ReadOnCall, ratelimit.User, (*api).readOnCallNow},
		{http.MethodGet, "/on-call/turns/", authz.ReadOnCall, ratelimit.User, (*api).listTurns},
	}
}

// bulkResultView is the result for one alert of a bulk action.
type bulkResultView struct {
	ID             int64   `json:"id"`
	Done           bool    `json:"done"`
	Status         *string `json:"status"`
	AcknowledgedBy *string `json:"acknowledged_by"`
	AcknowledgedAt *string `json:"acknowledged_at"`
	ResolvedAt     *string `json:"resolved_at"`
	Code           *string `json:"code"`
	Detail         *string `json:"detail"`
}

// bulkResultsView answers a bulk action; Results are in the order of the request.
type bulkResultsView struct {
	Done    int              `json:"done"`
	Refused int              `json:"refused"`
	Results []bulkResultView `json:"results"`
}

// isClosed reports whether an escalation needs no further action.
func isClosed(e *collections.Escalation) bool { return escalations.Status(e.Status()).IsClosed() }

// actOnAlertsInBulk serves one action with one note on several alerts. Source: docs/decisions/alerts.md, "Several at
// once".
func actOnAlertsInBulk(move alerts.Move) handler {
	return func(a *api, c *web.Call) error {
		if err := c.RejectEmergency(); err != nil { // emergency access covers a single patient
			return err
		}
		chosen, err := web.Read(c, alerts.BulkBody.Read)
		if err != nil {
			return err
		}
		may, refused, err := a.permittedAlerts(c, chosen.Numbers)
		if err != nil {
			return err
		}
		acted, err := triage.ActOnAlerts(c.App, may, alerts.Action{Move: move, Notes: chosen.Notes}, c.Actor(), c.Now)
		return answerBulk(c, chosen.Numbers, acted, refused, err)
	}
}

// undoAlerts reverses the caller's last action on alerts. Source: docs/decisions/alerts.md, "Undo".
func (a *api) undoAlerts(c *web.Call) error {
	if err := c.RejectEmergency(); err != nil {
		return err
	}
	numbers, err := web.Read(c, alerts.UndoBody.Read)
	if err != nil {
		return err
	}
	may, refused, err := a.permittedAlerts(c, numbers)
	if err != nil {
		return err
	}
	acted, err := triage.UndoAlerts(c.App, may, c.Actor(), c.Now)
	return answerBulk(c, numbers, acted, refused, err)
}

// permittedAlerts returns the alerts that the caller may act on, and a fault for each of the others. It applies the
// same checks as the endpoints for a single alert.
func (a *api) permittedAlerts(c *web.Call, numbers []int64) (may []int64, refused map[int64]*fault.Error, err error) {
	refused = map[int64]*fault.Error{}
	reached := map[string]error{}
	for _, number := range numbers {
		alert, err := alerts.Find(c.App, number)
		if err == nil {
			patient := alert.PatientID()
			if _, isChecked := reached[patient]; !isChecked {
				reached[patient] = a.authorizePresentPatient(c, patient)
			}
			err = reached[patient]
		}
		if err == nil && c.Reach == authz.NonCritical && alert.Level() == string(alerts.Critical) {
			err = fault.Denied()
		}
		switch refusal, ok := errors.AsType[*fault.Error](err); {
		case ok && !refusal.IsUnexpected():
			refused[number] = refusal
		case err != nil:
			return nil, nil, err
		default:
			may = append(may, number)
		}
	}
	return may, refused, nil
}

func answerBulk(c *web.Call, numbers []int64, acted map[int64]triage.ActResult, refused map[int64]*fault.Error, err error) error {
	if err != nil {
		return err
	}
	answer := bulkResultsView{Results: []bulkResultView{}}
	for _, number := range numbers {
		one, why := acted[number], refused[number]
		if why == nil {
			why = one.Rejection
		}
		view := bulkResultView{ID: number, Done: why == nil}
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
