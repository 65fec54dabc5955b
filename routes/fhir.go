package routes

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/vigilhealth/vigil/collections"
	"github.com/vigilhealth/vigil/internal/audit"
	"github.com/vigilhealth/vigil/internal/dashboard"
	"github.com/vigilhealth/vigil/internal/emr"
	"github.com/vigilhealth/vigil/internal/fault"
	"github.com/vigilhealth/vigil/internal/fhir"
	"github.com/vigilhealth/vigil/internal/fhirserver"
	"github.com/vigilhealth/vigil/internal/ingest"
	"github.com/vigilhealth/vigil/internal/patients"
	"github.com/vigilhealth/vigil/internal/phi"
	"github.com/vigilhealth/vigil/routes/web"
)

// readFHIRObservation renders a stored observation as a FHIR R4 Observation.
func (a *api) readFHIRObservation(c *web.Call, o ingest.Observation) error {
	names, err := patients.Names(c.App, []string{o.PatientID})
	if err != nil {
		return err
	}
	if !names[o.PatientID].Readable() {
		return &collections.UnreadableError{Collection: collections.Patients, ID: o.PatientID}
	}
	stored, err := a.DeliveryWorker.Load(c.App, o.ID)
	if err != nil {
		return err
	}
	body, err := fhir.Observation(stored, phi.Text(names[o.PatientID].FullName())).Encode()
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.ObservationRead, audit.ResourceObservation, o.ID, o.PatientID); err != nil {
		return err
	}
	return c.Send(http.StatusOK, web.Preferred(c.Request.Header, web.JSONType, fhir.ContentType), body)
}

// readFHIRPatient renders a patient as a FHIR R4 Patient. Every role that may read it sees all of it.
func (a *api) readFHIRPatient(c *web.Call, patient *collections.Patient) error {
	if err := collections.Readable(patient.ProxyRecord()); err != nil {
		return err
	}
	body, err := fhir.Patient(fhirserver.StoredPatient(patient), a.FHIRSystems).Encode()
	if err != nil {
		return err
	}
	if err := c.RecordRead(audit.PatientRead, audit.ResourcePatient, patient.Id, patient.Id); err != nil {
		return err
	}
	return c.Send(http.StatusOK, web.Preferred(c.Request.Header, web.JSONType, fhir.ContentType), body)
}

// Below or above these figures deliveries count as degraded. Source: docs/decisions/transmissions.md, "FHIR status".
const (
	minSuccessRate   = 95.0
	maxAwaitingRetry = 20
)

type fhirStatusView struct {
	Status                 string            `json:"status"`
	EMRConnection          string            `json:"emr_connection"`
	EMRAwaySince           *string           `json:"emr_away_since"`
	LastSuccessfulTransmit *string           `json:"emr_last_successful_transmission"`
	Delivery               *deliveryPlanView `json:"delivery"`
	Queue                  fhirQueueView     `json:"queue"`
	TodayStats             fhirTodayView     `json:"today_stats"`
	Uptime                 string            `json:"uptime"`
	UptimeSeconds          int64             `json:"uptime_seconds"`
}

type fhirQueueView struct {
	manualTasksView

	Pending             int `json:"pending"`
	Processing          int `json:"processing"`
	FailedAwaitingRetry int `json:"failed_awaiting_retry"`
	GivenUp             int `json:"given_up"`
}

type fhirTodayView struct {
	Transmitted int     `json:"transmitted"`
	Failed      int     `json:"failed"`
	SuccessRate float64 `json:"success_rate"`
}

// fhirStatus reports the state of deliveries to the EMR. Today begins at midnight in the practice's zone.
func (a *api) fhirStatus(c *web.Call) error {
	f, err := a.EMR.Client.CountDeliveries(c.App, collections.StartOfDay(c.Now.In(a.Zone)))
	if err != nil {
		return err
	}
	connection, since := a.emrConnection(), a.DeliveryWorker.RunningSince()
	status := fhirHealth(f, connection, !since.IsZero())
	uptime, err := dashboard.Uptime(c.App, status == fhirDown, c.Now)
	if err != nil {
		return err
	}
	view := fhirStatusView{
		Status: status, EMRConnection: connection, LastSuccessfulTransmit: instantOrNull(f.LastTransmitted), Delivery: a.viewDeliveryPlan(),
		Queue:      fhirQueueView{manualTasksView{f.Unlinked, f.CorrectionsDue}, f.Pending, f.Processing, f.AwaitingRetry, f.DeadLetters},
		TodayStats: fhirTodayView{f.Transmitted, f.Failed, f.SuccessRate()},
		Uptime:     fmt.Sprintf("%.1f%%", uptime),
	}
	if connection == "disconnected" {
		view.EMRAwaySince = instantOrNull(a.emrOutageSince())
	}
	if !since.IsZero() {
		view.UptimeSeconds = max(0, int64(c.Now.Sub(since)/time.Second))
	}
	return c.OK(view)
}

// emrConnection is the state of the EMR as last seen by a delivery or the health check, the later of the two.
func (a *api) emrConnection() string {
	_, down := a.DeliveryWorker.Outage()
	seen := a.Monitor.Latest()
	switch {
	case !a.DeliveryWorker.EMR.Configured():
		return "not_configured"
	case down, seen.Services.EMR.Status == dashboard.Down && !a.DeliveryWorker.LastReached().After(seen.At):
		return "disconnected"
	}
	return "connected"
}

// emrOutageSince is the start of the outage as seen by deliveries, else by the health check, which restarts with the
// process.
func (a *api) emrOutageSince() time.Time {
	if since, down := a.DeliveryWorker.Outage(); down {
		return since
	}
	return a.Monitor.Latest().EMRDownSince
}

// fhirDown is the status while no delivery is possible.
const fhirDown = "down"

// fhirHealth sums up the figures. An EMR that is not configured does not count against the service.
func fhirHealth(f emr.DeliveryCounts, connection string, working bool) string {
	switch {
	case connection == "disconnected" || !working:
		return fhirDown
	case f.SuccessRate() < minSuccessRate || f.AwaitingRetry > maxAwaitingRetry || f.DeadLetters > 0:
		return "degraded"
	}
	return "operational"
}

// fhirPath is the prefix of the FHIR reads within the contract.
const fhirPath = web.BasePath + "/fhir/"

// fhirFault renders a fault as an OperationOutcome where FHIR is served and the caller accepts it; elsewhere the
// contract's form applies. Source: docs/decisions/fhir.md, "FHIR read".
func (a *api) fhirFault(row web.Route, r *http.Request, f *fault.Error) (contentType string, body []byte) {
	if isFHIRPath(row.Path) || row.IsUnknown() && isFHIRPath(r.URL.Path) {
		body, err := fhir.OperationOutcome(issuesOf(f)...)
		if err != nil {
			return "", nil
		}
		return fhir.ContentType, body
	}
	served := slices.Contains(a.contract.produces(row), fhir.ContentType) || row.IsUnknown() && strings.HasPrefix(r.URL.Path, fhirPath)
	if !served || web.Preferred(r.Header, web.JSONType, fhir.ContentType) != fhir.ContentType {
		return "", nil
	}
	body, err := fhir.OperationOutcome(issuesOf(f)...)
	if err != nil {
		return "", nil
	}
	return fhir.ContentType, body
}

// isFHIRPath reports whether a path belongs to the FHIR interface, served or not, where all answers are FHIR.
func isFHIRPath(path string) bool { return path == "/fhir" || strings.HasPrefix(path, "/fhir/") }

// produces lists the media types of a row's successful answers. The FHIR interface negotiates its own, because of the
// _format parameter.
func (a *api) produces(row web.Route) []string {
	if isFHIRPath(row.Path) {
		return nil
	}
	return a.contract.produces(row)
}

// typesByCode are the FHIR issue types of faults that have a code more specific than their kind.
var typesByCode = map[string]string{
	fhirserver.CodeNotSupported: "not-supported", fhirserver.CodeTooCostly: "too-costly", fhirserver.CodeTooLong: "too-long", "token_expired": "expired",
}

// issueTypes maps fault kinds to FHIR issue types. Source: FHIR R4, value set issue-type.
var issueTypes = map[fault.Kind]string{
	fault.Internal: "exception", fault.Throttled: "throttled", fault.Unauthenticated: "login", fault.Forbidden: "forbidden", fault.NotFound: "not-found",
	fault.MethodNotAllowed: "not-supported", fault.NotAcceptable: "not-supported", fault.PayloadTooLarge: "too-long",
	fault.UnsupportedMediaType: "not-supported", fault.Invalid: "invalid", fault.Unavailable: "transient", fault.TimedOut: "timeout",
}

func issuesOf(f *fault.Error) []fhir.Issue {
	kind, known := issueTypes[f.Kind]
	if !known {
		kind = "processing"
	}
	if special, known := typesByCode[f.Code]; known {
		kind = special
	}
	issues := []fhir.Issue{{Type: kind, Code: f.Code, Text: f.Detail}}
	for name, complaints := range f.Fields {
		parameter := name
		if name == fault.NonField {
			parameter = ""
		}
		for _, complaint := range complaints {
			issues = append(issues, fhir.Issue{Type: kind, Code: f.Code, Text: name + ": " + complaint, Parameter: parameter})
		}
	}
	slices.SortStableFunc(issues[1:], func(a, b fhir.Issue) int { return strings.Compare(a.Text, b.Text) })
	return issues
}
